// The plug-in, found and started; what is under way to and from a partner.
#include "heddle/dist/mpi/mpi_wire.h"

#include <dlfcn.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "heddle/base/error.h"

namespace heddle::dist {
namespace {

std::vector<std::string> places_of_plugin() {
  if (const char* named = std::getenv("HEDDLE_MPI_PLUGIN")) return {named};
  std::error_code none;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", none);
  std::vector<std::string> places;
  for (const char* folder : {".", "../lib"}) {
    const std::filesystem::path path = program.parent_path() / folder / kMpiPluginName;
    if (std::filesystem::exists(path, none)) places.push_back(path.string());
  }
  places.emplace_back(kMpiPluginName);
  return places;
}

// It stays open: MPI cannot be started again.
const MpiPlugin* start_plugin() {
  std::string why;
  void* library = nullptr;
  for (const std::string& place : places_of_plugin()) {
    library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library != nullptr) break;
    if (why.empty()) why = ::dlerror();
  }
  check(library != nullptr, ErrorKind::usage,
        "a launcher of MPI has started this process, but {} cannot be opened ({}): install Open "
        "MPI (Debian, Ubuntu: openmpi-bin) and, where heddle is built, libopenmpi-dev; or let the "
        "ranks meet without MPI by --rendezvous",
        kMpiPluginName, why);
  const auto start = reinterpret_cast<MpiPluginStart>(::dlsym(library, kMpiPluginStart));
  check(start != nullptr, ErrorKind::usage, "{} is none of heddle's: it has no {}", kMpiPluginName,
        kMpiPluginStart);
  std::string text(1024, '\0');
  const MpiPlugin* const mpi = start(text.data(), static_cast<int32_t>(text.size()));
  check(mpi != nullptr, ErrorKind::ranks, "MPI does not start: {}", text.c_str());
  check(mpi->version == kMpiPluginVersion, ErrorKind::usage,
        "{} is of another heddle; install the one that came with this program", kMpiPluginName);
  return mpi;
}

int64_t count_in(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? 0 : std::atoi(value);
}

}  // namespace

int64_t ranks_started_by_mpi() {
  const bool is_by_slurm = std::getenv("PMIX_RANK") != nullptr;
  const int64_t counts[] = {count_in("OMPI_COMM_WORLD_SIZE"), count_in("PMI_SIZE"),
                            is_by_slurm ? count_in("SLURM_NTASKS") : 0};
  for (const int64_t count : counts) {
    if (count > 1) return count;
  }
  return 1;
}

MpiWire::MpiWire() : mpi_(start_plugin()) {}

void MpiWire::check_mpi(int error, const char* what) const {
  if (error == 0) return;
  std::string text(1024, '\0');
  mpi_->explain(error, text.data(), static_cast<int32_t>(text.size()));
  fail(ErrorKind::ranks, "rank {}: {}: {}", mpi_->rank, what, text.c_str());
}

std::string MpiWire::broadcast(std::string text) {
  auto size = static_cast<int32_t>(text.size());
  check_mpi(mpi_->broadcast(&size, sizeof size), "broadcast");
  text.resize(static_cast<size_t>(size));
  check_mpi(mpi_->broadcast(text.data(), size), "broadcast");
  return text;
}

int64_t MpiWire::send_some(size_t step, std::span<const std::byte> bytes) {
  if (sending_ == 0) {
    sending_ = static_cast<int32_t>(std::min(bytes.size(), kPart));
    check_mpi(mpi_->begin_send(partner(step), bytes.data(), sending_), "send");
  }
  int32_t done = 0;
  check_mpi(mpi_->test_send(&done), "send");
  if (done == 0) return 0;
  idle_ = 0;
  return std::exchange(sending_, 0);
}

int64_t MpiWire::receive_some(size_t step, std::span<std::byte> room) {
  if (receiving_ == 0) {
    receiving_ = static_cast<int32_t>(std::min(room.size(), kPart));
    check_mpi(mpi_->begin_receive(partner(step), room.data(), receiving_), "receive");
  }
  int32_t done = 0;
  check_mpi(mpi_->test_receive(&done), "receive");
  if (done == 0) return 0;
  idle_ = 0;
  return std::exchange(receiving_, 0);
}

// MPI moves bytes inside of its calls only, so they are asked again soon: at once as long as the
// partner may just be a little behind, then less and less often.
bool MpiWire::wait(size_t, bool, bool, int verdict) {
  constexpr int64_t kBusy = 200, kPatient = 2000;  // waits
  ++idle_;
  if (idle_ < kBusy) {
    std::this_thread::yield();
    return false;
  }
  std::this_thread::sleep_for(std::chrono::microseconds(idle_ < kPatient ? 20 : 200));
  if (idle_ % 64 != 0) return false;
  pollfd one = {verdict, POLLIN, 0};
  ::poll(&one, 1, 0);
  return one.revents != 0;
}

}  // namespace heddle::dist
