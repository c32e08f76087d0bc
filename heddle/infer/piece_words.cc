// Pieces into words: a space or a change to or from punctuation begins a new one.
#include "heddle/infer/piece_words.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace heddle {
namespace {

// Of ASCII, without the signs that stand inside words.
bool is_punctuation(std::string_view piece) {
  return std::all_of(piece.begin(), piece.end(), [](char c) {
    return std::ispunct(static_cast<unsigned char>(c)) != 0 && c != '\'' && c != '-';
  });
}

}  // namespace

std::string token_text(const Tokenizer& tokenizer, int32_t id) {
  if (tokenizer.kind() == "byte-level BPE" && !tokenizer.is_special(id)) {
    return tokenizer.decode({&id, 1});
  }
  std::string piece = tokenizer.piece(id);
  for (size_t at; (at = piece.find(kSpaceSign)) != std::string::npos;) {
    piece.replace(at, kSpaceSign.size(), " ");
  }
  return piece;
}

std::string piece_text(const std::string& piece) {
  if (piece.size() == 6 && piece.starts_with("<0x") && piece.back() == '>') {
    return {static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16))};
  }
  return piece.starts_with(kSpaceSign) ? piece.substr(kSpaceSign.size()) : piece;
}

std::vector<PieceWord> piece_words(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<PieceWord> words;
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string piece = tokenizer.piece(ids[i]), text = piece_text(piece);
    const bool is_mark = is_punctuation(text);
    const bool is_other =
        !words.empty() && words.back().has_text && is_mark != words.back().is_punctuation;
    if (words.empty() || piece.starts_with(kSpaceSign) || is_other) words.push_back({i, i});
    PieceWord& word = words.back();
    word.end = i + 1;
    if (text.empty()) continue;
    word.has_text = true;
    word.is_punctuation = is_mark;
  }
  std::erase_if(words, [](const PieceWord& w) { return !w.has_text; });
  return words;
}

std::string word_text(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                      const PieceWord& word) {
  const std::string text = tokenizer.decode(ids.subspan(word.begin, word.end - word.begin));
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

}  // namespace heddle
