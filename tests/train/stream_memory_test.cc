// Memories of streams: which batch sees what, and what a state keeps of them.
#include "heddle/train/batches/stream_memory.h"

#include <gtest/gtest.h>

#include "tests/base/temporary.h"

namespace heddle::train {
namespace {

nn::Memory memory_of(int64_t streams, float value) {
  return {Segments::uniform(streams, 3),
          {Tensor::full({streams * 3, 2}, value), Tensor::full({streams * 3, 2}, -value)}};
}

float value_of(const nn::Memory& memory) { return memory.layers.at(0).data<float>()[0]; }

TEST(StreamMemory, each_batch_sees_what_the_one_before_left) {
  StreamMemory m;
  EXPECT_TRUE(m.before({0, 0}, 0).layers.empty());
  m.put({0, 0}, 0, memory_of(2, 1));
  m.put({0, 0}, 2, memory_of(1, 5));
  EXPECT_EQ(value_of(m.before({0, 1}, 0)), 1);
  EXPECT_EQ(value_of(m.before({0, 1}, 2)), 5);
  m.put({0, 1}, 0, memory_of(2, 2));
  EXPECT_EQ(value_of(m.before({0, 1}, 0)), 1);  // the same batch again
  m.put({0, 1}, 0, memory_of(2, 2));
  EXPECT_EQ(value_of(m.before({0, 2}, 0)), 2);
  EXPECT_TRUE(m.before({1, 0}, 0).layers.empty());
  expect_error(ErrorKind::data, {"stream 0", "batch 7"}, [&] { m.before({0, 7}, 0); });
}

TEST(StreamMemory, comes_back_from_its_tensors) {
  StreamMemory m;
  m.put({2, 4}, 0, memory_of(2, 1));
  m.put({2, 4}, 2, memory_of(3, 5));
  StreamMemory again;
  again.restore(m.tensors(), {2, 5}, 5);
  const nn::Memory second = again.before({2, 5}, 2);
  EXPECT_EQ(second.segments.count(), 3);
  EXPECT_EQ(second.segments.length(1), 3);
  EXPECT_EQ(second.layers.size(), 2u);
  EXPECT_EQ(second.layers[1].data<float>()[17], -5);
  EXPECT_EQ(again.before({2, 5}, 0).layers[0].dtype(), DType::f32);
}

TEST(StreamMemory, tensors_that_do_not_fit_are_data_errors) {
  const auto refused = [](const std::string& name, const Tensor& tensor) {
    expect_error(ErrorKind::data, {"state of this run"}, [&] {
      StreamMemory().restore({{name, tensor}}, {0, 1}, 4);
    });
  };
  const Tensor good = Tensor::zeros({8, 2}, DType::f32);
  StreamMemory().restore({{"memory.0.0", good}}, {0, 1}, 4);
  refused("memory", good);
  refused("memory.0", good);
  refused("memory.x.0", good);
  refused("memory.0.0x", good);
  refused("memory.4.0", good);
  refused("memory.-1.0", good);
  refused("memory.0.0", Tensor::zeros({7, 2}, DType::f32));
  refused("memory.0.0", Tensor::zeros({8}, DType::f32));
}

}  // namespace
}  // namespace heddle::train
