// heddle serve: models behind HTTP.
#include <sys/resource.h>

#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/base/signals.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/serve/http/api_client.h"
#include "heddle/serve/service.h"
#include "heddle/serve/supervisor.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::vector<std::string> models, hosts;
  std::string host = "127.0.0.1", keys;
  int port = 8080;
  ComputeFlags compute;
  serve::ServiceOptions limits;
};

bool is_loopback(const std::string& host) { return host.starts_with("127.") || host == "::1"; }

// A page of another site that a name leads here (DNS rebinding) names that name.
std::vector<std::string> hosts_of(const Flags& flags) {
  std::vector<std::string> hosts = flags.hosts;
  if (is_loopback(flags.host)) {
    for (const char* name : {"localhost", "127.0.0.1", "[::1]"}) hosts.emplace_back(name);
    hosts.push_back(flags.host);
  }
  return hosts;
}

// Each connection takes a file of the system's; some more are for models, the log and the listener.
void fit_connections(serve::HttpLimits& limits) {
  constexpr rlim_t kOthers = 64;
  const rlim_t wanted = static_cast<rlim_t>(limits.connections) + kOthers;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted) return;
  files.rlim_cur = std::min(wanted, files.rlim_max);
  setrlimit(RLIMIT_NOFILE, &files);
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted) return;
  const rlim_t most = std::max<rlim_t>(files.rlim_cur, kOthers + 1) - kOthers;
  log_warning(
      "serve: the system lets this process open {} files (ulimit -n), so that {} connections are "
      "taken, not {}",
      files.rlim_cur, most, limits.connections);
  limits.connections = static_cast<int64_t>(most);
}

void say_limits(const serve::ServiceOptions& o) {
  const serve::HttpLimits& h = o.http;
  log_info(
      "limits: {} connections, header {} bytes, {} fields, body {} bytes, {} levels, unread output "
      "{} bytes; {} texts, beam {}, n {}, {} pixels; {} cache rows a model, {} tokens queued, "
      "waits "
      "of {} s; header {} s, body {} s, idle {} s, write {} s",
      h.connections, h.header_bytes, h.header_fields, h.body_bytes, o.most_levels, h.output_bytes,
      o.most_texts, o.most_beams, o.most_results, o.most_pixels, o.cache_rows, o.queue_tokens,
      o.queue_seconds, h.header_seconds, h.body_seconds, h.idle_seconds, h.write_seconds);
}

void check_limits(const serve::ServiceOptions& o) {
  constexpr int64_t kMost = 1'000'000'000;  // sums and products of some stay below 2^63
  constexpr int64_t kMostJsonLevels = 200;  // that Json::parse() reads
  const auto check_range = [](const char* key, int64_t value, int64_t least, int64_t most) {
    check(value >= least && value <= most, ErrorKind::usage, "{} is {}; it must be from {} to {}",
          field_name(key), value, least, most);
  };
  check_range("cache_rows", o.cache_rows, 64, kMost);
  check_range("queue_tokens", o.queue_tokens, 64, kMost);
  check_range("queue_seconds", o.queue_seconds, 1, kMost);
  check_range("max_connections", o.http.connections, 1, kMost);
  check_range("max_header", o.http.header_bytes, 1024, kMost);
  check_range("max_header_fields", o.http.header_fields, 1, kMost);
  check_range("max_body", o.http.body_bytes, 1024, kMost);
  check_range("max_depth", o.most_levels, 1, kMostJsonLevels);
  check_range("max_unread", o.http.output_bytes, 1024, kMost);
  check_range("header_seconds", o.http.header_seconds, 1, kMost);
  check_range("body_seconds", o.http.body_seconds, 1, kMost);
  check_range("idle_seconds", o.http.idle_seconds, 1, kMost);
  check_range("write_seconds", o.http.write_seconds, 1, kMost);
  check_range("max_texts", o.most_texts, 1, kMost);
  check_range("max_beam", o.most_beams, 1, kMostBeams);
  check_range("max_n", o.most_results, 1, kMost);
  check_range("max_pixels", o.most_pixels, 1, kMost);
}

void say_ready(const Flags& flags, const serve::Service& service, const serve::HttpServer& server) {
  for (const auto& model : service.models()) {
    log_info("serve: {} ({}), for {}", model->name, model->loaded().type, model->purpose());
  }
  log_info("serve: http://{}/{}", serve::host_field(flags.host, server.port()),
           flags.keys.empty() ? "" : ", with keys");
  if (!is_loopback(flags.host) && flags.keys.empty()) {
    log_warning("serve: anybody who reaches {} may ask; give --keys", flags.host);
  }
  serve::notify_supervisor("READY=1");
}

void run(const Flags& flags) {
  serve::ServiceOptions options = flags.limits;
  options.models = flags.models;
  options.keys_path = flags.keys;
  options.hosts = hosts_of(flags);
  check_limits(options);
  fit_connections(options.http);
  options.precision = apply_compute_flags(flags.compute);
  install_signal_handlers();
  install_hangup_handler();
  serve::Service service(options);
  serve::HttpServer server(
      flags.host, flags.port, options.http,
      [&](serve::HttpRequest request, std::shared_ptr<serve::Reply> reply) {
        service.answer(std::move(request), reply);
      },
      [&](int status) { return service.refused(status); });
  service.set_server(&server);
  say_limits(options);
  log_info("serve: port {} answers 503 until the models are loaded", server.port());
  service.reload();
  int ticks = 0;
  server.run([&] {
    if (pending_signal() != 0 && !service.is_draining()) {
      log_info("serve: ending; {} connections", server.connections());
      serve::notify_supervisor("STOPPING=1");
      service.drain();
      server.drain();
    }
    if (take_hangup() && !service.is_draining()) service.reload();
    const bool is_first = service.is_loading();
    if (service.take_reloaded() && is_first && !service.is_draining()) {
      say_ready(flags, service, server);
    }
    if (++ticks % 20 == 0) service.refresh_keys();
  });
  log_info("serve: ended, nothing was lost");
}

}  // namespace

void add_serve(Subcommand& app) {
  auto [command, flags] =
      app.add_command<Flags>("serve",
                             "Answer over HTTP: translations, completions, embeddings, classes, "
                             "objects and captions of images",
                             run);
  command
      .add_option("model", flags.models,
                  "model directories or runs, each FOLDER or NAME=FOLDER; a translator called "
                  "en-de is known to LibreTranslate's and DeepL's clients by its languages")
      .required();
  command.add_setting("--host", flags.host, "address to listen on");
  command.add_setting("--port", flags.port, "port to listen on; 0: a free one, which is said");
  command.add_option(
      "--keys", flags.keys,
      "a file with a key a line, which only its owner may read; all but /health, /openapi.json "
      "and the page at /, which says nothing of the models without, ask for one. It is read again "
      "when it changes");
  command.add_option("--allow-host", flags.hosts,
                     "a name that requests may be sent to (Host) beside localhost; where --host is "
                     "no loopback address and none is given: any");
  add_compute_flags(command, flags.compute);
  command.begin_group("Limits");
  serve::ServiceOptions& o = flags.limits;
  command.add_setting("--cache-rows", o.cache_rows,
                      "tokens that the KV cache of a model has room for");
  command.add_setting("--queue-tokens", o.queue_tokens,
                      "tokens that all that waits and runs may come to; beyond: 429");
  command.add_setting("--queue-seconds", o.queue_seconds, "longest wait for a turn; beyond: 503");
  command.add_setting("--max-connections", o.http.connections, "open connections");
  command.add_setting("--max-header", o.http.header_bytes,
                      "bytes of a request's header; beyond: 431");
  command.add_setting("--max-header-fields", o.http.header_fields,
                      "fields of a request's header; beyond: 431");
  command.add_setting("--max-body", o.http.body_bytes, "bytes of a request's body; beyond: 413");
  command.add_setting("--max-depth", o.most_levels, "levels of a body's JSON; beyond: 400");
  command.add_setting("--max-unread", o.http.output_bytes,
                      "bytes of a response that wait for a client which has read nothing for a "
                      "second, 64 times as many in a burst; beyond: disconnected");
  command.add_setting("--header-seconds", o.http.header_seconds,
                      "from a request's first byte to the end of its header; beyond: 408");
  command.add_setting("--body-seconds", o.http.body_seconds,
                      "from there to the end of its body; beyond: 408");
  command.add_setting("--idle-seconds", o.http.idle_seconds,
                      "of a connection without a request; beyond: closed");
  command.add_setting("--write-seconds", o.http.write_seconds,
                      "in which a client takes something of its response; beyond: disconnected");
  command.add_setting("--max-texts", o.most_texts, "texts of a request");
  command.add_setting("--max-beam", o.most_beams, "hypotheses of a search");
  command.add_setting("--max-n", o.most_results, "results for a text");
  command.add_setting("--max-pixels", o.most_pixels, "pixels of an image");
}

}  // namespace heddle::cli
