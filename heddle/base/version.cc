// Which heddle this is; the build defines HEDDLE_VERSION for this file.
#include "heddle/base/version.h"

namespace heddle {

const char* version() { return HEDDLE_VERSION; }

}  // namespace heddle
