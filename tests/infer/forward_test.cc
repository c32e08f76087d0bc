// Masks of `heddle forward`: hidden tokens of models that count how far tokens stand apart.
#include "heddle/infer/forward.h"

#include <gtest/gtest.h>

#include "heddle/infer/loading/loaded_model.h"
#include "tests/base/temporary.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

class MaskedT5 : public ::testing::Test {
 protected:
  using Numbers = std::vector<int64_t>;

  std::vector<float> logits(const Numbers& ids, const Numbers& mask,
                            const Numbers& target_mask = {1, 1, 1}) {
    const Numbers target = {0, 5, 6};
    std::vector<NamedTensorView> views;
    const auto add = [&](const char* name, const Numbers& x) {
      views.push_back({name, DType::i64, {1, std::ssize(x)}, std::as_bytes(std::span(x))});
    };
    add("input_ids", ids), add("attention_mask", mask);
    add("decoder_input_ids", target), add("decoder_attention_mask", target_mask);
    write_safetensors(dir_ / "in", views);
    forward_tensors(*model_.model, SafetensorsFile::open(dir_ / "in"), dir_ / "out", {});
    return SafetensorsFile::open(dir_ / "out").info("logits").floats();
  }

 private:
  TemporaryFolder dir_;
  const LoadedModel model_ = load_model(std::string(testing::kFixtures) + "/seq2seq/t5",
                                        {.tokenizers = LoadOptions::Tokenizers::none});
};

TEST_F(MaskedT5, padding_on_either_side_changes_nothing) {
  const std::vector<float> plain = logits({7, 8, 9, 1}, {1, 1, 1, 1});
  EXPECT_EQ(logits({7, 8, 9, 1, 0, 0}, {1, 1, 1, 1, 0, 0}), plain);
  EXPECT_EQ(logits({0, 0, 7, 8, 9, 1}, {0, 0, 1, 1, 1, 1}), plain);
}

TEST_F(MaskedT5, a_hole_is_refused_by_name) {
  expect_error(ErrorKind::data, {"attention_mask hides [0, 2]", "t5"}, [&] {
    logits({7, 8, 0, 9, 1}, {1, 1, 0, 1, 1});
  });
  expect_error(ErrorKind::data, {"decoder_attention_mask hides [0, 1]"}, [&] {
    logits({7, 8, 9, 1}, {1, 1, 1, 1}, {1, 0, 1});
  });
}

}  // namespace
}  // namespace heddle
