// The closed form of an update's time, and the rates of links.
#include "heddle/inspect/scaling.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <numeric>

#include "heddle/base/error.h"

namespace heddle::inspect {
namespace {

struct Unit {
  const char* name;
  double bytes_per_second;
};

constexpr double kPayload = 1448.0 / 1526;  // of a frame of 1,500 bytes, with preamble and gap
constexpr std::array<Unit, 6> kUnits = {{{"GbE", kPayload * 1e9 / 8},
                                         {"Gbit/s", 1e9 / 8},
                                         {"Mbit/s", 1e6 / 8},
                                         {"GB/s", 1e9},
                                         {"MB/s", 1e6},
                                         {"MbE", kPayload * 1e6 / 8}}};

}  // namespace

double link_rate(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && std::isfinite(value) && value > 0) {
    const std::string_view unit(rest, static_cast<size_t>(end - rest));
    for (const Unit& known : kUnits) {
      if (unit == known.name) return value * known.bytes_per_second;
    }
  }
  fail(ErrorKind::usage,
       "the link is '{}'; a rate is needed such as 10GbE, 25Gbit/s, 800Mbit/s or 1.2GB/s", text);
}

std::vector<RankedUpdate> ranked_updates(double update_seconds, const std::vector<int64_t>& buckets,
                                         int64_t ranks, const RankLink& link) {
  check(ranks >= 1 && std::has_single_bit(static_cast<uint64_t>(ranks)) && ranks <= 1 << 16,
        ErrorKind::usage, "{} ranks: a power of two up to 65536 is needed", ranks);
  check(std::isfinite(update_seconds) && update_seconds > 0, ErrorKind::usage,
        "an update of {} seconds: more than 0 are needed", update_seconds);
  check(link.bytes_per_second > 0 && std::isfinite(link.latency) && link.latency >= 0,
        ErrorKind::usage,
        "a link of {} bytes a second, {} seconds late: more than 0, and at least 0 "
        "are needed",
        link.bytes_per_second, link.latency);
  check(std::isfinite(link.processor) && link.processor >= 0, ErrorKind::usage,
        "{} seconds of the cores for a byte that is sent: at least 0 are needed", link.processor);
  const auto all_values =
      static_cast<double>(std::accumulate(buckets.begin(), buckets.end(), int64_t{0}));
  std::vector<RankedUpdate> all;
  for (int64_t r = 1, halvings = 0; r <= ranks; r *= 2, ++halvings) {
    const auto n = static_cast<double>(r);
    const auto seconds = [&](double values, DType type) {  // one way
      const double bytes = (n - 1) / n * static_cast<double>(size_of(type)) * values;
      return bytes / link.bytes_per_second + static_cast<double>(halvings) * link.latency;
    };
    RankedUpdate u{.ranks = r, .compute = update_seconds / n};
    const double backward = kBackwardShare * u.compute;
    double sums = 0, values = 0, end = 0;  // seconds of sums; gradients made; when sums have come
    for (const int64_t bucket : buckets) {
      const auto count = static_cast<double>(bucket);
      const double sum = seconds(count, link.gradients);
      values += count;
      end = std::max(end, backward * values / all_values) + sum;
      sums += sum;
      u.wire += sum + seconds(count, DType::f32);
    }
    const auto bytes = static_cast<double>(size_of(link.gradients) + size_of(DType::f32));
    u.bytes = std::llround((n - 1) / n * bytes * all_values);
    u.hidden = std::max(0.0, sums - (end - backward));
    u.exchange = static_cast<double>(u.bytes) * link.processor;
    all.push_back(u);
  }
  return all;
}

}  // namespace heddle::inspect
