// Reading what a training run has logged, and its page.
#include "heddle/inspect/run_history.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/train/tasks/images/shown_images.h"
#include "heddle/train/tasks/model_task.h"

namespace heddle::inspect {
namespace {

LoggedUpdates parse_updates(const Json& line, const std::string& where, const char* counted) {
  return {.update = line.get_int("update", where),
          .epoch = line.get_int("epoch", where),
          .loss = line.get_double("loss", where),
          .nll = line.get_double("nll", where),
          .gradient_norm = line.get_double("gradient_norm", where),
          .learning_rate = line.get_double("learning_rate", where),
          .per_second = line.get_double(fmt::format("{}_per_second", counted), where),
          .seconds = line.get_double("seconds", where)};
}

LoggedValidation parse_validation(const Json& line, const std::string& where) {
  LoggedValidation v{.update = line.get_int("update", where),
                     .kind = line.get_string("validation", where),
                     .score = {.loss = line.get_double("loss", where)},
                     .is_best = line.get_bool("best", where),
                     .seconds = line.get_double("seconds", where)};
  for (const auto& [key, value] : line.as_object(where)) {
    const bool is_metric = value.is_number() && key != "update" && key != "loss" &&
                           key != "seconds" && !key.ends_with(train::kHalfWidth);
    if (!is_metric) continue;
    const Json* const half_width = line.find(key + train::kHalfWidth);
    v.score.metrics.push_back(
        {key, value.as_double(where), half_width == nullptr ? 0 : half_width->as_double(where)});
  }
  if (const Json* samples = line.find("samples")) {
    for (const Json& s : samples->as_array(where)) {
      auto& sample = v.samples.emplace_back();
      for (const auto& [key, text] : s.as_object(where)) {
        sample.emplace_back(key, text.as_string(where));
      }
    }
  }
  if (const Json* findings = line.find("findings")) {
    static_cast<void>(findings->at("warnings", where).as_strings(where));
    for (const auto& [key, value] : findings->as_object(where)) {
      if (key != "warnings") static_cast<void>(value.as_double(where));
    }
    v.findings = *findings;
  }
  return v;
}

LoggedRanks parse_ranks(const Json& line, const std::string& where) {
  LoggedRanks logged{.update = line.get_int("update", where), .ranks = line.at("ranks", where)};
  for (const Json& one : logged.ranks.as_array(where)) {
    static_cast<void>(one.get_string("host", where));
    for (const char* key : {"compute_seconds", "waiting_seconds", "wire_seconds"}) {
      static_cast<void>(one.get_double(key, where));
    }
  }
  return logged;
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
    } else if (line.contains("ranks")) {
      history.ranks.push_back(parse_ranks(line, where));
    } else {
      history.updates.push_back(
          parse_updates(line, where, history.config.task_config->facts().counted));
    }
  }
}

// --- the page of a training run, and of several runs over each other ---

// More points than a curve has pixels help nobody; samples of so many validations are kept.
constexpr size_t kMostPoints = 3000, kMostSamples = 60;
constexpr size_t kMostNames = 4;  // in a title

// Numbers with six digits: a page of a long run stays small.
double rounded(double x) { return rounded_to_digits(x, 6); }
int64_t rounded(int64_t x) { return x; }

template <class Item, class Member>
Json column(const std::vector<const Item*>& items, Member member) {
  return json_list(items, [&](const Item* item) { return rounded(item->*member); });
}

// At most `most` of those that are wanted, evenly spread, the last one included.
template <class Item, class Test>
std::vector<const Item*> thinned(const std::vector<Item>& items, size_t most,
                                 const Test& is_wanted) {
  std::vector<const Item*> all, some;
  for (const Item& item : items) {
    if (is_wanted(item)) all.push_back(&item);
  }
  if (all.size() <= most) return all;
  for (size_t i = 1; i <= most; ++i) some.push_back(all[i * all.size() / most - 1]);
  return some;
}

Json updates_json(const RunHistory& run) {
  const auto some = thinned(run.updates, kMostPoints, [](const auto&) { return true; });
  return Json::object({{"update", column(some, &LoggedUpdates::update)},
                       {"seconds", column(some, &LoggedUpdates::seconds)},
                       {"loss", column(some, &LoggedUpdates::loss)},
                       {"nll", column(some, &LoggedUpdates::nll)},
                       {"gradient_norm", column(some, &LoggedUpdates::gradient_norm)},
                       {"learning_rate", column(some, &LoggedUpdates::learning_rate)},
                       {"per_second", column(some, &LoggedUpdates::per_second)}});
}

Json validations_json(const RunHistory& run) {
  Json json = Json::array();
  for (const char* kind : {"snapshot", "ema", "average"}) {
    const auto some = thinned(run.validations, kMostPoints,
                              [&](const LoggedValidation& v) { return v.kind == kind; });
    if (some.empty()) continue;
    Json one = Json::object({{"kind", kind},
                             {"update", column(some, &LoggedValidation::update)},
                             {"seconds", column(some, &LoggedValidation::seconds)}});
    for (const LoggedValidation* v : some) one["loss"].push_back(rounded(v->score.loss));
    one["metrics"] = Json::object();
    for (const train::Metric& m : some.back()->score.metrics) {
      for (const LoggedValidation* v : some) {
        one["metrics"][m.name].push_back(rounded(v->score.metric(m.name)));
      }
    }
    json.push_back(std::move(one));
  }
  return json;
}

// What a field of a sample is called beside its text.
std::string label_of(const std::string& field, const Json& settings) {
  if (field == "source") return settings.get_string("source_lang");
  if (field == "reference" && settings.contains("target_lang")) {  // of images it is a caption
    return settings.get_string("target_lang");
  }
  return field == "translation" ? "model" : field;
}

Json samples_json(const RunHistory& run) {
  const auto some = thinned(run.validations, kMostSamples,
                            [](const LoggedValidation& v) { return !v.samples.empty(); });
  if (some.empty()) return {};
  Json json = Json::object();
  const Json settings = to_json(run.config);
  for (const auto& [field, text] : some.back()->samples[0]) {
    json["labels"].push_back(label_of(field, settings));
  }
  for (const LoggedValidation* v : some) {
    Json one = Json::object({{"update", v->update}});
    for (const auto& sample : v->samples) {
      one["samples"].push_back(json_list(sample, [](const auto& field) { return field.second; }));
    }
    json["validations"].push_back(std::move(one));
  }
  return json;
}

Json best_json(const RunHistory& run) {
  const LoggedValidation* best = run.best();
  if (best == nullptr) return {};
  Json json = Json::object({{"update", best->update},
                            {"kind", best->kind},
                            {"loss", rounded(best->score.loss)},
                            {"metrics", Json::object()}});
  for (const train::Metric& m : best->score.metrics) {
    json["metrics"][m.name] = rounded(m.value);
    if (m.half_width > 0) json["half_widths"][m.name] = rounded(m.half_width);
  }
  json["seconds"] = best->seconds;
  return json;
}

// Those of the weights as they are at the last validation: what the training does now.
Json findings_json(const RunHistory& run) {
  const auto last = std::find_if(
      run.validations.rbegin(), run.validations.rend(),
      [](const LoggedValidation& v) { return v.kind == "snapshot" && !v.findings.is_null(); });
  if (last == run.validations.rend()) return {};
  Json json = last->findings;
  json["update"] = last->update;
  return json;
}

Json settings_json(const train::TrainConfig& config) {
  return json_list(list_fields(config), [](const FieldInfo& field) {
    return Json::Array{field.key, field.default_value, field.help};
  });
}

// What is added to the loss that is minimised: "label smoothing 0.1 and R-Drop 5", or nothing.
std::string objective(const RunHistory& run) {
  const Json settings = to_json(run.config);
  std::string terms = run.has_teacher ? "a teacher" : "";
  for (const auto& [key, name] :
       {std::pair("label_smoothing", "label smoothing"), std::pair("r_drop", "R-Drop")}) {
    const Json* share = settings.find(key);
    if (share == nullptr || share->as_double() == 0) continue;
    terms += fmt::format("{}{} {}", terms.empty() ? "" : " and ", name, share->as_double());
  }
  return terms;
}

// While a run goes on its page loads itself again.
Json live_json(const RunHistory& run) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  // Two lines of the log are as far apart as two pages may be.
  const size_t n = run.updates.size();
  const double every = n < 2 ? 0 : run.updates[n - 1].seconds - run.updates[n - 2].seconds;
  return Json::object({{"written", std::chrono::duration_cast<std::chrono::seconds>(now).count()},
                       {"every", rounded(every)}});
}

Json run_json(const RunHistory& run) {
  const Json settings = to_json(run.config);
  const Json* tokens = settings.find("tokenizer_type");
  return Json::object(
      {{"name", run.name},
       {"path", run.path},
       {"max_updates", run.config.max_updates},
       {"done", run.done},
       {"seconds", rounded(run.seconds)},
       {"finished", run.is_finished},
       {"tokens", tokens != nullptr ? *tokens : Json("")},
       {"counted", run.config.task_config->facts().counted},
       {"objective", objective(run)},
       {"updates", updates_json(run)},
       {"validations", validations_json(run)},
       {"best", best_json(run)},
       {"samples", samples_json(run)},
       {"findings", findings_json(run)},
       {"ranks",
        json_list(run.ranks,
                  [](const LoggedRanks& logged) {
                    return Json::object({{"update", logged.update}, {"ranks", logged.ranks}});
                  })},
       {"task", run.config.task}});
}

Page run_page(const RunHistory& run) {
  Page page{.title = "Training run " + run.name,
            .scripts = {"live.js", "report_images.js", "report.js"}};
  if (!run.images.is_null()) page.data["images"] = run.images;
  if (run.images.contains("labels")) {  // of boxes
    const std::initializer_list<std::string> more = {"texts.js", "boxes.js"};
    page.scripts.insert(page.scripts.begin(), more);
  }
  page.data["runs"].push_back(run_json(run));
  page.data["settings"] = settings_json(run.config);
  return page;
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
  const Json settings = to_json(history.config);
  // A translator's may only write what is learned.
  history.has_teacher =
      (history.config.task != "translation" || settings.get_string("teaching") == "word") &&
      !train::load_settings(run).paths.teacher.empty();
  read_log(history);
  const std::string images = join_path(join_path(run, "cache"), train::kShownImagesName);
  if (path_exists(images)) history.images = Json::load(images);
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
      auto at = std::ranges::find(differing, d.key, &DifferingField::key);
      if (at == differing.end()) {
        at = differing.insert(at, {d.key, std::vector<std::string>(runs.size(), d.first)});
      }
      at->values[r] = d.second;
    }
  }
  return differing;
}

void write_run_report(const std::string& run, bool is_going_on) {
  const RunHistory history = read_history(run);
  Page page = run_page(history);
  if (is_going_on) page.data["live"] = live_json(history);
  write_page(join_path(run, "report.html"), page);
}

std::function<void(train::RunEvent)> report_writer(const std::string& run) {
  using Clock = std::chrono::steady_clock;
  // Reading the log and writing the page takes some 10 ms: 0.03 % of half a minute.
  static constexpr std::chrono::seconds kBetween(30);
  struct State {
    Clock::time_point next = {};
    bool has_failed = false;
  };
  return [run, state = std::make_shared<State>()](train::RunEvent event) {
    if (event == train::RunEvent::log && Clock::now() < state->next) return;
    state->next = Clock::now() + kBetween;
    try {
      write_run_report(run, event != train::RunEvent::end);
      state->has_failed = false;
    } catch (const std::exception& e) {
      if (!state->has_failed) log_warning("no report of this run: {}; training goes on", e.what());
      state->has_failed = true;
    }
  };
}

Page comparison_page(const std::vector<RunHistory>& runs) {
  if (runs.size() == 1) return run_page(runs[0]);
  std::vector<std::string> paths;
  for (const RunHistory& run : runs) paths.push_back(run.path);
  const std::vector<std::string> names = short_names(paths);
  Page page{.title = runs.size() <= kMostNames
                         ? fmt::format("Training runs {}", fmt::join(names, ", "))
                         : fmt::format("{} training runs", runs.size()),
            .scripts = {"live.js", "report.js"}};
  for (size_t r = 0; r < runs.size(); ++r) {
    Json json = run_json(runs[r]);
    json["name"] = names[r];
    page.data["runs"].push_back(std::move(json));
  }
  page.data["differences"] = json_list(differing_fields(runs), [](const DifferingField& field) {
    return Json::object({{"key", field.key}, {"values", field.values}});
  });
  return page;
}

}  // namespace heddle::inspect
