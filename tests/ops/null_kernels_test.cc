// Each kernel of the table may be missing: its definition then runs, and every op is still right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "heddle/base/profile.h"
#include "heddle/kernels/kernels.h"
#include "tests/support/op_case.h"

namespace heddle {
namespace {

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  Kernels::list([&]<auto, auto>(const char* name) { names.emplace_back(name); });
  return names;
}

std::set<std::string> kernels_of(const OpCase& c) {
  start_profile(0);
  bf16_error(c);
  const std::optional<Profile> profile = stop_profile();
  std::set<std::string> names;
  for (const Profile::Row& row : profile->rows) names.insert(row.kernel);
  return names;
}

using Values = std::vector<double>;

// What a kernel of an optimizer writes.
Values written(const std::vector<const std::vector<float>*>& rows,
               const std::vector<bf16>& shadow) {
  Values all;
  for (const auto* row : rows) all.insert(all.end(), row->begin(), row->end());
  for (const bf16 s : shadow) all.push_back(static_cast<float>(s));
  return all;
}

// What a kernel writes into `to` of small whole numbers in `from`.
template <class From, class To>
Values written_from(std::vector<From>& from, std::vector<To>& to, const std::function<void()>& f) {
  for (size_t i = 0; i < from.size(); ++i) {
    from[i] = From(static_cast<float>(static_cast<int>(i * 7 % 11) - 5) * 4);
  }
  std::fill(to.begin(), to.end(), To(-77.0f));
  f();
  Values all;
  for (const To v : to) all.push_back(static_cast<float>(v));
  return all;
}

// Winograd's transforms, which ops use on some CPUs alone: of an image of 4 x 5 pixels, 3 channels.
std::map<std::string, std::function<Values()>> winograd() {
  static const ImageSize size{4, 5};
  static std::vector<bf16> pixels(20 * 3), tiles(16 * 6 * 3), w(2 * 27), of_weights(16 * 2 * 3);
  static std::vector<float> sums(16 * 6 * 3), dw(2 * 27), of_gradients(16 * 2 * 3);
  const auto bf16_rows = [](std::vector<bf16>& x, int64_t width) {
    return Rows{x.data(), std::ssize(x) / width, width, width, DType::bf16};
  };
  const auto f32_rows = [](std::vector<float>& x, int64_t width) {
    return Rows{x.data(), std::ssize(x) / width, width, width, DType::f32};
  };
  const auto args = [=](const Rows& of_tiles) {
    return WinogradArgs{.pixels = bf16_rows(pixels, 3),
                        .tiles = of_tiles,
                        .sizes = &size,
                        .images = 1,
                        .padding = 1};
  };
  return {
      {"winograd_inputs",
       [=] {
         return written_from(pixels, tiles,
                             [=] { kernels().winograd_inputs(args(bf16_rows(tiles, 3))); });
       }},
      {"winograd_outputs",
       [=] {
         return written_from(sums, pixels,
                             [=] { kernels().winograd_outputs(args(f32_rows(sums, 3))); });
       }},
      {"winograd_outputs_backward",
       [=] {
         return written_from(pixels, tiles, [=] {
           kernels().winograd_outputs_backward(args(bf16_rows(tiles, 3)));
         });
       }},
      {"winograd_weights",
       [=] {
         return written_from(w, of_weights, [=] {
           kernels().winograd_weights({bf16_rows(w, 27), bf16_rows(of_weights, 3)});
         });
       }},
      {"winograd_weights_backward",
       [=] {
         return written_from(of_gradients, dw, [=] {
           kernels().winograd_weights_backward({f32_rows(dw, 27), f32_rows(of_gradients, 3)});
         });
       }},
  };
}

// Kernels that no op records, and what no case has, with what calls them: values that must be
// alike.
const std::map<std::string, std::function<Values()>>& others() {
  static std::vector<float> x(300);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * 3;
  const auto rows = [] { return Rows{x.data(), 2, 150, 150, DType::f32}; };
  static std::map<std::string, std::function<Values()>> calls = {
      {"sum_squares", [] { return Values{kernels().sum_squares(x.data(), 300)}; }},
      {"all_finite", [=] { return Values{kernels().all_finite(rows()) ? 1.0 : 0.0}; }},
      {"softmax",  // of a row that sees nothing, and of one that sees two
       [] {
         std::vector<float> masked(20, -INFINITY), y(20);
         masked[13] = 1, masked[17] = 2;
         kernels().softmax({masked.data(), 2, 10, 10, DType::f32},
                           {y.data(), 2, 10, 10, DType::f32});
         return Values(y.begin(), y.end());
       }},
      {"log_softmax",
       [=] {
         std::vector<float> y(300);
         kernels().log_softmax(rows(), {y.data(), 2, 150, 150, DType::f32});
         return Values(y.begin(), y.end());
       }},
      {"scan_logits",
       [=] {
         std::vector<float> maxima(4), sums(2);
         kernels().scan_logits({.logits = rows(),
                                .maxima = maxima.data(),
                                .sums = sums.data(),
                                .maxima_stride = 2,
                                .sums_stride = 1});
         maxima.insert(maxima.end(), sums.begin(), sums.end());
         return Values(maxima.begin(), maxima.end());
       }},
      {"adam",
       [] {
         std::vector<float> w = x, m(300, 0.1f), v(300, 0.2f), ema(300, 1);
         std::vector<bf16> shadow(300);
         kernels().adam({.w = w.data(),
                         .g = x.data(),
                         .m = m.data(),
                         .v = v.data(),
                         .shadow = shadow.data(),
                         .ema = ema.data(),
                         .n = 300,
                         .lr = 0.1f,
                         .weight_decay = 0.2f,
                         .bias_correction1 = 0.3f,
                         .bias_correction2 = 0.4f,
                         .grad_scale = 0.5f,
                         .ema_decay = 0.9f,
                         .decoupled_decay = true});
         return written({&w, &m, &v, &ema}, shadow);
       }},
      {"sgd",
       [] {
         std::vector<float> w = x, v(300, 0.2f), ema(300, 1);
         std::vector<bf16> shadow(300);
         kernels().sgd({.w = w.data(),
                        .g = x.data(),
                        .v = v.data(),
                        .shadow = shadow.data(),
                        .ema = ema.data(),
                        .n = 300,
                        .lr = 0.1f,
                        .weight_decay = 0.2f,
                        .grad_scale = 0.5f,
                        .ema_decay = 0.9f});
         return written({&w, &v, &ema}, shadow);
       }},
  };
  calls.merge(winograd());
  return calls;
}

class NullKernel : public testing::TestWithParam<std::string> {};

TEST_P(NullKernel, definition_takes_its_place) {
  static const auto of_cases = [] {
    std::vector<std::set<std::string>> all;
    for (const OpCase& c : op_cases()) all.push_back(kernels_of(c));
    return all;
  }();
  const std::string& name = GetParam();
  size_t used = 0;
  for (size_t i = 0; i < op_cases().size(); ++i) {
    if (!of_cases[i].contains(name)) continue;
    ++used;
    const OpCase& c = op_cases()[i];
    SCOPED_TRACE(c.op + " " + c.variant);
    const WithoutKernel without(name);
    expect_forward_is_right(c);
    expect_equals_reference(c);
    if (c.op != "cast") expect_gradients_are_finite_differences(c);
    EXPECT_LE(bf16_error(c), kMostBf16Error);
    if (HasFailure()) return;
  }
  const auto other = others().find(name);
  if (other == others().end()) {
    EXPECT_GT(used, 0u) << "no case uses it";
    return;
  }
  const Values want = other->second();
  const WithoutKernel without(name);
  const Values got = other->second();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 1e-5 * (1 + std::fabs(want[i]))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, NullKernel, testing::ValuesIn(kernel_names()),
                         [](const auto& each) { return each.param; });

TEST(WithoutKernel, puts_the_kernel_back_and_knows_its_names) {
  const auto before = kernels().norm;
  {
    const WithoutKernel without("norm");
    EXPECT_NE(kernels().norm, before);
  }
  EXPECT_EQ(kernels().norm, before);
  EXPECT_THROW(WithoutKernel("nrom"), Error);
}

}  // namespace
}  // namespace heddle
