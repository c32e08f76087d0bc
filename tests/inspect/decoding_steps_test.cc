// Recorded beams: the tree's sums, its result, and attention against the whole pass.
#include "heddle/inspect/decoding_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "heddle/infer/words.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"

namespace heddle::inspect {
namespace {

class DecodingSteps : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    testing::write_small_model(*folder_ / "model");
    model_ = std::make_unique<LoadedModel>(load_translation_model(*folder_ / "model"));
  }
  static void TearDownTestSuite() { model_.reset(), folder_.reset(); }
  static const LoadedModel& model() { return *model_; }
  static DecodingRecord record(const TranslateOptions& options) {
    return record_decoding(model(), kLine, options, 6);
  }
  static constexpr const char* kLine = "the old man reads";

 private:
  static inline std::unique_ptr<TemporaryFolder> folder_;
  static inline std::unique_ptr<LoadedModel> model_;
};

TEST_F(DecodingSteps, watching_changes_nothing_and_the_best_way_spells_the_result) {
  for (const int64_t beam : {1, 4}) {
    const TranslateOptions options{.search = {.beam = beam}};
    const Translation plain = translate_lines(model(), std::vector<std::string>{kLine}, options)[0];
    const DecodingRecord r = record(options);
    EXPECT_EQ(r.text, plain.text);
    EXPECT_EQ(r.score, plain.score);
    ASSERT_EQ(r.best.size(), plain.ids.size() + 2);  // the empty beginning and the end
    for (size_t i = 0; i < plain.ids.size(); ++i) {
      EXPECT_EQ(r.nodes[r.best[i + 1]].id, plain.ids[i]);
    }
    EXPECT_TRUE(r.nodes[r.best.back()].is_ended);
    EXPECT_EQ(r.nodes[r.best.back()].score, plain.score);
  }
}

TEST_F(DecodingSteps, node_adds_its_tokens_log_p_to_its_parents) {
  const DecodingRecord r = record({.search = {.beam = 3}});
  int compared = 0;
  for (const BeamNode& node : r.nodes) {
    if (node.parent < 0) continue;
    const BeamNode& parent = r.nodes[node.parent];
    EXPECT_EQ(node.step, parent.step + 1);
    const int32_t id =
        node.is_ended ? static_cast<int32_t>(model().translator().facts().eos_token_id) : node.id;
    for (const NextToken& token : parent.next) {
      if (token.id != id) continue;
      ++compared;
      EXPECT_NEAR(node.log_p, parent.log_p + token.log_p, 1e-5);
    }
  }
  EXPECT_GT(compared, 10);
}

TEST_F(DecodingSteps, beam_keeps_at_most_its_width_at_each_step) {
  const DecodingRecord r = record({.search = {.beam = 3}});
  std::map<int64_t, int> live;
  for (const BeamNode& node : r.nodes) {
    if (!node.is_ended) ++live[node.step];
  }
  for (const auto& [step, count] : live) EXPECT_LE(count, 3) << step;
  EXPECT_EQ(live[0], 1);
}

TEST_F(DecodingSteps, attention_of_each_beginning_is_a_row_of_the_map_of_the_translation) {
  const DecodingRecord r = record({.search = {.beam = 3}});
  const std::vector<int32_t> source = model().tokenizer->encode(kLine);
  std::vector<int32_t> target;
  for (size_t i = 1; i + 1 < r.best.size(); ++i) target.push_back(r.nodes[r.best[i]].id);
  const Tensor map = cross_attention_map(model().translator(), source, target, r.layer);
  for (size_t i = 0; i + 1 < r.best.size(); ++i) {
    const std::vector<float>& line = r.nodes[r.best[i]].attention;
    ASSERT_EQ(line.size(), source.size() + 1);
    for (size_t j = 0; j < line.size(); ++j) {
      EXPECT_NEAR(line[j], map.data<float>()[i * line.size() + j], 1e-6);
    }
  }
}

TEST_F(DecodingSteps, samples_and_prefixes_are_recorded_too) {
  const std::vector<int32_t> prefix = model().tokenizer->encode("der");
  const DecodingRecord r = record({.search = {.seed = 5, .n_best = 2, .samples = true},
                                   .longest_without_end = 6,
                                   .prefixes = {prefix}});
  ASSERT_GE(r.best.size(), prefix.size() + 2);
  for (size_t i = 0; i < prefix.size(); ++i) EXPECT_EQ(r.nodes[r.best[i + 1]].id, prefix[i]);
  expect_error(ErrorKind::usage, {"page", "empty"}, [] { record_decoding(model(), " ", {}); });
  EXPECT_FALSE(page_html(decoding_page(r, *model().tokenizer)).empty());
}

}  // namespace
}  // namespace heddle::inspect
