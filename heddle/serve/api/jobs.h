// The jobs of a request: admitted together, cancelled together.
#pragma once

#include <functional>
#include <vector>

#include "heddle/serve/api/exchange.h"

namespace heddle::serve {

struct QueuedJob {
  Request request;
  int64_t width = 1;  ///< sequences that it may have at once
  /// What the search found; on an engine's thread, as are the request's callbacks: one at a time of
  /// all jobs of a request.
  std::function<void(std::span<const Hypothesis>)> on_done;
  /// Makes what the request lacks, see Job::prepare, at the price of so many tokens; jobs of a
  /// request may do so at once. What it throws fails the exchange, and all jobs of the request.
  std::function<void(Request&)> prepare = {};
  int64_t prepare_tokens = 0;
};

/// Takes room for all jobs in the service's budget, and hands them to the model's engines. `begin`
/// is called as the first of them waits no longer, on its engine's thread; of no jobs at once. A
/// request of which no job begins in time fails, and so does one of which a job fails: the others
/// are dropped, as they are if the client leaves.
/// Errors: Refusal 429 where there is no room, 400 where there never is.
/// model: one that writes tokens, which stays until its jobs have ended
void start_jobs(const SharedExchange& e, const SharedModel& model, std::vector<QueuedJob> jobs,
                std::function<void()> begin = {});

}  // namespace heddle::serve
