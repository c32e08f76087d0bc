// Which rows of which table are a token's, and which tables serve twice.
#include "heddle/nn/adaptive_tables.h"

#include <cmath>

namespace heddle::nn {

int64_t AdaptiveOptions::narrow_of(int64_t i) const {
  int64_t result = narrow;
  for (int64_t n = 0; n < i && divisor > 1 && result > 0; ++n) result /= divisor;
  return result;
}

void AdaptiveOptions::check(const std::string& source) const {
  int64_t before = 0;
  for (const int64_t cutoff : cutoffs) {
    heddle::check(cutoff > before && cutoff < vocab, ErrorKind::data,
                  "{}: cutoffs are {}; they must rise from above 0 to below vocab_size {}", source,
                  fmt::join(cutoffs, ", "), vocab);
    before = cutoff;
  }
  heddle::check(narrow_of(groups() - 1) >= 1, ErrorKind::data,
                "{}: d_embed {} divided by {} for each of {} cutoffs leaves nothing", source,
                narrow, divisor, cutoffs.size());
}

Parameter* AdaptiveTables::projection(const Scope& s, int64_t group, int64_t number) const {
  return &(s / number).parameter({o_.width, o_.narrow_of(group)}, Init::normal(o_.projection_std));
}

// Of tokens coming in, or, `is_out`, going out.
std::vector<TokenCluster> AdaptiveTables::clusters(bool is_out) const {
  std::vector<TokenCluster> all;
  const bool is_alone = o_.divisor > 1;  // each group in a table of its own
  const Scope tables = is_out && !o_.is_tied ? out_ / "out_layers" : in_ / "emb_layers";
  for (int64_t i = 0; i < o_.groups(); ++i) {
    const int64_t begin = o_.begin_of(i), tokens = o_.begin_of(i + 1) - begin;
    const int64_t table = is_alone ? i : 0, rows = is_alone ? tokens : o_.vocab;
    TokenCluster w{.begin = begin, .tokens = tokens, .row = is_alone ? 0 : begin};
    w.table = &(tables / table / "weight").parameter({rows, o_.narrow_of(i)}, Init::normal(o_.std));
    if (o_.has_projections()) {
      w.projection = is_out && !o_.tied_projections[i] ? projection(out_ / "out_projs", i, i)
                                                       : projection(in_ / "emb_projs", i, table);
    }
    if (is_out) {
      w.bias = &(out_ / "out_layers" / table / "bias").parameter({rows}, Init::zeros());
    }
    all.push_back(w);
  }
  return all;
}

AdaptiveEmbedding AdaptiveTables::embedding() const {
  return {in_.prefix(), clusters(false),
          static_cast<float>(std::sqrt(static_cast<double>(o_.width)))};
}

OutputProjection AdaptiveTables::output() const {
  Parameter *weight = nullptr, *bias = nullptr;
  if (o_.groups() > 1) {
    const int64_t classes = o_.groups() - 1;
    weight = &(out_ / "cluster_weight").parameter({classes, o_.narrow}, Init::normal(o_.std));
    bias = &(out_ / "cluster_bias").parameter({classes}, Init::zeros());
  }
  return OutputProjection(
      std::make_shared<const AdaptiveSoftmax>(out_.prefix(), clusters(true), weight, bias));
}

std::vector<std::pair<std::string, std::string>> AdaptiveTables::tied() const {
  std::vector<std::pair<std::string, std::string>> names;
  const bool is_alone = o_.divisor > 1;
  for (int64_t i = 0; i < o_.groups(); ++i) {
    const int64_t table = is_alone ? i : 0;
    if (o_.is_tied && table == i) {
      names.emplace_back((out_ / "out_layers" / table / "weight").prefix(),
                         (in_ / "emb_layers" / table / "weight").prefix());
    }
    if (o_.has_projections() && o_.tied_projections[i]) {
      names.emplace_back((out_ / "out_projs" / i).prefix(), (in_ / "emb_projs" / table).prefix());
    }
  }
  return names;
}

}  // namespace heddle::nn
