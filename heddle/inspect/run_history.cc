// Reading what a training run has logged.
#include "heddle/inspect/run_history.h"

#include <algorithm>
#include <filesystem>

#include "heddle/base/files/files.h"
#include "heddle/infer/loading/model_dir.h"
#include "heddle/train/tasks/stack_task.h"

namespace heddle::inspect {
namespace {

LoggedUpdates parse_updates(const Json& line, const std::string& where) {
  return {.update = line.get_int("update", where),
          .epoch = line.get_int("epoch", where),
          .loss = line.get_double("loss", where),
          .nll = line.get_double("nll", where),
          .gradient_norm = line.get_double("gradient_norm", where),
          .learning_rate = line.get_double("learning_rate", where),
          .tokens_per_second = line.get_double("tokens_per_second", where),
          .seconds = line.get_double("seconds", where)};
}

LoggedValidation parse_validation(const Json& line, const std::string& where) {
  LoggedValidation v{.update = line.get_int("update", where),
                     .kind = line.get_string("validation", where),
                     .score = {.loss = line.get_double("loss", where)},
                     .is_best = line.get_bool("best", where),
                     .seconds = line.get_double("seconds", where)};
  for (const auto& [key, value] : line.as_object(where)) {
    const bool is_metric =
        value.is_number() && key != "update" && key != "loss" && key != "seconds";
    if (is_metric) v.score.metrics.push_back({key, value.as_double(where)});
  }
  if (const Json* samples = line.find("samples")) {
    for (const Json& s : samples->as_array(where)) {
      auto& sample = v.samples.emplace_back();
      for (const auto& [key, text] : s.as_object(where)) {
        sample.emplace_back(key, text.as_string(where));
      }
    }
  }
  return v;
}

// The last `count` names of a path, "runs/m30k" of two.
std::string last_names(const std::filesystem::path& path, ptrdiff_t count) {
  std::filesystem::path names;
  auto at = path.end();
  for (; count > 0 && at != path.begin(); --count) --at;
  for (; at != path.end(); ++at) names /= *at;
  return names.string();
}

// The settings, with the model as it was made: its vocabulary may be less than was asked for.
train::TrainConfig config_of(const std::string& run) {
  auto [config, paths] = train::load_settings(run);
  const std::string best = join_path(run, "best"), tokenizer = join_path(run, "tokenizer");
  if (!path_exists(join_path(best, kConfigName))) {  // not validated yet
    const bool is_made = paths.from.empty() && is_directory(tokenizer);
    if (is_made) config.stack.set("vocab_size", Tokenizer::load(tokenizer).vocab_size());
    return config;
  }
  config.stack = train::config_of_model(best);
  return config;
}

// Whatever has an update and the seconds until then.
template <class Place>
void note_place(RunHistory& history, const Place& place) {
  history.done = std::max(history.done, place.update);
  history.seconds = std::max(history.seconds, place.seconds);
}

void read_log(RunHistory& history) {
  const std::string path = join_path(history.path, "log.jsonl");
  if (!path_exists(path)) return;
  const std::string text = read_file(path);
  int64_t number = 0;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string where = fmt::format("{}:{}", path, ++number);
    const Json line = Json::parse(std::string_view(text).substr(begin, end - begin), where);
    if (line.contains("validation")) {
      history.validations.push_back(parse_validation(line, where));
    } else {
      history.updates.push_back(parse_updates(line, where));
    }
  }
}

}  // namespace

const LoggedValidation* RunHistory::best() const {
  const auto last = std::find_if(validations.rbegin(), validations.rend(),
                                 [](const LoggedValidation& v) { return v.is_best; });
  return last == validations.rend() ? nullptr : &*last;
}

std::vector<std::string> short_names(const std::vector<std::string>& paths) {
  std::vector<std::filesystem::path> whole;
  for (const std::string& path : paths) {
    whole.push_back(std::filesystem::absolute(path).lexically_normal());
    if (!whole.back().has_filename()) whole.back() = whole.back().parent_path();
  }
  std::vector<std::string> names;
  for (const auto& path : whole) {
    ptrdiff_t count = path.filename() == "best" ? 2 : 1;  // every run has one
    const auto is_shared = [&](const std::filesystem::path& other) {
      return other != path && last_names(other, count) == last_names(path, count);
    };
    while (std::ranges::any_of(whole, is_shared)) ++count;
    names.push_back(last_names(path, count));
  }
  return names;
}

RunHistory read_history(const std::string& run) {
  check(train::is_run(run), ErrorKind::data,
        "{}: there is no training run (no train.json); name a folder that heddle train wrote", run);
  RunHistory history{.path = run, .name = short_names({run})[0], .config = config_of(run)};
  read_log(history);
  // A run that was stopped has done more than it has logged; one that goes on logs more than it has
  // saved.
  if (!history.updates.empty()) note_place(history, history.updates.back());
  if (!history.validations.empty()) note_place(history, history.validations.back());
  if (const auto place = train::StateFolder::place(join_path(run, "state"))) {
    note_place(history, *place);
    history.is_finished = place->finished;
  }
  return history;
}

std::vector<DifferingField> differing_fields(const std::vector<RunHistory>& runs) {
  std::vector<DifferingField> differing;
  for (size_t r = 1; r < runs.size(); ++r) {
    for (const FieldDifference& d : diff_fields(runs[0].config, runs[r].config)) {
      auto at = std::find_if(differing.begin(), differing.end(),
                             [&](const DifferingField& f) { return f.key == d.key; });
      if (at == differing.end()) {
        at = differing.insert(at, {d.key, std::vector<std::string>(runs.size(), d.first)});
      }
      at->values[r] = d.second;
    }
  }
  return differing;
}

}  // namespace heddle::inspect
