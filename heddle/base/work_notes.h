// Signs that long work gets on, for who waits for this process (dist::Watch).
#pragma once

#include <atomic>
#include <cstdint>

namespace heddle {

namespace detail {
inline std::atomic<int64_t> work_notes{0};
}

/// An item of long work is done: a batch, a step of a search, a part of a file that was written.
/// Any thread; costs a few ns.
inline void note_work() { detail::work_notes.fetch_add(1, std::memory_order_relaxed); }
/// How many were, of this process.
inline int64_t work_noted() { return detail::work_notes.load(std::memory_order_relaxed); }

}  // namespace heddle
