// The words that a model saw in training, so that others can be told apart.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// The words of a text, for telling known ones from unknown ones: what stands between white space
/// and hyphens, lower-cased, without the punctuation around it; those with a digit are left out.
/// `text` is UTF-8.
std::vector<std::string> words_of(std::string_view text);

/// A set of such words.
class KnownWords {
 public:
  /// More of them say little: a corpus of so many words holds names, misspellings and the like.
  static constexpr size_t kMost = 65'536;
  /// Of the file in a model's folder.
  static constexpr const char* kFileName = "source_words.txt";

  /// Those of `first` and of the texts that `next` gives until it returns false; nothing if they
  /// are more than kMost, after which no more texts are asked for.
  static std::optional<KnownWords> of_texts(const std::function<bool(std::string& text)>& next,
                                            KnownWords first = {});
  /// Of the source_words.txt of a model's folder, a word a line; nothing if there is none. Errors:
  /// data, naming the file, if it is not UTF-8 or has more than kMost words.
  static std::optional<KnownWords> find(const std::string& folder);
  /// Writes that file. Errors: system.
  void save(const std::string& folder) const;

  size_t size() const { return words_.size(); }
  /// The words of a text that are not in the set, each as often as it comes.
  std::vector<std::string> unknown_words(std::string_view text) const;

 private:
  std::set<std::string, std::less<>> words_;
};

}  // namespace heddle
