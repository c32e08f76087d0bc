// Pages of the commands that take texts.
#include "heddle/inspect/pages/text_pages.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/base/utf8.h"

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
  Json one = Json::object({{"parts", around_masks(text, mask_)}, {"masks", Json::array()}});
  for (const auto& fills : masks) {
    Json tokens = Json::array();
    for (size_t i = 0; i < std::min<size_t>(fills.size(), kPageCandidates); ++i) {
      const std::string token =
          fills[i].token.empty() ? fmt::format("id {}", fills[i].id) : fills[i].token;
      tokens.push_back(Json::Array{token, fills[i].probability});
    }
    one["masks"].push_back(std::move(tokens));
  }
  page_.data["texts"].push_back(std::move(one));
}

ClassPage::ClassPage(const std::string& model, const std::vector<std::string>& labels,
                     ClassScale scale, int64_t top)
    : TextPage("Classes of texts", "classes.js", model, kPageTexts),
      top_(std::min(top, kPageCandidates)) {
  page_.data["labels"] = labels;
  page_.data["scale"] = scale == ClassScale::softmax   ? "softmax"
                        : scale == ClassScale::sigmoid ? "sigmoid"
                                                       : "none";
}

void ClassPage::add(const std::string& text, const std::vector<double>& p) {
  if (!take()) return;
  std::vector<int64_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](int64_t i) { return p[i]; });
  order.resize(std::min(order.size(), static_cast<size_t>(top_)));
  Json one = Json::object({{"text", shortened(text, kPageCharacters)}, {"classes", Json::array()}});
  for (const int64_t i : order) one["classes"].push_back(Json::Array{i, p[i]});
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

}  // namespace heddle::inspect
