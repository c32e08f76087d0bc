// Work that is no sequence of tokens: passes between the steps of those that are.
#pragma once

#include <functional>

#include "heddle/serve/api/exchange.h"

namespace heddle::serve {

/// Takes room for so many tokens in the service's budget, and calls `step` on the first engine's
/// thread until it returns that there is no more; others' steps come in between. What it throws
/// fails the exchange, and ends it; so it ends if the client leaves. Errors: Refusal where there is
/// no room.
void work_between_steps(const SharedExchange& e, int64_t tokens, std::function<bool()> step);

}  // namespace heddle::serve
