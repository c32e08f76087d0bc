// Forward passes up to the heads, cross entropy, backward passes, counting.
#include "heddle/train/tasks/losses.h"

#include <algorithm>
#include <numeric>

#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/dist/share_out.h"
#include "heddle/infer/search/best_tokens.h"
#include "heddle/infer/words.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/loss.h"

namespace heddle::train {
namespace {

LossSums sums_of(const CrossEntropy& ce, int64_t rows) {
  return {ce.total, ce.nll, ce.predicted, rows};
}

// The loss that `forward` computes, and its backward pass.
template <class Forward>
CrossEntropy with_gradients(const Forward& forward) {
  CrossEntropy ce;
  {
    const ProfilePhase phase("forward");
    ce = forward();
  }
  const ProfilePhase phase("backward");
  backward(ce.loss);
  return ce;
}

CrossEntropy output_loss(const nn::OutputProjection& output, const Tensor& h,
                         std::span<const int32_t> targets, const nn::Run& run,
                         const CrossEntropyOptions& options = {}) {
  static const std::string kName = "output projection";
  const LayerName layer(kName);
  return output.loss(h, targets, options, run);
}

CrossEntropy translation_loss(const EncoderDecoder& model, const TranslationBatch& b,
                              const nn::Run& run, const CrossEntropyOptions& options) {
  return output_loss(model.output(), decoder_states(model, b, run), b.target_out, run, options);
}

// A pass whose attention to the source is told where to go.
class GuidedPass {
 public:
  GuidedPass(const EncoderDecoder& model, const nn::Run& run, const AttentionGuide& guide,
             int64_t passes)
      : run_(run), guide_(guide), passes_(passes) {
    if (guide.weight == 0) return;
    run_.source_weights = std::make_shared<std::vector<Tensor>>();
    run_.weights_layer = aligning_layer(model.facts());
  }
  const nn::Run& run() const { return run_; }
  /// The loss of tokens, behind the pass, with that of the guide.
  Tensor with_guide(const Tensor& loss) const {
    if (guide_.weight == 0 || guide_.wanted.rows() == 0) return loss;
    const Tensor missed = guided_attention_loss(run_.source_weights->at(0), guide_.wanted);
    return add(loss,
               scale(missed, static_cast<float>(guide_.weight / static_cast<double>(passes_))));
  }

 private:
  nn::Run run_;
  const AttentionGuide& guide_;
  int64_t passes_;
};

// Makes of a teacher's distributions what each row is to predict: labels, smoothed, beside them.
void add_labels(const Tensor& taught, std::span<const int32_t> targets, double label_smoothing,
                double weight) {
  const int64_t vocab = taught.size(1);
  const double labels = 1 - weight, all = labels * label_smoothing / static_cast<double>(vocab);
  parallel_for(taught.size(0), [&](int64_t r) {
    float* const row = taught.data<float>() + r * vocab;
    for (int64_t c = 0; c < vocab; ++c) row[c] = static_cast<float>(weight * row[c] + all);
    row[targets[static_cast<size_t>(r)]] += static_cast<float>(labels * (1 - label_smoothing));
  });
}

// Rows whose target counts.
std::vector<int32_t> counting_rows(std::span<const int32_t> targets) {
  std::vector<int32_t> rows;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] >= 0) rows.push_back(static_cast<int32_t>(i));
  }
  return rows;
}

std::vector<int32_t> counting(std::span<const int32_t> targets) {
  std::vector<int32_t> some;
  std::copy_if(targets.begin(), targets.end(), std::back_inserter(some),
               [](int32_t t) { return t >= 0; });
  return some;
}

std::vector<int32_t> likeliest(const Tensor& logits) {
  const std::vector<float> values = logits.to_floats();
  const int64_t width = logits.size(1);
  std::vector<int32_t> best;
  for (int64_t r = 0; r < logits.size(0); ++r) {
    const auto row = values.begin() + r * width;
    best.push_back(static_cast<int32_t>(std::max_element(row, row + width) - row));
  }
  return best;
}

// Of the answers' rows.
void add_log_p(const Tensor& logits, std::span<const int32_t> targets, Answers& answers) {
  const Tensor f32 = cast(logits.detached(), DType::f32);
  for (const int32_t r : counting_rows(targets)) {
    const LogitScale scale = scale_of_row(f32.rows(), r);
    const float* const row = f32.rows().row<float>(r);
    const size_t i = answers.truth_log_p.size();
    answers.truth_log_p.push_back(scale.log_p(row[answers.truths[i]]));
    answers.answer_log_p.push_back(scale.log_p(row[answers.answers[i]]));
  }
}

template <class T>
void append(std::vector<T>& all, const std::vector<T>& some) {
  all.insert(all.end(), some.begin(), some.end());
}

// Keeps the answers that count.
Answers answers_of(const Tensor& logits, std::span<const int32_t> targets, int64_t rows,
                   bool wants_log_p) {
  const CrossEntropy ce = cross_entropy(logits, targets, {});
  Answers out{.sums = sums_of(ce, rows), .truths = counting(targets)};
  const std::vector<int32_t> best = likeliest(logits);
  for (const int32_t r : counting_rows(targets)) out.answers.push_back(best[r]);
  if (wants_log_p) add_log_p(logits, targets, out);
  return out;
}

}  // namespace

std::vector<int32_t> next_targets(std::span<const int32_t> ids, const Segments& segments) {
  check(segments.rows() == std::ssize(ids), ErrorKind::shape,
        "there are {} tokens in sequences of {}", ids.size(), segments.rows());
  std::vector<int32_t> next(ids.size(), -1);
  for (int64_t i = 0; i < segments.count(); ++i) {
    for (int64_t r = segments.begin(i); r + 1 < segments.end(i); ++r) next[r] = ids[r + 1];
  }
  return next;
}

LossSums accumulate_gradients(const LanguageModel& model, const nn::TokenRows& tokens,
                              const nn::Run& run, std::span<const int32_t> targets) {
  std::vector<int32_t> next;
  if (targets.empty()) targets = next = next_targets(tokens.ids, ModelInput(tokens).segments);
  std::vector<Tensor> router_logits;  // of a mixture of experts
  nn::Run collecting = run;
  collecting.router_logits = &router_logits;
  const CrossEntropy ce = with_gradients([&] {
    CrossEntropy sum = output_loss(model.output(), model.hidden(tokens, collecting), targets, run);
    const auto* mixture = model.as<WithExperts>();
    const Tensor balance = mixture ? mixture->router_loss(router_logits) : Tensor();
    if (balance.defined()) {  // it is of the mean, the loss a sum
      sum.loss = add(sum.loss, scale(balance, static_cast<float>(sum.predicted)));
    }
    return sum;
  });
  return sums_of(ce, std::ssize(tokens.ids));
}

LossSums batch_loss(const LanguageModel& model, const nn::TokenRows& tokens, const nn::Run& run,
                    std::span<const int32_t> targets) {
  std::vector<int32_t> next;
  if (targets.empty()) targets = next = next_targets(tokens.ids, ModelInput(tokens).segments);
  const NoGrad off;
  const ProfilePhase phase("forward");
  return sums_of(output_loss(model.output(), model.hidden(tokens, run), targets, run),
                 std::ssize(tokens.ids));
}

LossSums accumulate_gradients(const EncoderDecoder& model, const TranslationBatch& batch,
                              const nn::Run& run, double label_smoothing, double divergence,
                              const AttentionGuide& guide) {
  const int64_t passes = divergence > 0 ? 2 : 1;
  const CrossEntropyOptions options = {.smoothing = static_cast<float>(label_smoothing),
                                       .divergence = static_cast<float>(divergence),
                                       .grad_scale = 1.0f / static_cast<float>(passes)};
  const GuidedPass pass(model, run, guide, passes);
  const CrossEntropy ce = with_gradients([&] {
    CrossEntropy sum = translation_loss(model, batch, pass.run(), options);
    sum.loss = pass.with_guide(sum.loss);
    return sum;
  });
  const auto mean = [&](double sum) { return sum / static_cast<double>(passes); };
  return {mean(ce.total), mean(ce.nll), ce.predicted / passes, ce.predicted / passes};
}

Tensor decoder_states(const EncoderDecoder& model, const TranslationBatch& b, const nn::Run& run) {
  const auto row_ids = [](const auto& sample, const auto& position) {
    return std::make_shared<const RowIds>(RowIds{sample, position});
  };
  const nn::TokenRows source{b.source, &b.source_segments,
                             row_ids(b.source_sample, b.source_position)};
  const nn::TokenRows target{b.target_in, &b.target_segments,
                             row_ids(b.target_sample, b.target_position)};
  const Tensor memory = model.encode(source, run);
  return model.decode(target, memory, b.source_segments, run);
}

LossSums accumulate_taught(const EncoderDecoder& model, const TranslationBatch& batch,
                           const nn::Run& run, double label_smoothing, const Tensor& taught,
                           double weight, const AttentionGuide& guide) {
  const std::vector<int32_t> rows = counting_rows(batch.target_out),
                             labels = counting(batch.target_out);
  const bool all_count = rows.size() == batch.target_out.size();
  const Tensor wanted = all_count ? taught : gather_rows(taught.detached(), rows);
  add_labels(wanted, labels, label_smoothing, weight);
  nn::Run exact = run;  // 8 bits are too few to tell likely tokens apart
  exact.compute = DType::f32;
  CrossEntropy plain;
  const GuidedPass pass(model, run, guide, 1);
  const CrossEntropy ce = with_gradients([&] {
    const Tensor h = cast(decoder_states(model, batch, pass.run()), DType::f32);
    const Tensor logits = model.output()(all_count ? h : gather_rows(h, rows), exact);
    {
      const NoGrad off;
      plain = cross_entropy(logits.detached(), labels, {});
    }
    CrossEntropy sum = soft_cross_entropy(logits, wanted);
    sum.loss = pass.with_guide(sum.loss);
    return sum;
  });
  return {ce.total, plain.nll, plain.predicted, plain.predicted};
}

LossSums batch_loss(const EncoderDecoder& model, const TranslationBatch& batch,
                    const nn::Run& run) {
  const NoGrad off;
  const ProfilePhase phase("forward");
  const CrossEntropy ce = translation_loss(model, batch, run, {});
  return sums_of(ce, ce.predicted);
}

LossSums accumulate_masked(const Model& model, SequenceBatch& batch,
                           std::span<const int32_t> next_sentence, const nn::Run& run) {
  const Heads& heads = model.heads();
  const nn::OutputProjection& output = heads.token_output();
  const nn::TokenRows tokens = batch.tokens();
  const CrossEntropy ce = with_gradients([&] {
    const Tensor h = model.hidden(tokens, run);
    const Tensor rows = gather_rows(h, counting_rows(batch.targets));
    CrossEntropy sum =
        linear_cross_entropy(heads.transform ? heads.transform(rows, run) : rows,
                             output.weight(run), output.bias(), counting(batch.targets), {});
    if (next_sentence.empty()) return sum;
    const double weight =
        static_cast<double>(sum.predicted) / static_cast<double>(next_sentence.size());
    const CrossEntropy next = cross_entropy(heads.next_sentence(h, tokens, run), next_sentence,
                                            {.grad_scale = static_cast<float>(weight)});
    sum.total += weight * next.total;
    sum.loss = add(sum.loss, next.loss);
    return sum;
  });
  return sums_of(ce, std::ssize(batch.ids));
}

Tensor class_logits(const Model& model, const ModelInput& input, const nn::Run& run) {
  const Heads& heads = model.heads();
  const auto& head = heads.sequence_classes ? heads.sequence_classes : heads.token_classes;
  check(head != nullptr, ErrorKind::data, "a model is needed that gives classes; this {} does not",
        model.config().type);
  return head(model.hidden(input, run), input, run);
}

LossSums accumulate_classes(const Model& model, const ModelInput& input,
                            std::span<const int32_t> targets, const nn::Run& run) {
  const CrossEntropy ce =
      with_gradients([&] { return cross_entropy(class_logits(model, input, run), targets, {}); });
  return sums_of(ce, input.segments.rows());
}

LossSums accumulate_permuted(const Model& model, SequenceBatch& batch, const nn::Run& run) {
  const CrossEntropy ce = with_gradients([&] {
    const Tensor h = model.hidden(batch.tokens(), run);
    return output_loss(model.heads().token_output(), h, batch.targets, run);
  });
  return sums_of(ce, std::ssize(batch.ids));
}

void Confusion::add(int32_t truth, int32_t answer) {
  ++true_[static_cast<size_t>(truth)];
  ++given_[static_cast<size_t>(answer)];
  if (truth == answer) ++right_[static_cast<size_t>(truth)];
}

double Confusion::accuracy() const {
  const auto sum = [](const std::vector<int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), int64_t{0});
  };
  return static_cast<double>(sum(right_)) / static_cast<double>(std::max<int64_t>(1, sum(true_)));
}

double Confusion::macro_f1() const {
  double sum = 0;
  int64_t seen = 0;
  for (size_t c = 0; c < right_.size(); ++c) {
    if (given_[c] + true_[c] == 0) continue;
    ++seen;
    sum += 2 * static_cast<double>(right_[c]) / static_cast<double>(given_[c] + true_[c]);
  }
  return sum / static_cast<double>(std::max<int64_t>(1, seen));
}

Answers answer_masked(const Model& model, SequenceBatch& batch, const nn::Run& run,
                      bool wants_log_p) {
  const NoGrad off;
  const Tensor h = model.hidden(batch.tokens(), run);
  const Tensor rows = gather_rows(h, counting_rows(batch.targets));
  return answers_of(model.heads().token_logits(rows, run), counting(batch.targets),
                    std::ssize(batch.ids), wants_log_p);
}

Answers answer_classes(const Model& model, SequenceBatch& batch, const nn::Run& run,
                       bool wants_log_p) {
  const NoGrad off;
  return answers_of(class_logits(model, batch.tokens(), run), batch.targets, std::ssize(batch.ids),
                    wants_log_p);
}

Answers answer_permuted(const Model& model, SequenceBatch& batch, const nn::Run& run,
                        bool wants_log_p) {
  const NoGrad off;
  const nn::OutputProjection& output = model.heads().token_output();
  const Tensor h = model.hidden(batch.tokens(), run);
  const CrossEntropy ce = output_loss(output, h, batch.targets, run);
  Answers out{.sums = sums_of(ce, std::ssize(batch.ids)), .truths = batch.targets};
  for (const NextToken& token : best_tokens(output, h, run, {.scores = wants_log_p})) {
    out.answers.push_back(token.id);
    if (wants_log_p) out.answer_log_p.push_back(token.log_p);
  }
  if (!wants_log_p) return out;
  for (const NextToken& token : best_tokens(output, h, run, {}, batch.targets)) {
    out.truth_log_p.push_back(token.log_p);
  }
  return out;
}

LossSums shared_loss(dist::Group& group, int64_t passes,
                     const std::function<LossSums(int64_t pass)>& loss_of_pass) {
  LossSums sums;
  for (const LossSums& of_pass : dist::share_out_each<LossSums>(group, passes, loss_of_pass)) {
    sums += of_pass;
  }
  return sums;
}

AnswerScore score_answers(const Model& model, decltype(answer_masked) answer, const Questions& q,
                          const nn::Run& run, dist::Group& group) {
  AnswerScore score{{}, Confusion(q.classes)};
  const auto pass = [&](int64_t i) {
    SequenceBatch batch;
    const int64_t begin = i * q.at_once, end = std::min(begin + q.at_once, q.samples);
    for (int64_t s = begin; s < end; ++s) q.add(batch, s);
    return answer(model, batch, run, q.keeps);
  };
  const int64_t passes = (q.samples + q.at_once - 1) / q.at_once;
  for (const Answers& a : dist::share_out_each<Answers>(group, passes, pass)) {
    score.sums += a.sums;
    for (size_t i = 0; i < a.truths.size(); ++i) score.confusion.add(a.truths[i], a.answers[i]);
    if (!q.keeps) continue;
    append(score.all.truths, a.truths);
    append(score.all.answers, a.answers);
    append(score.all.truth_log_p, a.truth_log_p);
    append(score.all.answer_log_p, a.answer_log_p);
  }
  return score;
}

}  // namespace heddle::train
