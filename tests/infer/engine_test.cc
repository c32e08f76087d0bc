// Requests in a crowd get the bits of each alone; what is cancelled leaves nothing behind.
#include "heddle/infer/engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "heddle/base/parallel.h"
#include "heddle/models/registry.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"

namespace heddle::testing {
namespace {

using Ids = std::vector<int32_t>;
using Random = std::mt19937;

constexpr int32_t kVocab = 40, kEnd = 3;

// Models of one stack with large random weights, so that tokens differ; and a translator.
struct Case {
  const char* name;
  const char* config;  // null: the Transformer
  int requests;
  bool translates = false;
};

const Case kCases[] = {
    {"translator", nullptr, 1000, true},
    {"gpt2", R"({"model_type": "gpt2", "vocab_size": 40, "n_positions": 24, "n_embd": 16,
       "n_layer": 2, "n_head": 2, "initializer_range": 0.4})",
     1000},
    {"mistral", R"({"model_type": "mistral", "vocab_size": 40, "max_position_embeddings": 48,
       "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2,
       "num_attention_heads": 2, "num_key_value_heads": 1, "initializer_range": 0.4,
       "sliding_window": 5})",
     200},
    {"transformer_xl", R"({"model_type": "transfo-xl", "vocab_size": 40, "cutoffs": [12, 20],
       "d_model": 16, "d_embed": 16, "n_head": 2, "d_head": 8, "d_inner": 20, "n_layer": 2,
       "div_val": 2, "mem_len": 5, "init_std": 0.4, "proj_init_std": 0.4})",
     200},
    {"xlnet", R"({"model_type": "xlnet", "vocab_size": 40, "d_model": 16, "n_head": 2,
       "d_inner": 20, "n_layer": 2, "initializer_range": 0.4,
       "architectures": ["XLNetLMHeadModel"]})",
     100},
    {"xlnet_with_memory", R"({"model_type": "xlnet", "vocab_size": 40, "d_model": 16, "n_head": 2,
       "d_inner": 20, "n_layer": 2, "initializer_range": 0.4, "mem_len": 6, "use_mems_eval": true,
       "architectures": ["XLNetLMHeadModel"]})",
     100},
    {"rnn_seq2seq", R"({"model_type": "rnn_seq2seq", "vocab_size": 40, "embedding_size": 12,
       "hidden_size": 16, "encoder_hidden_size": 10, "encoder_layers": 2, "decoder_layers": 2})",
     500, true},
    {"rnn_seq2seq_states", R"({"model_type": "rnn_seq2seq", "vocab_size": 40, "embedding_size": 12,
       "hidden_size": 16, "encoder_hidden_size": 8, "cell": "gru", "attention_scoring": "dot"})",
     200, true},
    {"rnn_seq2seq_fixed", R"({"model_type": "rnn_seq2seq", "vocab_size": 40, "embedding_size": 12,
       "hidden_size": 16, "decoder_layers": 2, "attention_scoring": "none",
       "tie_word_embeddings": false})",
     200, true},
    {"rnn_lm", R"({"model_type": "rnn_lm", "vocab_size": 40, "embedding_size": 12,
       "hidden_size": 16})",
     200}};

struct Subject {
  std::unique_ptr<SmallModel> translator;
  nn::Parameters parameters{5};
  std::unique_ptr<Model> stack;

  explicit Subject(const Case& c) {
    if (c.config == nullptr) translator = std::make_unique<SmallModel>(small_config(kVocab));
    if (c.config != nullptr) stack = make_model(nn::Scope(parameters), Json::parse(c.config));
  }
  const heddle::Model& model() const { return translator ? *translator->made : *stack; }
};

int64_t one_of(Random& random, std::initializer_list<int64_t> values) {
  return values.begin()[random() % values.size()];
}

Ids random_ids(Random& random, int64_t most) {
  Ids ids(1 + random() % static_cast<size_t>(most));
  for (int32_t& id : ids) id = static_cast<int32_t>(4 + random() % (kVocab - 4));
  return ids;
}

void add_random_rules(Random& random, SearchConfig& s) {
  if (random() % 3 != 0) return;
  s.no_repeat_ngram = one_of(random, {0, 0, 1, 2});
  s.min_new_tokens = one_of(random, {0, 3});
  s.min_length = one_of(random, {0, 9});
  if (random() % 2 == 0) s.repetition_penalty = 1.3;
  if (random() % 2 == 0) s.banned = {{5, 6}, {7, 8, 9}};
}

Request random_request(Random& random, bool translates) {
  Request r{.tokens = random_ids(random, 9)};
  SearchConfig& s = r.search;
  add_random_rules(random, s);
  r.longest_output = 1 + static_cast<int64_t>(random() % 16);
  s.length_penalty = static_cast<double>(random() % 5) / 2;
  r.penalty = random() % 2 == 0 ? LengthPenalty::wu : LengthPenalty::power;
  s.early_stopping = std::array{"true", "false", "never"}[random() % 3];
  for (auto ends = random() % 3; ends > 0; --ends) s.eos.push_back(kEnd + static_cast<int>(ends));
  if (random() % 2 == 0) {
    s.samples = true;
    s.temperature = 0.5 + static_cast<double>(random() % 3) / 2;
    s.top_k = one_of(random, {0, 5});
    s.top_p = random() % 2 == 0 ? 0.8 : 1;
    s.seed = random();
    s.first_line = static_cast<int64_t>(random() % 100);
    if (random() % 8 == 0) s.temperature = 0;
    s.n_best = one_of(random, {1, 1, 3});
  } else {
    s.beam = one_of(random, {1, 1, 2, 4});
    s.n_best = 1 + static_cast<int64_t>(random() % static_cast<size_t>(*s.beam));
    r.penalises_log_p = random() % 2 == 0;
  }
  if (random() % 3 == 0) r.prefix = random_ids(random, 3);
  if (random() % 3 == 0) {
    const Ids ids = random_ids(random, 5);
    s.suppressed.assign(ids.begin(), ids.end());
  }
  if (random() % 3 == 0) s.forced_eos = s.eos.empty() ? 7 : s.eos[0];
  if (random() % 5 == 0) {
    r.goes_on = [](const Hypothesis& h) { return h.ids.back() % 11 != 0; };
  }
  r.forced_eos_is_free = random() % 2 == 0;
  r.scores = random() % 2 == 0;
  if (translates) {
    r.tokens = {2};
    r.source = random_ids(random, 12);
    if (random() % 3 == 0) r.candidates = random_ids(random, 25);
  } else {
    r.slides = random() % 2 == 0;
    r.context = r.slides ? one_of(random, {0, 9, 12}) : 0;
  }
  return r;
}

std::vector<Request> random_requests(const Case& c, uint32_t seed) {
  Random random(seed);
  std::vector<Request> requests;
  for (int i = 0; i < c.requests; ++i) {
    requests.push_back(random_request(random, c.translates));
  }
  return requests;
}

using Results = std::map<size_t, std::vector<Hypothesis>>;  // by number of the request

Request heard(const Request& request, size_t number, Results& results) {
  Request r = request;
  r.on_done = [&results, number](const Outcome& outcome) {
    const auto& found = outcome.hypotheses;
    EXPECT_TRUE(results.emplace(number, std::vector(found.begin(), found.end())).second);
  };
  return r;
}

Results each_alone(const heddle::Model& model, const std::vector<Request>& requests) {
  Results results;
  for (size_t i = 0; i < requests.size(); ++i) {
    Engine engine(model, {});
    engine.submit(heard(requests[i], i, results));
    while (engine.step()) {
    }
  }
  return results;
}

void expect_same(const Results& found, const Results& expected) {
  for (const auto& [i, hypotheses] : found) {
    const auto& wanted = expected.at(i);
    ASSERT_EQ(hypotheses.size(), wanted.size()) << i;
    for (size_t j = 0; j < wanted.size(); ++j) {
      ASSERT_EQ(hypotheses[j].ids, wanted[j].ids) << i << " " << j;
      ASSERT_EQ(hypotheses[j].log_ps, wanted[j].log_ps) << i << " " << j;  // bit for bit
      ASSERT_EQ(hypotheses[j].log_p, wanted[j].log_p) << i << " " << j;
      ASSERT_EQ(hypotheses[j].score, wanted[j].score) << i << " " << j;
      ASSERT_EQ(hypotheses[j].ended, wanted[j].ended) << i << " " << j;
    }
  }
}

struct Crowd {
  Results results;
  std::set<size_t> cancelled;
  int64_t most_running = 0, most_waiting = 0, most_rows = 0;
  int64_t drafted = 0, accepted = 0, cached = 0;
};

// Requests arrive at random steps, 2 a step on average; some are cancelled. prompt_rows: with
// beginnings kept, those of a step; 0: none are kept, nor prompts read in parts
Crowd run_crowd(const heddle::Model& model, const std::vector<Request>& requests, int64_t limit,
                bool cancels, int64_t prompt_rows = 0) {
  Random random(17);
  Crowd crowd;
  Engine engine(model, {});
  engine.limit_rows(limit);
  if (prompt_rows > 0) engine.keep_beginnings(limit / 2), engine.limit_prompt_rows(prompt_rows);
  size_t next = 0;
  while (next < requests.size() || engine.waiting() + engine.running() > 0) {
    for (auto n = random() % 5; n > 0 && next < requests.size(); --n, ++next) {
      Request request = heard(requests[next], next, crowd.results);
      request.on_done = [&crowd, on_done = request.on_done](const Outcome& o) {
        crowd.drafted += o.drafted, crowd.accepted += o.accepted;
        on_done(o);
      };
      request.on_cached = [&crowd](int64_t tokens) { crowd.cached += tokens; };
      const int64_t id = engine.submit(std::move(request));
      EXPECT_EQ(id, static_cast<int64_t>(next));
    }
    crowd.most_waiting = std::max(crowd.most_waiting, engine.waiting());
    engine.step();
    crowd.most_running = std::max(crowd.most_running, engine.running());
    crowd.most_rows = std::max(crowd.most_rows, engine.rows());
    EXPECT_LE(engine.rows(), limit);
    if (!cancels || random() % 3 != 0 || next == 0) continue;
    const size_t unlucky = next - 1 - random() % std::min<size_t>(next, 20);
    if (crowd.results.contains(unlucky)) continue;
    const int64_t running = engine.running(), rows = engine.rows();
    engine.cancel(static_cast<int64_t>(unlucky));
    crowd.cancelled.insert(unlucky);
    if (engine.running() < running && !requests[unlucky].slides &&
        prompt_rows == 0) {            // one may hold none just then
      EXPECT_LT(engine.rows(), rows);  // at once
    }
  }
  if (prompt_rows == 0) {
    EXPECT_EQ(engine.rows(), 0);
  }
  EXPECT_LE(engine.rows(), limit / 2);
  return crowd;
}

class EngineOf : public ::testing::TestWithParam<Case> {};

TEST_P(EngineOf, requests_that_come_at_random_get_the_bits_of_each_alone) {
  const Subject subject(GetParam());
  const auto requests = random_requests(GetParam(), 1);
  const int before = num_threads();
  set_num_threads(1);
  const Results alone = each_alone(subject.model(), requests);
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    for (const int64_t limit : {150, 1'000'000}) {
      const Crowd crowd = run_crowd(subject.model(), requests, limit, false);
      EXPECT_EQ(crowd.results.size(), requests.size());
      expect_same(crowd.results, alone);
      EXPECT_GT(crowd.most_running, 4);
      if (limit == 150) {
        EXPECT_GT(crowd.most_waiting, 50);
        EXPECT_GT(crowd.most_rows, 70);  // the budget is used
      }
    }
  }
  set_num_threads(before);
}

TEST_P(EngineOf, cancelled_requests_leave_no_row_and_change_nothing) {
  const Subject subject(GetParam());
  const auto requests = random_requests(GetParam(), 2);
  const Results alone = each_alone(subject.model(), requests);
  for (const int64_t limit : {150, 1'000'000}) {
    const Crowd crowd = run_crowd(subject.model(), requests, limit, true);
    EXPECT_GT(crowd.cancelled.size(), requests.size() / 20);
    EXPECT_EQ(crowd.results.size() + crowd.cancelled.size(), requests.size());
    for (const size_t i : crowd.cancelled) EXPECT_FALSE(crowd.results.contains(i));
    expect_same(crowd.results, alone);
  }
}

// Requests of texts that repeat themselves, none of them of a beam.
std::vector<Request> repeating_requests(const Case& c, uint32_t seed) {
  Random random(seed);
  std::vector<Request> requests = random_requests(c, seed);
  for (Request& r : requests) {
    if (r.search.beam.value_or(1) > 1) r.search.beam = r.search.n_best = 1;
    if (c.translates || random() % 3 == 0) continue;
    const Ids once = r.tokens;
    const size_t most = r.slides && r.context > 0 ? static_cast<size_t>(r.context) : 9;
    while (r.tokens.size() + once.size() <= most) {
      r.tokens.insert(r.tokens.end(), once.begin(), once.end());
    }
  }
  return requests;
}

TEST_P(EngineOf, drafted_tokens_change_no_bit) {
  const Subject subject(GetParam());
  std::vector<Request> requests = repeating_requests(GetParam(), 3);
  const Results alone = each_alone(subject.model(), requests);
  Random random(5);
  for (Request& r : requests) r.search.drafted = one_of(random, {0, 1, 2, 3, 8, 100});
  if (subject.model().as<LanguageModel>() == nullptr && !GetParam().translates) {
    Engine engine(subject.model(), {});
    Request r{.tokens = {4}, .search = {.drafted = 1}};
    expect_error(ErrorKind::usage, {"prompt_lookup_num_tokens is 1"}, [&] { engine.submit(r); });
    return;
  }
  for (const int64_t limit : {150, 1'000'000}) {
    const Crowd crowd = run_crowd(subject.model(), requests, limit, false);
    EXPECT_EQ(crowd.results.size(), requests.size());
    expect_same(crowd.results, alone);
    EXPECT_GT(crowd.accepted, std::ssize(requests) / 20);  // the test sees both
    EXPECT_GT(crowd.drafted, crowd.accepted + std::ssize(requests) / 20);
  }
  const Crowd crowd = run_crowd(subject.model(), requests, 150, true);
  expect_same(crowd.results, alone);
}

// Requests whose prompts begin alike for 8 to 12 tokens, some of them with another's prompt.
std::vector<Request> alike_requests(const Case& c, uint32_t seed) {
  Random random(seed);
  std::vector<Request> requests = random_requests(c, seed);
  std::vector<Ids> beginnings(4);
  for (Ids& ids : beginnings) {
    while (ids.size() < 8 + random() % 5) ids = random_ids(random, 12);
  }
  for (Request& r : requests) {
    if (c.translates || r.slides || random() % 4 == 0) continue;
    Ids tokens = beginnings[random() % beginnings.size()];
    if (random() % 4 != 0) tokens.insert(tokens.end(), r.tokens.begin(), r.tokens.begin() + 1);
    r.tokens = std::move(tokens);
    r.longest_output = std::min<int64_t>(r.longest_output, 11);
    r.prefix.resize(std::min<size_t>(r.prefix.size(), 3));
  }
  return requests;
}

TEST_P(EngineOf, kept_beginnings_and_prompts_in_parts_change_no_bit) {
  const Subject subject(GetParam());
  std::vector<Request> requests = alike_requests(GetParam(), 4);
  const Results alone = each_alone(subject.model(), requests);
  const bool keeps = subject.model().as<LanguageModel>() != nullptr &&
                     subject.model().as<LanguageModel>()->reads_ahead();
  for (const int64_t prompt_rows : {1, 5, 1000}) {
    for (const int64_t limit : {150, 1'000'000}) {
      for (const bool cancels : {false, true}) {
        const Crowd crowd = run_crowd(subject.model(), requests, limit, cancels, prompt_rows);
        expect_same(crowd.results, alone);
        EXPECT_EQ(crowd.results.size() + crowd.cancelled.size(), requests.size());
        if (limit > 150) {  // of 75 rows those that wait take most
          EXPECT_EQ(crowd.cached > std::ssize(requests), keeps);
        }
      }
    }
  }
  if (!keeps) return;
  Random random(5);
  for (Request& r : requests) {
    if (r.search.beam.value_or(1) == 1) r.search.drafted = one_of(random, {0, 2, 100});
  }
  expect_same(run_crowd(subject.model(), requests, 150, true, 3).results, alone);
}

INSTANTIATE_TEST_SUITE_P(Families, EngineOf, ::testing::ValuesIn(kCases),
                         [](const auto& p) { return std::string(p.param.name); });

class GptEngine : public ::testing::Test {
 protected:
  Subject subject{kCases[1]};
  Engine engine{subject.model(), {}};

  // Greedy: n tokens behind one.
  static Request tokens(int64_t n) { return {.tokens = {5}, .longest_output = n}; }
  void run() {
    while (engine.step()) {
    }
  }
};

TEST_F(GptEngine, request_holds_no_more_rows_than_it_needs) {
  Request r = tokens(10);
  EXPECT_EQ(engine.rows_needed(r), 10);  // one given, and ten tokens of which the last is not read
  r.search.beam = 3;
  EXPECT_EQ(engine.rows_needed(r), 1 + 3 * 9);
  r.slides = true, r.context = 6;
  EXPECT_EQ(engine.rows_needed(r), 3 * 6);
}

TEST_F(GptEngine, request_that_never_fits_is_refused_and_another_waits) {
  engine.limit_rows(12);
  expect_error(ErrorKind::data, {"need 13 rows of the KV cache, which has 12"},
               [&] { engine.submit(tokens(13)); });
  engine.submit(tokens(8));
  engine.submit(tokens(8));
  engine.submit(tokens(1));  // nobody overtakes
  engine.step();
  EXPECT_EQ(engine.running(), 1);
  EXPECT_EQ(engine.waiting(), 2);
  run();
  EXPECT_EQ(engine.rows(), 0);
}

TEST_F(GptEngine, requests_that_make_no_sense_are_refused) {
  const auto refused = [&](ErrorKind kind, const char* words, const Request& r) {
    expect_error(kind, {words}, [&] { engine.submit(r); });
  };
  refused(ErrorKind::data, "there are no tokens", {});
  refused(ErrorKind::data, "the id 40 is not in the vocabulary of 40", {.tokens = {40}});
  refused(ErrorKind::data, "the id -1 is not", {.tokens = {4}, .prefix = {-1}});
  refused(ErrorKind::data, "the source has 1 tokens", {.tokens = {4}, .source = {4}});
  refused(ErrorKind::data, "at most 25 new ones; the model takes 24", tokens(25));
  refused(ErrorKind::usage, "num_beams is 0", {.tokens = {4}, .search = {.beam = 0}});
  refused(ErrorKind::usage, "it must be at least 1", tokens(0));
  const Subject translator(kCases[0]);
  Engine other(translator.model(), {});
  expect_error(ErrorKind::data, {"there is no source"}, [&] { other.submit(tokens(3)); });
  EXPECT_FALSE(engine.step());
}

TEST_F(GptEngine, drafts_of_a_beam_are_refused) {
  Request r = tokens(4);
  r.search.beam = 2, r.search.drafted = 3;
  expect_error(ErrorKind::usage, {"prompt_lookup_num_tokens is 3 but num_beams 2"},
               [&] { engine.submit(r); });
  r.search.beam = 1, r.search.drafted = -1;
  expect_error(ErrorKind::usage, {"prompt_lookup_num_tokens is -1"}, [&] { engine.submit(r); });
  r.search.drafted = kMostDrafted + 1;
  expect_error(ErrorKind::usage, {"prompt_lookup_num_tokens is 1025"}, [&] { engine.submit(r); });
}

TEST_F(GptEngine, drafts_that_come_true_save_passes_and_rows_stay_within_those_needed) {
  Results results;
  Request r = heard(tokens(20), 0, results);
  r.search.suppressed.resize(kVocab);  // 5 alone may come: a text that repeats itself
  std::iota(r.search.suppressed.begin(), r.search.suppressed.end(), 0);
  r.search.suppressed.erase(r.search.suppressed.begin() + 5);
  r.search.drafted = 6;
  engine.limit_rows(engine.rows_needed(r));
  Outcome outcome;
  r.on_done = [&](const Outcome& o) { outcome = o; };
  engine.submit(r);
  int64_t steps = 0;
  for (bool more = true; more; ++steps) more = engine.step();
  EXPECT_EQ(outcome.accepted, outcome.drafted);
  EXPECT_EQ(steps, 20 - outcome.accepted);
  EXPECT_LT(steps, 8);
}

TEST_F(GptEngine, callbacks_may_cancel_and_submit) {
  std::vector<std::string> heard;
  Request first = tokens(9), second = tokens(9), third = tokens(2);
  first.goes_on = [&](const Hypothesis& h) {
    if (h.ids.size() == 4) engine.cancel(1);
    return true;
  };
  third.on_done = [&](auto) { heard.push_back("third"); };
  first.on_done = [&](auto) {
    heard.push_back("first");
    engine.submit(third);
  };
  second.on_done = [&](auto) { heard.push_back("second"); };
  engine.submit(first);
  engine.submit(second);
  run();
  EXPECT_EQ(heard, (std::vector<std::string>{"first", "third"}));
  EXPECT_EQ(engine.rows(), 0);
}

TEST_F(GptEngine, error_of_a_step_drops_what_ran_and_leaves_the_engine_usable) {
  Request bad = tokens(9);
  bad.goes_on = [](const Hypothesis&) -> bool { throw std::runtime_error("no"); };
  engine.submit(tokens(9));
  engine.submit(bad);
  EXPECT_THROW(engine.step(), std::runtime_error);
  EXPECT_EQ(engine.running(), 0);
  EXPECT_EQ(engine.rows(), 0);
  Results results;
  engine.submit(heard(tokens(9), 0, results));
  run();
  expect_same(results, each_alone(subject.model(), {tokens(9)}));
}

}  // namespace
}  // namespace heddle::testing
