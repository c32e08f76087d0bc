// A training loop of one's own: a small GPT learns to write five digits backwards.
// usage: train [UPDATES]
#include <charconv>
#include <random>
#include <string_view>

#include "heddle/infer/decoding/generate.h"
#include "heddle/models/registry.h"
#include "heddle/train/optimizer.h"
#include "heddle/train/tasks/losses.h"

namespace {

using heddle::Segments;

constexpr int kDigits = 5;
constexpr int32_t kTurn = 10;  // the token between the digits and the answer

/// One text: 3 1 4 1 5 | 5 1 4 1 3.
std::vector<int32_t> make_text(std::mt19937& random) {
  std::vector<int32_t> text;
  for (int i = 0; i < kDigits; ++i) text.push_back(static_cast<int32_t>(random() % 10));
  text.push_back(kTurn);
  for (int i = kDigits - 1; i >= 0; --i) text.push_back(text[i]);
  return text;
}

/// Share of 200 new texts whose answer is right.
double accuracy(const heddle::LanguageModel& model) {
  std::mt19937 random(99);
  std::vector<std::vector<int32_t>> prompts, answers;
  for (int i = 0; i < 200; ++i) {
    const std::vector<int32_t> text = make_text(random);
    prompts.emplace_back(text.begin(), text.begin() + kDigits + 1);
    answers.emplace_back(text.begin() + kDigits + 1, text.end());
  }
  const auto written =
      heddle::generate_ids(model, prompts, {.search = {.max_new_tokens = kDigits}});
  int right = 0;
  for (size_t i = 0; i < answers.size(); ++i) right += written[i].front().ids == answers[i];
  return right / 200.0;
}

void train(int64_t updates) {
  constexpr int kLength = 2 * kDigits + 1;
  const heddle::Json config = heddle::Json::parse(R"({
    "model_type": "gpt2", "vocab_size": 11, "n_positions": 11, "n_embd": 64, "n_layer": 2,
    "n_head": 4, "embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0})");

  heddle::nn::Parameters parameters(1);  // the seed
  const auto made = heddle::make_model(heddle::nn::Scope(parameters), config);
  const heddle::LanguageModel& model = *made->as<heddle::LanguageModel>();
  heddle::train::Optimizer adam(parameters, {.decoupled_decay = true, .weight_decay = 0.01});
  const heddle::train::ScheduleOptions schedule{
      .kind = "cosine", .learning_rate = 3e-3, .warmup = 20, .max_updates = updates};

  fmt::print("{} parameters, {:.1f} % right before training\n", parameters.elements(),
             100 * accuracy(model));
  std::mt19937 random(1);
  constexpr int64_t kTexts = 64;
  const Segments segments = Segments::uniform(kTexts, kLength);
  for (int64_t update = 1; update <= updates; ++update) {
    std::vector<int32_t> ids;  // texts laid end to end; segments says where each begins
    for (int64_t i = 0; i < kTexts; ++i) {
      const std::vector<int32_t> text = make_text(random);
      ids.insert(ids.end(), text.begin(), text.end());
    }
    const heddle::nn::Run run{
        .dropout = {.training = true, .update = static_cast<uint64_t>(update)}};
    const heddle::train::LossSums sums =
        heddle::train::accumulate_gradients(model, {.ids = ids, .segments = &segments}, run);
    const auto tokens = static_cast<double>(sums.predicted);
    adam.step(heddle::train::learning_rate(schedule, update), 1 / tokens);
    if (update % 100 == 0) fmt::print("update {:4}  loss {:.3f}\n", update, sums.loss / tokens);
  }
  fmt::print("{:.1f} % right after training\n", 100 * accuracy(model));
}

int64_t updates_of(std::string_view text) {
  int64_t updates = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), updates);
  heddle::check(error == std::errc() && end == text.data() + text.size() && updates >= 1,
                heddle::ErrorKind::usage, "UPDATES is '{}'; it must be a whole number from 1 on",
                text);
  return updates;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? updates_of(argv[1]) : 400);
  } catch (const heddle::Error& error) {
    fmt::print(stderr, "train: {}\n", error.what());
    return error.exit_code();
  }
}
