// Texts end to end through a model, and its head's logits as probabilities of classes or tokens.
#include "heddle/infer/answers.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/distinct_names.h"
#include "heddle/base/files/mmap.h"
#include "heddle/base/parallel.h"
#include "heddle/infer/search/best_tokens.h"
#include "heddle/infer/words.h"
#include "heddle/ops/embedding.h"
#include "heddle/text/strings/strings.h"
#include "heddle/vision/image_ops.h"

namespace heddle {
namespace {

std::vector<double> scaled(std::span<const float> logits, ClassScale scale) {
  std::vector<double> p(logits.begin(), logits.end());
  if (scale == ClassScale::sigmoid) {
    for (double& x : p) x = 1 / (1 + std::exp(-x));
  } else if (scale == ClassScale::softmax) {
    const double most = *std::ranges::max_element(p);
    double sum = 0;
    for (double& x : p) sum += x = std::exp(x - most);
    for (double& x : p) x /= sum;
  }
  return p;
}

// Of sequences end to end, by one of the model's heads.
std::vector<float> logits_of(const LoadedModel& model, const ModelInput& input,
                             const Heads::OfInput& head, const Precision& precision) {
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  std::vector<float> logits = head(model.model->hidden(input, run), input, run).to_floats();
  check(std::ranges::all_of(logits, [](float x) { return std::isfinite(x); }), ErrorKind::data,
        "{}: the model gives logits that are not finite", model.path);
  return logits;
}
std::vector<float> logits_of(const LoadedModel& model, std::span<const Encoding> texts,
                             const Heads::OfInput& head, const Precision& precision) {
  const PackedTexts packed(model.tokens(), texts);
  return logits_of(model, packed.tokens(), head, precision);
}

// Of each sequence, out of the logits of all.
std::vector<std::vector<double>> classes_of(const LoadedModel& model,
                                            const std::vector<float>& logits) {
  const size_t labels = model.model->labels().size();
  std::vector<std::vector<double>> result;
  for (size_t i = 0; i < logits.size(); i += labels) {
    result.push_back(scaled(std::span(logits).subspan(i, labels), class_scale(*model.model)));
  }
  return result;
}

}  // namespace

ClassScale class_scale(const Model& model) {
  const Json* type = model.config().hub.others.find("problem_type");
  const std::string name = type != nullptr && type->is_string() ? type->as_string() : "";
  if (name == "regression") return ClassScale::none;
  const bool is_each = name == "multi_label_classification" || model.labels().size() == 1;
  return is_each ? ClassScale::sigmoid : ClassScale::softmax;
}

std::vector<std::string> class_names(const Model& model) { return distinct_names(model.labels()); }

std::vector<std::vector<double>> classify(const LoadedModel& model,
                                          std::span<const TextToClassify> texts,
                                          const Precision& precision, int64_t& cut) {
  check_mapped_files();
  check_head(model, model.model->heads().sequence_classes != nullptr, Head::sequence_classes,
             "classes");
  std::vector<Encoding> encodings;
  for (const TextToClassify& one : texts) {
    encodings.push_back(one.second ? encode_truncated(model, one.text, *one.second, cut)
                                   : encode_truncated(model, one.text, cut));
  }
  return classes_of(model,
                    logits_of(model, encodings, model.model->heads().sequence_classes, precision));
}

std::vector<std::vector<double>> classify(const ImageReader& reader, std::span<const Image> images,
                                          const Precision& precision, bool mirrored) {
  check_mapped_files();
  const LoadedModel& model = reader.loaded;
  const Heads::OfInput& head = model.model->heads().sequence_classes;
  check_head(model, head != nullptr, Head::image_classes, "classes");
  const auto logits = [&](std::span<const Image> of) {
    const ImageBatch batch(of, reader.processor);
    return logits_of(model, batch.rows(), head, precision);
  };
  std::vector<float> mean = logits(images);
  if (mirrored) {
    std::vector<Image> others(images.begin(), images.end());
    parallel_for(std::ssize(others), [&](int64_t i) { flip_columns(others[i]); });
    const std::vector<float> more = logits(others);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] = (mean[i] + more[i]) / 2;
  }
  return classes_of(model, mean);
}

Json class_json(const std::vector<std::string>& names, const std::vector<double>& probabilities) {
  const auto best = std::ranges::max_element(probabilities) - probabilities.begin();
  Json json = Json::object({{"label", names[static_cast<size_t>(best)]}});
  for (size_t i = 0; i < probabilities.size(); ++i) {
    json["probabilities"][names[i]] = probabilities[i];
  }
  return json;
}

std::vector<std::vector<WordClass>> classify_words(const LoadedModel& model,
                                                   std::span<const std::vector<std::string>> texts,
                                                   const Precision& precision, int64_t& cut) {
  check_mapped_files();
  check_head(model, model.model->heads().token_classes != nullptr, Head::token_classes,
             "classes of words");
  std::vector<std::vector<WordClass>> result;
  std::vector<Encoding> encodings;
  std::vector<std::pair<WordClass*, size_t>> asked;  // with its row among those of all texts
  size_t rows = 0;
  for (const std::vector<std::string>& words : texts) {
    EncodedWords encoded = encode_words(*model.tokenizer, words, room_of(model));
    check_tokenizer_ids(model, encoded.encoding.ids);
    cut += encoded.was_cut ? 1 : 0;
    result.emplace_back(words.size());
    const size_t before = asked.size();
    for (size_t w = 0; w < words.size(); ++w) {
      if (encoded.first_rows[w] < 0) continue;
      asked.emplace_back(&result.back()[w], rows + static_cast<size_t>(encoded.first_rows[w]));
    }
    if (asked.size() == before) continue;  // a model is not asked about nothing
    rows += encoded.encoding.ids.size();
    encodings.push_back(std::move(encoded.encoding));
  }
  if (encodings.empty()) return result;
  const std::vector<float> logits =
      logits_of(model, encodings, model.model->heads().token_classes, precision);
  const size_t labels = model.model->labels().size();
  for (const auto& [word, row] : asked) {
    const std::vector<double> p =
        scaled(std::span(logits).subspan(row * labels, labels), ClassScale::softmax);
    const auto most = std::ranges::max_element(p);
    *word = {static_cast<int32_t>(most - p.begin()), *most};
  }
  return result;
}

// --- masks ---------------------------------------------------------------------------------------

namespace {

constexpr std::string_view kMask = "[MASK]";

Encoding encode_masked(const LoadedModel& model, const std::string& text) {
  const int32_t mask = model.tokenizer->mask_id();
  int64_t cut = 0;
  Encoding encoding =
      encode_truncated(model, replace_all(text, kMask, model.tokenizer->token(mask)), cut);
  check(cut == 0, ErrorKind::data,
        "fill: the text '{}...' is longer than the {} tokens that the model takes",
        text.substr(0, 60), model.max_length);
  check(std::ranges::count(encoding.ids, mask) > 0, ErrorKind::data,
        "fill: the text '{}' has no {}; write it where a token is wanted", text,
        model.tokenizer->token(mask));
  return encoding;
}

std::string without_outer_spaces(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? text : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// The text of the ids without special tokens but masks, which are yet to be filled.
std::string text_with_masks(const Tokenizer& tokenizer, std::vector<int32_t> ids) {
  std::erase_if(ids,
                [&](int32_t id) { return tokenizer.is_special(id) && id != tokenizer.mask_id(); });
  return without_outer_spaces(tokenizer.decode(ids, {.skip_special = false}));
}

}  // namespace

std::vector<std::vector<std::vector<Fill>>> fill_masks(const LoadedModel& model,
                                                       std::span<const std::string> texts,
                                                       int64_t top, const Precision& precision) {
  check_mapped_files();
  const Heads& heads = model.model->heads();
  const int32_t mask = model.tokenizer->mask_id();
  check_head(model, heads.output.has_value(), Head::masked_token, "masked tokens");
  check(mask >= 0, ErrorKind::data, "{}: its tokenizer has no mask token", model.path);
  const int64_t vocab = model.tokens().vocab_size();
  check(top >= 1 && top <= vocab, ErrorKind::usage, "`top` is {}; it must be 1 to {}", top, vocab);
  std::vector<Encoding> encodings;
  for (const std::string& text : texts) encodings.push_back(encode_masked(model, text));
  const PackedTexts packed(model.tokens(), encodings);
  std::vector<int32_t> masks;
  for (size_t row = 0; row < packed.ids.size(); ++row) {
    if (packed.ids[row] == mask) masks.push_back(static_cast<int32_t>(row));
  }
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  const Tensor h = model.tokens().hidden(packed.tokens(), run);
  const Tensor logits = heads.token_logits(gather_rows(h, masks), run);
  const std::vector<NextToken> best = best_tokens(logits, {.count = top});
  auto next = best.begin();
  std::vector<std::vector<std::vector<Fill>>> result;
  for (Encoding& encoding : encodings) {
    auto& of_text = result.emplace_back();
    for (int32_t& id : encoding.ids) {
      if (id != mask) continue;
      auto& fills = of_text.emplace_back();
      for (int64_t i = 0; i < top; ++i, ++next) {
        id = next->id;
        const std::vector<int32_t> alone = {id};
        fills.push_back(
            {id, without_outer_spaces(model.tokenizer->decode(alone, {.skip_special = false})),
             std::exp(static_cast<double>(next->log_p)),
             text_with_masks(*model.tokenizer, encoding.ids)});
      }
      id = mask;
    }
  }
  return result;
}

}  // namespace heddle
