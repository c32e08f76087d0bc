// When a training run's report is written, and what happens if it cannot be.
#include "heddle/cli/train/run_report.h"

#include <chrono>
#include <memory>

#include "heddle/base/log.h"
#include "heddle/inspect/run_history.h"

namespace heddle::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Reading the log and writing the page takes some 10 ms: 0.03 % of half a minute.
constexpr std::chrono::seconds kBetween(30);

struct Writer {
  std::string run;
  Clock::time_point next = {};
  bool has_failed = false;

  void operator()(train::RunEvent event) {
    if (event == train::RunEvent::log && Clock::now() < next) return;
    next = Clock::now() + kBetween;
    try {
      inspect::write_run_report(run, event != train::RunEvent::end);
      has_failed = false;
    } catch (const std::exception& e) {
      if (!has_failed) log_warning("no report of this run: {}; training goes on", e.what());
      has_failed = true;
    }
  }
};

}  // namespace

std::function<void(train::RunEvent)> report_writer(const std::string& run) {
  return [writer = std::make_shared<Writer>(Writer{.run = run})](train::RunEvent event) {
    (*writer)(event);
  };
}

}  // namespace heddle::cli
