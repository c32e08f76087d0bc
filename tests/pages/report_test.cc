// The pages of training runs, driven in a browser.
#include <gtest/gtest.h>

#include <cmath>

#include "heddle/inspect/run_history.h"
#include "tests/pages/browser.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

// A run as heddle train would have logged it: losses fall, two validations with samples.
void write_run(const std::string& run, double learning_rate) {
  train::TrainConfig config;
  config.learning_rate = learning_rate;
  write_file(std::filesystem::path(run) / "train.json", "{}");
  train::save_settings(run, {.config = config, .paths = {.data = "/data"}});
  std::string log;
  for (int update = 100; update <= 400; update += 100) {
    const double loss = 9 * std::exp(-update * learning_rate);
    log += fmt::format(
        "{{\"update\": {}, \"epoch\": 1, \"loss\": {}, \"nll\": {}, \"gradient_norm\": 1.5, "
        "\"learning_rate\": {}, \"tokens_per_second\": 9000.0, \"seconds\": {}.5}}\n",
        update, loss + 0.5, loss, learning_rate, update / 10);
    if (update % 200 != 0) continue;
    log += fmt::format(
        "{{\"update\": {}, \"validation\": \"snapshot\", \"loss\": {}, \"bleu\": {}, \"best\": "
        "true, \"samples\": [{{\"source\": \"a <b> dog\", \"reference\": \"ein Hund\", "
        "\"translation\": \"{}\"}}], \"seconds\": {}.0}}\n",
        update, loss + 0.1, update / 10.0, update == 400 ? "ein Hund" : "ein ein", update / 10 + 1);
  }
  write_file(std::filesystem::path(run) / "log.jsonl", log);
}

TEST(ReportPage, curves_slider_and_axis_work) {
  const TempDir folder;
  const std::string run = (folder / "run").string();
  write_run(run, 1e-3);
  inspect::write_run_report(run);
  drive(run + "/report.html", R"js(
    const charts = document.querySelectorAll(".chart svg");
    reader.equal(charts.length, 6, "loss, BLEU, rate, norm, speed, smoothed loss");
    reader.equal(charts[0].querySelectorAll("path[data-series]").length, 2, "training and validation");
    await reader.key(charts[1], "ArrowRight");
    reader.equal(reader.tip(), "update 200\nvalidation, snapshot: 20", "BLEU at 200");
    await reader.key(charts[1], "Escape");
    await reader.click(reader.button("time", reader.picker("Along")));
    await reader.key(charts[1], "ArrowRight");
    reader.check(reader.tip().startsWith("minutes "), reader.tip());
    const samples = reader.find("[data-samples]");
    reader.check(samples.textContent.includes("a <b> dog"), "the source as text");
    reader.check(!samples.textContent.includes("ein ein"), "the last validation first");
    const slider = reader.find("input[type=range]");
    slider.value = 0;
    slider.dispatchEvent(new Event("input"));
    await reader.wait();
    reader.check(samples.textContent.includes("ein ein"), "the first validation");
    reader.equal(slider.getAttribute("aria-valuetext"), "update 200", "said to a screen reader");
    reader.check(heddle.main.textContent.includes("BLEU 40.00"), "the best");
    reader.check(reader.tooWide() <= 0, "no sideways scrolling");
  )js",
        10, {.width = 390, .height = 800});
}

TEST(ReportPage, run_that_has_just_begun_is_a_page_too) {
  const TempDir folder;
  const std::string run = (folder / "run").string();
  write_run(run, 1e-3);
  write_file(folder / "run/log.jsonl", "");
  inspect::write_run_report(run);
  drive(run + "/report.html",
        "reader.check(heddle.main.textContent.includes('No validation yet'), 'said');", 1);
}

TEST(ReportPage, runs_lie_over_each_other) {
  const TempDir folder;
  std::vector<inspect::RunHistory> runs;
  for (const char* name : {"slow", "fast"}) {
    const std::string run = (folder / name).string();
    write_run(run, *name == 's' ? 1e-3 : 2e-3);
    runs.push_back(inspect::read_history(run));
  }
  const std::string page = (folder / "compare.html").string();
  inspect::write_comparison(page, runs);
  drive(page, R"js(
    const chart = reader.find(".chart svg");
    reader.equal([...chart.querySelectorAll("path[data-series]")].map((p) => p.dataset.series), ["slow", "fast"], "a curve a run");
    reader.check(heddle.main.textContent.includes("learning_rate"), "what differs");
    await reader.click(reader.button("slow"));
    reader.equal(chart.querySelectorAll("path[data-series]").length, 1, "one is hidden");
    reader.equal(document.querySelectorAll("[data-samples]").length, 2, "samples of both");
  )js",
        4, {.is_dark = true});
}

}  // namespace
}  // namespace heddle::testing
