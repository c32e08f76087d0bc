// The flags, the table and the JSON of a prediction for several ranks.
#include "heddle/cli/inspect/analyze_ranks.h"

#include <cmath>

#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/bench/roof.h"
#include "heddle/cli/group_flags.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/inspect/pages/page.h"

namespace heddle::cli {
namespace {

// What training takes of the registers' peak where nobody has measured it (docs/benchmarks.md).
constexpr double kUsualShare = 0.6;
// Nanoseconds of a core to send a byte over TCP, and to receive and add another (docs/scaling.md).
constexpr double kUsualExchange = 0.75;

// One rank's time over that of all ranks together.
double efficiency(const RanksCost& cost, const inspect::RankedUpdate& u) {
  return cost.updates.front().seconds() / (static_cast<double>(u.ranks) * u.seconds());
}

constexpr const char* kFormula =
    "t(R) = t(1) / R + exchange + wire - hidden; wire: gradients and weights, each (R - 1) / R * "
    "bytes / rate + buckets * log2(R) * latency;";
constexpr const char* kMeaning =
    "hidden: the sums of gradients that leave while the backward pass of a rank's one shard goes "
    "on; exchange: what sending takes of the cores that compute";

std::string title_of(const RanksCost& cost) {
  return fmt::format("an update on several ranks over {} (one rank: {})", cost.link, cost.update);
}

}  // namespace

void add_ranks_flags(Subcommand& command, RanksFlags& flags) {
  const Option ranks = command.add_option(
      "--ranks", flags.ranks, "predict an update of the batch on 1, 2, 4 .. so many ranks");
  const Option more[] = {
      command.add_setting("--link", flags.link, "between ranks: 10GbE, 25Gbit/s, 1.2GB/s"),
      command.add_setting("--wire", flags.wire, "how gradients go between ranks")
          .one_of({"f32", "bf16"}),
      command.add_setting("--latency", flags.latency, "of the link, in microseconds"),
      command.add_option("--update", flags.update,
                         "seconds of an update on one rank [from FLOPs and this CPU's peak]"),
      command.add_option(
          "--exchange", flags.exchange,
          "nanoseconds that a byte takes of the cores of the rank that sends it; 0: it has a core "
          "to spare [0.75 over the threads]")};
  for (const Option& option : more) option.needs(ranks);
}

std::optional<RanksCost> ranks_cost(const RanksFlags& flags, const inspect::Analysis& a) {
  if (!flags.ranks) return std::nullopt;
  check(std::isfinite(flags.latency) && flags.latency >= 0, ErrorKind::usage,
        "--latency is {}; it must be at least 0, in microseconds", flags.latency);
  const double exchange = flags.exchange.value_or(kUsualExchange / num_threads());
  check(std::isfinite(exchange) && exchange >= 0, ErrorKind::usage,
        "--exchange is {}; it must be at least 0, in nanoseconds", exchange);
  RanksCost cost{.link = fmt::format("{} of {:g} us, {:.3g} ns a byte, gradients in {}", flags.link,
                                     flags.latency, exchange, flags.wire),
                 .update = "as given"};
  double seconds = flags.update.value_or(0);
  check(!flags.update || (std::isfinite(seconds) && seconds > 0), ErrorKind::usage,
        "--update is {}; it must be above 0, in seconds", seconds);
  if (!flags.update) {
    const auto flops =
        static_cast<double>(a.attention.has_flash ? a.training_flash_flops : a.training_flops);
    const Precision precision = resolve_precision("auto");
    const double least = bench::seconds_in_registers(flops, precision);
    check(least > 0, ErrorKind::usage,
          "the peak of this CPU is not known; say with --update what an update of one rank takes");
    seconds = least / kUsualShare;
    cost.update = fmt::format("{:.4g} GFLOPs at {:.0f} % of this CPU's peak in {} with {}",
                              flops / 1e9, 100 * kUsualShare, dtype_name(precision.compute),
                              counted(num_threads(), "thread"));
  }
  cost.updates = inspect::ranked_updates(seconds, a.gradient_buckets, *flags.ranks,
                                         {.bytes_per_second = inspect::link_rate(flags.link),
                                          .latency = flags.latency * 1e-6,
                                          .gradients = wire_type(flags.wire),
                                          .processor = exchange * 1e-9});
  return cost;
}

std::string to_text(const RanksCost& cost) {
  std::string text = fmt::format("\n{}\n  {:>6}{:>15}{:>15}{:>15}{:>15}{:>15}{:>12}{:>15}\n",
                                 title_of(cost), "ranks", "compute", "exchange", "wire",
                                 "of it hidden", "update", "efficiency", "sent by each");
  for (const inspect::RankedUpdate& u : cost.updates) {
    text += fmt::format(
        "  {:>6}{:>12.2f} ms{:>12.2f} ms{:>12.2f} ms{:>12.2f} ms{:>12.2f} ms{:>10.1f} %{:>12.1f} "
        "MB\n",
        u.ranks, 1e3 * u.compute, 1e3 * u.exchange, 1e3 * u.wire, 1e3 * u.hidden, 1e3 * u.seconds(),
        100 * efficiency(cost, u), static_cast<double>(u.bytes) / 1e6);
  }
  return text + fmt::format("  {}\n  {}\n", kFormula, kMeaning);
}

Json to_json(const RanksCost& cost) {
  return inspect::json_list(cost.updates, [&](const inspect::RankedUpdate& u) {
    return Json::object({{"ranks", u.ranks},
                         {"compute_seconds", u.compute},
                         {"exchange_seconds", u.exchange},
                         {"wire_seconds", u.wire},
                         {"hidden_seconds", u.hidden},
                         {"seconds", u.seconds()},
                         {"efficiency", efficiency(cost, u)},
                         {"bytes_sent", u.bytes}});
  });
}

Json page_json(const RanksCost& cost) {
  return Json::object({{"title", title_of(cost)},
                       {"updates", to_json(cost)},
                       {"formula", kFormula},
                       {"meaning", kMeaning}});
}

}  // namespace heddle::cli
