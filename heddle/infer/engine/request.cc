// Which options go together.
#include "heddle/infer/engine/request.h"

#include "heddle/base/error.h"

namespace heddle {

void check_search(const BeamOptions& search, const std::optional<Sampling>& sampling,
                  const TokenRules& rules) {
  const int64_t beam = search.beam, n_best = search.n_best;
  check(beam >= 1, ErrorKind::usage, "--beam is {}; it must be at least 1 (1 is greedy)", beam);
  check(n_best >= 1, ErrorKind::usage, "--n-best is {}; it must be at least 1", n_best);
  check(!sampling || beam == 1, ErrorKind::usage,
        "--sample draws tokens and --beam {} searches for the likeliest; give one of them", beam);
  check(sampling || n_best <= beam, ErrorKind::usage,
        "--n-best is {} but --beam {}; the beam must be at least as wide (or give --sample)",
        n_best, beam);
  check_token_rules(rules);
  if (sampling) check_sampling(*sampling);
}

}  // namespace heddle
