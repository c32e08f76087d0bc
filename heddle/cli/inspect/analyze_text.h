// The tables of heddle analyze.
#pragma once

#include <string>
#include <vector>

#include "heddle/bench/layer_curve.h"
#include "heddle/inspect/analysis.h"

namespace heddle::cli {

/// Steps, parameters, FLOPs and bytes.
std::string analysis_text(const inspect::Analysis& analysis);

/// The table of layers and, where there is one, the measured curve.
std::string layers_text(const inspect::LayerSizes& sizes,
                        const std::vector<inspect::LayerCost>& costs,
                        const std::vector<bench::LayerTimes>& curve);
/// The same for programs.
Json layers_json(const inspect::LayerSizes& sizes, const std::vector<inspect::LayerCost>& costs,
                 const std::vector<bench::LayerTimes>& curve);

}  // namespace heddle::cli
