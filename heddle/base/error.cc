// Names and statuses of the kinds of error, and the throw itself.
#include "heddle/base/error.h"

#include "heddle/base/names.h"

namespace heddle {

const char* error_kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage: return "usage";
    case ErrorKind::data: return "data";
    case ErrorKind::shape: return "shape";
    case ErrorKind::device: return "device";
    case ErrorKind::system: return "system";
    case ErrorKind::internal: return "internal";
  }
  return "unknown";
}

int http_status(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage: return 400;
    case ErrorKind::data: return 422;
    case ErrorKind::device: return 501;
    case ErrorKind::system: return 503;
    case ErrorKind::shape:
    case ErrorKind::internal: return 500;
  }
  return 500;
}

void throw_error(ErrorKind kind, fmt::string_view format, fmt::format_args args) {
  throw Error(kind, fmt::vformat(name_fields({format.data(), format.size()}), args));
}

}  // namespace heddle
