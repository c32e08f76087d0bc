// For threads that compute side by side, one a core.
#pragma once

namespace heddle {

/// While one lives, parallel_for of its thread takes no other thread; in_parallel() says so.
class RunAlone {
 public:
  explicit RunAlone(bool is_alone);  ///< false: does nothing
  ~RunAlone();
  RunAlone(const RunAlone&) = delete;
  RunAlone& operator=(const RunAlone&) = delete;

 private:
  bool before_;
};

}  // namespace heddle
