// How long ranks take for the sum of n values along the fixed tree, and MPI_Allreduce for the same.
// usage: heddle_sum_speed VALUES TIMES [allreduce]    the tree, over what the environment says (a
// HEDDLE_RENDEZVOUS, or mpirun's MPI), or by mpirun MPI_Allreduce, whose algorithm --mca says.
// Exits with 1 if the sum is wrong. 1200000000 by two ranks goes beyond 2^31 bytes in a message.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "heddle/dist/start.h"

namespace {

using Clock = std::chrono::steady_clock;

// The median of so many, each begun by all at once.
template <class Begin, class Work>
double median_seconds(int times, const Begin& begin, const Work& work) {
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    begin();
    const Clock::time_point start = Clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

// Whether ones that have been summed over so many ranks, so often, are what they must be.
bool are_sums(const std::vector<float>& values, int64_t ranks, int times) {
  const auto wanted = static_cast<float>(std::pow(static_cast<double>(ranks), times));
  return std::ranges::all_of(values, [&](float v) { return v == wanted; });
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_tree = argc == 3;
  if (!is_tree && !(argc == 4 && std::strcmp(argv[3], "allreduce") == 0)) return 2;
  std::vector<float> values(static_cast<size_t>(std::atoll(argv[1])), 1.0f);
  const int times = std::atoi(argv[2]);
  if (is_tree) {
    const auto group = heddle::dist::make_group({});
    const double seconds = median_seconds(
        times, [&] { group->barrier(); },
        [&] {
          group->reduce_scatter(values);
          group->all_gather(values);
        });
    if (group->rank() == 0) std::printf("%.4f\n", seconds);
    return are_sums(values, group->ranks(), times) ? 0 : 1;
  }
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const double seconds = median_seconds(
      times, [] { MPI_Barrier(MPI_COMM_WORLD); },
      [&] {
        MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT,
                      MPI_SUM, MPI_COMM_WORLD);
      });
  if (rank == 0) std::printf("%.4f\n", seconds);
  MPI_Finalize();
  return are_sums(values, ranks, times) ? 0 : 1;
}
