// The pages of training runs, driven in a browser.
#include <gtest/gtest.h>

#include "tests/pages/browser.h"
#include "tests/pages/logged_run.h"

namespace heddle::testing {
namespace {

TEST(ReportPage, curves_slider_and_axis_work) {
  const TempDir folder;
  const std::string run = (folder / "run").string();
  write_run(run, 1e-3);
  inspect::write_run_report(run, false);
  drive(run + "/report.html", R"js(
    const charts = document.querySelectorAll(".chart svg");
    reader.equal(charts.length, 6, "loss, BLEU, rate, norm, speed, smoothed loss");
    reader.equal(charts[0].querySelectorAll("path[data-series]").length, 2, "training and validation");
    await reader.key(charts[1], "ArrowRight");
    reader.equal(reader.tip(), "update 200\nvalidation: 20", "BLEU at 200");
    await reader.key(charts[1], "Escape");
    await reader.click(reader.button("time", reader.picker("Horizontal")));
    await reader.key(charts[1], "ArrowRight");
    reader.check(reader.tip().startsWith("minutes "), reader.tip());
    const samples = reader.find("[data-samples]");
    reader.check(samples.textContent.includes("a <b> dog"), "the source as text");
    reader.check(!samples.textContent.includes("ein ein"), "the last validation first");
    const slider = reader.find("[data-samples] input[type=range]");
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

TEST(ReportPage, charts_say_what_they_show_and_none_shows_what_is_not_there) {
  const TempDir folder;
  const std::string with = (folder / "with").string(), without = (folder / "without").string();
  write_run(with, 1e-3, 0.1);
  write_run(without, 1e-3, 0);
  const std::string captions = R"js(
    reader.equal([...document.querySelectorAll("figcaption")].map((c) => c.textContent), [
      "Training and validation loss per token, in nats",
      "BLEU of the validation's translations, 0 to 100; higher is better",
      "Learning rate", "Norm of the gradient", "Speed, in tokens per second")js";
  inspect::write_run_report(with, false);
  drive(with + "/report.html",
        captions +
            R"js(, "Training loss with label smoothing 0.1, in nats per token"], "captions");
    reader.equal(reader.find(".chart svg text:last-of-type").textContent, "nats per token", "the unit");)js",
        2);
  inspect::write_run_report(without, false);
  drive(without + "/report.html", captions + R"js(], "captions");)js", 1);
}

TEST(ReportPage, curves_are_smoothed_and_their_axis_is_logarithmic_on_demand) {
  const TempDir folder;
  const std::string run = (folder / "run").string();
  write_run(run, 1e-3);
  inspect::write_run_report(run, false);
  drive(run + "/report.html", R"js(
    const slider = reader.find("#smoothing"), chart = reader.find(".chart svg");
    reader.equal([slider.value, document.querySelectorAll("[data-raw]").length], ["0", 0], "four points are not smoothed");
    slider.value = 0.5;
    slider.dispatchEvent(new Event("input"));
    await reader.wait();
    reader.equal([...chart.querySelectorAll("[data-raw]")].map((p) => p.dataset.raw), ["training"], "faint, as it is");
    await reader.key(chart, "ArrowRight");
    await reader.key(chart, "ArrowRight");
    const [a, b] = heddle.data.runs[0].updates.nll;  // weights 1/4 and 1/2, divided by their sum
    reader.check(reader.tip().includes(`training: ${heddle.number((a / 4 + b / 2) / 0.75)} (not smoothed ${heddle.number(b)})`), reader.tip());
    const height = () => Number(chart.querySelector("[data-raw]").getAttribute("d").split("L")[1].split(" ")[1]), before = height();
    await reader.click(reader.button("logarithmic"));
    reader.check(height() < before - 2, "an exponential no longer hangs");
  )js",
        4);
}

TEST(ReportPage, doctor_of_a_detector_shows_the_last_validation_of_the_weights_as_they_are) {
  const TempDir folder;
  const std::string run = (folder / "run").string();
  write_run(run, 1e-3);
  const std::string log = read_file(run + "/log.jsonl");
  inspect::write_run_report(run, false);
  drive(run + "/report.html", R"js(
    reader.check(!document.querySelector("#warnings"), "no doctor without a detector");)js",
        1);
  const auto validation = [](int update, const char* kind, double loss, const Json& warnings) {
    const Json findings = Json::object({{"class_loss", loss},
                                        {"blind_class_loss", 0.5},
                                        {"distance_loss", 0.125},
                                        {"giou_loss", 0.25},
                                        {"class_error", 0.375},
                                        {"query_overlap", 0.9},
                                        {"most_objects", 8},
                                        {"queries", 5},
                                        {"warnings", warnings}});
    return Json::object({{"update", update},
                         {"validation", kind},
                         {"loss", 1.0},
                         {"best", true},
                         {"findings", findings},
                         {"seconds", 50.0}})
               .dump() +
           "\n";
  };
  write_file(run + "/log.jsonl",
             log + validation(450, "snapshot", 0.75, Json::array()) +
                 validation(500, "snapshot", 0.625, Json::Array{"one <box>", "too few"}) +
                 validation(500, "ema", 0.875, Json::array()));
  inspect::write_run_report(run, false);
  drive(run + "/report.html", R"js(
    reader.equal([...document.querySelectorAll("#warnings li")].map((l) => l.textContent), ["one <box>", "too few"], "warnings");
    const rows = [...document.querySelectorAll("table.findings tbody tr")].map((r) => [...r.children].slice(0, 2).map((c) => c.textContent));
    reader.equal(rows, [["class loss", "0.625"], ["class error", "37.5 %"], ["distance of boxes", "0.125"], ["1 − GIoU of boxes", "0.25"],
      ["overlap of queries", "90.0 %"], ["most objects of an image", "8"]], "figures");
    const text = reader.find("table.findings").textContent;
    reader.check(text.includes("has 0.5 or more") && text.includes("has 5 queries"), text);
    reader.check(heddle.main.textContent.includes("at update 500"), "which validation");
  )js",
        4);
  check_layout(run + "/report.html");
  write_file(run + "/log.jsonl", log + validation(450, "snapshot", 0.75, Json::array()));
  inspect::write_run_report(run, false);
  drive(run + "/report.html",
        R"js(reader.equal(reader.find("#warnings").textContent, "Nothing to warn of.", "");)js", 1);
}

TEST(ReportPage, time_of_ranks_is_in_a_table_where_there_were_several) {
  const TempDir folder;
  const std::string run = (folder / "run").string();
  write_run(run, 1e-3);
  inspect::write_run_report(run, false);
  drive(run + "/report.html",
        R"js(reader.check(!document.querySelector("table.ranks"), "one process");)js", 1);
  const auto rank = [](const std::string& host, double compute, double waiting, double wire) {
    return Json::object({{"host", host},
                         {"compute_seconds", compute},
                         {"waiting_seconds", waiting},
                         {"wire_seconds", wire}});
  };
  const auto line = [](int update, Json::Array ranks) {
    return Json::object({{"update", update}, {"ranks", Json(std::move(ranks))}}).dump() + "\n";
  };
  write_file(run + "/log.jsonl", read_file(run + "/log.jsonl") +
                                     line(200, {rank("node<1>", 60, 15, 5)}) +
                                     line(400, {rank("a", 54, 3, 3), rank("b", 0, 0, 0)}));
  inspect::write_run_report(run, false);
  drive(run + "/report.html", R"js(
    const rows = [...document.querySelectorAll("table.ranks tbody tr")].map((r) => [...r.children].map((c) => c.textContent));
    reader.equal(rows, [["200", "0", "node<1>", "60 s, 75.0 %", "15 s, 18.8 %", "5 s, 6.3 %"],
      ["400", "0", "a", "54 s, 90.0 %", "3 s, 5.0 %", "3 s, 5.0 %"], ["400", "1", "b", "0 s, 0.0 %", "0 s, 0.0 %", "0 s, 0.0 %"]], "times");
  )js",
        1);
  check_layout(run + "/report.html");
}

TEST(ReportPage, layout_of_a_report_and_of_a_comparison_holds) {
  const TempDir folder;
  const std::string run = (folder / "run").string(), other = (folder / "other").string();
  write_run(run, 1e-3);
  write_run(other, 2e-3, 0);
  inspect::write_run_report(run, true);
  check_layout(run + "/report.html", R"js(
    await reader.click("summary");
    await reader.click(reader.button("logarithmic"));
    await reader.layout("settings open, logarithmic");
  )js",
               1);
  const std::vector<inspect::RunHistory> runs = {inspect::read_history(run),
                                                 inspect::read_history(other)};
  const std::string page = (folder / "compare.html").string();
  inspect::write_page(page, inspect::comparison_page(runs));
  check_layout(page);
}

TEST(ReportPage, page_of_a_run_that_goes_on_loads_itself_and_looks_as_before) {
  const TempDir folder;
  const std::string run = (folder / "run").string();
  write_run(run, 1e-3);
  inspect::write_run_report(run, true);
  drive(run + "/report.html", R"js(
    const slider = reader.find("#smoothing");
    if (!sessionStorage.getItem("was-here")) {
      sessionStorage.setItem("was-here", "yes");
      slider.value = 0.9;
      slider.dispatchEvent(new Event("input"));
      await reader.click(reader.button("logarithmic"));
      await reader.click(reader.button("time"));
      await reader.click(reader.button("training", reader.find(".legend")));
      await reader.click("summary");
      window.scrollTo(0, 400);
      slider.focus({preventScroll: true});
      await new Promise(() => {});  // until it loads itself
    }
    reader.check(reader.find("#live").textContent.includes("goes on"), "said");
    reader.equal([slider.value, reader.find("output").textContent], ["0.9", "0.90"], "smoothing");
    reader.equal([...document.querySelectorAll('[aria-checked="true"]')].map((b) => b.textContent), ["time", "logarithmic"], "axes");
    reader.equal([...reader.find(".chart").querySelectorAll("path[data-series]")].map((p) => p.dataset.series), ["validation"], "hidden curves");
    reader.check(reader.find("details").open, "settings");
    reader.equal([Math.round(window.scrollY), document.activeElement.id], [400, "smoothing"], "place and focus");
    await reader.click(reader.button("Pause"));
    reader.check(reader.find("#live").textContent.includes("paused"), "paused");
    let loads = 0;
    heddle.reload = () => { ++loads; };
    await reader.wait(5000);
    reader.equal(loads, 0, "and stays as it is");
  )js",
        8);
}

TEST(ReportPage, page_of_a_run_that_has_ended_or_was_killed_rests) {
  const TempDir folder;
  const std::string run = (folder / "run").string();
  write_run(run, 1e-3);
  const std::string rests = R"js(
    let loads = 0;
    heddle.reload = () => { ++loads; };
    await reader.wait(16000);
    reader.equal(loads, 0, "not loaded again");)js";
  inspect::write_run_report(run, false);
  drive(run + "/report.html", rests + R"js(reader.check(!document.querySelector("#live"), "");)js",
        2);
  inspect::write_run_report(run, true);
  std::string page = read_file(run + "/report.html");
  const std::string key = "\"written\": ";
  page.replace(page.find(key) + key.size(), 10, "1000000000");
  write_file(run + "/report.html", page);
  drive(run + "/report.html",
        rests + R"js(reader.check(reader.find("#live").textContent.includes("stopped"), "");)js",
        2);
}

TEST(ReportPage, run_that_has_just_begun_is_a_page_too) {
  const TempDir folder;
  const std::string run = (folder / "run").string();
  write_run(run, 1e-3);
  write_file(folder / "run/log.jsonl", "");
  inspect::write_run_report(run, false);
  drive(run + "/report.html", R"js(
    reader.check(heddle.main.textContent.includes("No validation yet"), "said");
    reader.equal(document.querySelectorAll(".chart svg").length, 0, "no axes that nothing is on");
    const charts = [...document.querySelectorAll("figure.chart")];
    reader.equal(charts.map((c) => c.textContent.endsWith("No data yet.")), [true, true, true, true], "loss, rate, norm, speed");
  )js",
        3);
}

// The slider is that of several validations; a run that is done has a best model, not one so far.
TEST(ReportPage, finished_run_of_one_validation_has_neither_slider_nor_so_far) {
  const TempDir folder;
  const std::string run = (folder / "run").string();
  write_run(run, 1e-3);
  const std::string log = read_file(run + "/log.jsonl");
  write_file(run + "/log.jsonl", log.substr(0, log.find("{\"update\": 300")));
  inspect::write_run_report(run, false);
  const std::string has = "reader.check(heddle.main.textContent.includes('";
  const std::string lacks = "reader.check(!heddle.main.textContent.includes('";
  drive(run + "/report.html",
        has + "Green: equal'), '');" + lacks + "Move the slider'), '');" + has +
            "best model so far'), '');",
        3);
  write_file(
      run + "/state/manifest.json",
      R"({"content": {"update": 400, "seconds": 50.0, "best_kind": "snapshot", "finished": true}})");
  inspect::write_run_report(run, false);
  drive(run + "/report.html",
        has + "400 updates in 50 s'), '');" + lacks + "so far'), '');" + has +
            "The best model is in best/'), '');",
        3);
  inspect::write_run_report(run, true);
  drive(run + "/report.html", has + "best model so far'), 'it goes on');", 1);
}

TEST(ReportPage, long_values_are_broken_and_runs_have_short_names) {
  const TempDir folder;
  std::vector<inspect::RunHistory> runs;
  for (const char* name : {"a/run", "b/run"}) {
    const std::string run = (folder / name).string();
    write_run(run, 1e-3);
    runs.push_back(inspect::read_history(run));
    set_from_string(runs.back().config, "tokenizer", run + "/" + std::string(300, *name) + ".json");
  }
  const std::string page = (folder / "compare.html").string();
  inspect::write_page(page, inspect::comparison_page(runs));
  drive(page, R"js(
    reader.equal(document.title, "Training runs a/run, b/run", "no whole path");
    const cell = [...document.querySelectorAll("td")].find((c) => c.textContent.includes("aaaa"));
    reader.check(cell.getBoundingClientRect().width < 330 && cell.textContent.endsWith("a.json"), "broken, and all of it");
    reader.check(reader.tooWide() <= 0, "no sideways scrolling");
    const runs = reader.find("table.runs");
    reader.check(runs.scrollWidth <= runs.parentElement.clientWidth, "the figures of a run fit");
    const lines = (c) => { const r = document.createRange(); r.selectNodeContents(c); return r.getClientRects().length; };
    reader.equal([...runs.querySelectorAll("td")].map(lines).filter((n) => n > 1), [], "none is broken");
  )js",
        5, {.width = 390, .height = 800});
}

TEST(ReportPage, comparison_of_one_run_is_its_report) {
  const TempDir folder;
  const std::string run = (folder / "run").string();
  write_run(run, 1e-3);
  const std::string page = (folder / "compare.html").string();
  inspect::write_page(page, inspect::comparison_page({inspect::read_history(run)}));
  drive(page, R"js(
    reader.equal(document.title, "Training run run", "its name");
    reader.check(heddle.main.textContent.includes("learning_rate"), "its settings");)js",
        2);
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
  inspect::write_page(page, inspect::comparison_page(runs));
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
