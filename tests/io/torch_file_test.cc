// Files of torch.save against the same tensors as safetensors, and hostile ones.
#include "heddle/io/torch_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/io/safetensors.h"
#include "tests/base/temporary.h"
#include "tests/io/archives.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

using std::string_literals::operator""s;
using testing::named;
using testing::number;
using testing::pickled;
using testing::pickled_dict;
using testing::PickledTensor;
using testing::zip_of;

std::string fixture(const std::string& name) {
  return std::string(testing::kFixtures) + "/torch/" + name;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const std::string kSixFloats(24, '\x3f');

// An archive of one dict; storage 0 holds six floats.
std::string archive(const std::string& pickle,
                    std::vector<std::pair<std::string, std::string>> more = {}) {
  std::vector<std::pair<std::string, std::string>> files = {{"m/data.pkl", pickle},
                                                            {"m/data/0", kSixFloats}};
  files.insert(files.end(), more.begin(), more.end());
  return zip_of(files);
}

std::string archive_of(const PickledTensor& tensor) {
  return archive(pickled_dict({{"w", tensor.text()}}));
}

void expect_refused(const std::string& bytes, std::vector<std::string> words) {
  TemporaryFolder folder;
  const std::string path = folder.write("x.bin", bytes);
  words.push_back(path);
  expect_error(ErrorKind::data, words, [&] { TorchFile::open(path).verify(); });
}

class TorchForms : public ::testing::TestWithParam<const char*> {};

TEST_P(TorchForms, every_tensor_is_that_of_safetensors) {
  const TorchFile file = TorchFile::open(fixture(GetParam()));
  const auto expected = SafetensorsFile::open(fixture("every_dtype.safetensors"));
  EXPECT_EQ(std::set(file.names().begin(), file.names().end()),
            std::set(expected.names().begin(), expected.names().end()));
  for (const std::string& name : expected.names()) {
    EXPECT_EQ(file.info(name).dtype, expected.info(name).dtype) << name;
    EXPECT_EQ(file.info(name).shape, expected.info(name).shape) << name;
    EXPECT_EQ(text_of(file.info(name).bytes), text_of(expected.info(name).bytes)) << name;
  }
  EXPECT_EQ(file.elements(), expected.elements());
  EXPECT_NO_THROW(file.verify());
}

INSTANTIATE_TEST_SUITE_P(Forms, TorchForms, ::testing::Values("every_dtype.bin", "before_1_6.bin"),
                         [](const auto& form) {
                           return std::string(form.param).substr(0, strlen(form.param) - 4);
                         });

TEST(TorchFile, tensors_in_order_are_used_in_place_and_others_are_not) {
  const TorchFile file = TorchFile::open(fixture("every_dtype.bin"), Mapping::own_copy);
  const auto in_place = [&](const char* name) {
    const StoredTensor& info = file.info(name);
    return file.in_place(info.bytes, Shape(info.shape), info.dtype);
  };
  for (const char* name : {"table", "tied", "rows", "one_row", "plain.bfloat16"}) {
    EXPECT_TRUE(in_place(name).defined()) << name;
  }
  for (const char* name : {"transposed", "columns", "expanded"}) {
    EXPECT_FALSE(in_place(name).defined()) << name;
  }
  EXPECT_EQ(file.info("tied").bytes.data(), file.info("table").bytes.data());
  EXPECT_EQ(file.info("rows").bytes.data(), file.info("table").bytes.data() + 2 * 4 * 4);
}

TEST(TorchFile, tensor_in_place_outlives_the_file) {
  Tensor table;
  {
    const TorchFile file = TorchFile::open(fixture("every_dtype.bin"), Mapping::own_copy);
    table = file.in_place(file.info("table").bytes, {6, 4}, DType::f32);
  }
  const auto expected = SafetensorsFile::open(fixture("every_dtype.safetensors"));
  EXPECT_EQ(std::memcmp(table.data<float>(), expected.info("table").bytes.data(), 96), 0);
}

TEST(TorchFile, pickle_that_would_run_a_command_is_refused_and_not_run) {
  expect_error(ErrorKind::data, {"command.bin", "'posix.system'", "it was not run"},
               [] { TorchFile::open(fixture("command.bin")); });
  EXPECT_FALSE(path_exists("heddle-was-here"));
}

TEST(TorchFile, dtype_that_heddle_lacks_is_refused_by_name) {
  expect_error(ErrorKind::data, {"tensor 'odd' has torch.ComplexFloatStorage", "bf16"},
               [] { TorchFile::open(fixture("unknown_dtype.bin")); });
}

TEST(TorchFile, untyped_storage_gets_its_dtype_from_the_tensor) {
  PickledTensor t;
  std::string text = t.text();
  const std::string old = named("torch", "FloatStorage"), v2 = "_rebuild_tensor_v2\n";
  text.replace(text.find(old), old.size(), named("torch.storage", "UntypedStorage"));
  text.replace(text.find(v2), v2.size(), "_rebuild_tensor_v3\n");
  text.replace(text.find(pickled(6)), pickled(6).size(), pickled(24));
  const std::string last = "\x89" + named("collections", "OrderedDict") + ")R";
  text.replace(text.find(last), last.size(), last + named("torch", "int32"));
  TemporaryFolder folder;
  const TorchFile file =
      TorchFile::open(folder.write("x.bin", archive(pickled_dict({{"w", text}}))));
  EXPECT_EQ(file.info("w").dtype, DType::i32);
  EXPECT_EQ(file.info("w").bytes.size(), 24u);
}

TEST(TorchFile, views_beyond_their_storage_are_data_errors) {
  expect_refused(archive_of({.offset = 1}), {"tensor 'w'", "from element 1", "beyond the 6"});
  expect_refused(archive_of({.sizes = {2, 4}}), {"beyond the 6 elements"});
  expect_refused(archive_of({.strides = {4, 1}}), {"beyond the 6"});
  expect_refused(archive_of({.offset = -1}), {"offset is -1"});
  expect_refused(archive_of({.strides = {-3, 1}}), {"strides is -3"});
  expect_refused(archive_of({.sizes = {-2, 3}}), {"sizes is -2"});
  expect_refused(archive_of({.sizes = {2}}), {"1 sizes but 2 strides"});
  expect_refused(archive_of({.offset = INT64_MAX}), {"beyond the 6"});
  expect_refused(archive_of({.strides = {INT64_MAX, INT64_MAX}}), {"beyond the 6"});
  expect_refused(archive_of({.sizes = {1LL << 40, 1LL << 40}}), {"impossible shape"});
  expect_refused(archive_of({.sizes = {INT64_MAX, 3}, .strides = {0, 1}}), {"impossible shape"});
  // Much made of little, by a stride of 0: a copy of 12 TB.
  expect_refused(archive_of({.sizes = {1LL << 40, 3}, .strides = {0, 1}}),
                 {"would take 13194139533312 bytes", "contiguous()"});
}

TEST(TorchFile, more_axes_than_a_tensor_has_are_a_data_error_that_names_it) {
  const std::vector<int64_t> seven(7, 1), many(100'000, 1);
  expect_refused(archive_of({.count = 6, .sizes = seven, .strides = seven}),
                 {"x.bin", "tensor 'w': sizes are 7 numbers", "at most 6 axes"});
  expect_refused(archive_of({.sizes = many, .strides = many}), {"sizes are 100000 numbers"});
  expect_refused(archive_of({.strides = seven}), {"strides are 7 numbers"});
}

TEST(TorchFile, storages_that_are_missing_or_of_another_size_are_data_errors) {
  expect_refused(archive_of({.key = "7"}), {"lies in storage '7', which is not there"});
  expect_refused(archive_of({.key = "../data.pkl"}), {"'../data.pkl', which is not there"});
  expect_refused(archive_of({.count = 5}), {"has 24 bytes, but tensor 'w' says 20"});
  expect_refused(archive_of({.count = INT64_MAX}), {"claims 9223372036854775807 elements"});
  expect_refused(archive_of({.storage = "QInt8Storage"}), {"torch.QInt8Storage"});
}

TEST(TorchFile, dicts_that_hold_no_tensors_or_one_twice_are_data_errors) {
  const std::string tensor = PickledTensor().text();
  expect_refused(archive(pickled_dict({{"w", tensor}, {"w", tensor}})), {"'w' appears twice"});
  expect_refused(archive("\x80\x02K\x07."), {"holds an integer, not a dict"});
  expect_refused(archive("\x80\x02" + tensor + "."), {"_rebuild_tensor_v2, not a dict"});
  expect_refused(archive(pickled_dict({{"model", "}"}, {"epoch", "K\x01"}})),
                 {"none of its entries is a tensor ('model', 'epoch')", "state_dict()"});
  expect_refused(archive("\x80\x02}(K\x07" + tensor + "u."), {"an integer is a tensor's name"});
  const std::string bare = named("torch._utils", "_rebuild_tensor_v2") + ")R";
  expect_refused(archive(pickled_dict({{"w", bare}})), {"made with 0 arguments"});
  const std::string nested = named("torch._utils", "_rebuild_parameter") + "K\x01\x85R";
  expect_refused(archive(pickled_dict({{"w", nested}})), {"a parameter of an integer"});
  const std::string storage_of_none =
      named("torch._utils", "_rebuild_tensor_v2") + testing::tuple({"N", "K\x00"s, ")", ")"}) + "R";
  expect_refused(archive(pickled_dict({{"w", storage_of_none}})), {"the storage of tensor 'w' is"});
}

TEST(TorchFile, list_that_holds_itself_as_sizes_is_a_data_error) {
  const std::string tensor =
      named("torch._utils", "_rebuild_tensor_v2") +
      testing::tuple({testing::tuple({pickled("storage"), named("torch", "FloatStorage"),
                                      pickled("0"), "N", "K\x06"}) +
                          "Q",
                      "K\x00"s,
                      "]q\x05h\x05"
                      "a",
                      "h\x05"}) +
      "R";
  expect_refused(archive(pickled_dict({{"w", tensor}})), {"sizes is a list"});
}

TEST(TorchFile, empty_dict_has_no_tensors) {
  TemporaryFolder folder;
  EXPECT_TRUE(TorchFile::open(folder.write("x.bin", archive("\x80\x02}."))).names().empty());
}

TEST(TorchFile, files_of_other_kinds_are_refused_by_name) {
  expect_refused("hello", {"neither as a zip archive"});
  expect_refused("version https://git-lfs.github.com/spec/v1\n", {"Git LFS pointer"});
  expect_refused(zip_of({{"word/document.xml", "<a/>"}}), {"holds no data.pkl"});
  expect_refused(zip_of({{"m/data.pkl", "\x80\x02}."}, {"m/constants.pkl", ""}}),
                 {"TorchScript", "runs no code"});
  expect_refused(archive("\x80\x02}.", {{"m/byteorder", "big"}}), {"big-endian"});
}

TEST(ZipArchive, altered_storage_is_found_by_its_checksum) {
  std::string bytes = archive_of({});
  bytes[bytes.find(kSixFloats) + 5] ^= 1;
  expect_refused(bytes, {"'m/data/0' has the checksum", "altered or damaged"});
  bytes = archive_of({});
  bytes[bytes.find("storage") + 1] ^= 1;
  expect_refused(bytes, {"'m/data.pkl' has the checksum"});
}

TEST(ZipArchive, records_out_of_range_are_data_errors) {
  const std::string whole = archive_of({});
  const size_t end = whole.size() - 22;
  const auto with = [&](size_t at, const std::string& field) {
    return std::string(whole).replace(at, field.size(), field);
  };
  expect_refused(with(end + 16, number(0x7fffffff, 4)), {"claims a directory"});
  expect_refused(with(end + 12, number(0x7fffffff, 4)), {"claims a directory"});
  expect_refused(with(end + 10, number(900, 2)), {"claims a directory of 900 entries"});
  expect_refused(with(end + 10, number(0xffff, 2)), {"directory for large files is missing"});
  const size_t line = whole.find("PK\x01\x02");
  expect_refused(with(line + 42, number(0x7fffffff, 4)), {"begins at byte 2147483647"});
  expect_refused(with(line + 42, number(3, 4)), {"has no header at byte 3"});
  expect_refused(with(line + 20, number(0x7ffffff0, 4) + number(0x7ffffff0, 4)),
                 {"2147483632 bytes are needed"});
  expect_refused(with(line + 10, number(8, 2)), {"is compressed (method 8"});
  expect_refused(with(line + 8, number(1, 2)), {"is encrypted"});
  expect_refused(with(line, "XXXX"), {"directory is damaged"});
  expect_refused(with(whole.find("m/data/0"), "m/data/1"), {"has the header of 'm/data/1'"});
}

TEST(ZipArchive, names_that_come_twice_and_files_that_overlap_are_data_errors) {
  expect_refused(archive("\x80\x02}.", {{"m/data/0", "x"}}), {"holds 'm/data/0' twice"});
  std::string bytes = archive("\x80\x02}.", {{"m/data/1", "x"}});
  // The last file's line leads to a copy of its header inside the storage before it.
  const std::string inner = zip_of({{"m/data/1", "x"}});
  const std::string storage = inner.substr(0, inner.find("PK\x01\x02"));
  bytes = zip_of({{"m/data.pkl", "\x80\x02}."}, {"m/data/0", storage}, {"m/data/1", "x"}});
  const size_t header = bytes.find(storage);
  bytes.replace(bytes.rfind("m/data/1") - 4, 4, number(header, 4));
  expect_refused(bytes, {"'m/data/0' and 'm/data/1' overlap"});
}

TEST(TorchFile, truncation_at_every_byte_is_a_data_error) {
  TemporaryFolder folder;
  const std::string whole = archive_of({});
  for (size_t size = 1; size < whole.size(); ++size) {
    const std::string path = folder.write("cut", whole.substr(0, size));
    expect_error(ErrorKind::data, {path}, [&] { TorchFile::open(path); });
  }
  const std::string old = read_file(fixture("before_1_6.bin"));
  for (size_t size = 1; size < old.size(); size += 7) {
    const std::string path = folder.write("cut", old.substr(0, size));
    expect_error(ErrorKind::data, {path}, [&] { TorchFile::open(path); });
  }
}

// Opens and touches every byte that the file admits to; whether it was refused.
bool is_refused(const std::string& path) {
  try {
    const TorchFile file = TorchFile::open(path);
    unsigned sum = 0;
    for (const std::string& name : file.names()) {
      for (const std::byte b : file.info(name).bytes) sum += std::to_integer<unsigned>(b);
    }
    EXPECT_LT(sum, 1u << 24);
    file.verify();
    return false;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    return true;
  }
}

std::string mutated(std::string bytes, std::mt19937_64& random) {
  for (uint64_t n = random() % 3 + 1; n > 0 && !bytes.empty(); --n) {
    const size_t place = random() % bytes.size();
    switch (random() % 4) {
      case 0: bytes[place] = static_cast<char>(random()); break;
      case 1: bytes[place] = static_cast<char>(bytes[place] ^ (1 << random() % 8)); break;
      case 2: bytes.erase(place, random() % 5); break;
      default: bytes.insert(place, 1, static_cast<char>(random()));
    }
  }
  return bytes;
}

TEST(TorchFile, mutated_files_are_read_or_refused_and_never_crash) {
  TemporaryFolder folder;
  const std::string zip = archive_of({}), old = read_file(fixture("before_1_6.bin"));
  const std::string pickle =
      pickled_dict({{"w", PickledTensor().text()}, {"v", PickledTensor{.strides = {1, 2}}.text()}});
  std::mt19937_64 random(11);
  int refused = 0;
  for (int round = 0; round < 6000; ++round) {
    const std::string bytes = round % 3 == 0   ? mutated(zip, random)
                              : round % 3 == 1 ? mutated(old, random)
                                               : archive(mutated(pickle, random));
    if (is_refused(folder.write("m", bytes))) ++refused;
  }
  EXPECT_GT(refused, 3000);
}

}  // namespace
}  // namespace heddle
