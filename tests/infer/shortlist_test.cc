// Searches that are limited to candidates against their plain definition, what must not change
// them, and files that are none.
#include "heddle/infer/search/shortlist.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/base/files/files.h"
#include "heddle/base/parallel.h"
#include "tests/base/temporary.h"
#include "tests/infer/plain_decoding.h"

namespace heddle::testing {
namespace {

constexpr int32_t kVocab = 40, kEnd = 3;

const Tokenizer& other_tokenizer() {
  static const Tokenizer tokenizer = small_tokenizer(TokenizerType::bpe);
  return tokenizer;
}

// Lists of a vocabulary of 40: 8 tokens always, of source token s 3 more.
ShortlistTokens small_lists() {
  ShortlistTokens tokens;
  for (int32_t id = 4; id < 12; ++id) tokens.always.push_back(id);
  for (int32_t s = 0; s < kVocab; ++s) {
    tokens.of_source.push_back({(7 * s) % kVocab, 4 + s % 30, (11 * s + 5) % kVocab});
  }
  return tokens;
}

class Limited : public ::testing::TestWithParam<Precision> {
 protected:
  Limited() {
    write_shortlist(path, small_lists(), shared_tokenizer(), shared_tokenizer());
    list = std::make_shared<Shortlist>(path);
  }
  std::vector<Translation> translate(TranslateOptions o) const {
    o.precision = GetParam();
    return translate_ids(m.model, sources, o);
  }
  // What may come in sentence i, the end too.
  std::vector<int32_t> candidates(size_t i) const {
    std::vector<int32_t> ids = list->candidates(with_end(sources[i]));
    std::erase_if(ids, [](int32_t id) { return id == 0 || id == 2 || id == kEnd; });
    ids.push_back(kEnd);
    return ids;
  }

  TemporaryFolder folder;
  const std::string path = folder / "list";
  std::shared_ptr<const Shortlist> list;
  SmallModel m{small_config(kVocab)};
  std::vector<Ids> sources = random_sentences(24, 9, kVocab);
};

// Of so few tokens the sample of those that are no candidates is all of them.
TEST_P(Limited, greedy_takes_the_likeliest_candidate_and_log_p_is_that_among_all) {
  nn::Run run;
  run.use(GetParam());
  const auto ours = translate({.search = {.beam = 1, .length_penalty = 0}, .shortlist = list});
  const auto whole = translate({.search = {.beam = 1, .length_penalty = 0}});
  size_t different = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto allowed = candidates(i);
    const size_t most = 2 * sources[i].size() + 10;
    Ids ids;
    double log_p = 0;
    for (;;) {
      const Tensor logits = uncached_logits(m.model, sources[i], ids, run);
      const float* x = logits.data<float>();
      int32_t best = allowed[0];
      double sum = 0;
      for (const int32_t id : allowed) {
        if (x[id] > x[best]) best = id;
      }
      for (int32_t id = 0; id < kVocab; ++id) sum += std::exp(static_cast<double>(x[id]));
      if (ids.size() + 1 >= most) best = kEnd;
      log_p += x[best] - std::log(sum);
      if (best == kEnd) break;
      ids.push_back(best);
    }
    EXPECT_EQ(ours[i].ids, ids) << i;
    EXPECT_NEAR(ours[i].score, log_p, 1e-4) << i;  // f32 sums of up to 28 tokens
    different += whole[i].ids != ids;
  }
  EXPECT_GT(different, 0u);  // else the lists limit nothing
}

TEST_P(Limited, a_list_of_all_tokens_changes_no_bit) {
  ShortlistTokens all;
  all.always.resize(kVocab);
  std::iota(all.always.begin(), all.always.end(), 0);
  write_shortlist(path + "2", all, shared_tokenizer(), shared_tokenizer());
  const TranslateOptions o = {
      .search = {.beam = 3}, .as_transformers = true, .longest_without_end = 12};
  TranslateOptions limited = o;
  limited.shortlist = std::make_shared<Shortlist>(path + "2");
  expect_same(translate(limited), translate(o));
}

TEST_P(Limited, a_sentence_has_the_same_bits_in_any_batch_and_on_any_number_of_threads) {
  const int before = num_threads();
  for (const int64_t beam : {1, 3}) {
    TranslateOptions o = {.search = {.beam = beam}, .batch_tokens = 1 << 20, .shortlist = list};
    const auto together = translate(o);
    for (const int64_t tokens : {1, 77}) {
      o.batch_tokens = tokens;
      expect_same(translate(o), together);
    }
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      expect_same(translate(o), together);
    }
    set_num_threads(before);
  }
}

TEST_P(Limited, rules_and_draws_give_candidates_alone) {
  const SearchConfig rules[] = {
      {.beam = 4, .no_repeat_ngram = 1, .repetition_penalty = 1.5, .n_best = 4},
      {.temperature = 2, .seed = 3, .n_best = 5, .samples = true}};
  for (const SearchConfig& search : rules) {
    const auto found = translate({.search = search, .shortlist = list});
    for (size_t i = 0; i < found.size(); ++i) {
      const auto allowed = candidates(i);
      std::vector<Translation> all = found[i].others;
      all.push_back(found[i]);
      for (const Translation& t : all) {
        EXPECT_TRUE(std::isfinite(t.score)) << i;
        for (const int32_t id : t.ids) EXPECT_TRUE(contains(allowed, id)) << i << " " << id;
      }
    }
  }
}

TEST_P(Limited, a_prefix_comes_whatever_the_list_says) {
  const Ids prefix = {39, 38, 37};
  TranslateOptions o = {.search = {.beam = 2}, .prefixes = {prefix}, .shortlist = list};
  for (const Translation& t : translate(o)) {
    ASSERT_GE(t.ids.size(), 3u);
    EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), t.ids.begin()));
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Limited,
                         ::testing::Values(Precision(), Precision(DType::bf16),
                                           Precision(DType::f32, true)),
                         [](const auto& test) { return precision_name(test.param); });

TEST(Shortlist, gives_what_is_always_there_and_that_of_the_source_each_once) {
  const TemporaryFolder folder;
  const std::string path = folder / "list";
  write_shortlist(path, {.always = {9, 2, 5}, .of_source = {{1, 9}, {}, {7, 3, 7}}},
                  shared_tokenizer(), shared_tokenizer());
  const Shortlist list(path);
  EXPECT_EQ(list.source_tokens(), 3);
  EXPECT_EQ(list.candidates(Ids{}), (Ids{2, 5, 9}));
  EXPECT_EQ(list.candidates(Ids{0, 2, 0}), (Ids{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(list.candidates(Ids{1, 3, 100, -1}), (Ids{2, 5, 9}));
}

class ShortlistFile : public ::testing::Test {
 protected:
  void refused(const std::string& part) {
    try {
      const Shortlist list(path);
      list.check_fits(shared_tokenizer(), shared_tokenizer(), shared_tokenizer().vocab_size(),
                      "the model");
      FAIL() << "taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::data);
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  }
  void write_lists(const Ids& always, const Ids& begins, const Ids& candidates) {
    const auto view = [](const char* name, const Ids& ids) {
      return NamedTensorView{.name = name,
                             .dtype = DType::i32,
                             .shape = {std::ssize(ids)},
                             .bytes = std::as_bytes(std::span(ids))};
    };
    write_safetensors(
        path, {view("always", always), view("begins", begins), view("candidates", candidates)},
        {{"format", "heddle_shortlist"},
         {"source_tokenizer", shared_tokenizer().fingerprint()},
         {"target_tokenizer", shared_tokenizer().fingerprint()}});
  }
  TemporaryFolder folder;
  const std::string path = folder / "list";
};

TEST_F(ShortlistFile, that_is_none_or_damaged_or_of_another_model_is_a_data_error) {
  const Tokenizer& own = shared_tokenizer();
  refused("list");  // there is none
  write_file_atomic(path, "the old man");
  refused(path);
  write_safetensors(path, {}, {{"format", "pt"}});
  refused("this is no shortlist");
  write_lists({1, 2}, {0, 1, 2}, {4, 5});
  const Shortlist whole(path);
  whole.check_fits(own, own, own.vocab_size(), "the model");
  const std::string bytes = read_file(path);
  write_file_atomic(path, bytes.substr(0, bytes.size() - 4));
  refused(path);
  std::string altered = bytes;
  altered.back() = static_cast<char>(altered.back() ^ 1);
  write_file_atomic(path, altered);
  refused(path);
  const std::vector<std::array<Ids, 3>> broken = {{Ids{2, 1}, Ids{0, 2}, Ids{4, 5}},
                                                  {Ids{-1, 1}, Ids{0, 2}, Ids{4, 5}},
                                                  {Ids{1}, Ids{}, Ids{}},
                                                  {Ids{1}, Ids{1, 2}, Ids{4, 5}},
                                                  {Ids{1}, Ids{0, 3}, Ids{4, 5}},
                                                  {Ids{1}, Ids{0, 2, 1, 2}, Ids{4, 5}},
                                                  {Ids{1}, Ids{0, 2}, Ids{5, 5}}};
  for (const auto& [always, begins, candidates] : broken) {
    write_lists(always, begins, candidates);
    refused("its lists are damaged");
  }
  write_lists({1}, {0, 1}, {static_cast<int32_t>(own.vocab_size())});
  refused("ids beyond");
  write_shortlist(path, {.always = {1}, .of_source = {}}, own, other_tokenizer());
  refused("other tokenizers");
}

}  // namespace
}  // namespace heddle::testing
