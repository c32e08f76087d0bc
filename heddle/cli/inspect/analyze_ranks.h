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
  int64_t ranks = 0;  ///< 0: not asked for
  std::string link = "10GbE";
  std::string wire = "f32";             ///< how gradients are sent
  double latency = 50;                  ///< microseconds
  double update = 0;                    ///< seconds of an update on one rank; 0: from FLOPs
  std::optional<double> exchange = {};  ///< nanoseconds of the cores for a byte; none: as is usual
};

void add_ranks_flags(Subcommand& command, RanksFlags& flags);

struct RanksCost {
  std::string link;    ///< as it was given, with its latency
  std::string update;  ///< how the time of one rank is known
  std::vector<inspect::RankedUpdate> updates = {};
};

/// Nothing where flags.ranks is 0. Without flags.update the time of one rank is that of the FLOPs
/// at the share of this CPU's peak that training usually has.
/// Errors: usage for flags that cannot be, or where the peak of this CPU is not known
std::optional<RanksCost> ranks_cost(const RanksFlags& flags, const inspect::Analysis& analysis);

/// A table, a line for each number of ranks.
std::string to_text(const RanksCost& cost);
Json to_json(const RanksCost& cost);

}  // namespace heddle::cli
