// Counters of prometheus-cpp.
#include "heddle/serve/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <vector>

#include "heddle/base/names.h"

namespace heddle::serve {
namespace {

// From 1 ms on: what vLLM begins at, 0.3 s, is longer than most translations take.
const prometheus::Histogram::BucketBoundaries kSeconds = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};

template <class Builder>
auto& family_of(Builder builder, const char* name, const char* help,
                prometheus::Registry& registry) {
  return builder.Name(name).Help(help).Register(registry);
}

// A counter of each phase, all there from the start.
template <size_t n>
std::array<prometheus::Counter*, n> counters_of(prometheus::Family<prometheus::Counter>& family,
                                                const char* const (&phases)[n]) {
  std::array<prometheus::Counter*, n> all;
  for (size_t i = 0; i < n; ++i) all[i] = &family.Add({{"phase", phases[i]}});
  return all;
}

}  // namespace

struct ServerMetrics::Families {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests =
      family_of(prometheus::BuildCounter(), "heddle_requests_total",
                "Responses by route and status; 499: the client left first", registry);
  prometheus::Family<prometheus::Histogram>& seconds =
      family_of(prometheus::BuildHistogram(), "heddle_request_seconds",
                "From a request's last byte to its response", registry);
  prometheus::Family<prometheus::Counter>& phases = family_of(
      prometheus::BuildCounter(), "heddle_request_phases_total",
      "Requests that came so far: received, parsed, admitted, queued, encoding, decoding, "
      "writing; and how they ended: done, cancelled (the client left first), timed_out, "
      "refused, failed",
      registry);
  // By RequestPhase.
  std::array<prometheus::Counter*, 12> reached =
      counters_of(phases, {"received", "parsed", "admitted", "queued", "encoding", "decoding",
                           "writing", "done", "cancelled", "timed_out", "refused", "failed"});
  prometheus::Family<prometheus::Counter>& tokens =
      family_of(prometheus::BuildCounter(), "heddle_tokens_total",
                "Tokens read, written, and known of prompts before", registry);
  prometheus::Histogram& waits = family_of(prometheus::BuildHistogram(), "heddle_queue_seconds",
                                           "Waits of jobs for their start", registry)
                                     .Add({}, kSeconds);
  prometheus::Family<prometheus::Gauge>& jobs = family_of(
      prometheus::BuildGauge(), "heddle_jobs", "Sequences that wait and that run", registry);
  prometheus::Gauge& connections =
      family_of(prometheus::BuildGauge(), "heddle_connections", "Open connections", registry)
          .Add({});
  prometheus::Gauge& admitted =
      family_of(prometheus::BuildGauge(), "heddle_admitted_tokens",
                "Tokens of all jobs that wait or run, as many as they may come to", registry)
          .Add({});
  prometheus::Gauge& rows = family_of(prometheus::BuildGauge(), "heddle_cache_rows",
                                      "Rows of the KV cache that are held", registry)
                                .Add({});
  prometheus::Family<prometheus::Counter>& ended =
      family_of(prometheus::BuildCounter(), "heddle_ended_jobs_total",
                "Sequences that ended, by how; cancelled: the client left, or another sequence of "
                "its request failed",
                registry);
  // By JobOutcome.
  std::array<prometheus::Counter*, 4> ends = {
      &ended.Add({{"outcome", "done"}}), &ended.Add({{"outcome", "cancelled"}}),
      &ended.Add({{"outcome", "timed_out"}}), &ended.Add({{"outcome", "failed"}})};
  prometheus::Counter& read = tokens.Add({{"kind", "read"}});
  prometheus::Counter& written = tokens.Add({{"kind", "written"}});
  prometheus::Counter& cached = tokens.Add({{"kind", "cached"}});
  prometheus::Gauge& waiting = jobs.Add({{"state", "waiting"}});
  prometheus::Gauge& running = jobs.Add({{"state", "running"}});
  prometheus::Family<prometheus::Gauge>& models = family_of(
      prometheus::BuildGauge(), "heddle_model_info", "1 for each model that is served", registry);
  std::vector<prometheus::Gauge*> served = {};
};

ServerMetrics::ServerMetrics() : families_(std::make_unique<Families>()) {}
ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::answered(const std::string& route, int status, double seconds) {
  families_->requests.Add({{"route", route}, {"status", std::to_string(status)}}).Increment();
  families_->seconds.Add({{"route", route}}, kSeconds).Observe(seconds);
}

void ServerMetrics::reached(RequestPhase phase) {
  families_->reached[static_cast<size_t>(phase)]->Increment();
}

void ServerMetrics::refused(int status) {
  families_->requests.Add({{"route", "none"}, {"status", std::to_string(status)}}).Increment();
}

void ServerMetrics::tokens_read(int64_t n) { families_->read.Increment(static_cast<double>(n)); }
void ServerMetrics::tokens_written(int64_t n) {
  families_->written.Increment(static_cast<double>(n));
}
void ServerMetrics::tokens_cached(int64_t n) {
  families_->cached.Increment(static_cast<double>(n));
}
void ServerMetrics::started(double seconds) { families_->waits.Observe(seconds); }

void ServerMetrics::ended(JobOutcome outcome, int64_t jobs) {
  families_->ends[static_cast<size_t>(outcome)]->Increment(static_cast<double>(jobs));
}

void ServerMetrics::models(std::span<const std::pair<std::string, std::string>> all) {
  for (prometheus::Gauge* one : std::exchange(families_->served, {})) {
    families_->models.Remove(one);
  }
  for (const auto& [name, type] : all) {
    families_->served.push_back(&families_->models.Add({{"name", name}, {"type", type}}));
    families_->served.back()->Set(1);
  }
}

std::string ServerMetrics::text(const Now& now) {
  families_->connections.Set(static_cast<double>(now.connections));
  families_->admitted.Set(static_cast<double>(now.admitted_tokens));
  families_->running.Set(static_cast<double>(now.running));
  families_->waiting.Set(static_cast<double>(now.waiting));
  families_->rows.Set(static_cast<double>(now.cache_rows));
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace heddle::serve
