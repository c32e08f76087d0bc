// heddle analyze --ranks: what an update would take on several ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/cli/command_line.h"
#include "heddle/inspect/analysis.h"
#include "heddle/inspect/scaling.h"

namespace heddle::cli {

struct RanksFlags {
  std::optional<int64_t> ranks = {};  ///< none: not asked for
  std::string link = "10GbE";
  std::string wire = "f32";             ///< how gradients are sent
  double latency = 50;                  ///< microseconds
  std::optional<double> update = {};    ///< seconds of an update on one rank; none: from FLOPs
  std::optional<double> exchange = {};  ///< nanoseconds of the cores for a byte; none: as is usual
};

void add_ranks_flags(Subcommand& command, RanksFlags& flags);

struct RanksCost {
  std::string link;    ///< as it was given, with its latency
  std::string update;  ///< how the time of one rank is known
  std::vector<inspect::RankedUpdate> updates = {};
};

/// Nothing without flags.ranks. Without flags.update the time of one rank is that of the FLOPs
/// at the share of this CPU's peak that training usually has.
/// Errors: usage for flags that cannot be, or where the peak of this CPU is not known
std::optional<RanksCost> ranks_cost(const RanksFlags& flags, const inspect::Analysis& analysis);

/// A table, a line for each number of ranks.
std::string to_text(const RanksCost& cost);
Json to_json(const RanksCost& cost);
/// The table for a page, with what stands over and under it.
Json page_json(const RanksCost& cost);

}  // namespace heddle::cli
