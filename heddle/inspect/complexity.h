// What a layer of each kind costs over n positions of width d: Vaswani et al. 2017, table 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::inspect {

/// The sizes that the table is for.
struct LayerSizes {
  int64_t n = 512;     ///< positions
  int64_t d = 512;     ///< width
  int64_t kernel = 3;  ///< positions that a convolution sees
  int64_t reach = 64;  ///< positions that restricted attention sees
};

/// A kind of layer: the formula and its value for the sizes.
struct LayerCost {
  std::string layer;       ///< "self-attention"
  std::string operations;  ///< "n^2 d": multiplications, but for a constant
  double operation_count = 0;
  std::string sequential;  ///< "n": steps that must wait for each other
  double sequential_count = 0;
  std::string path;  ///< "log_k n": layers or steps between the two positions farthest apart
  double path_count = 0;
};

/// Recurrent, convolutional (paths by dilated layers), self-attention, and self-attention
/// restricted to a neighbourhood. A kernel or reach beyond n counts as n.
/// Errors: usage if a size is below 1, or the kernel below 2.
std::vector<LayerCost> layer_costs(const LayerSizes& sizes);

}  // namespace heddle::inspect
