// The decoders of tokenizer.json.
#include "heddle/text/pipeline/pipeline.h"

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/pattern.h"
#include "heddle/text/strings/strings.h"

namespace heddle {

namespace {

using Strings = std::vector<std::string>;

/// As `tokenizers` cleans up each token, before they are joined.
std::string clean_up_token(const std::string& token) {
  return replace_all(clean_up_spaces(token), " do not", " don't");
}

void decode_byte_fallback(Strings& tokens) {
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
  for (std::string& token : tokens) {
    if (const auto byte = byte_of_token(token)) {
      bytes += *byte;
    } else {
      flush();
      result.push_back(std::move(token));
    }
  }
  flush();
  tokens = std::move(result);
}

/// Takes at most `start` and `stop` times `content` away from the ends of each token.
TokenDecoder read_strip(const Json& json, const std::string& source) {
  const std::string content = string_or(json, "content", " ", source);
  const int64_t start = int_or(json, "start", 0, source), stop = int_or(json, "stop", 0, source);
  check(!content.empty(), ErrorKind::data, "{}: its content is empty", source);
  return [=](Strings& tokens) {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (int64_t i = 0; i < start && rest.starts_with(content); ++i) {
        rest.remove_prefix(content.size());
      }
      for (int64_t i = 0; i < stop && rest.ends_with(content); ++i) {
        rest.remove_suffix(content.size());
      }
      token = std::string(rest);
    }
  };
}

size_t bytes_of(const Strings& tokens) {
  size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  return bytes;
}

TokenDecoder read_sequence(const Json& json, const std::string& source) {
  std::vector<TokenDecoder> parts;
  for (const auto& [part, place] : flat_sequence(json, "decoders", "decoder", source)) {
    parts.push_back(read_token_decoder(*part, place));
  }
  return [parts](Strings& tokens) {
    const size_t most = most_bytes(bytes_of(tokens));
    for (const auto& part : parts) {
      part(tokens);
      check_growth(bytes_of(tokens), most);
    }
  };
}

TokenDecoder read_replace(const Json& json, const std::string& source) {
  const Pattern pattern = Pattern::read(json.at("pattern", source), source);
  return [pattern, content = json.get_string("content", source)](Strings& tokens) {
    for (std::string& token : tokens) {
      token = pattern.replace(token, content, most_bytes(token.size()));
    }
  };
}

TokenDecoder read_bpe(const Json& json, const std::string& source) {
  const std::string suffix = string_or(json, "suffix", "</w>", source);
  check(!suffix.empty(), ErrorKind::data, "{}: its suffix is empty", source);
  return [suffix](Strings& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
    }
  };
}

}  // namespace

void decode_byte_level(Strings& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += bytes_of_letters(token).value_or(token);
  tokens = {replace_invalid_utf8(bytes)};
}

TokenDecoder make_wordpiece_decoder(std::string prefix, bool cleanup) {
  return [prefix = std::move(prefix), cleanup](Strings& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0 && token.starts_with(prefix)) {
        token.erase(0, prefix.size());
      } else if (i > 0) {
        token.insert(0, " ");
      }
      if (cleanup) token = clean_up_token(token);
    }
  };
}

TokenDecoder read_token_decoder(const Json& json, const std::string& source) {
  if (json.is_null()) return nullptr;
  const std::string& type = component_type(json, source + ": decoder");
  const std::string where = source + ": " + type;
  if (type == "Sequence") return read_sequence(json, where);
  if (type == "ByteLevel") return decode_byte_level;
  if (type == "WordPiece") {
    return make_wordpiece_decoder(string_or(json, "prefix", "##", where),
                                  bool_or(json, "cleanup", true, where));
  }
  if (type == "Metaspace") {
    return [options = read_metaspace(json, where)](Strings& tokens) {
      for (size_t i = 0; i < tokens.size(); ++i) {
        const bool is_dropped = i == 0 && options.scheme != PrependScheme::never;
        tokens[i] = replace_all(tokens[i], options.sign, is_dropped ? "" : " ");
      }
    };
  }
  if (type == "BPEDecoder") return read_bpe(json, where);
  if (type == "ByteFallback") return decode_byte_fallback;
  if (type == "Fuse")
    return [](Strings& tokens) { tokens = {fmt::format("{}", fmt::join(tokens, ""))}; };
  if (type == "Strip") return read_strip(json, where);
  if (type == "Replace") return read_replace(json, where);
  fail_component("decoder", type,
                 "ByteLevel, WordPiece, Metaspace, BPEDecoder, ByteFallback, Fuse, Strip, Replace "
                 "and Sequence",
                 source);
}

}  // namespace heddle
