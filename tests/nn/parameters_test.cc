// Parameters: names, tying, parts, initialisation, files.
#include "heddle/nn/parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "heddle/base/files/files.h"
#include "heddle/base/parallel.h"
#include "heddle/io/safetensors.h"
#include "heddle/io/torch_file.h"
#include "heddle/tensor/convert.h"
#include "tests/base/temporary.h"
#include "tests/support/cli_runner.h"
#include "tests/support/places.h"

namespace heddle::nn {
namespace {

double deviation(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (float v : values) {
    sum += v;
    squares += double{v} * v;
  }
  const auto n = static_cast<double>(values.size());
  return std::sqrt(squares / n - (sum / n) * (sum / n));
}

TEST(Parameters, name_asked_for_twice_is_one_parameter) {
  Parameters all(1);
  const Scope s(all);
  Parameter& a = (s / "shared" / "weight").parameter({4, 3}, Init::normal(1));
  Parameter& b = (s / "shared" / "weight").parameter({4, 3}, Init::zeros());
  EXPECT_EQ(&a, &b);
  EXPECT_EQ(all.elements(), 12);
  EXPECT_THROW((s / "shared" / "weight").parameter({3, 4}, Init::zeros()), Error);
}

TEST(Parameters, value_depends_on_seed_and_name_but_not_on_order_or_threads) {
  const auto value = [](uint64_t seed, const std::string& first, int threads) {
    set_num_threads(threads);
    Parameters all(seed);
    const Scope s(all);
    if (!first.empty()) (s / first).parameter({5}, Init::normal(1));
    return (s / "w").parameter({300, 70}, Init::normal(1)).value().to_floats();
  };
  const auto w = value(1, "", 1);
  EXPECT_EQ(value(1, "other", 4), w);
  EXPECT_NE(value(2, "", 1), w);
}

TEST(Parameters, xavier_and_normal_have_their_deviations) {
  Parameters all(3);
  const Scope s(all);
  const auto x = (s / "x").parameter({300, 500}, Init::xavier_uniform()).value().to_floats();
  const double bound = std::sqrt(6.0 / 800);
  for (float v : x) ASSERT_LE(std::abs(v), bound);
  EXPECT_NEAR(deviation(x), bound / std::sqrt(3.0), 0.01 * bound);  // 150,000 draws
  const auto n = (s / "n").parameter({300, 500}, Init::normal(0.02)).value().to_floats();
  EXPECT_NEAR(deviation(n), 0.02, 0.0002);
}

TEST(Parameters, padding_row_begins_as_zero) {
  Parameters all(1);
  const auto w = (Scope(all) / "e").parameter({3, 2}, Init::normal(1, 1)).value().to_floats();
  EXPECT_NE(w[0], 0);
  EXPECT_EQ(w[2], 0);
  EXPECT_EQ(w[3], 0);
  EXPECT_NE(w[4], 0);
}

TEST(Parameters, are_saved_in_f32_bf16_or_f16_alone) {
  const TemporaryFolder folder;
  Parameters all(1);
  (Scope(all) / "w").parameter({2, 2}, Init::normal(1));
  for (const DType dtype : {DType::i64, DType::i8, DType::f64}) {
    expect_error(ErrorKind::usage, {"f32, bf16 or f16", dtype_name(dtype)},
                 [&] { all.save(folder / "w.safetensors", dtype); });
  }
  EXPECT_FALSE(path_exists(folder / "w.safetensors"));
}

TEST(Parameters, stacked_parts_are_saved_and_loaded_under_their_own_names) {
  heddle::testing::TempDir dir;
  const std::string path = (dir / "w.safetensors").string();
  const auto build = [](Parameters& all) -> Parameter& {
    return (Scope(all) / "attn")
        .stacked({"q", "k"}, "weight", {2, 2}, {0, 3}, Init::xavier_uniform());
  };
  Parameters first(1), second(2);
  Parameter& a = build(first);
  Parameter& b = build(second);
  first.save(path);
  const auto file = SafetensorsFile::open(path);
  EXPECT_TRUE(file.contains("attn.q.weight"));
  EXPECT_TRUE(file.contains("attn.k.weight"));
  EXPECT_NE(a.value().to_floats(), b.value().to_floats());
  second.load(file);
  EXPECT_EQ(a.value().to_floats(), b.value().to_floats());
}

TEST(Parameters, counter_is_a_whole_number_in_files_and_zero_where_they_lack_it) {
  heddle::testing::TempDir dir;
  const std::string path = (dir / "w.safetensors").string();
  const auto build = [](Parameters& all) -> Parameter& {
    (Scope(all) / "running_mean").buffer(2, Init::ones());
    return (Scope(all) / "num_batches_tracked").counter();
  };
  Parameters first(1), second(2), third(3);
  build(first).value().data<float>()[0] = 70001;
  first.save(path, DType::bf16);
  const auto file = SafetensorsFile::open(path);
  EXPECT_EQ(file.info("num_batches_tracked").dtype, DType::i64);
  EXPECT_TRUE(file.info("num_batches_tracked").shape.empty());
  Parameter& loaded = build(second);
  second.load(file);
  EXPECT_EQ(loaded.value().to_floats(), std::vector<float>{70001});
  const std::vector<float> two = {3, 4};
  const std::string without = (dir / "without.safetensors").string();
  write_safetensors(without, {{"running_mean", DType::f32, {2}, std::as_bytes(std::span(two))}});
  Parameter& absent = build(third);
  absent.value().data<float>()[0] = 9;
  third.load(SafetensorsFile::open(without));
  EXPECT_EQ(absent.value().to_floats(), std::vector<float>{0});
  EXPECT_EQ(third.all()[0]->value().to_floats(), two);
}

TEST(Parameters, transposed_tensor_has_its_axes_swapped_in_the_file_only) {
  heddle::testing::TempDir dir;
  const std::string path = (dir / "w.safetensors").string();
  const auto build = [](Parameters& all) -> Parameter& {
    return (Scope(all) / "w").parameter({70, 45}, Init::normal(1), Layout::transposed);
  };
  Parameters first(1), second(2);
  Parameter& a = build(first);
  Parameter& b = build(second);
  EXPECT_EQ(a.value().shape(), Shape({70, 45}));
  first.save(path);
  const auto file = SafetensorsFile::open(path);
  EXPECT_EQ(Shape(file.info("w").shape), Shape({45, 70}));
  std::vector<float> in_file(45 * 70);
  convert_to_floats(file.info("w").bytes.data(), DType::f32, in_file);
  EXPECT_EQ(in_file[3 * 70 + 61], a.value().data<float>()[61 * 45 + 3]);
  EXPECT_EQ(in_file, part_of(a.value(), a.parts()[0]));
  first.for_each_tensor([&](const std::string&, const Shape& shape, const float* values) {
    EXPECT_EQ(shape, Shape({45, 70}));
    EXPECT_EQ(std::vector<float>(values, values + shape.elements()), in_file);
  });
  second.load(file);
  EXPECT_EQ(b.value().to_floats(), a.value().to_floats());
}

TEST(Parameters, to_be_loaded_never_ask_for_far_more_than_the_file_holds) {
  Parameters all = Parameters::to_be_loaded(12, "some.safetensors");
  EXPECT_EQ((Scope(all) / "a").parameter({4, 3}, Init::normal(1)).elements(), 12);
  try {
    (Scope(all) / "b").parameter({1'000'000'000, 1'000'000'000}, Init::normal(1));
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data);
    EXPECT_NE(std::string(e.what()).find("some.safetensors"), std::string::npos) << e.what();
  }
}

// A matrix, a stacked one, one that the file holds with its axes swapped, and a vector.
struct Weights {
  Parameter &plain, &stacked, &transposed, &vector;
  explicit Weights(Parameters& all)
      : plain((Scope(all) / "plain").parameter({5, 3}, Init::normal(1))),
        stacked(Scope(all).stacked({"q", "k", "v"}, "weight", {2, 2, 2}, {0, 3}, Init::normal(1))),
        transposed((Scope(all) / "t").parameter({4, 6}, Init::normal(1), Layout::transposed)),
        vector((Scope(all) / "vector").parameter({7}, Init::normal(1))) {}
};

// Writes the tensors of `all` to `path` as a program does that knows nothing of heddle: in bf16 if
// asked for, by name, after a header of any length.
void write_plainly(const Parameters& all, const std::string& path, DType dtype, int spaces) {
  std::string entries, data;
  all.for_each_tensor([&](const std::string& name, const Shape& shape, const float* values) {
    const size_t begin = data.size();
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const bf16 rounded(values[i]);
      data.append(dtype == DType::bf16 ? reinterpret_cast<const char*>(&rounded)
                                       : reinterpret_cast<const char*>(&values[i]),
                  static_cast<size_t>(size_of(dtype)));
    }
    entries += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                           entries.empty() ? "" : ",", name, dtype == DType::bf16 ? "BF16" : "F32",
                           fmt::join(shape.sizes(), ","), begin, data.size());
  });
  const std::string header = "{" + entries + "}" + std::string(static_cast<size_t>(spaces), ' ');
  const uint64_t length = header.size();
  write_file_atomic(path, std::string(reinterpret_cast<const char*>(&length), 8) + header + data);
}

bool lies_in(const SafetensorsFile& file, const void* address) {
  const std::byte* const begin = file.info(file.names().front()).bytes.data();
  const auto* const at = static_cast<const std::byte*>(address);
  return at >= begin && at < begin + file.size();
}

TEST(Parameters, to_be_loaded_lie_in_the_file_where_it_holds_them_so) {
  heddle::testing::TempDir dir;
  const std::string path = (dir / "w.safetensors").string();
  Parameters saved(1);
  const Weights a(saved);
  saved.save(path);
  Parameters loaded = Parameters::to_be_loaded(saved.elements(), path);
  const Weights b(loaded);
  {
    const auto file = SafetensorsFile::open(path, Mapping::own_copy);
    loaded.load(file);
    for (const Parameter* p : {&b.plain, &b.stacked, &b.vector}) {
      EXPECT_TRUE(lies_in(file, p->value().raw())) << p->name();
    }
    EXPECT_FALSE(lies_in(file, b.transposed.value().raw()));
  }
  remove_path(path);
  for (size_t i = 0; i < loaded.all().size(); ++i) {
    EXPECT_EQ(loaded.all()[i]->value().to_floats(), saved.all()[i]->value().to_floats());
  }
}

TEST(Parameters, tensors_that_share_their_bytes_do_not_share_memory) {
  const auto file = TorchFile::open(
      std::string(heddle::testing::kFixtures) + "/torch/every_dtype.bin", Mapping::own_copy);
  Parameters loaded = Parameters::to_be_loaded(file.elements(), "x");
  const Parameter& table = (Scope(loaded) / "table").parameter({6, 4}, {});
  const Parameter& tied = (Scope(loaded) / "tied").parameter({6, 4}, {});
  const Parameter& rows = (Scope(loaded) / "rows").parameter({3, 4}, {});
  loaded.load(file, {.unneeded = {"plain.", "transposed", "columns", "every_other", "expanded",
                                  "scalar", "empty", "one_row"}});
  EXPECT_EQ(table.value().raw(), static_cast<const void*>(file.info("table").bytes.data()));
  EXPECT_EQ(tied.value().to_floats(), table.value().to_floats());
  const float before = rows.value().data<float>()[0];
  EXPECT_EQ(before, table.value().data<float>()[2 * 4]);
  table.value().data<float>()[2 * 4] += 1;
  EXPECT_EQ(tied.value().data<float>()[2 * 4], before);
  EXPECT_EQ(rows.value().data<float>()[0], before);
}

TEST(Parameters, of_a_read_only_file_or_made_before_are_copied) {
  heddle::testing::TempDir dir;
  const std::string path = (dir / "w.safetensors").string();
  Parameters saved(1), made(2), loaded = Parameters::to_be_loaded(100, path);
  const Weights a(saved), b(made), c(loaded);
  saved.save(path);
  const auto file = SafetensorsFile::open(path, Mapping::own_copy);
  const auto read_only = SafetensorsFile::open(path);
  made.load(file);
  loaded.load(read_only);
  EXPECT_FALSE(lies_in(file, b.plain.value().raw()));
  EXPECT_FALSE(lies_in(read_only, c.plain.value().raw()));
  EXPECT_EQ(b.plain.value().to_floats(), a.plain.value().to_floats());
  EXPECT_EQ(c.stacked.value().to_floats(), a.stacked.value().to_floats());
}

TEST(Parameters, changing_what_lies_in_a_file_changes_neither_the_file_nor_the_others) {
  heddle::testing::TempDir dir;
  const std::string path = (dir / "w.safetensors").string();
  Parameters saved(1), loaded = Parameters::to_be_loaded(100, path);
  const Weights a(saved), b(loaded);
  saved.save(path);
  const std::string before = read_file(path);
  loaded.load(SafetensorsFile::open(path, Mapping::own_copy));
  b.stacked.in(DType::bf16);
  std::vector<float> wanted = a.stacked.value().to_floats();
  for (float& w : wanted) w *= 2;
  for (int64_t i = 0; i < b.stacked.elements(); ++i) b.stacked.value().data<float>()[i] *= 2;
  b.stacked.changed(true);
  EXPECT_EQ(b.stacked.value().to_floats(), wanted);
  EXPECT_EQ(b.stacked.in(DType::bf16).to_floats()[4], static_cast<float>(bf16(wanted[4])));
  EXPECT_EQ(b.plain.value().to_floats(), a.plain.value().to_floats());
  EXPECT_EQ(read_file(path), before);
}

TEST(Parameters, of_a_file_of_any_dtype_and_alignment_have_its_values) {
  heddle::testing::TempDir dir;
  const std::string path = (dir / "w.safetensors").string();
  Parameters saved(1);
  const Weights a(saved);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    std::set<bool> in_place;
    for (int spaces = 0; spaces < 4; ++spaces) {
      SCOPED_TRACE(fmt::format("{} after {} spaces", dtype_name(dtype), spaces));
      write_plainly(saved, path, dtype, spaces);
      Parameters loaded = Parameters::to_be_loaded(saved.elements(), path);
      const Weights b(loaded);
      const auto file = SafetensorsFile::open(path, Mapping::own_copy);
      loaded.load(file);
      in_place.insert(lies_in(file, b.stacked.in(dtype).raw()));
      for (size_t i = 0; i < loaded.all().size(); ++i) {
        Parameter& p = *loaded.all()[i];
        std::vector<float> wanted = saved.all()[i]->value().to_floats();
        if (dtype == DType::bf16) {
          for (float& w : wanted) w = static_cast<float>(bf16(w));
        }
        EXPECT_EQ(p.in(dtype).to_floats(), wanted) << p.name();
        EXPECT_EQ(p.value().to_floats(), wanted) << p.name();
      }
    }
    EXPECT_EQ(in_place, (std::set<bool>{false, true})) << dtype_name(dtype);
  }
}

TEST(Parameters, load_names_what_is_missing_unused_and_of_another_shape) {
  heddle::testing::TempDir dir;
  const std::string path = (dir / "w.safetensors").string();
  Parameters saved(1), wanted(1);
  (Scope(saved) / "a").parameter({2}, Init::ones());
  (Scope(saved) / "unused").parameter({2}, Init::ones());
  saved.save(path);
  (Scope(wanted) / "a").parameter({3}, Init::zeros());
  (Scope(wanted) / "missing").parameter({4}, Init::zeros());
  try {
    wanted.load(SafetensorsFile::open(path));
    FAIL() << "no error";
  } catch (const Error& e) {
    const std::string what = e.what();
    EXPECT_EQ(e.kind(), ErrorKind::data);
    EXPECT_NE(what.find("missing: missing [4]"), std::string::npos) << what;
    EXPECT_NE(what.find("unused"), std::string::npos) << what;
    EXPECT_NE(what.find("[2]"), std::string::npos) << what;
    EXPECT_NE(what.find("[3]"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace heddle::nn
