// Hypotheses of one search, chosen anew by each length penalty.
#include "heddle/train/tasks/search_tuning.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/dist/share_out.h"

namespace heddle::train {
namespace {

constexpr int kSteps = 20;  // of length penalties
constexpr int kUsual = 10;  // that of 1
constexpr double kSignificant = 0.05;
double penalty_at(int step) { return step / 10.0; }  // 1.4, where 0.1 * 14 is a little more

// The best of each sentence.
std::vector<std::string> best_texts(const std::vector<std::vector<EndedText>>& sentences,
                                    double alpha, LengthPenalty kind) {
  std::vector<std::string> texts;
  for (const auto& all : sentences) {
    const auto score = [&](const EndedText& h) {
      return h.log_p / length_penalty(h.length, alpha, kind);
    };
    texts.push_back(std::ranges::max_element(all, {}, score)->text);
  }
  return texts;
}

// What the beam of each sentence ended with.
std::vector<std::vector<EndedText>> all_ended(const LoadedModel& model,
                                              const std::vector<std::vector<int32_t>>& sources,
                                              const TranslateOptions& options) {
  std::vector<std::vector<EndedText>> sentences;
  for (const Translation& best : translate_ids(model.translator(), sources, options)) {
    std::vector<EndedText>& all = sentences.emplace_back();
    const auto add = [&](const Translation& t) {
      all.push_back({model.target().decode(t.ids), t.log_p, t.length});
    };
    add(best);
    std::ranges::for_each(best.others, add);
  }
  return sentences;
}

}  // namespace

TunedSearch choose_length_penalty(const std::vector<std::vector<EndedText>>& sentences,
                                  const std::vector<std::string>& references, LengthPenalty kind) {
  check(!sentences.empty(), ErrorKind::data, "search: there is no sentence to tune it on");
  std::vector<std::vector<std::string>> texts;  // of each step
  std::vector<double> bleu;
  for (int step = 0; step <= kSteps; ++step) {
    texts.push_back(best_texts(sentences, penalty_at(step), kind));
    bleu.push_back(corpus_bleu(texts.back(), references).score);
  }
  const auto smooth = [&](int step) {
    const int first = std::max(0, step - 1), last = std::min(kSteps, step + 1);
    double sum = 0;
    for (int i = first; i <= last; ++i) sum += bleu[static_cast<size_t>(i)];
    return sum / (last - first + 1);
  };
  int best = kUsual;
  for (int step = 0; step <= kSteps; ++step) {
    if (smooth(step) > smooth(best)) best = step;
  }
  const PairedScores beside = paired_bleu(texts[static_cast<size_t>(best)], texts, references);
  int chosen = best;
  for (int step = 0; step <= kSteps; ++step) {
    const bool is_as_good = beside.systems[static_cast<size_t>(step)].p >= kSignificant;
    if (is_as_good && std::abs(step - kUsual) < std::abs(chosen - kUsual)) chosen = step;
  }
  return {.length_penalty = penalty_at(chosen),
          .bleu = beside.systems[static_cast<size_t>(chosen)].system,
          .bleu_at_1 = bleu[kUsual]};
}

TunedSearch tune_search(const LoadedModel& model, const std::vector<std::vector<int32_t>>& sources,
                        const std::vector<std::string>& references, TranslateOptions options,
                        dist::Group& group) {
  const LengthPenalty kind =
      model.model->config().is_own_format() ? LengthPenalty::wu : LengthPenalty::power;
  options.search.n_best = options.search.beam.value();
  options.search.length_penalty = 1;
  const auto search = [&](std::span<const int64_t> items) {
    std::vector<std::vector<int32_t>> some;
    for (const int64_t i : items) some.push_back(sources[static_cast<size_t>(i)]);
    return all_ended(model, some, options);
  };
  const auto sentences =
      dist::share_out<std::vector<EndedText>>(group, std::ssize(sources), search);
  TunedSearch tuned = choose_length_penalty(sentences, references, kind);
  tuned.beam = *options.search.beam;
  return tuned;
}

void save_generation(const std::string& folder, const Json& members,
                     const std::string& config_folder) {
  const std::string path = join_path(folder, kGenerationName);
  Json json = Json::object();
  if (path_exists(path)) {
    json = Json::load(path);
  } else if (const std::string general = join_path(config_folder, "config.json");
             path_exists(general)) {
    // Beside a file of its own nothing else counts.
    SearchConfig known;
    const Json config = Json::load(general);
    const std::vector<std::string> others = read_search(known, config, general);
    for (const auto& [key, value] : config.as_object()) {
      if (std::ranges::find(others, key) == others.end()) json[key] = value;
    }
  }
  for (const auto& [key, value] : members.as_object()) json[key] = value;
  write_file_atomic(path, json.dump(2) + "\n");
}

void save_search(const std::string& folder, const TunedSearch& search) {
  save_generation(
      folder, Json::object({{"num_beams", search.beam}, {"length_penalty", search.length_penalty}}),
      folder);
}

}  // namespace heddle::train
