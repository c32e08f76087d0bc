// Products of the layers' mean maps.
#include "heddle/inspect/attention_rollout.h"

#include <map>
#include <numeric>

#include "heddle/inspect/matrix.h"

namespace heddle::inspect {
namespace {

// [rows, cols], row-major.
struct Shares {
  int64_t rows = 0, cols = 0;
  std::vector<double> values;

  Shares(int64_t r, int64_t c) : rows(r), cols(c), values(static_cast<size_t>(r * c)) {}
  static Shares identity(int64_t n) {
    Shares one(n, n);
    for (int64_t i = 0; i < n; ++i) one.values[static_cast<size_t>(i * n + i)] = 1;
    return one;
  }
  const double* row(int64_t i) const { return values.data() + i * cols; }
  double* row(int64_t i) { return values.data() + i * cols; }
};

// What stays of a row of (I + a) when it is divided by its sum: half, where the weights sum to 1.
double staying_share(const Shares& a, int64_t row) {
  return 1 / (1 + std::accumulate(a.row(row), a.row(row) + a.cols, 0.0));
}

// x + a b, each row divided by the sum of that of (I + a).
Shares joined(const Shares& x, const Shares& a, const Shares& b) {
  Shares sum(a.rows, b.cols);
  for (int64_t i = 0; i < a.rows; ++i) {
    double* to = sum.row(i);
    const double staying = staying_share(a, i);
    for (int64_t k = 0; k < a.cols; ++k) {
      const double share = a.row(i)[k] * staying;
      if (share == 0) continue;
      for (int64_t j = 0; j < b.cols; ++j) to[j] += share * b.row(k)[j];
    }
    for (int64_t j = 0; j < b.cols; ++j) to[j] += x.row(i)[j] * staying;
  }
  return sum;
}

Shares mean_of_heads(const nn::AttentionCall& call, int64_t rows, int64_t cols) {
  Shares mean(rows, cols);
  for (int64_t head = 0; head < call.heads(); ++head) {
    const Tensor weights = call.weights(0, head, {0, rows});
    for (int64_t i = 0; i < rows * cols; ++i) {
      mean.values[static_cast<size_t>(i)] += static_cast<double>(weights.data<float>()[i]);
    }
  }
  for (double& value : mean.values) value /= static_cast<double>(call.heads());
  return mean;
}

RolledMap rolled(size_t kind, const Shares& shares) {
  check_finite(std::ranges::all_of(shares.values, [](double x) { return std::isfinite(x); }),
               "the attention weights");
  RolledMap map{.kind = kind, .rows = shares.rows, .cols = shares.cols, .weights = {}};
  map.weights.assign(shares.values.begin(), shares.values.end());
  return map;
}

// Through the layers of one kind alone.
Shares rolled_out(const std::vector<Shares>& layers) {
  Shares sum = Shares::identity(layers.front().rows);
  for (const Shares& layer : layers) sum = joined(sum, layer, sum);
  return sum;
}

}  // namespace

void check_discard(double share) {
  check(share >= 0 && share <= 1, ErrorKind::usage,
        "`discard` is {}; a share of a layer's weights is needed, from 0 to 1", share);
}

std::vector<RolledMap> attention_rollout(const Subject& subject, double discard) {
  check_discard(discard);
  const std::vector<AttentionKind>& kinds = subject.kinds();
  std::vector<std::vector<Shares>> layers(kinds.size());
  nn::Observer observer;
  observer.attention = [&](const nn::AttentionCall& call) {
    for (size_t k = 0; k < kinds.size(); ++k) {
      if (!call.name().starts_with(kinds[k].prefix) || kinds[k].before > 0) continue;
      layers[k].push_back(mean_of_heads(call, subject.sides()[kinds[k].queries].size(),
                                        subject.sides()[kinds[k].keys].size()));
      discard_least(layers[k].back().values, discard);
    }
  };
  subject.pass(observer);
  const auto of_name = [&](const char* name) {
    return static_cast<size_t>(std::ranges::find(kinds, name, &AttentionKind::name) -
                               kinds.begin());
  };
  const size_t cross = of_name("cross"), decoder = of_name("decoder"), encoder = of_name("encoder");
  std::vector<RolledMap> maps;
  for (size_t k = 0; k < kinds.size(); ++k) {
    const bool is_of_pair = k == cross || (k == decoder && cross < kinds.size());
    if (layers[k].empty() || is_of_pair) continue;
    maps.push_back(rolled(k, rolled_out(layers[k])));
  }
  const bool has_pair = cross < kinds.size() && decoder < kinds.size() && encoder < kinds.size() &&
                        layers[cross].size() == layers[decoder].size();
  if (!has_pair) return maps;
  const Shares memory = rolled_out(layers[encoder]);
  Shares own = Shares::identity(layers[decoder].front().rows), source(own.rows, memory.cols);
  for (size_t l = 0; l < layers[decoder].size(); ++l) {
    const Shares &decoding = layers[decoder][l], &asking = layers[cross][l];
    source = joined(source, decoding, source);
    own = joined(own, decoding, own);
    for (int64_t i = 0; i < own.rows; ++i) {
      const double staying = staying_share(asking, i);
      for (int64_t j = 0; j < own.cols; ++j) own.row(i)[j] *= staying;
    }
    source = joined(source, asking, memory);
  }
  maps.push_back(rolled(decoder, own));
  maps.push_back(rolled(cross, source));
  return maps;
}

}  // namespace heddle::inspect
