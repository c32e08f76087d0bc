// Which heddle this is.
#pragma once

namespace heddle {

/// As in "0.1.0".
const char* version();

}  // namespace heddle
