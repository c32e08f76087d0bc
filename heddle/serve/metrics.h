// What the server counts, in the text format that Prometheus reads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace heddle::serve {

/// What a request passes through, in this order as far as it comes; each is counted once.
enum class RequestPhase : uint8_t {
  received,  ///< to its last byte
  parsed,    ///< its body is understood
  admitted,  ///< there is room for all that it may come to
  queued,    ///< it waits for an engine
  encoding,  ///< a model reads what it gives: sources, prompts, texts, images
  decoding,  ///< the first of its sequences is written
  writing,   ///< its answer, or the beginning of it, is sent
  done,      ///< the first of its ends, of which each has one
  cancelled,
  timed_out,
  refused,
  failed
};

/// How a job ended; cancelled: its client left, or another job of its request failed.
enum class JobOutcome : uint8_t { done, cancelled, timed_out, failed };

/// From any thread. No text, key or address of a client is in a label.
class ServerMetrics {
 public:
  ServerMetrics();
  ~ServerMetrics();

  /// A response was sent. route: "/v1/translations", or "other"; status: 200, or 499 where the
  /// client left first
  void answered(const std::string& route, int status, double seconds);
  void reached(RequestPhase phase);
  /// What came was refused before it was a request; see RefusalHandler. Its route is "none".
  void refused(int status);
  /// Tokens that were read or written.
  void tokens_read(int64_t n);
  void tokens_written(int64_t n);
  /// Tokens of prompts that were not read, because they had been.
  void tokens_cached(int64_t n);
  /// A job began after so long a wait.
  void started(double seconds_of_waiting);
  /// So many ended.
  void ended(JobOutcome outcome, int64_t jobs = 1);
  /// Name and type of each model that is served from now on, in the place of those before.
  void models(std::span<const std::pair<std::string, std::string>> all);

  struct Now {
    int64_t connections = 0, admitted_tokens = 0, running = 0, waiting = 0, cache_rows = 0;
  };
  /// All of it.
  std::string text(const Now& now);

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace heddle::serve
