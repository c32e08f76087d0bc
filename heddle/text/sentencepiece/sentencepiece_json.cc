// SentencePiece models in the form that Hugging Face's transformers reads without a family.
#include "heddle/text/sentencepiece/sentencepiece_json.h"

#include <sentencepiece_processor.h>

#include <algorithm>

#include "heddle/text/strings/base64.h"
#include "heddle/text/strings/pattern.h"
#include "heddle/text/strings/utf8.h"

namespace heddle {
namespace {

using Processor = sentencepiece::SentencePieceProcessor;

constexpr const char* kModelKey = "sentencepiece_model";

Json component(const char* type) {
  Json json = Json::object();
  json["type"] = type;
  return json;
}

Json replace(const char* kind, std::string_view from, std::string_view to) {
  Json json = component("Replace");
  json["pattern"][kind] = from;
  json["content"] = to;
  return json;
}

Json sequence(const char* key, Json parts) {
  Json json = component("Sequence");
  json[key] = std::move(parts);
  return json;
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool is_text(const Processor& p, int id) {
  return !p.IsControl(id) && !p.IsUnknown(id) && !p.IsByte(id) && !p.IsUnused(id);
}

Json normalizer(const ModelFacts& facts) {
  Json steps = Json::array();
  if (!facts.character_map.empty()) {
    Json map = component("Precompiled");
    map["precompiled_charsmap"] = base64_text(facts.character_map);
    steps.push_back(std::move(map));
  }
  if (facts.removes_spaces) {
    steps.push_back(replace("Regex", R"(\A +| +\z)", ""));
    steps.push_back(replace("Regex", " {2,}", " "));
  }
  if (facts.adds_space) {
    Json space = component("Prepend");
    space["prepend"] = kSpaceSign;
    steps.push_back(std::move(space));
  }
  steps.push_back(replace("String", " ", kSpaceSign));
  return sequence("normalizers", std::move(steps));
}

Json split(const char* kind, std::string_view pattern, const char* behavior) {
  Json json = component("Split");
  json["pattern"][kind] = pattern;
  json["behavior"] = behavior;
  json["invert"] = false;
  return json;
}

// The "<" of what would be a special token or a byte: "<(?=s>|\/s>|0x[0-9A-F]{2}>)".
std::string names_in_texts(const Processor& p) {
  std::string names = "0x[0-9A-F]{2}>";
  for (int id = 0; id < p.GetPieceSize(); ++id) {
    const std::string& name = p.IdToPiece(id);
    if (is_text(p, id) || p.IsByte(id) || name[0] != '<') continue;
    names += '|';
    for (const char c : name.substr(1)) {
      if (static_cast<unsigned char>(c) < 0x80 && !is_word(c)) names += '\\';
      names += c;
    }
  }
  return "<(?=" + names + ")";
}

// Words, each with the space before it: no token reaches over their ends. `tokenizers` finds the
// names of special tokens and of bytes in the texts of unigram models, so they are cut behind their
// first sign; where tokens have it inside, it is a known one, and unigram()'s scores are enough.
Json pre_tokenizer(const Processor& p, const ModelFacts& facts) {
  Json words = split("String", kSpaceSign, "MergedWithNext");
  bool is_inside = facts.type == ModelFacts::bpe;
  for (int id = 0; id < p.GetPieceSize() && !is_inside; ++id) {
    const std::string& token = p.IdToPiece(id);
    is_inside = is_text(p, id) && token.find('<') < token.size() - 1;
  }
  if (is_inside) return words;
  Json parts = Json::array();
  parts.push_back(std::move(words));
  parts.push_back(split("Regex", names_in_texts(p), "MergedWithPrevious"));
  return sequence("pretokenizers", std::move(parts));
}

Json decoder(const Processor& p, const ModelFacts& facts) {
  Json spaces = component("Metaspace");
  spaces["replacement"] = kSpaceSign;
  spaces["prepend_scheme"] = facts.adds_space || facts.removes_spaces ? "always" : "never";
  spaces["split"] = false;
  Json steps = Json::array();
  steps.push_back(std::move(spaces));
  steps.push_back(replace("String", p.IdToPiece(p.unk_id()), facts.unk_surface));
  if (facts.has_byte_fallback) steps.push_back(component("ByteFallback"));
  steps.push_back(component("Fuse"));
  return sequence("decoders", std::move(steps));
}

// Whatever two tokens make a third, in the order of the thirds' scores.
Json merges(const Processor& p) {
  struct Merge {
    float score;
    std::string left, right;
  };
  std::vector<Merge> found;
  const auto is_token = [&](const std::string& text) {
    const int id = p.PieceToId(text);
    return is_text(p, id) && p.IdToPiece(id) == text;
  };
  for (int id = 0; id < p.GetPieceSize(); ++id) {
    if (!is_text(p, id)) continue;
    const std::string& token = p.IdToPiece(id);
    for (size_t at = 0; at < token.size();) {
      next_code_point(token, at);
      const std::string left = token.substr(0, at), right = token.substr(at);
      if (!right.empty() && is_token(left) && is_token(right)) {
        found.push_back({p.GetScore(id), left, right});
      }
    }
  }
  std::ranges::stable_sort(found, std::greater(), &Merge::score);
  Json json = Json::array();
  for (const Merge& merge : found) {
    json.push_back(std::vector<std::string>{merge.left, merge.right});
  }
  return json;
}

Json bpe(const Processor& p, const ModelFacts& facts) {
  Json json = component("BPE");
  json["dropout"] = Json();
  json["unk_token"] = p.IdToPiece(p.unk_id());
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) json[key] = Json();
  json["fuse_unk"] = true;
  json["byte_fallback"] = facts.has_byte_fallback;
  json["ignore_merges"] = false;
  json["vocab"] = Json::object();
  for (int id = 0; id < p.GetPieceSize(); ++id) json["vocab"][p.IdToPiece(id)] = id;
  json["merges"] = merges(p);
  return json;
}

Json unigram(const Processor& p, const ModelFacts& facts) {
  double least = 0;
  for (int id = 0; id < p.GetPieceSize(); ++id) {
    if (is_text(p, id)) least = std::min<double>(least, p.GetScore(id));
  }
  // Of special tokens and bytes, which no text has: their letters are to win.
  const double never = 10 * least - 100;
  Json json = component("Unigram");
  json["unk_id"] = p.unk_id();
  json["vocab"] = Json::array();
  for (int id = 0; id < p.GetPieceSize(); ++id) {
    Json token = Json::array();
    token.push_back(p.IdToPiece(id));
    token.push_back(is_text(p, id) ? static_cast<double>(p.GetScore(id)) : never);
    json["vocab"].push_back(std::move(token));
  }
  json["byte_fallback"] = facts.has_byte_fallback;
  return json;
}

Json added_tokens(const Processor& p) {
  Json list = Json::array();
  for (int id = 0; id < p.GetPieceSize(); ++id) {
    if (!p.IsControl(id)) continue;
    Json token = Json::object();
    token["id"] = id;
    token["content"] = p.IdToPiece(id);
    for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"}) token[key] = false;
    token["special"] = true;
    list.push_back(std::move(token));
  }
  return list;
}

Json tokenizer_json(const Processor& p, const ModelFacts& facts) {
  Json json = Json::object();
  json["version"] = "1.0";
  for (const char* key : {"truncation", "padding"}) json[key] = Json();
  json["added_tokens"] = added_tokens(p);
  json["normalizer"] = normalizer(facts);
  json["pre_tokenizer"] = pre_tokenizer(p, facts);
  json["post_processor"] = Json();
  json["decoder"] = decoder(p, facts);
  json["model"] = facts.type == ModelFacts::bpe ? bpe(p, facts) : unigram(p, facts);
  return json;
}

// The unknown token has no name there: special tokens vanish from texts, it does not.
Json config_json(const Processor& p) {
  Json json = Json::object();
  json["tokenizer_class"] = kAnyClass;
  json[kModelKey] = kSentencePieceName;
  json["clean_up_tokenization_spaces"] = false;
  json["split_special_tokens"] = true;  // "<s>" in a text is text
  const std::pair<const char*, int> names[] = {
      {"pad_token", p.pad_id()}, {"bos_token", p.bos_id()}, {"eos_token", p.eos_id()}};
  for (const auto& [key, id] : names) {
    if (id >= 0) json[key] = p.IdToPiece(id);
  }
  return json;
}

bool is_sayable(const Processor& p, const ModelFacts& facts) {
  constexpr size_t kLongest = 256;  // bytes; each place in a token is looked at
  for (int id = 0; id < p.GetPieceSize(); ++id) {
    if (p.IdToPiece(id).size() > kLongest) return false;
  }
  const bool has_tokens = facts.type == ModelFacts::bpe || facts.type == ModelFacts::unigram;
  const bool has_space = is_text(p, p.PieceToId(kSpaceSign));
  return has_tokens && has_space && p.unk_id() >= 0 && facts.escapes_spaces &&
         !facts.has_user_symbols && !facts.has_inner_spaces && !facts.has_denormalizer;
}

}  // namespace

std::vector<TokenizerFile> files_for_transformers(const Processor& processor,
                                                  const ModelFacts& facts) {
  Json config = Json::object();
  config["tokenizer_class"] = "SentencePiece";
  if (!is_sayable(processor, facts)) {
    return {{"tokenizer_config.json", config.dump(2) + "\n"}};
  }
  return {{"tokenizer.json", tokenizer_json(processor, facts).dump() + "\n"},
          {"tokenizer_config.json", config_json(processor).dump(2) + "\n"}};
}

bool is_for_transformers(const HubFiles& files) {
  return string_or(files.config, kModelKey, "", files.path("tokenizer_config.json")) ==
         kSentencePieceName;
}

}  // namespace heddle
