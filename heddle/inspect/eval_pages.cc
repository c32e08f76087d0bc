// Pages of heddle eval.
#include "heddle/inspect/eval_pages.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "heddle/infer/text_stream.h"
#include "heddle/inspect/text_pages.h"

namespace heddle::inspect {
namespace {

constexpr size_t kAround = 10;   // ids before and behind a part of a text
constexpr size_t kContext = 16;  // ids that say how the next one is written

// Digits that a page needs.
double rounded(double x) { return std::round(x * 1e5) / 1e5; }

// What ids add to the text of those before them; an unfinished character is of the id that ends it.
std::string added_text(const Tokenizer& tokenizer, std::span<const int32_t> before,
                       std::span<const int32_t> ids) {
  TextStream stream(tokenizer, before.last(std::min(before.size(), kContext)));
  stream.read(ids);
  return stream.take();
}

std::string alone(const Tokenizer& tokenizer, int32_t id) {
  const bool is_known = id < tokenizer.vocab_size();  // a padded vocabulary has more
  const std::string text =
      is_known ? tokenizer.decode(std::span(&id, 1), {.skip_special = false}) : "";
  return text.empty() ? fmt::format("id {}", id) : text;
}

Page page_of(const std::string& title, const std::string& script, const Evaluation& evaluation) {
  Page page{.title = title, .data = {}, .scripts = {"texts.js", script}};
  page.data["model"] = evaluation.model;
  page.data["file"] = evaluation.file;
  page.data["summary"] = evaluation.summary;
  return page;
}

Json as_json(const PartOfText& text) {
  return Json::Array{text.before, shortened(text.part), text.after};
}

}  // namespace

PartOfText part_of_text(const Tokenizer& tokenizer, std::span<const int32_t> ids, size_t begin,
                        size_t end) {
  const size_t from = begin - std::min(begin, kAround), to = std::min(ids.size(), end + kAround);
  return {.before = tokenizer.decode(ids.subspan(from, begin - from)),
          .part = added_text(tokenizer, ids.first(begin), ids.subspan(begin, end - begin)),
          .after = added_text(tokenizer, ids.first(end), ids.subspan(end, to - end))};
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
    loss.push_back(std::isfinite(token.log_p) ? Json(rounded(-static_cast<double>(token.log_p)))
                                              : Json());
    rank.push_back(token.rank);
    const auto [at, is_new] = numbers.emplace(token.likeliest, std::ssize(numbers));
    if (is_new) distinct.push_back(alone(tokenizer, token.likeliest));
    best.push_back(at->second);
    best_p.push_back(rounded(std::exp(static_cast<double>(token.likeliest_log_p))));
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
  page.data["questions"] = Json::array();
  for (const AnsweredQuestion& q :
       questions.first(std::min<size_t>(questions.size(), kPageAnswers))) {
    Json one = Json::object();
    one["text"] = as_json(q.text);
    one["is_right"] = q.truth == q.answer;
    one["answer"] = alone(tokenizer, q.answer);
    one["truth_p"] = rounded(q.truth_p);
    one["answer_p"] = rounded(q.answer_p);
    page.data["questions"].push_back(std::move(one));
  }
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
  page.data["cells"] = Json::array();
  for (const auto& [cell, count] : counts) {
    page.data["cells"].push_back(Json::Array{cell.first, cell.second, count});
  }
  page.data["wrong"] = Json::array();
  for (const AnsweredQuestion& q : wrong.first(std::min<size_t>(wrong.size(), kPageAnswers))) {
    Json one = Json::object();
    one["text"] = as_json(q.text);
    one["truth"] = q.truth;
    one["answer"] = q.answer;
    one["truth_p"] = rounded(q.truth_p);
    one["answer_p"] = rounded(q.answer_p);
    page.data["wrong"].push_back(std::move(one));
  }
  return page;
}

Page translations_page(const Evaluation& evaluation, std::span<const JudgedTranslation> lines,
                       int64_t count) {
  Page page = page_of("Translations and references", "translations.js", evaluation);
  page.data["count"] = count;
  page.data["lines"] = Json::array();
  for (const JudgedTranslation& line : lines.first(std::min<size_t>(lines.size(), kPageAnswers))) {
    Json one = Json::object();
    one["source"] = shortened(line.source);
    one["reference"] = shortened(line.reference);
    one["translation"] = shortened(line.translation);
    one["chrf"] = rounded(line.chrf);
    page.data["lines"].push_back(std::move(one));
  }
  return page;
}

}  // namespace heddle::inspect
