// Counters of the allocator and of a profile around an update.
#include "heddle/train/update_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "heddle/base/log.h"
#include "heddle/base/profile.h"
#include "heddle/base/progress.h"
#include "heddle/base/rounded.h"
#include "heddle/kernels/cpu/gemm/register_peak.h"
#include "heddle/tensor/storage.h"

namespace heddle::train {
namespace {

constexpr double kPeakSeconds = 0.05;

int64_t bytes_of(const Tensor& x) { return x.defined() ? x.storage()->bytes() : 0; }

UpdateMemory held_memory(nn::Parameters& parameters, const Optimizer& optimizer) {
  UpdateMemory held;
  for (const auto& p : parameters.all()) {
    held.weights += 4 * p->elements() + (p->shadow() != nullptr ? 2 * p->elements() : 0);
    held.gradients += bytes_of(p->grad());
  }
  for (const Moments& m : optimizer.moments()) {
    held.optimizer += bytes_of(m.m) + bytes_of(m.v);
    held.average += bytes_of(m.ema);
  }
  return held;
}

double operations_of(const Profile& profile) {
  double sum = 0;
  for (const Profile::Row& row : profile.rows) sum += row.totals.work.flops;
  return sum;
}

}  // namespace

std::vector<std::string> UpdateMemory::table() const {
  const auto whole = static_cast<double>(std::max<int64_t>(1, total()));
  std::vector<std::string> lines = {
      fmt::format("{:32}{:>10}  {:>5}", "memory of an update", "MB", "share")};
  const auto add = [&](const char* part, int64_t bytes) {
    if (bytes == 0) return;
    const auto of_part = static_cast<double>(bytes);
    lines.push_back(
        fmt::format("  {:30}{:>10.1f}  {:>3.0f} %", part, of_part * 1e-6, 100 * of_part / whole));
  };
  add("weights", weights);
  add("gradients", gradients);
  add("optimizer state", optimizer);
  add("moving average of the weights", average);
  add("activations of a batch", activations);
  add("together", total());
  return lines;
}

UpdateCost::~UpdateCost() {
  if (counts_) stop_profile();
}

void UpdateCost::begin() {
  if (is_known_) return;
  reset_allocator_peak();
  counts_ = !is_profiling();
  if (counts_) start_profile(0);
}

void UpdateCost::end(nn::Parameters& parameters, const Optimizer& optimizer, int64_t samples,
                     int64_t summed) {
  if (std::exchange(is_known_, true)) return;
  const AllocatorStats stats = allocator_stats();
  if (std::exchange(counts_, false)) {
    const std::optional<Profile> profile = stop_profile();
    if (profile && samples > 0)
      operations_ = operations_of(*profile) / static_cast<double>(samples);
  }
  memory_ = held_memory(parameters, optimizer);
  memory_.gradients += summed;
  memory_.activations = stats.peak - stats.in_use;
  for (const std::string& line : memory_.table()) log_info("{}", line);
}

std::optional<double> UpdateCost::share_of_peak(double samples_per_second, DType factors) {
  if (operations_ == 0) return {};
  if (!peak_) peak_ = cpu::register_peak(factors, kPeakSeconds);
  if (*peak_ == 0) return {};
  return rounded(operations_ * samples_per_second / *peak_, 4);
}

std::string UpdateCost::speed(double samples_per_second, std::string_view counted, DType factors) {
  const std::string text =
      fmt::format("{} {}/s", format_count(static_cast<int64_t>(samples_per_second)),
                  counted == "tokens" ? "tok" : "img");
  if (is_terminal() && terminal_columns() < 100) return text;
  const std::optional<double> share = share_of_peak(samples_per_second, factors);
  return share ? fmt::format("{} ({:.0f} % of peak)", text, 100 * *share) : text;
}

}  // namespace heddle::train
