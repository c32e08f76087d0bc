// The paired bootstrap against sacreBLEU's (tools/make_metric_fixtures.py), its generator against
// NumPy's.
#include "heddle/train/metrics/significance.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/train/metrics/pcg64.h"
#include "tests/support/places.h"

namespace heddle::train {
namespace {

std::vector<std::string> lines_of(const std::string& name) {
  std::ifstream file(std::string(testing::kFixtures) + "/metrics/paired." + name);
  EXPECT_TRUE(file.is_open()) << name;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(Pcg64, draws_what_numpys_default_generator_draws) {
  // numpy.random.default_rng(12345).integers(0, 1000, size=8); default_rng(7).integers(0, 3, 12),
  // then .integers(0, 2**32 - 1, 3).
  Pcg64 rng(12345);
  for (const uint32_t expected : {699, 227, 788, 316, 204, 797, 642, 676}) {
    EXPECT_EQ(rng.below(1000), expected);
  }
  Pcg64 other(7);
  for (const uint32_t expected : {2, 1, 2, 2, 1, 2, 2, 0, 0, 0, 0, 2}) {
    EXPECT_EQ(other.below(3), expected);
  }
  for (const uint32_t expected : {3919686767u, 22614309u, 2146567900u}) {
    EXPECT_EQ(other.below(UINT32_MAX), expected);
  }
}

TEST(PairedBootstrap, equals_sacrebleu) {
  const auto base = lines_of("base"), references = lines_of("ref");
  int seen = 0;
  for (const std::string& line : lines_of("tsv")) {
    SCOPED_TRACE(line);
    std::istringstream in(line);
    std::string system, metric;
    ResampledScore of_system, of_base;
    double p = 0;
    in >> system >> metric >> of_system.score >> of_system.mean >> of_system.half_width >>
        of_base.score >> of_base.mean >> of_base.half_width >> p;
    ASSERT_FALSE(in.fail());
    const auto hypotheses = lines_of(system);
    const PairedScores both = metric == "BLEU" ? paired_bleu(base, {hypotheses}, references)
                                               : paired_chrf(base, {hypotheses}, references);
    const PairedScore& found = both.systems[0];
    // There a sample's counts are divided in 32 bits.
    constexpr double kTolerance = 1e-4;
    EXPECT_NEAR(found.system.score, of_system.score, 1e-9);
    EXPECT_NEAR(found.system.mean, of_system.mean, kTolerance);
    EXPECT_NEAR(found.system.half_width, of_system.half_width, kTolerance);
    EXPECT_NEAR(both.baseline.score, of_base.score, 1e-9);
    EXPECT_NEAR(both.baseline.mean, of_base.mean, kTolerance);
    EXPECT_NEAR(both.baseline.half_width, of_base.half_width, kTolerance);
    EXPECT_DOUBLE_EQ(found.p, p);
    ++seen;
  }
  EXPECT_EQ(seen, 4);
}

TEST(PairedBootstrap, a_system_against_itself_is_no_better) {
  const auto base = lines_of("base"), references = lines_of("ref");
  const PairedScores found = paired_bleu(base, {base}, references, {}, {.samples = 50});
  EXPECT_EQ(found.systems[0].p, 1);
  EXPECT_EQ(found.systems[0].system.mean, found.baseline.mean);
}

TEST(PairedBootstrap, other_systems_and_their_lack_change_no_bit) {
  const auto base = lines_of("base"), far = lines_of("far"), near = lines_of("near"),
             references = lines_of("ref");
  const PairedScores all = paired_bleu(base, {far, near}, references, {}, {.samples = 50});
  const PairedScores one = paired_bleu(base, {near}, references, {}, {.samples = 50});
  EXPECT_EQ(all.systems[1].p, one.systems[0].p);
  EXPECT_EQ(all.systems[1].system.mean, one.systems[0].system.mean);
  const ResampledScore alone = resampled_bleu(far, references, {}, {.samples = 50});
  EXPECT_EQ(all.systems[0].system.mean, alone.mean);
  EXPECT_EQ(all.systems[0].system.half_width, alone.half_width);
  EXPECT_EQ(paired_chrf(base, {far}, references, {}, {.samples = 50}).systems[0].system.mean,
            resampled_chrf(far, references, {}, {.samples = 50}).mean);
}

TEST(PairedBootstrap, more_samples_begin_with_those_of_fewer) {
  // Across the blocks that are held at once: the mean of 65 samples from those of 64 and the 65th.
  const auto far = lines_of("far"), references = lines_of("ref");
  const auto mean = [&](int64_t samples) {
    return resampled_bleu(far, references, {}, {.samples = samples}).mean *
           static_cast<double>(samples);
  };
  const double last = mean(65) - mean(64);
  EXPECT_GT(last, 30);
  EXPECT_LT(last, 60);
}

TEST(PairedBootstrap, threads_change_no_bit) {
  const auto base = lines_of("base"), far = lines_of("far"), references = lines_of("ref");
  const auto run = [&](int threads) {
    const int before = num_threads();
    set_num_threads(threads);
    const PairedScores found = paired_chrf(base, {far}, references, {}, {.samples = 40});
    set_num_threads(before);
    return found;
  };
  const PairedScores one = run(1), three = run(3);
  EXPECT_EQ(one.systems[0].system.mean, three.systems[0].system.mean);
  EXPECT_EQ(one.systems[0].p, three.systems[0].p);
}

}  // namespace
}  // namespace heddle::train
