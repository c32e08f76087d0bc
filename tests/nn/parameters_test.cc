// Parameters: names, tying, parts, initialisation, files.
#include "heddle/nn/parameters.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heddle/base/parallel.h"
#include "heddle/io/safetensors.h"
#include "heddle/tensor/convert.h"
#include "tests/support/cli_runner.h"

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

TEST(Parameters, stacked_parts_are_saved_and_loaded_under_their_own_names) {
  heddle::testing::TempDir dir;
  const std::string path = (dir / "w.safetensors").string();
  const auto build = [](Parameters& all) -> Parameter& {
    return (Scope(all) / "attn").stacked({"q", "k"}, "weight", {2, 3}, Init::xavier_uniform());
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
