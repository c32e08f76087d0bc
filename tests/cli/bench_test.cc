// heddle bench at the command line: what it says, not how fast anything is.
#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "heddle/kernels/cpu/matrix_unit.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

Json run_case(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "bench");
  for (const char* word : {"--seconds", "0", "--json"}) arguments.push_back(word);
  const CliResult result = run_heddle(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Json::parse(result.out);
}

TEST(Bench, json_line_of_training_has_every_key) {
  const Json line =
      run_case({"train-tiny", "--precision", "bf16", "--threads", "1", "--batch", "2"});
  EXPECT_EQ(line.get_string("case"), "train-tiny");
  EXPECT_EQ(line.get_string("dtype"), "bf16");
  EXPECT_EQ(line.get_int("threads"), 1);
  EXPECT_EQ(line.get_string("matrix_unit"), matrix_unit_name(matrix_unit()));
  EXPECT_EQ(line.get_int("batch"), 2);
  EXPECT_EQ(line.get_string("unit"), "target tokens/s");
  EXPECT_EQ(line.get_int("repetitions"), 3);
  EXPECT_EQ(line.get_string("peak_by"), "registers");
  // The model by hand: 8 layers of width 128 and 256 inside; two tables of 512 positions.
  const int64_t attention = 4 * (128 * 128 + 128), norm = 2 * 128;
  const int64_t feed_forward = 2 * 128 * 256 + 256 + 128;
  EXPECT_EQ(line.get_int("parameters"), 10000 * 128 + 2 * 512 * 128 +
                                            4 * (attention + feed_forward + 2 * norm) +
                                            4 * (2 * attention + feed_forward + 3 * norm));
  const double value = line.get_double("value");
  EXPECT_GT(value, 0);
  for (const std::string limit : {"peak", "products"}) {
    EXPECT_GT(line.get_double(limit), 0);
    EXPECT_NEAR(line.get_double("share_of_" + limit), value / line.get_double(limit), 1e-3);
  }
  // Tokens of a repetition: 2 sentences of 16 to 24.
  const double tokens = value * line.get_double("step_ms") / 1e3;
  EXPECT_GT(tokens, 31.5);
  EXPECT_LT(tokens, 48.5);
  // f32 weights, their bf16 copies and two moments at least.
  EXPECT_GT(line.get_int("peak_bytes"), 14 * line.get_int("parameters"));
}

TEST(Bench, one_sentence_is_limited_by_reads) {
  const Json line = run_case({"translate-tiny", "--threads", "1", "--batch", "1"});
  EXPECT_EQ(line.get_string("peak_by"), "reads");
  EXPECT_FALSE(line.contains("products"));
  EXPECT_NEAR(line.get_double("value") * line.get_double("step_ms") / 1e3, 20, 0.1);
}

TEST(Bench, text_names_value_limits_and_memory) {
  const CliResult result =
      run_heddle({"bench", "train-tiny", "--seconds", "0", "--threads", "1", "--batch", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"train-tiny  f32 by ", ", 1 thread, batch 1", "target tokens/s", "peak ",
                           "products ", "MiB"}) {
    EXPECT_TRUE(contains(result.out, part)) << result.out;
  }
}

TEST(Bench, products_are_those_of_the_layers) {
  const CliResult result = run_heddle({"bench", "train-tiny", "--products", "--json", "--precision",
                                       "bf16", "--threads", "1", "--batch", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json line = Json::parse(result.out);
  EXPECT_EQ(line.get_string("case"), "train-tiny");
  EXPECT_GT(line.get_double("peak_flops"), 0);
  double before = 0;
  int64_t sources = 0, targets = 0;
  for (const Json& p : line.at("matrix_products").as_array()) {
    EXPECT_EQ(p.get_string("in"), "bf16");
    EXPECT_GT(p.get_double("seconds"), 0);
    const double all = p.get_double("seconds") * static_cast<double>(p.get_int("count"));
    if (before > 0) {
      EXPECT_LE(all, before);
    }
    before = all;
    // 4 layers of encoder: rows of all sources by 128 to queries, keys and values.
    if (p.get_int("n") == 384 && p.get_int("k") == 128 && p.get_bool("transpose_b")) {
      EXPECT_EQ(p.get_int("count") % 4, 0);
      (sources == 0 ? sources : targets) = p.get_int("m");
    }
  }
  // 2 sentences of 16 to 24 tokens and their marks.
  EXPECT_GE(sources, 32);
  EXPECT_LE(sources, 50);
  EXPECT_GE(targets, 32);
  EXPECT_LE(targets, 50);
}

TEST(Bench, products_are_a_table_with_shares_of_the_peak) {
  const CliResult result =
      run_heddle({"bench", "translate-tiny", "--products", "--threads", "1", "--batch", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part :
       {"translate-tiny  f32 by ", ", 1 thread; c [m, n] = a b", "of peak", " a bᵀ ", " %\n"}) {
    EXPECT_TRUE(contains(result.out, part)) << result.out;
  }
  const CliResult timed = run_heddle({"bench", "train-tiny", "--products", "--seconds", "1"});
  EXPECT_EQ(timed.exit_code, 2);
  EXPECT_TRUE(contains(timed.err, "--seconds")) << timed.err;
}

TEST(Bench, a_case_without_products_says_so) {
  const CliResult result = run_heddle({"bench", "start", "--products"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "start is not made of matrix products; leave out --products"))
      << result.err;
}

TEST(Bench, list_names_cases_units_and_formats) {
  const CliResult text = run_heddle({"bench", "list"});
  EXPECT_EQ(text.exit_code, 0);
  const CliResult result = run_heddle({"bench", "list", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json all = Json::parse(result.out);
  EXPECT_GE(all.size(), 5u);
  for (const Json& each : all.as_array()) {
    EXPECT_TRUE(contains(text.out, each.get_string("case") + " "));
    EXPECT_FALSE(each.get_string("unit").empty());
    EXPECT_FALSE(each.at("dtypes").as_strings().empty());
  }
}

TEST(Bench, unknown_case_names_the_nearest_and_all) {
  const CliResult result = run_heddle({"bench", "train-tyni"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "unknown case 'train-tyni'. Did you mean 'train-tiny'?"))
      << result.err;
  EXPECT_TRUE(contains(result.err, "translate-base-beam4")) << result.err;
}

TEST(Bench, format_that_a_case_lacks_is_a_usage_error_that_lists_the_others) {
  for (const char* precision : {"int8", "f16"}) {
    const CliResult result = run_heddle({"bench", "train-tiny", "--precision", precision});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_TRUE(contains(result.err, "--precision must be one of f32, bf16")) << result.err;
  }
}

TEST(Bench, senseless_numbers_are_usage_errors) {
  for (const char* flag : {"--threads", "--batch", "--seconds"}) {
    const CliResult result = run_heddle({"bench", "train-tiny", flag, "-1"});
    EXPECT_EQ(result.exit_code, 2) << flag;
    EXPECT_TRUE(contains(result.err, flag)) << result.err;
  }
}

}  // namespace
}  // namespace heddle::testing
