// Sines and cosines of coordinates.
#pragma once

#include "heddle/autograd/tape.h"

namespace heddle {

/// Of each number x of each row, side by side in pairs, the sine and the cosine of 2 pi x / t^(j /
/// width), j = 0, 2 .. width - 2, where t is the temperature.
/// x: [rows, n] f32    returns: [rows, n * width] f32, computed in f64
/// Errors: shape for another rank or dtype, or an odd width.
/// Source: Vaswani et al. 2017, section 3.5; Carion et al. 2020 (t = 10000), Liu et al. 2022,
/// "DAB-DETR", section 4.2 (t = 20), of numbers from 0 to 1.
Tensor sines(const Tensor& x, int64_t width, double temperature);

}  // namespace heddle
