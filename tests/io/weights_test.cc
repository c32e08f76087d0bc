// The files in which a folder may keep its weights: whole, in shards, of either format.
#include "heddle/io/tensor_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/io/safetensors.h"
#include "tests/base/temporary.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6};

void write_shard(const std::string& path, const std::vector<std::string>& names, float first) {
  std::vector<float> values = kValues;
  values[0] = first;
  std::vector<NamedTensorView> views;
  for (const std::string& name : names) {
    views.push_back({name, DType::f32, {2, 3}, std::as_bytes(std::span(values))});
  }
  write_safetensors(path, views);
}

// A folder with a and b in one shard, c in the other.
class Shards : public ::testing::Test {
 protected:
  Shards() {
    write_shard(folder_ / "1.safetensors", {"a", "b"}, 10);
    write_shard(folder_ / "2.safetensors", {"c"}, 20);
  }
  void write_index(const std::string& map) {
    folder_.write(kWeightsIndexName,
                  R"({"metadata": {"total_size": 72}, "weight_map": )" + map + "}");
  }
  void expect_refused(std::vector<std::string> words) {
    expect_error(ErrorKind::data, words, [&] { open_weights(folder_.path()); });
  }
  static float first_of(const TensorFile& file, const std::string& name) {
    return file.in_place(file.info(name).bytes, {2, 3}, DType::f32).data<float>()[0];
  }

  TemporaryFolder folder_;
};

TEST_F(Shards, tensors_are_found_where_the_index_says) {
  write_index(R"({"a": "1.safetensors", "b": "1.safetensors", "c": "2.safetensors"})");
  const auto file = open_weights(folder_.path());
  EXPECT_EQ(file->names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(file->path(), folder_ / kWeightsIndexName);
  EXPECT_EQ(file->elements(), 18);
  EXPECT_EQ(first_of(*file, "b"), 10);
  EXPECT_EQ(first_of(*file, "c"), 20);
  EXPECT_NO_THROW(file->verify());
}

TEST_F(Shards, altered_shard_is_found_by_its_checksum) {
  write_index(R"({"a": "1.safetensors", "c": "2.safetensors"})");
  std::string bytes = read_file(folder_ / "2.safetensors");
  bytes.back() ^= 1;
  folder_.write("2.safetensors", bytes);
  const auto file = open_weights(folder_.path());
  expect_error(ErrorKind::data, {"2.safetensors", "checksum"}, [&] { file->verify(); });
}

TEST_F(Shards, missing_shards_and_tensors_are_data_errors) {
  write_index(R"({"a": "1.safetensors", "c": "3.safetensors"})");
  expect_refused({kWeightsIndexName, "the shard 3.safetensors is missing; it holds 'c'"});
  write_index(R"({"a": "1.safetensors", "x": "2.safetensors"})");
  expect_refused({"tensor 'x' should be in", "2.safetensors"});
}

TEST_F(Shards, names_that_leave_the_folder_are_data_errors) {
  for (const char* shard : {"../1.safetensors", "/etc/passwd", "..", "", ".", "a/b"}) {
    write_index(fmt::format(R"({{"a": "{}"}})", shard));
    expect_refused({"tensor 'a' is said to be in", "a file of the same folder"});
  }
}

TEST_F(Shards, index_without_sense_is_a_data_error) {
  write_index("{}");
  expect_refused({"weight_map", "is empty"});
  write_index(R"({"a": 1})");
  expect_refused({"'a' is the number 1"});
  write_index(R"({"a": "1.safetensors", "a": "2.safetensors"})");
  expect_refused({"'a' appears twice"});
  folder_.write(kWeightsIndexName, "{}");
  expect_refused({"'weight_map' is missing"});
}

TEST_F(Shards, whole_file_comes_before_shards_and_safetensors_before_pytorch) {
  std::filesystem::copy(std::string(testing::kFixtures) + "/torch/every_dtype.bin",
                        folder_ / kTorchWeightsName);
  EXPECT_TRUE(open_weights(folder_.path())->contains("transposed"));
  write_index(R"({"a": "1.safetensors"})");
  EXPECT_TRUE(open_weights(folder_.path())->contains("a"));
  write_shard(folder_ / kWeightsName, {"whole"}, 1);
  EXPECT_TRUE(open_weights(folder_.path())->contains("whole"));
}

TEST_F(Shards, shards_of_pytorch_are_read) {
  std::filesystem::copy(std::string(testing::kFixtures) + "/torch/every_dtype.bin",
                        folder_ / "p-1.bin");
  std::filesystem::copy(std::string(testing::kFixtures) + "/torch/before_1_6.bin",
                        folder_ / "p-2.bin");
  folder_.write(kTorchIndexName, R"({"weight_map": {"table": "p-1.bin", "rows": "p-2.bin"}})");
  const auto file = open_weights(folder_.path());
  EXPECT_EQ(file->info("rows").shape, (std::vector<int64_t>{3, 4}));
  EXPECT_NO_THROW(file->verify());
}

TEST(Weights, folder_without_any_says_what_was_looked_for) {
  TemporaryFolder folder;
  expect_error(
      ErrorKind::data,
      {folder.path(), "the weights are missing", kWeightsName, kTorchWeightsName, kTorchIndexName},
      [&] { open_weights(folder.path()); });
}

}  // namespace
}  // namespace heddle
