// Flags and environment, read into a rank's place.
#include "heddle/dist/start.h"

#include <charconv>
#include <cstdlib>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/dist/mpi/mpi_wire.h"
#include "heddle/dist/rank_group.h"
#include "heddle/dist/rendezvous.h"
#include "heddle/dist/threaded_group.h"

namespace heddle::dist {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int64_t environment_number(const std::string& name, int64_t otherwise) {
  const std::string text = environment(name.c_str());
  if (text.empty()) return otherwise;
  int64_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc() && at == text.data() + text.size(), ErrorKind::usage,
        "{} is '{}'; a whole number is needed", name, text);
  return value;
}

// Who started the processes, and how it calls rank and count.
struct Launcher {
  const char* rank;
  const char* ranks;
};
constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},  // first: a job of Slurm may run it
    {"SLURM_PROCID", "SLURM_NTASKS"},
};

void read_environment(GroupOptions& o) {
  if (o.rendezvous.empty()) o.rendezvous = environment("HEDDLE_RENDEZVOUS");
  if (o.rank < 0) o.rank = environment_number("HEDDLE_RANK", -1);
  if (o.ranks == 0) o.ranks = environment_number("HEDDLE_RANKS", 0);
  for (const Launcher& launcher : kLaunchers) {
    if (o.rendezvous.empty() || (o.rank >= 0 && o.ranks > 0)) return;
    if (environment(launcher.rank).empty() || environment(launcher.ranks).empty()) continue;
    if (o.rank < 0) o.rank = environment_number(launcher.rank, -1);
    if (o.ranks == 0) o.ranks = environment_number(launcher.ranks, 0);
  }
}

// What is heard each second must be silent for more than that.
void check_deadlines(const GroupOptions& o) {
  const auto check_one = [](const char* flag, double seconds, double least) {
    constexpr double kMost = 1e6;
    check(seconds >= least && seconds <= kMost, ErrorKind::usage,
          "{} is {:g}; {:g} to {:.0f} seconds are needed", flag, seconds, least, kMost);
  };
  check_one("--start-seconds", o.start_seconds, 1);
  check_one("--lost-seconds", o.lost_seconds, 3);
  check_one("--step-seconds", o.step_seconds, 3);
}

void check_count(int64_t ranks) {
  check(is_rank_count(ranks), ErrorKind::usage,
        "there are {} ranks; 1, 2, 4, 8, 16, 32 or 64 are needed, so that sums have the same bits "
        "for each",
        ranks);
}

void check_place(const GroupOptions& o) {
  check(!o.rendezvous.empty(), ErrorKind::usage,
        "this is rank {} of {} ranks, but they have no place to meet: give all of them "
        "--rendezvous tcp://HOST:PORT of rank 0, or file://PATH on a shared disk",
        o.rank, o.ranks);
  check(o.ranks > 0 && o.rank >= 0, ErrorKind::usage,
        "--rendezvous {} needs to know which of how many processes this is: give --rank and "
        "--ranks (or HEDDLE_RANK and HEDDLE_RANKS), or start it by srun, mpirun or heddle launch",
        o.rendezvous);
  check(o.rank < o.ranks, ErrorKind::usage, "--rank is {} of {} ranks; they count from 0 to {}",
        o.rank, o.ranks, o.ranks - 1);
  check_count(o.ranks);
}

std::string secret_of_job() {
  constexpr size_t kLeast = 16, kMost = 4096;  // bytes
  std::string secret = environment("HEDDLE_SECRET");
  const std::string file = environment("HEDDLE_SECRET_FILE");
  if (secret.empty() && !file.empty()) {
    check(file_size(file) <= static_cast<int64_t>(kMost), ErrorKind::usage,
          "{}: HEDDLE_SECRET_FILE has more than {} bytes; a line of random text is needed", file,
          kMost);
    secret = read_file(file);
    while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  }
  check(!secret.empty(), ErrorKind::usage,
        "ranks that meet at tcp:// need a secret, so that nobody else joins them: give all of them "
        "the same in HEDDLE_SECRET, as from openssl rand -hex 32, or the name of a file in "
        "HEDDLE_SECRET_FILE");
  check(secret.size() >= kLeast && secret.size() <= kMost, ErrorKind::usage,
        "the secret has {} bytes; {} to {} are needed, as from openssl rand -hex 32", secret.size(),
        kLeast, kMost);
  return secret;
}

RankPlace place_of(const GroupOptions& o) {
  RankPlace place;
  place.rank = o.rank, place.ranks = o.ranks;
  place.start_seconds = o.start_seconds;
  constexpr std::string_view kTcp = "tcp://", kFile = "file://";
  if (o.rendezvous.starts_with(kTcp)) {
    place.endpoint = parse_endpoint(o.rendezvous.substr(kTcp.size()), "--rendezvous");
    place.secret = secret_of_job();
  } else if (o.rendezvous.starts_with(kFile) && o.rendezvous.size() > kFile.size()) {
    place.file = o.rendezvous.substr(kFile.size());
  } else {
    fail(ErrorKind::usage, "--rendezvous is '{}'; tcp://HOST:PORT or file://PATH is needed",
         o.rendezvous);
  }
  place.listener = static_cast<int>(environment_number("HEDDLE_LISTENER", -1));
  return place;
}

// Its messages on who is alive go by TCP, as those of all groups.
std::unique_ptr<RankGroup> group_by_mpi(const GroupOptions& o, int64_t started) {
  auto wire = std::make_unique<MpiWire>();
  // Each would train alone, and all of them write to one RUN.
  check(wire->ranks() > 1, ErrorKind::usage,
        "the launcher has started {} processes, but to this MPI ({}) each is alone: start them by "
        "its own mpirun or by srun --mpi=pmix, or let them meet by --rendezvous",
        started, wire->library());
  check_count(wire->ranks());
  RankPlace place;
  place.rank = wire->rank(), place.ranks = wire->ranks();
  place.start_seconds = o.start_seconds;
  place.broadcast = [&](std::string text) { return wire->broadcast(std::move(text)); };
  Meeting meeting = meet(std::move(place));
  return std::make_unique<RankGroup>(std::move(meeting), std::move(wire), o);
}

}  // namespace

std::unique_ptr<Group> make_group(const GroupOptions& options) {
  check(options.wire == DType::f32 || options.wire == DType::bf16, ErrorKind::usage,
        "gradients cannot go as {}; f32 or bf16 are needed", dtype_name(options.wire));
  GroupOptions o = options;
  check_deadlines(o);
  read_environment(o);
  const bool is_told_nothing = o.rendezvous.empty() && o.rank < 0 && o.ranks == 0;
  const int64_t started = is_told_nothing ? ranks_started_by_mpi() : 1;
  if (started > 1) {
    return std::make_unique<ThreadedGroup>(o.wire, [&] { return group_by_mpi(o, started); });
  }
  if (is_told_nothing || (o.ranks == 1 && o.rank <= 0)) return std::make_unique<LocalGroup>();
  check_place(o);
  return std::make_unique<ThreadedGroup>(
      o.wire, [&] { return std::make_unique<RankGroup>(meet(place_of(o)), nullptr, o); });
}

}  // namespace heddle::dist
