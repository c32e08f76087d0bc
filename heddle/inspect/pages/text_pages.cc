// Pages of the commands that take texts, and of heddle eval.
#include "heddle/inspect/pages/text_pages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "heddle/base/rounded.h"
#include "heddle/base/utf8.h"
#include "heddle/infer/decoding/text_stream.h"
#include "heddle/inspect/pages/detection_page.h"
#include "heddle/text/strings/strings.h"

namespace heddle::inspect {
namespace {

constexpr std::string_view kMask = "[MASK]";

// What stands before, between and behind the masks.
std::vector<std::string> around_masks(const std::string& text, const std::string& mask) {
  std::vector<std::string> parts;
  for (size_t at = 0;;) {
    const size_t plain = text.find(kMask, at);
    const size_t own = mask.empty() ? text.npos : text.find(mask, at);
    const size_t found = std::min(plain, own);
    parts.push_back(text.substr(at, found - at));
    if (found == text.npos) return parts;
    at = found + (found == own ? mask.size() : kMask.size());
  }
}

double dot(const std::vector<float>& x, const std::vector<float>& y) {
  return std::inner_product(
      x.begin(), x.end(), y.begin(), 0.0, std::plus<>(),
      [](float a, float b) { return static_cast<double>(a) * static_cast<double>(b); });
}

constexpr size_t kAround = 10;   // ids before and behind a part of a text
constexpr size_t kContext = 16;  // ids that say how the next one is written

constexpr int kDigits = 5;  // that a page needs

// What ids add to the text of those before them; an unfinished character is of the id that ends it.
std::string added_text(const Tokenizer& tokenizer, std::span<const int32_t> before,
                       std::span<const int32_t> ids) {
  TextStream stream(tokenizer, before.last(std::min(before.size(), kContext)));
  stream.read(ids);
  return stream.take();
}

std::string alone(const Tokenizer& tokenizer, int32_t id) {
  const std::string text = tokenizer.decode(std::span(&id, 1), {.skip_special = false});
  return text.empty() ? fmt::format("id {}", id) : text;
}

Page page_of(const std::string& title, const std::string& script, const Evaluation& evaluation) {
  Page page{.title = title, .data = {}, .scripts = {"texts.js", script}};
  page.data["model"] = evaluation.model;
  page.data["file"] = evaluation.file;
  page.data["summary"] = evaluation.summary;
  return page;
}

// Bytes at which both texts begin, whole characters: one that was unfinished is not common.
size_t common_begin(const std::string& a, const std::string& b) {
  size_t at = std::ranges::mismatch(a, b).in1 - a.begin();
  while (at > 0 && at < a.size() && is_continuation(a[at])) --at;
  return at;
}

// Where the word at `at` begins, with the space before it; `otherwise` if no space is.
size_t word_begin(const std::string& text, size_t at, size_t otherwise) {
  const size_t space = text.rfind(' ', at);
  return space == text.npos ? otherwise : space;
}

// The same places in `clean`, which is `text` without some of its spaces.
std::vector<size_t> without_spaces(const std::string& text, const std::string& clean,
                                   const std::vector<size_t>& places) {
  std::vector<size_t> result;
  size_t at = 0, in_clean = 0;
  for (const size_t place : places) {
    for (; at < place; ++at) {
      if (in_clean < clean.size() && clean[in_clean] == text[at]) ++in_clean;
    }
    result.push_back(in_clean);
  }
  return result;
}

template <class T>
std::span<const T> first_of(std::span<const T> all, int64_t most) {
  return all.first(std::min(all.size(), static_cast<size_t>(most)));
}

Json as_json(const PartOfText& text) {
  return Json::Array{text.before, shortened(text.part, kPageCharacters), text.after};
}

}  // namespace

TextPage::TextPage(const std::string& title, const std::string& script, const std::string& model,
                   int64_t most)
    : page_{.title = title, .data = {}, .scripts = {"texts.js", script}}, most_(most) {
  page_.data["model"] = model;
  page_.data["count"] = 0;
  page_.data["texts"] = Json::array();
}

bool TextPage::take() {
  page_.data["count"] = ++count_;
  return count_ <= most_;
}

FillPage::FillPage(const std::string& model, std::string mask)
    : TextPage("Tokens for masks", "fill.js", model, kPageTexts), mask_(std::move(mask)) {}

void FillPage::add(const std::string& text, const std::vector<std::vector<Fill>>& masks) {
  if (!take()) return;
  const auto with_probability = [](const Fill& fill) {
    const std::string token = fill.token.empty() ? fmt::format("id {}", fill.id) : fill.token;
    return Json::Array{token, fill.probability};
  };
  const auto candidates = [&](const std::vector<Fill>& fills) {
    return json_list(first_of(std::span(fills), kPageCandidates), with_probability);
  };
  page_.data["texts"].push_back(Json::object(
      {{"parts", around_masks(text, mask_)}, {"masks", json_list(masks, candidates)}}));
}

ClassPage::ClassPage(const std::string& model, const std::vector<std::string>& labels,
                     ClassScale scale, int64_t top, const std::string& unit)
    : TextPage("Classes of " + unit + "s", "classes.js", model, kPageTexts),
      top_(std::min(top, kPageCandidates)) {
  page_.data["unit"] = unit;
  page_.data["labels"] = labels;
  page_.data["scale"] = scale == ClassScale::softmax   ? "softmax"
                        : scale == ClassScale::sigmoid ? "sigmoid"
                                                       : "none";
}

void ClassPage::add(const std::string& text, const std::vector<double>& p, const Image* image) {
  if (!take()) return;
  std::vector<int64_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](int64_t i) { return p[i]; });
  order.resize(std::min(order.size(), static_cast<size_t>(top_)));
  const auto with_p = [&](int64_t i) { return Json::Array{i, p[i]}; };
  Json one = Json::object(
      {{"text", shortened(text, kPageCharacters)}, {"classes", json_list(order, with_p)}});
  if (image != nullptr && texts() < kPageImages) {
    one["png"] = base64_text(encode_png(page_image(*image)));
  }
  page_.data["texts"].push_back(std::move(one));
}

WordClassPage::WordClassPage(const std::string& model, const std::vector<std::string>& labels)
    : TextPage("Classes of words", "classes.js", model, kPageTexts) {
  page_.data["labels"] = labels;
}

void WordClassPage::add(const std::vector<std::string>& words,
                        const std::vector<WordClass>& classes) {
  if (!take()) return;
  Json one = Json::object({{"count", words.size()}, {"words", Json::array()}});
  for (size_t w = 0; w < std::min<size_t>(words.size(), kPageWords); ++w) {
    one["words"].push_back(
        Json::Array{shortened(words[w], 100), classes[w].label, classes[w].probability});
  }
  page_.data["texts"].push_back(std::move(one));
}

SimilarityPage::SimilarityPage(const std::string& model)
    : TextPage("Cosine similarity of texts", "embed.js", model, kPageVectors) {}

void SimilarityPage::add(const std::string& text, const std::vector<float>& vector) {
  if (!take()) return;
  page_.data["texts"].push_back(shortened(text, kPageCharacters));
  page_.data["width"] = vector.size();
  vectors_.push_back(vector);
}

Page SimilarityPage::finish() const {
  Page page = page_;
  std::vector<float> shares = cosines(vectors_);
  for (float& x : shares) x = (x + 1) / 2;
  page.data["cosines"] = pack_weights(shares);
  return page;
}

std::vector<float> cosines(std::span<const std::vector<float>> vectors) {
  std::vector<double> lengths;
  for (const auto& x : vectors) lengths.push_back(std::sqrt(dot(x, x)));
  std::vector<float> result;
  for (size_t i = 0; i < vectors.size(); ++i) {
    for (size_t j = 0; j < vectors.size(); ++j) {
      const double length = lengths[i] * lengths[j];
      result.push_back(length > 0 ? static_cast<float>(dot(vectors[i], vectors[j]) / length) : 0);
    }
  }
  return result;
}

// --- heddle eval ---

PartOfText part_of_text(const Tokenizer& tokenizer, std::span<const int32_t> ids, size_t begin,
                        size_t end) {
  const size_t first = begin - std::min(begin, kAround + kContext);
  const size_t last = std::min(ids.size(), end + kAround + kContext);
  const auto text_to = [&](size_t at, bool is_clean) {
    DecodeOptions options;
    if (!is_clean) options.clean_up = false;
    return tokenizer.decode(ids.subspan(first, at - first), options);
  };
  // Cleaning up takes spaces away around what follows: only the text as it was decoded says where
  // an id begins.
  const std::string raw = text_to(last, false), clean = text_to(last, true);
  const auto edge = [&](size_t at) { return common_begin(raw, text_to(at, false)); };
  const size_t near = begin - std::min(begin, kAround), far = std::min(ids.size(), end + kAround);
  const size_t from = near == 0 ? 0 : word_begin(raw, edge(near), first == 0 ? 0 : edge(near));
  const size_t to = far == ids.size() ? raw.size() : std::min(raw.find(' ', edge(far)), raw.size());
  const size_t part = std::max(from, edge(begin)), after = std::max(part, edge(end));
  const std::vector<size_t> edges = without_spaces(raw, clean, {from, part, after, to});
  const auto between = [&](size_t i) { return clean.substr(edges[i], edges[i + 1] - edges[i]); };
  return {.before = between(0), .part = between(1), .after = between(2)};
}

Page prediction_page(const Evaluation& evaluation, const Tokenizer& tokenizer,
                     std::span<const int32_t> ids, std::span<const PredictedToken> tokens,
                     int64_t vocab) {
  Page page = page_of("A text, token by token", "prediction.js", evaluation);
  const size_t count = std::min<size_t>(tokens.size(), kPagePredictions);
  page.data["count"] = ids.size() - 1;
  page.data["vocab"] = vocab;
  page.data["texts"] = Json::array();
  for (size_t i = 0; i <= count; ++i) {
    page.data["texts"].push_back(tokenizer.is_special(ids[i])
                                     ? tokenizer.token(ids[i])
                                     : added_text(tokenizer, ids.first(i), ids.subspan(i, 1)));
  }
  // Columns of one number per token: [loss, rank, likeliest, its probability].
  Json loss = Json::array(), rank = Json::array(), best = Json::array(), best_p = Json::array();
  std::map<int32_t, int64_t> numbers;  // of the likeliest tokens
  Json distinct = Json::array();
  for (const PredictedToken& token : tokens.first(count)) {
    loss.push_back(std::isfinite(token.log_p)
                       ? Json(rounded(-static_cast<double>(token.log_p), kDigits))
                       : Json());
    rank.push_back(token.rank);
    const auto [at, is_new] = numbers.emplace(token.likeliest, std::ssize(numbers));
    if (is_new) distinct.push_back(alone(tokenizer, token.likeliest));
    best.push_back(at->second);
    best_p.push_back(rounded(std::exp(static_cast<double>(token.likeliest_log_p)), kDigits));
  }
  page.data["loss"] = std::move(loss);
  page.data["rank"] = std::move(rank);
  page.data["likeliest"] = std::move(best);
  page.data["likeliest_p"] = std::move(best_p);
  page.data["tokens"] = std::move(distinct);
  return page;
}

Page masked_page(const Evaluation& evaluation, const Tokenizer& tokenizer,
                 std::span<const AnsweredQuestion> questions, int64_t count) {
  Page page = page_of("Masked tokens", "masked.js", evaluation);
  page.data["count"] = count;
  const auto as_asked = [&](const AnsweredQuestion& q) {
    return Json::object({{"text", as_json(q.text)},
                         {"is_right", q.truth == q.answer},
                         {"answer", alone(tokenizer, q.answer)},
                         {"truth_p", rounded(q.truth_p, kDigits)},
                         {"answer_p", rounded(q.answer_p, kDigits)}});
  };
  page.data["questions"] = json_list(first_of(questions, kPageAnswers), as_asked);
  return page;
}

Page confusion_page(const Evaluation& evaluation, const std::vector<std::string>& labels,
                    const std::string& unit, std::span<const int32_t> truths,
                    std::span<const int32_t> answers, std::span<const AnsweredQuestion> wrong) {
  Page page = page_of("Confusion matrix", "confusion.js", evaluation);
  page.data["labels"] = labels;
  page.data["unit"] = unit;
  std::map<std::pair<int32_t, int32_t>, int64_t> counts;
  for (size_t i = 0; i < truths.size(); ++i) ++counts[{truths[i], answers[i]}];
  page.data["cells"] = json_list(counts, [](const auto& cell) {
    return Json::Array{cell.first.first, cell.first.second, cell.second};
  });
  const auto as_answered = [](const AnsweredQuestion& q) {
    return Json::object({{"text", as_json(q.text)},
                         {"truth", q.truth},
                         {"answer", q.answer},
                         {"truth_p", rounded(q.truth_p, kDigits)},
                         {"answer_p", rounded(q.answer_p, kDigits)}});
  };
  page.data["wrong"] = json_list(first_of(wrong, kPageAnswers), as_answered);
  return page;
}

Page translations_page(const Evaluation& evaluation, std::span<const JudgedTranslation> lines,
                       int64_t count) {
  Page page = page_of("Translations and references", "translations.js", evaluation);
  page.data["count"] = count;
  const auto as_judged = [](const JudgedTranslation& line) {
    return Json::object({{"source", shortened(line.source, kPageCharacters)},
                         {"reference", shortened(line.reference, kPageCharacters)},
                         {"translation", shortened(line.translation, kPageCharacters)},
                         {"chrf", rounded(line.chrf, kDigits)}});
  };
  page.data["lines"] = json_list(first_of(lines, kPageAnswers), as_judged);
  return page;
}

}  // namespace heddle::inspect
