// heddle load: how many requests a server answers, and how soon.
#include <algorithm>
#include <cmath>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/lines.h"
#include "heddle/serve/http/api_client.h"
#include "heddle/serve/load.h"
#include "heddle/text/strings/strings.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string url, input = "-", body = "{}";
  std::string field;  // "" as the path needs it
  int64_t texts = 1;
  bool json = false;
  serve::TrafficOptions load;
};

void take_url(const std::string& url, serve::TrafficOptions& o) {
  const serve::ServerUrl server = serve::server_url(url);
  o.host = server.host, o.port = server.port;
  if (!server.path.empty()) o.path = server.path;
}

std::vector<std::string> bodies_of(const Flags& flags, const std::string& path) {
  const Json common = Json::parse(flags.body, "--body");
  check(common.is_object(), ErrorKind::usage, "--body is {}; a JSON object is needed",
        common.describe());
  std::string field = flags.field;
  if (field.empty()) {
    field = path == "/v1/completions"  ? "prompt"
            : path == "/v1/embeddings" ? "input"
            : path == "/translate"     ? "q"
                                       : "text";
  }
  std::vector<std::string> bodies, texts;
  LineReader lines(flags.input);
  const auto flush = [&] {
    Json body = common;
    body[field] = texts.size() == 1 ? Json(texts[0]) : Json(texts);
    bodies.push_back(body.dump());
    texts.clear();
  };
  int64_t number = 0;
  for (std::string line; lines.next(line);) {
    check_text(line, fmt::format("{}: line {}", flags.input, ++number));
    texts.push_back(line);
    if (std::ssize(texts) == flags.texts) flush();
  }
  if (!texts.empty()) flush();
  check(!bodies.empty(), ErrorKind::usage, "--input: there is no line to send");
  return bodies;
}

Json as_json(const serve::TrafficReport& r, const serve::TrafficOptions& o) {
  Json json = Json::object({{"sent", r.sent},
                            {"answered", r.answered},
                            {"refused", r.refused},
                            {"failed", r.failed},
                            {"seconds", r.seconds},
                            {"rate", o.rate},
                            {"goodput", static_cast<double>(r.in_time) / r.seconds},
                            {"tokens_per_second", static_cast<double>(r.tokens) / r.seconds}});
  const auto quantile = [](const std::vector<double>& of, double share) {
    return of.empty() ? Json() : Json(serve::TrafficReport::quantile(of, share));
  };
  for (const auto& [name, share] :
       {std::pair("p50", 0.5), {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"most", 1.0}}) {
    json["latency"][name] = quantile(r.latencies, share);
  }
  json["refusal_p99"] = quantile(r.refusal_latencies, 0.99);
  return json;
}

void print_report(const serve::TrafficReport& r, const serve::TrafficOptions& o) {
  const auto ms = [](const std::vector<double>& of, double share) {
    return of.empty() ? "–"
                      : fmt::format("{:.1f}", 1000 * serve::TrafficReport::quantile(of, share));
  };
  fmt::print("{} sent in {:.1f} s: {} answered, {} refused, {} failed{}\n", r.sent, r.seconds,
             r.answered, r.refused, r.failed, r.failed > 0 ? " (" + r.first_failure + ")" : "");
  fmt::print("  latency from the time meant: p50 {}, p90 {}, p99 {}, p99.9 {}, most {} ms\n",
             ms(r.latencies, 0.5), ms(r.latencies, 0.9), ms(r.latencies, 0.99),
             ms(r.latencies, 0.999), ms(r.latencies, 1));
  fmt::print("  within {} s: {:.1f} a second; {:.1f} tokens/s\n", o.deadline,
             static_cast<double>(r.in_time) / r.seconds, static_cast<double>(r.tokens) / r.seconds);
  if (r.refused == 0) return;
  fmt::print("  refused: p50 {}, p99 {} ms\n", ms(r.refusal_latencies, 0.5),
             ms(r.refusal_latencies, 0.99));
}

void run(const Flags& flags) {
  serve::TrafficOptions options = flags.load;
  take_url(flags.url, options);
  constexpr double kMost = 1e8;  // times are counted in nanoseconds
  const auto check_amount = [&](const char* flag, double x, double least) {
    check(x >= least && x <= kMost, ErrorKind::usage, "{} is {}; it must be from {} to {}", flag, x,
          least, kMost);
  };
  if (options.rate != 0) check_amount("--rate", options.rate, 1e-6);
  check_amount("--seconds", options.seconds, 1e-3);
  check_amount("--deadline", options.deadline, 1e-3);
  check(options.clients >= 1 && options.most_connections >= 1 && flags.texts >= 1, ErrorKind::usage,
        "--clients, --connections and --texts must be at least 1");
  options.bodies = bodies_of(flags, options.path);
  Progress progress("load");
  const serve::TrafficReport report =
      serve::run_load(options, [&](const serve::TrafficReport& now) {
        if (!progress.is_due()) return;
        progress.update(
            std::min(1.0, now.seconds / options.seconds),
            fmt::format("{} sent, {} answered, {} refused", now.sent, now.answered, now.refused));
      });
  if (flags.json) {
    fmt::print("{}\n", as_json(report, options).dump());
  } else {
    print_report(report, options);
  }
  check(report.answered > 0, ErrorKind::system, "load: none of {} requests was answered: {}",
        report.sent, report.failed > 0 ? report.first_failure : "all were refused");
}

}  // namespace

void add_load(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "load", "Send requests to a server at given times, and say how soon it answers", run);
  command.add_option("url", flags.url, "http://HOST:PORT/PATH, as of /v1/translations").required();
  command.add_setting("--input", flags.input, "a file with a text a line; - is standard input");
  command.add_setting("--texts", flags.texts, "lines of a request");
  command.add_setting("--body", flags.body, "JSON that each request has beside its text");
  command.add_option("--field", flags.field,
                     "the member that has the text [prompt, input or q where the path is that of "
                     "completions, embeddings or LibreTranslate, else text]");
  command.add_setting("--rate", flags.load.rate,
                      "requests a second, at random times; 0: --clients ask in turn");
  command.add_setting("--clients", flags.load.clients,
                      "without a rate: how many ask, each again as soon as it is answered");
  command.add_setting("--seconds", flags.load.seconds, "how long requests are sent");
  command.add_setting("--deadline", flags.load.deadline,
                      "seconds within which an answer counts as goodput");
  command.add_setting("--connections", flags.load.most_connections,
                      "open at most; a request that finds none free waits, and that counts");
  command.add_option("--key", flags.load.key, "shown as Authorization: Bearer KEY");
  command.add_flag("--json", flags.json, "one JSON object; latencies in seconds");
}

}  // namespace heddle::cli
