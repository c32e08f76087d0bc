// Names and statuses of the kinds of error, and the throw itself.
#include "heddle/base/error.h"

#include "heddle/base/names.h"

namespace heddle {

namespace {

struct KindFacts {
  const char* name = "unknown";
  int http_status = 500;
};

KindFacts facts_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage: return {"usage", 400};
    case ErrorKind::data: return {"data", 422};
    case ErrorKind::shape: return {"shape", 500};
    case ErrorKind::device: return {"device", 501};
    case ErrorKind::system: return {"system", 503};
    case ErrorKind::ranks: return {"ranks", 503};
    case ErrorKind::internal: return {"internal", 500};
  }
  return {};
}

}  // namespace

const char* error_kind_name(ErrorKind kind) { return facts_of(kind).name; }
int http_status(ErrorKind kind) { return facts_of(kind).http_status; }

void throw_error(ErrorKind kind, fmt::string_view format, fmt::format_args args) {
  throw Error(kind, fmt::vformat(name_fields({format.data(), format.size()}), args));
}

}  // namespace heddle
