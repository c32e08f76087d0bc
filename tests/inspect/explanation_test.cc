// Attention step by step: worked examples, the model's own numbers, and matrices that do not fit.
#include "heddle/inspect/explanation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/inspect/attention_maps.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"
#include "tests/inspect/damaged_model.h"
#include "tests/inspect/explained_steps.h"

namespace heddle::inspect {
namespace {

Matrix parse(const std::string& text) { return parse_matrix(text, "--q"); }

ExplainedMatrices scores(const std::string& text, double divisor) {
  ExplainedMatrices given;
  given.scores = parse(text);
  given.divisor = divisor;
  return given;
}

TEST(Explanation, scores_112_and_96_divided_by_8_give_weights_088_and_012) {
  ExplainedMatrices given = scores("112 96", 8);
  given.v = parse("1 0; 0 1");
  const Explanation e = explain_matrices(given);
  EXPECT_EQ(step_of(e, "scaled").result.values, (std::vector<double>{14, 12}));
  EXPECT_NEAR(step_of(e, "weights").result.at(0, 0), 0.8807970779778823, 1e-15);  // 1 / (1 + e^-2)
  EXPECT_NEAR(step_of(e, "sum").result.at(0, 0), 0.8807970779778823, 1e-15);
  EXPECT_NEAR(step_of(e, "sum").result.at(0, 1), 0.1192029220221177, 1e-15);
  const double first = step_of(explain_matrices(scores("112 96", 1)), "weights").result.at(0, 0);
  EXPECT_NEAR(1 - first, 1.1e-7, 0.05e-7);  // e^-16
}

// Nothing that is not finite may pass for what the mask hides.
TEST(Explanation, numbers_that_are_not_finite_are_refused) {
  const TemporaryFolder folder;
  const Subject subject = damaged_subject(folder / "model");
  expect_error(ErrorKind::data, {"step 1 (Hidden states)", "not finite", "damaged"},
               [&] { explain_head(subject, {}); });
  ExplainedMatrices given;
  given.q = given.k = parse("1e200");
  expect_error(ErrorKind::usage, {"step 3 (Scores)", "too large"},
               [&] { explain_matrices(given); });
}

TEST(Explanation, gaussian_kernel_looks_up_the_nearest_numbers_and_the_product_the_largest) {
  ExplainedMatrices given;
  given.q = parse("162");
  given.k = parse("160; 166; 173");
  given.score = Score::gaussian;
  const Matrix near = step_of(explain_matrices(given), "weights").result;
  EXPECT_NEAR(near.at(0, 0), 0.9975, 5e-5);
  EXPECT_NEAR(near.at(0, 1), 0.0025, 5e-5);
  EXPECT_LT(near.at(0, 2), 1e-20);
  given.score = Score::dot;
  EXPECT_EQ(step_of(explain_matrices(given), "weights").result.values,
            (std::vector<double>{0, 0, 1}));
}

TEST(Explanation, causal_mask_is_a_lower_triangle) {
  ExplainedMatrices given = scores("0 0 0 0; 0 0 0 0; 0 0 0 0; 0 0 0 0", 1);
  given.is_causal = true;
  given.tokens = {"I", "am", "a", "student"};
  const Explanation e = explain_matrices(given);
  const Matrix &mask = step_of(e, "mask").result, &weights = step_of(e, "weights").result;
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      EXPECT_EQ(mask.at(i, j), j > i ? -INFINITY : 0);
      EXPECT_NEAR(weights.at(i, j), j > i ? 0 : 1.0 / static_cast<double>(i + 1), 1e-15);
    }
  }
  EXPECT_NE(explanation_text(e).find("am               0.0000     0.0000       -inf       -inf"),
            std::string::npos)
      << explanation_text(e);
}

// By hand: q k = 1*3 + 2*4 = 11 and 1*5 + 2*6 = 17, divided by sqrt(2).
TEST(Explanation, dot_products_are_divided_by_the_root_of_the_width) {
  ExplainedMatrices given;
  given.q = parse("[[1, 2]]");
  given.k = parse("3,4\n5,6\n");
  const Explanation e = explain_matrices(given);
  EXPECT_EQ(step_of(e, "scores").result.values, (std::vector<double>{11, 17}));
  EXPECT_DOUBLE_EQ(step_of(e, "scaled").result.at(0, 1), 17 / std::sqrt(2.0));
  EXPECT_EQ(e.steps.back().key, "weights");  // no values, no sum
}

TEST(Explanation, matrices_that_do_not_fit_are_usage_errors_that_name_the_flag) {
  ExplainedMatrices given;
  expect_error(ErrorKind::usage, {"nothing to explain"}, [&] { explain_matrices(given); });
  given.q = parse("1 2");
  given.k = parse("1 2 3");
  expect_error(ErrorKind::usage, {"q has 2", "k 3"}, [&] { explain_matrices(given); });
  given.k = parse("1 2; 3 4");
  given.v = parse("1");
  expect_error(ErrorKind::usage, {"v has 1 rows", "2 keys"}, [&] { explain_matrices(given); });
  given.v.reset();
  given.tokens = {"a"};
  expect_error(ErrorKind::usage, {"tokens"}, [&] { explain_matrices(given); });
  given.tokens.clear();
  given.divisor = 0.0;
  expect_error(ErrorKind::usage, {"divide is 0"}, [&] { explain_matrices(given); });
}

TEST(MatrixText, that_is_no_matrix_is_a_usage_error_that_says_where) {
  expect_error(ErrorKind::usage, {"--q", "'x' in row 2"}, [] { parse("1 2; 3 x"); });
  expect_error(ErrorKind::usage, {"row 2 has 1 numbers, row 1 has 2"}, [] { parse("1 2; 3"); });
  expect_error(ErrorKind::usage, {"no number"}, [] { parse(" ; "); });
  expect_error(ErrorKind::usage, {"'inf'"}, [] { parse("inf"); });
  expect_error(ErrorKind::usage, {"--q"}, [] { parse("[[1, 2"); });
  expect_error(ErrorKind::usage, {"--q"}, [] { parse("[[\"a\"]]"); });
  const TemporaryFolder folder;
  EXPECT_EQ(parse(folder.write("q.txt", "1 2\n3 4\n")).values, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(parse("[1, 2]").rows, 2);
}

class ExplainedModel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    testing::write_small_model(*folder_ / "model");
    subject_ = std::make_unique<Subject>(
        Subject::open(*folder_ / "model", {.source = "the old man", .target = "der alte Mann"}));
  }
  static void TearDownTestSuite() { subject_.reset(), folder_.reset(); }
  static const Subject& subject() { return *subject_; }
  static std::string folder() { return folder_->path(); }

 private:
  static inline std::unique_ptr<TemporaryFolder> folder_;
  static inline std::unique_ptr<Subject> subject_;
};

// The weighted sum in float64 against what the fused kernel gave for the head, the weights against
// those of `heddle attention`.
TEST_F(ExplainedModel, steps_are_the_models_own_numbers) {
  for (const std::string kind : {"encoder", "decoder", "cross"}) {
    const Explanation e = explain_head(subject(), {.kind = kind, .layer = 1, .head = 3});
    const Matrix &sum = step_of(e, "sum").result, &concat = step_of(e, "concat").result;
    ASSERT_EQ(sum.cols, 8);
    ASSERT_EQ(concat.cols, 32);
    for (int64_t i = 0; i < sum.rows; ++i) {
      for (int64_t d = 0; d < 8; ++d) EXPECT_NEAR(sum.at(i, d), concat.at(i, 24 + d), 1e-5) << kind;
    }
    for (const HeadMap& map :
         attention_maps(subject(), {.layers = {1}, .heads = {3}, .importance = false})) {
      if (subject().kinds()[map.kind].name != kind) continue;
      for (size_t i = 0; i < map.weights.size(); ++i) {
        EXPECT_NEAR(step_of(e, "weights").result.values[i], map.weights[i], 1e-6);
      }
    }
  }
}

// Q and output by float64 products with the model's matrices.
TEST_F(ExplainedModel, projections_are_products_with_the_models_matrices) {
  const Explanation e = explain_head(subject(), {.kind = "encoder", .layer = 0, .head = 1});
  const LoadedModel model = load_translation_model(folder() + "/model");
  const auto times = [&](const Matrix& x, const std::string& name, int64_t i, int64_t column) {
    double sum = 0;
    for (auto& p : model.parameters.all()) {
      for (const nn::Part& part : p->parts()) {
        if (part.name == name + ".bias") sum += p->value().data<float>()[part.begin + column];
        if (part.name != name + ".weight") continue;
        for (int64_t d = 0; d < 32; ++d) {
          sum += x.at(i, d) *
                 static_cast<double>(p->value().data<float>()[(part.begin + column) * 32 + d]);
        }
      }
    }
    return sum;
  };
  const std::string name = "model.encoder.layers.0.self_attn.";
  for (const int64_t i : {0, 2}) {
    EXPECT_NEAR(step_of(e, "q").result.at(i, 5),
                times(step_of(e, "x").result, name + "q_proj", i, 13), 1e-4);
    EXPECT_NEAR(step_of(e, "v").result.at(i, 5),
                times(step_of(e, "x").result, name + "v_proj", i, 13), 1e-4);
    EXPECT_NEAR(step_of(e, "output").result.at(i, 20),
                times(step_of(e, "concat").result, name + "out_proj", i, 20), 1e-4);
  }
}

TEST_F(ExplainedModel, kind_layer_or_head_that_is_not_there_is_a_usage_error) {
  const auto explain = [&](const ExplainedHead& which) {
    return [which] { explain_head(subject(), which); };
  };
  expect_error(ErrorKind::usage, {"kind 'self'", "encoder, decoder, cross"},
               explain({.kind = "self"}));
  expect_error(ErrorKind::usage, {"layer 2", "0 to 1"}, explain({.kind = "", .layer = 2}));
  expect_error(ErrorKind::usage, {"head -1"}, explain({.kind = "", .layer = 0, .head = -1}));
}

TEST_F(ExplainedModel, page_holds_each_step_with_null_for_what_is_hidden) {
  const Page page = explanation_page(explain_head(subject(), {.kind = "decoder"}));
  const auto& steps = page.data.at("steps").as_array();
  ASSERT_EQ(steps.size(), 12u);
  EXPECT_EQ(steps[6].get_string("key"), "mask");
  EXPECT_TRUE(steps[6].at("values").as_array()[0].as_array()[1].is_null());
  EXPECT_FALSE(page_html(page).empty());
}

}  // namespace
}  // namespace heddle::inspect
