// Cells and attention of a step against their definitions in double; far and missing values.
#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

const std::vector<RecurrentCell> kCells = {RecurrentCell::tanh, RecurrentCell::relu,
                                           RecurrentCell::gru, RecurrentCell::lstm};

// A step of 3 sequences among 5 rows: what comes in, and what goes out.
struct CellCase {
  static constexpr int64_t kRows = 5, kRunning = 3;
  RecurrentCell cell;
  std::vector<int32_t> rows = {4, 0, 2}, before = {1, 3, 0};
  Matrix x, added, product, bias, h_before, c_before, h, c, kept, next, dy, dh, dc, dx, dn,
      dproduct;

  CellCase(RecurrentCell of, int64_t w, DType t)
      : cell(of),
        x(kRows, gates_of(of) * w, t, 3),
        added(kRunning, gates_of(of) * w),
        product(kRunning, gates_of(of) * w, DType::f32, 1),
        bias(1, gates_of(of) * w),
        h_before(kRows, w, t, 1),
        c_before(kRows, w, DType::f32, 2),
        h(kRows, w, t, 3),
        c(kRows, w),
        kept(kRows, std::max<int64_t>(1, kept_of(of) * w), t),
        next(kRunning, w, t, 1),
        dy(kRows, w, t),
        dh(kRunning, w, DType::f32, 1),
        dc(kRunning, w),
        dx(kRows, gates_of(of) * w, t, 1),
        dn(kRows, w, t),
        dproduct(kRunning, gates_of(of) * w, t) {
    uint32_t seed = 0;
    for (Matrix* m : {&x, &added, &product, &bias, &h_before, &c_before, &h, &c, &kept, &next, &dy,
                      &dh, &dc, &dx, &dn, &dproduct}) {
      m->fill_normal(++seed);
    }
  }
  CellArgs forward() {
    CellArgs args{.cell = cell,
                  .rows = rows.data(),
                  .before = before.data(),
                  .x = x,
                  .added = added,
                  .product = product,
                  .bias = bias.view().row<float>(0),
                  .h_before = h_before,
                  .c_before = {},
                  .h = h,
                  .c = {},
                  .kept = kept_of(cell) > 0 ? kept.view() : Rows(),
                  .next = next};
    if (cell == RecurrentCell::lstm) args.c_before = c_before, args.c = c;
    return args;
  }
  CellBackwardArgs backward() {
    const CellArgs f = forward();
    CellBackwardArgs args{.cell = cell,
                          .rows = f.rows,
                          .before = f.before,
                          .h = f.h,
                          .c = f.c,
                          .kept = f.kept,
                          .h_before = f.h_before,
                          .c_before = f.c_before,
                          .dy = dy,
                          .dh = dh,
                          .dc = {},
                          .dx = dx,
                          .dn = {},
                          .dproduct = dproduct};
    if (cell == RecurrentCell::lstm) args.dc = dc;
    if (cell == RecurrentCell::gru) args.dn = dn;
    return args;
  }
  std::vector<const Matrix*> all() const {
    return {&h, &c, &kept, &next, &dh, &dc, &dx, &dn, &dproduct};
  }
};

void expect_equal(const std::vector<const Matrix*>& got, const std::vector<const Matrix*>& want,
                  double tolerance) {
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE("matrix " + std::to_string(i));
    expect_near(
        *got[i], [&](int64_t r, int64_t c) { return want[i]->get(r, c); }, tolerance);
  }
}

TEST(Cell, every_width_dtype_and_stride_matches_its_definition) {
  for_each_case([](int64_t width, DType dtype) {
    for (const RecurrentCell cell : kCells) {
      CellCase got(cell, width, dtype), want = got;
      kernels().cell(got.forward());
      definition::cell(want.forward());
      // f32: some 4 units of the last place of each function, three after each other
      expect_equal(got.all(), want.all(), 16 * 0x1p-24 + (dtype == DType::f32 ? 0 : 0x1p-7));
      want = got;  // the backward pass sees the same states
      kernels().cell_backward(got.backward());
      definition::cell_backward(want.backward());
      expect_equal(got.all(), want.all(), 32 * 0x1p-24 + (dtype == DType::f32 ? 0 : 0x1p-7));
    }
  });
}

TEST(Cell, a_first_step_has_neither_product_nor_state) {
  for_each_case([](int64_t width, DType dtype) {
    for (const RecurrentCell cell : kCells) {
      CellCase got(cell, width, dtype), want = got;
      want.product.fill([](int64_t, int64_t) { return 0; });
      want.h_before.fill([](int64_t, int64_t) { return 0; });
      want.c_before.fill([](int64_t, int64_t) { return 0; });
      CellArgs args = got.forward();
      args.product = args.h_before = args.c_before = {};
      kernels().cell(args);
      kernels().cell(want.forward());
      ASSERT_TRUE(got.h == want.h && got.c == want.c && got.next == want.next);
    }
  });
}

TEST(Cell, far_pre_activations_saturate_and_nan_is_not_hidden) {
  for_each_target([] {
    for (const RecurrentCell cell : kCells) {
      CellCase far(cell, 20, DType::f32), lost(cell, 20, DType::f32);
      far.x.fill([](int64_t, int64_t c) { return c % 2 == 0 ? 9984 : -9984; });
      lost.x.fill([](int64_t, int64_t) { return std::nan(""); });
      kernels().cell(far.forward());
      kernels().cell_backward(far.backward());
      kernels().cell(lost.forward());
      for (int64_t i = 0; i < CellCase::kRunning; ++i) {
        for (int64_t c = 0; c < 20; ++c) {
          EXPECT_TRUE(std::isfinite(far.next.get(i, c)) &&
                      std::isfinite(far.dx.get(far.rows[i], c)));
          EXPECT_TRUE(std::isnan(lost.next.get(i, c)));
        }
      }
    }
  });
}

// Two sequences among 4 rows ask sources of 3, 0 and 17 keys.
struct AttentionCase {
  static constexpr int64_t kRows = 4, kValues = 33;
  Scoring scoring;
  std::vector<int32_t> rows = {3, 1}, sources = {2, 0};
  std::vector<int64_t> offsets = {0, 3, 3, 20}, places = {0, 3, 20, 20}, row_offsets = {0, 1, 1, 3};
  Matrix score, k, v, queries, weights, gates, q, gate_logits, contexts, context, dcontext, dy,
      dweights, dcontexts, dscores, dq, dqueries, dgates, dk, dv, dscore, asked;

  AttentionCase(Scoring how, int64_t d, DType t)
      : scoring(how),
        score(1, 2 * d),
        k(20, d, t, 1),
        v(20, kValues, t),
        queries(kRows, d, t),
        weights(1, 40),
        gates(1, kRows),
        q(2, d, t, 2),
        gate_logits(1, 2),
        contexts(kRows, kValues, t),
        context(2, kValues, t, 1),
        dcontext(2, kValues),
        dy(kRows, kValues, t),
        dweights(1, 40),
        dcontexts(kRows, kValues, t, 1),
        dscores(1, 40),
        dq(2, d, t),
        dqueries(kRows, d, t),
        dgates(1, kRows),
        dk(20, d, t, 1),
        dv(20, kValues, t),
        dscore(3, how == Scoring::linear ? 2 * d : d),
        asked(kRows, d, t, 1) {
    uint32_t seed = 0;
    for (Matrix* m :
         {&score,    &k,       &v,        &queries, &weights,  &gates,     &q,       &gate_logits,
          &contexts, &context, &dcontext, &dy,      &dweights, &dcontexts, &dscores, &dq,
          &dqueries, &dgates,  &dk,       &dv,      &dscore,   &asked}) {
      m->fill_normal(++seed, 0.5);
    }
  }
  static float* floats(Matrix& m) { return m.view().row<float>(0); }
  StepAttention attention() {
    return {.scoring = scoring,
            .scale = 0.3f,
            .score = floats(score),
            .k = k,
            .v = v,
            .offsets = offsets.data(),
            .queries = queries,
            .places = places.data(),
            .weights = floats(weights),
            .gates = floats(gates)};
  }
  StepAttentionArgs forward(bool with_asked) {
    return {.attention = attention(),
            .rows = rows.data(),
            .sources = sources.data(),
            .q = q,
            .asked = with_asked ? Rows(asked) : Rows(),
            .gate_logits = floats(gate_logits),
            .contexts = contexts,
            .context = context};
  }
  StepAttentionBackwardArgs backward() {
    return {.attention = attention(),
            .rows = rows.data(),
            .sources = sources.data(),
            .dcontext = dcontext,
            .dy = dy,
            .dweights = floats(dweights),
            .dcontexts = dcontexts,
            .dscores = floats(dscores),
            .dq = dq,
            .dqueries = dqueries,
            .dgate_logits = floats(dgates)};
  }
  StepAttentionSourcesArgs of_sources() {
    return {.attention = attention(),
            .row_offsets = row_offsets.data(),
            .sources = 3,
            .dcontexts = dcontexts,
            .dscores = floats(dscores),
            .dk = dk,
            .dv = dv,
            .dscore = dscore};
  }
  std::vector<const Matrix*> all() const {
    return {&queries, &weights,  &gates,  &contexts, &context, &dcontexts, &dscores,
            &dq,      &dqueries, &dgates, &dk,       &dv,      &dscore};
  }
};

TEST(StepAttention, every_scoring_width_and_dtype_matches_its_definition) {
  for_each_case([](int64_t width, DType dtype) {
    for (const Scoring scoring : {Scoring::dot, Scoring::additive, Scoring::linear}) {
      // Sums of up to 512 products of size 1/4, then exponentials of them.
      const double tolerance =
          (dtype == DType::f32 ? 64 * 0x1p-24 : 0x1p-6) * std::sqrt(static_cast<double>(width));
      AttentionCase got(scoring, width, dtype), want = got;
      for (const bool with_asked : {true, false}) {
        kernels().step_attention(got.forward(with_asked));
        definition::step_attention(want.forward(with_asked));
        expect_equal(got.all(), want.all(), tolerance);
        want = got;
      }
      kernels().step_attention_backward(got.backward());
      definition::step_attention_backward(want.backward());
      expect_equal(got.all(), want.all(), tolerance);
      want = got;
      // Rows 1 and 2 ask source 2, row 0 source 0.
      got.places = want.places = {0, 3, 20, 37};
      kernels().step_attention_sources(got.of_sources());
      definition::step_attention_sources(want.of_sources());
      if (scoring == Scoring::dot) want.dscore = got.dscore;  // not asked for
      expect_equal(got.all(), want.all(), tolerance);
    }
  });
}

}  // namespace
}  // namespace heddle::kernel_test
