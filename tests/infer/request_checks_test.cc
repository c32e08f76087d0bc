// Callbacks of the start.
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
  EXPECT_EQ(engine.waiting(), 1);
  run();
  EXPECT_EQ(heard, (std::vector<std::string>{"bad starts", "next starts", "next has 6"}));
  EXPECT_EQ(engine.rows(), 0);
}

}  // namespace
}  // namespace heddle::testing
