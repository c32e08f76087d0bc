// What another thread or process brings about, waited for.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace heddle::testing {

/// Whether the condition holds within a minute, which is long on a loaded machine under a
/// sanitizer too: a test asks whether it comes, not how soon.
inline bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000 && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

}  // namespace heddle::testing
