// Limits of decoding that hold whoever asks: a flag, or a model's generation_config.json.
#pragma once

#include <cstdint>

namespace heddle {

/// The widest beam. Memory and time grow with it.
inline constexpr int64_t kMostBeams = 1024;

}  // namespace heddle
