// What libheddle-mpi.so gives: the few calls of MPI that a group needs, without MPI's types, so
// that the program itself is built without any MPI.
#pragma once

#include <cstdint>

namespace heddle::dist {

/// Of this header: a library with another one is refused.
constexpr int32_t kMpiPluginVersion = 1;
constexpr const char* kMpiPluginName = "libheddle-mpi.so";
constexpr const char* kMpiPluginStart = "heddle_mpi_start";

/// All are called from the thread that started MPI. Counts are bytes; what begins must end before
/// the next of its kind begins. returns: 0, or MPI's error.
struct MpiPlugin {
  int32_t version = 0;
  int32_t rank = 0, ranks = 0;
  const char* library = nullptr;  ///< "Open MPI v4.1.4, .."
  int (*begin_send)(int32_t to, const void* data, int32_t count) = nullptr;
  int (*begin_receive)(int32_t from, void* data, int32_t count) = nullptr;
  /// *done: 1 once the send, or the receive, under way has ended; it goes on meanwhile
  int (*test_send)(int32_t* done) = nullptr;
  int (*test_receive)(int32_t* done) = nullptr;
  int (*broadcast)(void* data, int32_t count) = nullptr;  ///< from rank 0 to all
  int (*finish)() = nullptr;
  /// Spells an error out.
  void (*explain)(int error, char* text, int32_t size) = nullptr;
};

/// Starts MPI, once a process. returns: nullptr if it cannot be, with the reason in `text`
using MpiPluginStart = const MpiPlugin* (*)(char* text, int32_t size);

}  // namespace heddle::dist
