// Kernels of recurrent cells: what one step does beside its matrix products.
#pragma once

#include <algorithm>
#include <cmath>

#include "heddle/kernels/family.h"

namespace heddle {

/// How a state follows from the one before. a: pre-activations, of the input and of the state.
enum class RecurrentCell : uint8_t {
  tanh,  ///< h' = tanh(a)
  relu,  ///< h' = max(0, a)
  gru,   ///< r, z = sigmoid(a); n = tanh(a_input + r a_state); h' = (1 - z) n + z h
  lstm   ///< i, f, o = sigmoid(a), g = tanh(a); c' = f c + i g; h' = o tanh(c')
};
/// Blocks of pre-activations, each as wide as the state: r, z, n and i, f, g, o.
constexpr int64_t gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
}
/// Blocks that the backward pass needs beside states: i, f, g, o and r, z, n, a_state of n.
constexpr int64_t kept_of(RecurrentCell cell) {
  return cell == RecurrentCell::lstm || cell == RecurrentCell::gru ? 4 : 0;
}

/// One step of n sequences, of which each has a row in what holds all steps: row `rows[i]`. The
/// state before it is row `before[i]` of h_before and c_before.
struct CellArgs {
  RecurrentCell cell = RecurrentCell::lstm;
  const int32_t* rows = nullptr;    ///< [n]
  const int32_t* before = nullptr;  ///< [n]
  Rows x = {};                      ///< [all, gates h] pre-activations of the input
  Rows added = {};                  ///< [n, gates h] f32, added to those; may be absent
  Rows product = {};                ///< [n, gates h] f32, those of the state; absent: zeros
  const float* bias = nullptr;      ///< [gates h] of the state; may be null
  Rows h_before = {};               ///< [any, h]; absent: zeros
  Rows c_before = {};               ///< [any, h] f32, of LSTM; absent: zeros
  Rows h = {};                      ///< [all, h]
  Rows c = {};                      ///< [all, h] f32, of LSTM
  Rows kept = {};                   ///< [all, kept_of(cell) h]; may be absent
  Rows next = {};                   ///< [n, h] h again, of these rows alone
};

/// Rows as in CellArgs. dh and dc come with what later steps give, and leave with what the step
/// before gets, but for products of the pre-activations' gradients.
struct CellBackwardArgs {
  RecurrentCell cell = RecurrentCell::lstm;
  const int32_t* rows = nullptr;
  const int32_t* before = nullptr;
  Rows h = {}, c = {}, kept = {};  ///< as the forward pass left them
  Rows h_before = {}, c_before = {};
  Rows dy = {};           ///< [all, h] what h gets from outside; may be absent
  Rows dh = {}, dc = {};  ///< [n, h] f32; dc of LSTM
  Rows dx = {};           ///< [all, gates h] of the input's pre-activations
  Rows dn = {};           ///< [all, h] of a_state of n, of GRU
  Rows dproduct = {};     ///< [n, gates h] of the state's pre-activations
};

inline Work work_of(const CellArgs& a) {
  const int64_t n = a.next.rows;
  const int64_t each = row_bytes(a.x) + 2 * row_bytes(a.h) + row_bytes(a.next) +
                       2 * row_bytes(a.c) + (a.kept.data == nullptr ? 0 : row_bytes(a.kept));
  return {n * each + bytes_of(a.product) + bytes_of(a.added), 0};
}
inline Work work_of(const CellBackwardArgs& a) {
  const int64_t n = a.dproduct.rows;
  const int64_t each = row_bytes(a.dx) + row_bytes(a.dproduct) + 2 * row_bytes(a.h) +
                       2 * row_bytes(a.c) + row_bytes(a.kept) + row_bytes(a.dn) +
                       (a.dy.data == nullptr ? 0 : row_bytes(a.dy));
  return {n * each + 2 * bytes_of(a.dh) + 2 * bytes_of(a.dc), 0};
}

namespace definition {

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

inline void cell(const CellArgs& a) {
  const int64_t width = a.h.width;
  for (int64_t i = 0; i < a.next.rows; ++i) {
    const int64_t row = a.rows[i];
    for (int64_t c = 0; c < width; ++c) {
      double x[4] = {}, s[4] = {};
      for (int64_t g = 0; g < gates_of(a.cell); ++g) {
        const int64_t column = g * width + c;
        x[g] = element(a.x, row, column) + (a.added.data ? element(a.added, i, column) : 0);
        s[g] = (a.product.data ? element(a.product, i, column) : 0) + (a.bias ? a.bias[column] : 0);
      }
      const double h = a.h_before.data ? element(a.h_before, a.before[i], c) : 0;
      double y = 0, kept[4] = {};
      if (a.cell == RecurrentCell::lstm) {
        for (const int g : {0, 1, 3}) kept[g] = sigmoid(x[g] + s[g]);
        kept[2] = std::tanh(x[2] + s[2]);
        const double before = a.c_before.data ? element(a.c_before, a.before[i], c) : 0;
        set_element(a.c, row, c, kept[1] * before + kept[0] * kept[2]);
        y = kept[3] * std::tanh(element(a.c, row, c));
      } else if (a.cell == RecurrentCell::gru) {
        for (const int g : {0, 1}) kept[g] = sigmoid(x[g] + s[g]);
        kept[2] = std::tanh(x[2] + kept[0] * s[2]), kept[3] = s[2];
        y = (1 - kept[1]) * kept[2] + kept[1] * h;
      } else {
        y = a.cell == RecurrentCell::tanh ? std::tanh(x[0] + s[0]) : std::max(0.0, x[0] + s[0]);
      }
      for (int64_t g = 0; g < kept_of(a.cell) && a.kept.data; ++g) {
        set_element(a.kept, row, g * width + c, kept[g]);
      }
      set_element(a.h, row, c, y);
      set_element(a.next, i, c, y);
    }
  }
}

inline void cell_backward(const CellBackwardArgs& a) {
  const int64_t width = a.dh.width;
  for (int64_t i = 0; i < a.dproduct.rows; ++i) {
    const int64_t row = a.rows[i];
    for (int64_t c = 0; c < width; ++c) {
      const double dh = element(a.dh, i, c) + (a.dy.data ? element(a.dy, row, c) : 0);
      double d[4] = {}, dn = 0, k[4] = {};
      for (int64_t g = 0; g < kept_of(a.cell); ++g) k[g] = element(a.kept, row, g * width + c);
      if (a.cell == RecurrentCell::lstm) {
        const double t = std::tanh(element(a.c, row, c));
        const double dc = element(a.dc, i, c) + dh * k[3] * (1 - t * t);
        const double before = a.c_before.data ? element(a.c_before, a.before[i], c) : 0;
        d[0] = dc * k[2] * k[0] * (1 - k[0]), d[1] = dc * before * k[1] * (1 - k[1]);
        d[2] = dc * k[0] * (1 - k[2] * k[2]), d[3] = dh * t * k[3] * (1 - k[3]);
        set_element(a.dc, i, c, dc * k[1]);
      } else if (a.cell == RecurrentCell::gru) {
        const double h = a.h_before.data ? element(a.h_before, a.before[i], c) : 0;
        d[2] = dh * (1 - k[1]) * (1 - k[2] * k[2]), dn = d[2] * k[0];
        d[0] = d[2] * k[3] * k[0] * (1 - k[0]), d[1] = dh * (h - k[2]) * k[1] * (1 - k[1]);
        set_element(a.dh, i, c, dh * k[1]);
        set_element(a.dn, row, c, dn);
      } else {
        const double y = element(a.h, row, c);
        d[0] = a.cell == RecurrentCell::tanh ? dh * (1 - y * y) : y > 0 ? dh : 0;
      }
      for (int64_t g = 0; g < gates_of(a.cell); ++g) {
        set_element(a.dx, row, g * width + c, d[g]);
        set_element(a.dproduct, i, g * width + c,
                    a.cell == RecurrentCell::gru && g == 2 ? dn : d[g]);
      }
    }
  }
}

}  // namespace definition

/// No element depends on another one's, so none on how many sequences there are.
struct RecurrentKernels {
  void (*cell)(const CellArgs&);
  void (*cell_backward)(const CellBackwardArgs&);

  static RecurrentKernels of_cpu();
  static void list(const auto& visit) {
    HEDDLE_LIST_KERNEL(RecurrentKernels, cell);
    HEDDLE_LIST_KERNEL(RecurrentKernels, cell_backward);
  }
};

}  // namespace heddle
