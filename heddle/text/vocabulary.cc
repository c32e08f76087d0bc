// Pieces of text and their ids.
#include "heddle/text/vocabulary.h"

#include "heddle/base/error.h"
#include "heddle/base/log.h"

namespace heddle {

namespace {

/// Ids may leave as many gaps as there are entries, and this many more.
constexpr int64_t kFreeGaps = 100'000;

}  // namespace

void check_token_id(int64_t id, size_t entries, std::string_view piece, const std::string& source) {
  const int64_t most = 2 * static_cast<int64_t>(entries) + kFreeGaps;
  check(id >= 0 && id < most, ErrorKind::data,
        "{}: token '{}' has the id {}; with {} entries ids are 0 to {}", source, piece, id, entries,
        most - 1);
}

Vocabulary Vocabulary::of_json(const Json& pieces, const std::string& source) {
  Vocabulary result;
  check(pieces.is_object() && pieces.size() > 0, ErrorKind::data,
        "{}: the vocabulary is {}; an object of pieces and ids is needed", source,
        pieces.describe());
  result.ids_.reserve(pieces.size());
  for (const auto& [piece, id] : pieces.as_object()) {
    const int64_t value = id.as_int(source + ": id of token '" + piece + "'");
    check_token_id(value, pieces.size(), piece, source);
    result.add(piece, value, source);
  }
  return result;
}

Vocabulary Vocabulary::of_list(std::vector<std::string> pieces, const std::string& source) {
  check(!pieces.empty(), ErrorKind::data, "{}: the vocabulary is empty", source);
  Vocabulary result;
  result.ids_.reserve(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    result.add(std::move(pieces[i]), static_cast<int64_t>(i), source);
  }
  return result;
}

Vocabulary Vocabulary::of_lines(std::vector<std::string> pieces, const std::string& source) {
  std::unordered_map<std::string_view, size_t> last;
  size_t repeated = 0, first = 0;  // number, and the line of the first
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto [at, is_new] = last.insert_or_assign(pieces[i], i);
    if (!is_new && repeated++ == 0) first = i;
  }
  if (repeated > 0) {
    log_warning("{}: {} pieces come twice ('{}' in line {} first); the later lines count", source,
                repeated, pieces[first], first + 1);
  }
  check(!pieces.empty(), ErrorKind::data, "{}: the vocabulary is empty", source);
  Vocabulary result;
  result.ids_.reserve(pieces.size());
  result.pieces_.resize(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (last.at(pieces[i]) == i) result.add(pieces[i], static_cast<int64_t>(i), source);
  }
  return result;
}

void Vocabulary::add(std::string piece, int64_t id, const std::string& source) {
  check(piece.size() <= kMaxPieceBytes, ErrorKind::data,
        "{}: the token with the id {} has {} bytes; at most {} are taken", source, id, piece.size(),
        kMaxPieceBytes);
  if (static_cast<size_t>(id) >= pieces_.size()) pieces_.resize(static_cast<size_t>(id) + 1);
  check(pieces_[id] == nullptr, ErrorKind::data, "{}: tokens '{}' and '{}' both have the id {}",
        source, pieces_[id] == nullptr ? "" : *pieces_[id], piece, id);
  const auto [at, is_new] = ids_.emplace(std::move(piece), static_cast<int32_t>(id));
  check(is_new, ErrorKind::data, "{}: token '{}' comes twice, with the ids {} and {}", source,
        at->first, at->second, id);
  pieces_[id] = &at->first;
}

std::optional<int32_t> Vocabulary::find_byte(unsigned char byte) const {
  return find(fmt::format("<0x{:02X}>", byte));
}

}  // namespace heddle
