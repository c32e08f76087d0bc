// libheddle-mpi.so: built where MPI is found, opened by heddle::dist when a process was started by
// mpirun or srun --mpi.
#include "heddle/dist/mpi/plugin.h"

#include <mpi.h>

#include <cstdio>

namespace {

constexpr int kTag = 0x6864;

MPI_Comm group = MPI_COMM_NULL;  // of our own: nobody else's messages are in it
MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL;
char library[MPI_MAX_LIBRARY_VERSION_STRING];

int begin_send(int32_t to, const void* data, int32_t count) {
  return MPI_Isend(data, count, MPI_BYTE, to, kTag, group, &sending);
}
int begin_receive(int32_t from, void* data, int32_t count) {
  return MPI_Irecv(data, count, MPI_BYTE, from, kTag, group, &receiving);
}
int test_send(int32_t* done) { return MPI_Test(&sending, done, MPI_STATUS_IGNORE); }
int test_receive(int32_t* done) { return MPI_Test(&receiving, done, MPI_STATUS_IGNORE); }
int broadcast(void* data, int32_t count) { return MPI_Bcast(data, count, MPI_BYTE, 0, group); }
int finish() { return MPI_Finalize(); }
void explain(int error, char* text, int32_t size) {
  char all[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, all, &length);
  std::snprintf(text, static_cast<size_t>(size), "%s", all);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const heddle::dist::MpiPlugin* heddle_mpi_start(
    char* text, int32_t size) {
  static heddle::dist::MpiPlugin plugin;
  int provided = 0;
  int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  if (error == MPI_SUCCESS) error = MPI_Comm_dup(MPI_COMM_WORLD, &group);
  if (error != MPI_SUCCESS) {
    explain(error, text, size);
    return nullptr;
  }
  if (provided < MPI_THREAD_FUNNELED) {
    std::snprintf(text, static_cast<size_t>(size), "this MPI cannot be used beside threads");
    return nullptr;
  }
  MPI_Comm_set_errhandler(group, MPI_ERRORS_RETURN);
  int rank = 0, ranks = 0, length = 0;
  MPI_Comm_rank(group, &rank);
  MPI_Comm_size(group, &ranks);
  MPI_Get_library_version(library, &length);
  plugin = {.version = heddle::dist::kMpiPluginVersion,
            .rank = rank,
            .ranks = ranks,
            .library = library,
            .begin_send = begin_send,
            .begin_receive = begin_receive,
            .test_send = test_send,
            .test_receive = test_receive,
            .broadcast = broadcast,
            .finish = finish,
            .explain = explain};
  return &plugin;
}
