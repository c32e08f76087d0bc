// Pages of the commands that take texts: tokens for masks, classes, cosine similarity of vectors.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/infer/classify.h"
#include "heddle/infer/fill.h"
#include "heddle/inspect/pages/page.h"

namespace heddle::inspect {

/// What a page holds of many texts and long ones; it says how many were left out.
inline constexpr int64_t kPageTexts = 1000, kPageCandidates = 50, kPageVectors = 200,
                         kPageWords = 500;
inline constexpr int64_t kPageCharacters = 1000;  ///< of a text

/// A page to which texts are added as they are worked on; it keeps the first of them.
class TextPage {
 public:
  const Page& page() const { return page_; }
  int64_t texts() const { return page_.data.at("texts").as_array().size(); }  ///< on the page

 protected:
  TextPage(const std::string& title, const std::string& script, const std::string& model,
           int64_t most);
  /// Counts a text. returns: whether the page is to hold it
  bool take();

  Page page_;

 private:
  int64_t most_, count_ = 0;
};

/// The tokens around each mask and the likely ones for it.
class FillPage : public TextPage {
 public:
  /// mask: as the tokenizer spells it; "[MASK]" is one too.
  FillPage(const std::string& model, std::string mask);
  void add(const std::string& text, const std::vector<std::vector<Fill>>& masks);

 private:
  std::string mask_;
};

/// The likeliest classes of each text.
class ClassPage : public TextPage {
 public:
  /// top: classes of each text that are shown.
  ClassPage(const std::string& model, const std::vector<std::string>& labels, ClassScale scale,
            int64_t top);
  /// p: of the labels, in their order
  void add(const std::string& text, const std::vector<double>& p);

 private:
  int64_t top_;
};

/// The words of each text and the class of each.
class WordClassPage : public TextPage {
 public:
  WordClassPage(const std::string& model, const std::vector<std::string>& labels);
  /// classes: of the words; the first kPageWords are held
  void add(const std::vector<std::string>& words, const std::vector<WordClass>& classes);
};

/// How alike texts are: the cosine of each pair of their vectors.
class SimilarityPage : public TextPage {
 public:
  explicit SimilarityPage(const std::string& model);
  void add(const std::string& text, const std::vector<float>& vector);
  /// With the cosines, packed as (cosine + 1) / 2 by pack_weights(), row by row.
  Page finish() const;

 private:
  std::vector<std::vector<float>> vectors_;
};

/// x·y / (|x| |y|) of all pairs, row by row; 0 where a vector is 0. All are of one width.
std::vector<float> cosines(std::span<const std::vector<float>> vectors);

}  // namespace heddle::inspect
