// Bodies that are JSON or forms, and queries.
#pragma once

#include "heddle/serve/api/exchange.h"

namespace heddle::serve {

/// The body of a request: JSON, or, as some clients send it, application/x-www-form-urlencoded:
/// then every member is a string, and one that comes several times an array of them.
/// Errors: Refusal.
Json body_of(const Exchange& e);
/// The same of what stands behind the "?".
Json query_of(const Exchange& e);

}  // namespace heddle::serve
