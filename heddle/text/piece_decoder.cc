// The decoders of tokenizer.json.
#include "heddle/text/piece_decoder.h"

#include <charconv>
#include <functional>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/text/byte_letters.h"
#include "heddle/text/pattern.h"
#include "heddle/text/pre_tokenizer.h"
#include "heddle/text/strings.h"
#include "heddle/text/utf8.h"

namespace heddle {

namespace {

using Strings = std::vector<std::string>;

/// A decoder that is a function.
class Function final : public PieceDecoder {
 public:
  explicit Function(std::function<void(Strings&)> f) : f_(std::move(f)) {}
  void operator()(Strings& pieces) const override { f_(pieces); }

 private:
  std::function<void(Strings&)> f_;
};

std::unique_ptr<PieceDecoder> of(std::function<void(Strings&)> f) {
  return std::make_unique<Function>(std::move(f));
}

std::string joined(const Strings& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  return text;
}

void decode_byte_level(Strings& pieces) {
  std::string bytes;
  for (const std::string& piece : pieces) bytes += bytes_of_letters(piece).value_or(piece);
  pieces = {replace_invalid_utf8(bytes)};
}

/// As `tokenizers` cleans up each piece, before they are joined.
std::string clean_up_piece(const std::string& piece) {
  return replace_all(clean_up_spaces(piece), " do not", " don't");
}

void decode_word_piece(const std::string& prefix, bool cleanup, Strings& pieces) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::string& piece = pieces[i];
    if (i > 0 && piece.starts_with(prefix)) {
      piece.erase(0, prefix.size());
    } else if (i > 0) {
      piece.insert(0, " ");
    }
    if (cleanup) piece = clean_up_piece(piece);
  }
}

void decode_metaspace(const MetaspaceOptions& options, Strings& pieces) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool is_dropped = i == 0 && options.scheme != PrependScheme::never;
    pieces[i] = replace_all(pieces[i], options.sign, is_dropped ? "" : " ");
  }
}

/// The byte of a piece like "<0x0A>".
std::optional<char> byte_of(const std::string& piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
  if (error != std::errc() || end != piece.data() + 5) return std::nullopt;
  return static_cast<char>(value);
}

void decode_byte_fallback(Strings& pieces) {
  Strings result;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (first_invalid_utf8(bytes)) {
      result.insert(result.end(), bytes.size(), "\uFFFD");
    } else {
      result.push_back(bytes);
    }
    bytes.clear();
  };
  for (std::string& piece : pieces) {
    if (const auto byte = byte_of(piece)) {
      bytes += *byte;
    } else {
      flush();
      result.push_back(std::move(piece));
    }
  }
  flush();
  pieces = std::move(result);
}

/// Takes at most `start` and `stop` times `content` away from the ends of each piece.
std::unique_ptr<PieceDecoder> read_strip(const Json& json, const std::string& source) {
  const std::string content = string_or(json, "content", " ", source);
  const int64_t start = int_or(json, "start", 0, source), stop = int_or(json, "stop", 0, source);
  check(!content.empty(), ErrorKind::data, "{}: its content is empty", source);
  return of([=](Strings& pieces) {
    for (std::string& piece : pieces) {
      std::string_view rest = piece;
      for (int64_t i = 0; i < start && rest.starts_with(content); ++i) {
        rest.remove_prefix(content.size());
      }
      for (int64_t i = 0; i < stop && rest.ends_with(content); ++i) {
        rest.remove_suffix(content.size());
      }
      piece = std::string(rest);
    }
  });
}

using Parts = std::vector<std::shared_ptr<const PieceDecoder>>;

/// Those of a Sequence inside another stand among its own, under the same bound.
void read_parts(const Json& json, const std::string& source, Parts& parts) {
  for (const Json& part : sequence_of(json, "decoders", source)) {
    if (!part.is_null() && component_type(part, source + ": decoder") == "Sequence") {
      read_parts(part, source + ": Sequence", parts);
    } else if (auto one = read_piece_decoder(part, source)) {
      parts.push_back(std::move(one));
    }
  }
}

size_t bytes_of(const Strings& pieces) {
  size_t bytes = 0;
  for (const std::string& piece : pieces) bytes += piece.size();
  return bytes;
}

std::unique_ptr<PieceDecoder> read_sequence(const Json& json, const std::string& source) {
  Parts parts;
  read_parts(json, source, parts);
  return of([parts](Strings& pieces) {
    const size_t most = most_bytes(bytes_of(pieces));
    for (const auto& part : parts) {
      (*part)(pieces);
      check_growth(bytes_of(pieces), most);
    }
  });
}

std::unique_ptr<PieceDecoder> read_replace(const Json& json, const std::string& source) {
  const Pattern pattern = Pattern::read(json.at("pattern", source), source);
  return of([pattern, content = json.get_string("content", source)](Strings& pieces) {
    for (std::string& piece : pieces) {
      piece = pattern.replace(piece, content, most_bytes(piece.size()));
    }
  });
}

std::unique_ptr<PieceDecoder> read_bpe(const Json& json, const std::string& source) {
  const std::string suffix = string_or(json, "suffix", "</w>", source);
  check(!suffix.empty(), ErrorKind::data, "{}: its suffix is empty", source);
  return of([suffix](Strings& pieces) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      pieces[i] = replace_all(pieces[i], suffix, i + 1 == pieces.size() ? "" : " ");
    }
  });
}

}  // namespace

std::unique_ptr<PieceDecoder> make_byte_level_decoder() { return of(decode_byte_level); }

std::unique_ptr<PieceDecoder> make_word_piece_decoder(std::string prefix, bool cleanup) {
  return of([prefix = std::move(prefix), cleanup](Strings& pieces) {
    decode_word_piece(prefix, cleanup, pieces);
  });
}

std::unique_ptr<PieceDecoder> read_piece_decoder(const Json& json, const std::string& source) {
  if (json.is_null()) return nullptr;
  const std::string& type = component_type(json, source + ": decoder");
  const std::string where = source + ": " + type;
  if (type == "Sequence") return read_sequence(json, where);
  if (type == "ByteLevel") return make_byte_level_decoder();
  if (type == "WordPiece") {
    return make_word_piece_decoder(string_or(json, "prefix", "##", where),
                                   bool_or(json, "cleanup", true, where));
  }
  if (type == "Metaspace") {
    return of([options = read_metaspace(json, where)](Strings& pieces) {
      decode_metaspace(options, pieces);
    });
  }
  if (type == "BPEDecoder") return read_bpe(json, where);
  if (type == "ByteFallback") return of(decode_byte_fallback);
  if (type == "Fuse") return of([](Strings& pieces) { pieces = {joined(pieces)}; });
  if (type == "Strip") return read_strip(json, where);
  if (type == "Replace") return read_replace(json, where);
  fail_component("decoder", type,
                 "ByteLevel, WordPiece, Metaspace, BPEDecoder, ByteFallback, Fuse, Strip, Replace "
                 "and Sequence",
                 source);
}

}  // namespace heddle
