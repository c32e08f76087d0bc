// The safetensors format: round trips, deterministic bytes, and hostile files.
#include "heddle/io/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <numeric>
#include <random>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

std::string with_header(const std::string& header, const std::string& data = "") {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

std::string entry(const char* dtype, const char* shape, const char* offsets) {
  return fmt::format(R"({{"dtype":"{}","shape":{},"data_offsets":{}}})", dtype, shape, offsets);
}

/// Expects a data error that names the file and holds the words.
void expect_refused(const std::string& bytes, std::vector<std::string> words) {
  TemporaryFolder folder;
  const std::string path = folder.write("x.safetensors", bytes);
  words.push_back(path);
  expect_error(ErrorKind::data, words, [&] { SafetensorsFile::open(path); });
}

std::vector<NamedTensorView> sample(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {{"weight", DType::f32, {2, 3}, bytes.first(24)},
          {"alpha", DType::bf16, {3}, bytes.first(6)},
          {"scalar", DType::f64, {}, bytes.first(8)},
          {"empty", DType::i64, {0, 5}, {}},
          {"bool", DType::boolean, {3}, bytes.first(3)}};
}

TEST(Safetensors, written_file_reads_back_with_every_dtype) {
  TemporaryFolder folder;
  std::vector<uint8_t> bytes(64);
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  std::vector<NamedTensorView> tensors;
  for (int i = 0; i < 10; ++i) {
    const auto dtype = static_cast<DType>(i);
    const auto size = static_cast<size_t>(6 * size_of(dtype));
    tensors.push_back(
        {fmt::format("t{}", i), dtype, {2, 3}, std::as_bytes(std::span(bytes)).first(size)});
  }
  write_safetensors(folder / "m", tensors, {{"format", "pt"}, {"x", "\"\n"}});
  const SafetensorsFile file = SafetensorsFile::open(folder / "m");
  EXPECT_EQ(file.names().size(), 10u);
  EXPECT_EQ(file.metadata().at("x"), "\"\n");
  const std::byte* start = file.info("t3").bytes.data();  // f64 comes first
  for (const NamedTensorView& tensor : tensors) {
    const StoredTensor& info = file.info(tensor.name);
    EXPECT_EQ(info.dtype, tensor.dtype);
    EXPECT_EQ(info.shape, tensor.shape);
    EXPECT_EQ(info.elements(), 6);
    ASSERT_EQ(info.bytes.size(), tensor.bytes.size());
    EXPECT_EQ(std::memcmp(info.bytes.data(), tensor.bytes.data(), info.bytes.size()), 0);
    EXPECT_EQ((info.bytes.data() - start) % size_of(info.dtype), 0) << tensor.name;
  }
}

TEST(Safetensors, order_of_tensors_does_not_change_the_bytes) {
  TemporaryFolder folder;
  const std::vector<float> values(6, 1.5f);
  std::vector<NamedTensorView> tensors = sample(values);
  write_safetensors(folder / "a", tensors);
  std::reverse(tensors.begin(), tensors.end());
  write_safetensors(folder / "b", tensors);
  EXPECT_EQ(read_file(folder / "a"), read_file(folder / "b"));
  EXPECT_EQ(read_file(folder / "a")[0] % 8, 0);  // the header's length
}

TEST(Safetensors, altered_data_fails_verification_wherever_it_is) {
  TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  write_safetensors(folder / "a", sample(values));
  SafetensorsFile::open(folder / "a").verify();
  const std::string whole = read_file(folder / "a");
  for (size_t place = whole.size() - 41; place < whole.size(); ++place) {  // 41 bytes of data
    std::string bytes = whole;
    bytes[place] ^= 1;
    const std::string path = folder.write("b", bytes);
    const SafetensorsFile file = SafetensorsFile::open(path);
    expect_error(ErrorKind::data, {path, "altered"}, [&] { file.verify(); });
  }
}

TEST(Safetensors, the_checksum_is_that_of_the_tensors_checksums_by_name) {
  TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const auto bytes = std::as_bytes(std::span(values));
  write_safetensors(folder / "a", {{"small", DType::f32, {1}, bytes.first(4)},
                                   {"large", DType::f32, {6}, bytes}});
  const std::string text =
      "large " + checksum(bytes) + "\nsmall " + checksum(bytes.first(4)) + "\n";
  EXPECT_EQ(SafetensorsFile::open(folder / "a").metadata().at(kChecksumKey), checksum(text));
}

Tensor weight_in_place(const SafetensorsFile& file) {
  const StoredTensor& info = file.info("weight");
  return file.in_place(info.bytes, Shape(info.shape), info.dtype);
}

TEST(Safetensors, a_tensor_in_place_outlives_the_file_and_its_name) {
  TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::string path = folder / "a";
  write_safetensors(path, sample(values));
  Tensor weight;
  {
    const SafetensorsFile file = SafetensorsFile::open(path, Mapping::own_copy);
    weight = weight_in_place(file);
    ASSERT_TRUE(weight.defined());
    EXPECT_EQ(weight.raw(), file.info("weight").bytes.data());
  }
  remove_path(path);
  EXPECT_EQ(weight.to_floats(), values);
}

TEST(Safetensors, writing_to_a_tensor_in_place_leaves_the_file_alone) {
  TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  write_safetensors(folder / "a", sample(values));
  const std::string before = read_file(folder / "a");
  const SafetensorsFile file = SafetensorsFile::open(folder / "a", Mapping::own_copy);
  const Tensor weight = weight_in_place(file);
  weight.data<float>()[2] = 30;
  EXPECT_EQ(weight.to_floats(), (std::vector<float>{1, 2, 30, 4, 5, 6}));
  EXPECT_EQ(read_file(folder / "a"), before);
  SafetensorsFile::open(folder / "a").verify();
}

TEST(Safetensors, what_is_read_only_or_misaligned_cannot_be_used_in_place) {
  TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  write_safetensors(folder / "a", sample(values));
  EXPECT_FALSE(weight_in_place(SafetensorsFile::open(folder / "a")).defined());
  for (int spaces = 0; spaces < 4; ++spaces) {
    const std::string header =
        "{\"weight\":" + entry("F32", "[1]", "[0,4]") + "}" + std::string(spaces, ' ');
    const std::string path = folder.write("b", with_header(header, "1234"));
    const SafetensorsFile file = SafetensorsFile::open(path, Mapping::own_copy);
    EXPECT_EQ(weight_in_place(file).defined(), (8 + header.size()) % 4 == 0) << spaces;
  }
}

TEST(Safetensors, tensors_with_a_place_lie_in_its_order) {
  TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3};
  const auto one = [&](const char* name, size_t i, const char* place) {
    return NamedTensorView{
        name, DType::f32, {1}, std::as_bytes(std::span(values)).subspan(4 * i, 4), place};
  };
  write_safetensors(folder / "a", {one("k", 0, "p1"), one("q", 1, "p0"), one("o", 2, "")});
  const SafetensorsFile file = SafetensorsFile::open(folder / "a");
  EXPECT_EQ(file.names(), (std::vector<std::string>{"o", "q", "k"}));
  file.verify();
}

TEST(Safetensors, empty_tensors_of_several_dtypes_pass_verification) {
  TemporaryFolder folder;
  write_safetensors(folder / "a", {{"z", DType::f64, {0}}, {"a", DType::f32, {0}}});
  SafetensorsFile::open(folder / "a").verify();
}

TEST(Safetensors, file_of_another_program_passes_verification) {
  TemporaryFolder folder;
  const std::string header = "{\"a\":" + entry("F32", "[1]", "[0,4]") + "}";
  SafetensorsFile::open(folder.write("a", with_header(header, "1234"))).verify();
}

TEST(Safetensors, file_of_no_tensors_reads_back) {
  TemporaryFolder folder;
  write_safetensors(folder / "a", {});
  EXPECT_TRUE(SafetensorsFile::open(folder / "a").names().empty());
}

TEST(Safetensors, missing_tensor_names_the_nearest) {
  TemporaryFolder folder;
  const std::vector<float> values(6);
  write_safetensors(folder / "a", sample(values));
  const SafetensorsFile file = SafetensorsFile::open(folder / "a");
  EXPECT_EQ(file.find("wieght"), nullptr);
  expect_error(ErrorKind::data, {"no tensor 'wieght'", "nearest is 'weight'"},
               [&] { file.info("wieght"); });
}

TEST(Safetensors, repeated_name_or_wrong_size_is_not_written) {
  TemporaryFolder folder;
  const std::vector<float> values(6);
  auto tensors = sample(values);
  tensors[1].name = "weight";
  expect_error(ErrorKind::internal, {"'weight' is taken"},
               [&] { write_safetensors(folder / "a", tensors); });
  tensors = sample(values);
  tensors[0].shape = {7};
  expect_error(ErrorKind::internal, {"'weight'", "[7]", "24 bytes"},
               [&] { write_safetensors(folder / "a", tensors); });
  EXPECT_TRUE(list_directory(folder.path()).empty());
}

TEST(Safetensors, missing_empty_and_tiny_files_are_data_errors) {
  expect_error(ErrorKind::data, {"/none/x.safetensors", "No such file"},
               [] { SafetensorsFile::open("/none/x.safetensors"); });
  expect_refused("", {"empty"});
  expect_refused("1234567", {"7 bytes are too few"});
  expect_refused(with_header(""), {"does not begin with '{'"});
}

TEST(Safetensors, header_length_beyond_file_is_a_data_error) {
  std::string bytes = with_header("{}");
  bytes[0] = 3;
  expect_refused(bytes, {"claims 3 bytes", "the file has 10"});
  for (int top : {0x80, 0x7f, 0xff}) {
    bytes[7] = static_cast<char>(top);
    expect_refused(bytes, {"the file has 10"});
  }
  expect_refused(std::string(7, '\0') + "\x80{}", {"claims 9223372036854775808 bytes"});
}

TEST(Safetensors, broken_headers_are_data_errors) {
  expect_refused(with_header("{\"a\":}"), {"not valid JSON at column 6"});
  expect_refused(with_header("[]"), {"'{'"});
  expect_refused(with_header("{\"a\":" + std::string(100'000, '[')),
                 {"tensor 'a'", "100000 bytes"});
  expect_refused(with_header("{\"a\":" + std::string(1000, '[')), {"tensor 'a'", "200 levels"});
  expect_refused(with_header("{\"a"), {"column 4, where the text ends"});
  expect_refused(with_header("{\"a\":{}"), {"dtype"});
  expect_refused(with_header("{} {}"), {"column 4: the end is needed"});
  expect_refused(with_header("{,}"), {"a name in quotes is needed"});
  expect_refused(with_header("{\"a\" 1}"), {"':' is needed"});
  expect_refused(with_header("{\"a\":1]}"), {"tensor 'a' is the number 1"});
  expect_refused(with_header("{\"a\":1}"), {"tensor 'a' is the number 1; an object"});
  expect_refused(with_header(R"({"a":{"dtype":"F32","shape":[]}})"), {"'data_offsets' is missing"});
  expect_refused(with_header(R"({"__metadata__":{"a":1}})"), {"__metadata__: 'a'"});
  const std::string one = entry("F32", "[1]", "[0,4]");
  expect_refused(with_header("{\"a\":" + one + ",\"a\":" + one + "}", "1234"),
                 {"'a' appears twice"});
  expect_refused(with_header("{\"a\":" + entry("F8_E4M3", "[4]", "[0,4]") + "}", "1234"),
                 {"tensor 'a' has dtype 'F8_E4M3'"});
}

TEST(Safetensors, sizes_that_disagree_are_data_errors) {
  const auto refuse = [](const char* shape, const char* place, std::vector<std::string> words) {
    expect_refused(with_header("{\"a\":" + entry("F32", shape, place) + "}", "12345678"), words);
  };
  refuse("[3]", "[0,8]", {"tensor 'a'", "[3] needs 12 bytes", "span 8"});
  refuse("[-2]", "[0,8]", {"impossible shape [-2]"});
  refuse("[4294967296,4294967296]", "[0,8]", {"impossible shape"});
  refuse("[4611686018427387906]", "[0,8]", {"impossible shape"});  // 4 times that is 8 mod 2^64
  refuse("[2]", "[8,0]", {"data_offsets [8, 0]"});
  refuse("[2]", "[-8,0]", {"data_offsets [-8, 0]"});
  refuse("[2]", "[0]", {"data_offsets [0]"});
  refuse("[2.5]", "[0,8]", {"shape[0] is the number 2.5"});
  refuse("[18446744073709551618]", "[0,8]", {"shape[0]"});
  refuse("[1]", "[4,8]", {"4 bytes before tensor 'a'"});
  refuse("[1]", "[0,4]", {"the bytes after them belong to none"});
  refuse("[3]", "[0,12]", {"tensor 'a' ends at byte 75 but the file has 71", "cut short"});
  refuse("[0]", "[9223372036854775807,9223372036854775807]", {"before tensor 'a'"});
  refuse("[2305843009213693951]", "[0,9223372036854775804]", {"tensor 'a' ends at byte"});
}

TEST(Safetensors, more_axes_than_a_tensor_has_are_a_data_error_that_names_it) {
  const std::string header = "{\"a\":" + entry("F32", "[1,1,1,1,1,1,2]", "[0,8]") + "}";
  expect_refused(with_header(header, "12345678"), {"tensor 'a' has 7 axes", "at most 6"});
}

TEST(Safetensors, overlapping_tensors_are_a_data_error) {
  expect_refused(with_header("{\"a\":" + entry("F32", "[2]", "[0,8]") +
                                 ",\"b\":" + entry("F32", "[2]", "[4,12]") + "}",
                             std::string(12, 'x')),
                 {"tensor 'b' begins at byte", "inside the tensor before it"});
}

TEST(Safetensors, truncation_at_every_byte_is_a_data_error) {
  TemporaryFolder folder;
  const std::vector<float> values(6, 1.0f);
  write_safetensors(folder / "a", sample(values), {{"k", "v"}});
  const std::string whole = read_file(folder / "a");
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string path = folder.write("cut", whole.substr(0, size));
    expect_error(ErrorKind::data, {path}, [&] { SafetensorsFile::open(path); });
  }
}

TEST(Safetensors, mutated_files_are_read_or_refused_and_never_crash) {
  TemporaryFolder folder;
  const std::vector<float> values(6, 1.0f);
  write_safetensors(folder / "a", sample(values), {{"k", "v"}});
  const std::string whole = read_file(folder / "a");
  const std::string digits = "0123456789{}[]\",:-eE. tfn\\u\xff";
  std::mt19937_64 random(7);
  int64_t refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = whole;
    for (uint64_t n = random() % 4 + 1; n > 0; --n) {
      const size_t place = random() % (bytes.size() - 8) + (random() % 8 == 0 ? 0 : 8);
      switch (random() % 4) {
        case 0: bytes[place] = static_cast<char>(random()); break;
        case 1: bytes[place] = digits[random() % digits.size()]; break;
        case 2: bytes.erase(place, random() % 9); break;
        default: bytes.insert(place, 1, digits[random() % digits.size()]);
      }
    }
    const std::string path = folder.write("m", bytes);
    try {
      const SafetensorsFile file = SafetensorsFile::open(path);
      unsigned sum = 0;  // touch every byte that the file admits to
      for (const std::string& name : file.names()) {
        for (std::byte b : file.info(name).bytes) sum += std::to_integer<unsigned>(b);
      }
      EXPECT_LT(sum, 1u << 20);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);  // most mutations hit the header
}

}  // namespace
}  // namespace heddle
