// generation_config.json: both files, lists and single ids, and values that make no sense.
#include "heddle/infer/loading/loaded_model.h"

#include <gtest/gtest.h>

#include "tests/base/temporary.h"

namespace heddle::testing {
namespace {

using Ids = std::vector<int32_t>;

struct Folder : TemporaryFolder {
  Folder(const std::string& generation, const std::string& config) {
    if (!generation.empty()) write("generation_config.json", generation);
    if (!config.empty()) write("config.json", config);
  }
  SearchConfig read() const { return read_generation_config(path()); }
};

TEST(GenerationConfig, reads_what_both_files_say_the_first_one_first) {
  const SearchConfig c =
      Folder(R"({"eos_token_id": [7, 9], "length_penalty": 0.5, "early_stopping": "never",
                 "num_beams": 6, "bad_words_ids": [[3], [4, 5]], "suppress_tokens": [-1, 8],
                 "max_new_tokens": 20, "top_k": 0, "top_p": 0.9, "temperature": 0.6,
                 "repetition_penalty": 1.2, "no_repeat_ngram_size": 3, "bos_token_id": null})",
             R"({"eos_token_id": 1, "bos_token_id": 2, "pad_token_id": -1, "length_penalty": 3,
                 "decoder_start_token_id": 8, "forced_eos_token_id": 0})")
          .read();
  EXPECT_EQ(c.ends(), (Ids{7, 9}));
  EXPECT_EQ(token_id(c.bos), 2);
  EXPECT_EQ(c.decoder_start, 8);
  EXPECT_FALSE(c.forced_eos);  // config.json has it, but counts for special ids only
  EXPECT_EQ(c.banned_ngrams(), (std::vector<Ids>{{4, 5}}));
  EXPECT_EQ(c.suppressed_ids(), (Ids{8, 3}));
  EXPECT_EQ(c.max_new_tokens, 20);
  EXPECT_EQ(c.beam, 6);
  EXPECT_EQ(c.length_penalty, 0.5);
  EXPECT_EQ(c.early_stopping, "never");
  EXPECT_EQ(c.repetition_penalty, 1.2);
  EXPECT_EQ(c.no_repeat_ngram, 3);
  EXPECT_EQ(c.temperature, 0.6);
  EXPECT_EQ(c.top_k, 0);
  EXPECT_EQ(c.top_p, 0.9);
}

TEST(GenerationConfig, without_files_nothing_ends_and_nothing_is_ruled) {
  const SearchConfig c = Folder("", "").read();
  EXPECT_TRUE(c.ends().empty());
  EXPECT_FALSE(token_id(c.bos));
  EXPECT_FALSE(c.no_repeat_ngram || c.repetition_penalty || c.min_length || c.min_new_tokens);
  EXPECT_EQ(c.early_stopping, "");
}

TEST(SearchConfig, what_is_laid_over_takes_the_place_of_what_it_says_and_leaves_the_rest) {
  SearchConfig c =
      Folder(R"({"eos_token_id": [7, 9], "num_beams": 6, "temperature": 0.6, "top_k": 5,
                 "early_stopping": true, "bad_words_ids": [[4, 5]]})",
             "")
          .read();
  SearchConfig command{.beam = 2, .top_k = 0};
  lay_over(c, command);
  SearchConfig request;
  const auto unknown = read_search(
      request, Json::parse(R"({"eos_token_id": 3, "early_stopping": "never", "model": "m",
                               "temperature": null, "top_p": 0.5})"),
      "request");
  EXPECT_EQ(unknown, std::vector<std::string>{"model"});
  lay_over(c, request);
  EXPECT_EQ(c.beam, 2);
  EXPECT_EQ(c.top_k, 0);
  EXPECT_EQ(c.ends(), Ids{3});
  EXPECT_EQ(c.early_stopping, "never");
  EXPECT_EQ(c.temperature, 0.6);
  EXPECT_EQ(c.top_p, 0.5);
  EXPECT_EQ(c.banned_ngrams(), (std::vector<Ids>{{4, 5}}));
  // Each layer, and so what they make together, is JSON and back.
  SearchConfig again;
  EXPECT_TRUE(read_search(again, to_json(c), "again").empty());
  EXPECT_TRUE(diff_fields(c, again).empty());
}

TEST(SearchConfig, words_with_an_id_below_zero_are_refused_and_ban_no_part_of_themselves) {
  const SearchConfig c{.banned = {{5, -1}}};
  expect_error(ErrorKind::usage, {"bad_words_ids"}, [&] { c.check(); });
  EXPECT_TRUE(c.banned_ngrams().empty());
}

TEST(GenerationConfig, values_that_make_no_sense_are_data_errors) {
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {R"({"eos_token_id": "</s>"})", "eos_token_id"},
           {R"({"eos_token_id": 99999999999})", "eos_token_id"},
           {R"({"early_stopping": "soon"})", "early_stopping"},
           {R"({"num_beams": 0})", "num_beams"},
           {R"({"num_beams": 1025})",
            "'num_beams' is the number 1025; it must be at least 1 and at most 1024"},
           {R"({"length_penalty": -1000})", "length_penalty"},
           {R"({"repetition_penalty": 0})", "repetition_penalty"},
           {R"({"no_repeat_ngram_size": -1})", "no_repeat_ngram_size"},
           {R"({"max_new_tokens": 99999999999})", "max_new_tokens"},
           {R"({"max_length": 0})", "max_length"},
           {R"({"top_k": 1.5})", "top_k"},
           {R"({"bad_words_ids": [3]})", "bad_words_ids"},
           {R"({"eos_token_id")", "generation_config.json"}}) {
    const Folder folder(text, "");
    expect_error(ErrorKind::data, {"generation_config.json", said}, [&] { folder.read(); });
  }
}

}  // namespace
}  // namespace heddle::testing
