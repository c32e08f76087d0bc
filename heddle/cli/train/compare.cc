// heddle compare: several training runs over each other.
#include <algorithm>

#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/inspect/run_history.h"

namespace heddle::cli {
namespace {

using inspect::RunHistory;

struct Flags {
  std::vector<std::string> runs;
  std::string page;
};

double median_speed(const RunHistory& run) {
  std::vector<double> speeds;
  for (const auto& u : run.updates) speeds.push_back(u.per_second);
  if (speeds.empty()) return 0;
  const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2);
  std::nth_element(speeds.begin(), middle, speeds.end());
  return *middle;
}

std::vector<std::string> names_of(const std::vector<RunHistory>& runs) {
  std::vector<std::string> paths;
  for (const RunHistory& run : runs) paths.push_back(run.path);
  return inspect::short_names(paths);
}

// "images/s"
std::string unit_of_speed(const std::vector<RunHistory>& runs) {
  std::vector<std::string> units;
  for (const RunHistory& run : runs) {
    const std::string counted = run.config.task_config->facts().counted;
    if (std::ranges::count(units, counted) == 0) units.push_back(counted);
  }
  return fmt::format("{}/s", fmt::join(units, " or "));
}

// A row a run: how good its best model was.
std::vector<std::vector<std::string>> summary(const std::vector<RunHistory>& runs) {
  const std::vector<std::string> names = names_of(runs);
  std::vector<std::vector<std::string>> rows = {
      {"run", "updates", "time", unit_of_speed(runs), "best", "at update", "val. loss"}};
  std::vector<std::string> metrics;
  for (const RunHistory& run : runs) {
    if (run.best() == nullptr) continue;
    for (const train::Metric& m : run.best()->score.metrics) {
      if (std::find(metrics.begin(), metrics.end(), m.name) == metrics.end()) {
        metrics.push_back(m.name);
      }
    }
  }
  for (const std::string& m : metrics) rows[0].push_back(m == "bleu" ? "BLEU" : m);
  for (size_t r = 0; r < runs.size(); ++r) {
    const RunHistory& run = runs[r];
    const inspect::LoggedValidation* best = run.best();
    rows.push_back(
        {names[r], format_count(run.done), format_duration(run.seconds),
         run.updates.empty() ? "-" : format_count(static_cast<int64_t>(median_speed(run))),
         best == nullptr ? "-" : best->kind, best == nullptr ? "-" : format_count(best->update),
         best == nullptr ? "-" : fmt::format("{:.4f}", best->score.loss)});
    for (const std::string& m : metrics) {
      const train::Metric* const metric = best == nullptr ? nullptr : best->score.find(m);
      rows.back().push_back(metric == nullptr || metric->value < 0 ? "-"
                                                                   : train::value_text(*metric));
    }
  }
  return rows;
}

std::vector<std::vector<std::string>> differences(const std::vector<RunHistory>& runs) {
  std::vector<std::vector<std::string>> rows(1, {"field"});
  for (const std::string& name : names_of(runs)) rows[0].push_back(name);
  for (const inspect::DifferingField& field : inspect::differing_fields(runs)) {
    rows.push_back({field.key});
    rows.back().insert(rows.back().end(), field.values.begin(), field.values.end());
  }
  return rows;
}

// Columns as wide as their widest cell; the first to the left, the others to the right.
void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    fmt::print("{:{}}", row[0], widths[0]);
    for (size_t i = 1; i < row.size(); ++i) fmt::print("  {:>{}}", row[i], widths[i]);
    fmt::print("\n");
  }
}

void run(const Flags& flags) {
  wants_page(flags.page);
  std::vector<RunHistory> runs;
  for (const std::string& path : flags.runs) runs.push_back(inspect::read_history(path));
  print_table(summary(runs));
  const auto rows = differences(runs);
  if (rows.size() > 1) {
    fmt::print("\n");
    print_table(rows);
  } else if (runs.size() > 1) {
    fmt::print("\nTheir settings are the same.\n");
  }
  if (!flags.page.empty()) {
    write_page("compare", counted(std::ssize(runs), "run"), flags.page,
               inspect::comparison_page(runs));
  }
}

}  // namespace

void add_compare(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "compare", "Lay training runs over each other: settings, losses, BLEU", run);
  command.add_option("runs", flags.runs, "folders of runs").required();
  add_page_flag(command, flags.page, "also write a page with their curves");
}

}  // namespace heddle::cli
