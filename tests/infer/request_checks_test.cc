// What an engine refuses when a request comes, so that no step fails of it; callbacks of the start.
#include <gtest/gtest.h>

#include <numeric>

#include "heddle/infer/engine/engine.h"
#include "heddle/models/registry.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"

namespace heddle::testing {
namespace {

using Ids = std::vector<int32_t>;

constexpr int64_t kVocab = 40;
constexpr const char* kSmallGpt2 = R"({"model_type": "gpt2", "vocab_size": 40, "n_positions": 24,
  "n_embd": 16, "n_layer": 2, "n_head": 2, "initializer_range": 0.4})";

class RequestChecks : public ::testing::Test {
 protected:
  nn::Parameters parameters{5};
  std::unique_ptr<Model> model = make_model(nn::Scope(parameters), Json::parse(kSmallGpt2));
  Engine engine{*model, {}};
  std::vector<std::string> heard;

  static Request asked(const SearchConfig& search) {
    return {.tokens = {5}, .search = search, .longest_output = 6};
  }
  Request named(const std::string& name) {
    Request r = asked({});
    r.on_start = [this, name] { heard.push_back(name + " starts"); };
    r.on_done = [this, name](const Outcome& o) {
      heard.push_back(fmt::format("{} has {}", name, o.hypotheses[0].ids.size()));
    };
    return r;
  }
  void run() {
    while (engine.step()) {
    }
  }
};

std::vector<int64_t> ids_up_to(int64_t n) {
  std::vector<int64_t> ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST_F(RequestChecks, ids_outside_the_vocabulary_are_refused_by_name) {
  const std::pair<SearchConfig, const char*> all[] = {
      {{.forced_eos = 40}, "forced_eos_token_id: the id 40 is not in the vocabulary of 40"},
      {{.forced_eos = 2'000'000'000}, "forced_eos_token_id: the id 2000000000"},
      {{.forced_eos = 40, .samples = true}, "forced_eos_token_id: the id 40"},
      {{.forced_bos = 41}, "forced_bos_token_id: the id 41"},
      {{.eos = {3, 40}}, "eos_token_id: the id 40"},
      {{.banned = {{5}, {6, 40}}}, "bad_words_ids: the id 40"}};
  for (const auto& [search, words] : all) {
    expect_error(ErrorKind::data, {words}, [&, s = search] { engine.submit(asked(s)); });
  }
  engine.submit(asked({.eos = {-1, 39}, .forced_bos = -1, .forced_eos = -1}));  // -1 is none
  EXPECT_EQ(engine.waiting(), 1);
}

TEST_F(RequestChecks, a_search_that_may_take_no_token_is_refused) {
  const std::vector<int64_t> all = ids_up_to(kVocab);
  for (SearchConfig search :
       {SearchConfig{}, SearchConfig{.beam = 3}, SearchConfig{.samples = true},
        SearchConfig{.no_repeat_ngram = 2, .eos = {3}}}) {
    search.suppressed = all;
    search.suppressed.push_back(0);  // twice
    expect_error(ErrorKind::usage, {"all of the 40 tokens", "suppress_tokens"},
                 [&] { engine.submit(asked(search)); });
    search.suppressed = ids_up_to(kVocab - 1);
    search.suppressed.push_back(kVocab);  // of no model's vocabulary
    engine.submit(asked(search));
  }
  SearchConfig words;
  for (const int64_t id : all) words.banned.push_back({id});
  expect_error(ErrorKind::usage, {"bad_words_ids"}, [&] { engine.submit(asked(words)); });
  words.eos = {7};  // an end is no bad word
  engine.submit(asked(words));
  run();
}

TEST_F(RequestChecks, candidates_that_are_all_suppressed_are_refused) {
  const SmallModel translator(small_config(kVocab));
  Engine other(*translator.made, {});
  Request r = {.tokens = {2},
               .source = {5, 6},
               .candidates = {8, 9},
               .search = {.suppressed = {8, 9}},
               .longest_output = 4};
  expect_error(ErrorKind::usage, {"all of the 2 tokens"}, [&] { other.submit(r); });
  r.search.eos = {3};
  other.submit(r);
  while (other.step()) {
  }
}

TEST_F(RequestChecks, callback_of_the_start_may_cancel_its_own_request_and_others) {
  Request first = named("first");
  first.on_start = [&] {
    heard.emplace_back("first starts");
    engine.cancel(0), engine.cancel(1);
    engine.submit(named("third"));
  };
  engine.submit(first);
  engine.submit(named("second"));
  run();
  EXPECT_EQ(heard, (std::vector<std::string>{"first starts", "third starts", "third has 6"}));
  EXPECT_EQ(engine.rows(), 0);
}

TEST_F(RequestChecks, callback_of_the_start_that_throws_is_called_once) {
  Request bad = named("bad");
  bad.on_start = [&] {
    heard.emplace_back("bad starts");
    throw std::runtime_error("no");
  };
  engine.submit(bad);
  engine.submit(named("next"));
  EXPECT_THROW(engine.step(), std::runtime_error);
  EXPECT_EQ(engine.waiting(), 0);  // whoever steps it drops all requests too
  engine.submit(named("later"));
  run();
  EXPECT_EQ(heard, (std::vector<std::string>{"bad starts", "later starts", "later has 6"}));
  EXPECT_EQ(engine.rows(), 0);
}

}  // namespace
}  // namespace heddle::testing
