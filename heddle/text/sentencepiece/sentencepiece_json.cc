// SentencePiece models in the form that Hugging Face's transformers reads without a family.
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/pipeline/pipeline.h"
#include "heddle/text/strings/pattern.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

using Processor = sentencepiece::SentencePieceProcessor;

constexpr const char* kModelKey = "sentencepiece_model";

Json component(const char* type) { return Json::object({{"type", type}}); }

Json replace(const char* kind, std::string_view from, std::string_view to) {
  return Json::object(
      {{"type", "Replace"}, {"pattern", Json::object({{kind, from}})}, {"content", to}});
}

Json sequence(const char* key, Json::Array parts) {
  return Json::object({{"type", "Sequence"}, {key, parts}});
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool is_text(const Processor& p, int id) {
  return !p.IsControl(id) && !p.IsUnknown(id) && !p.IsByte(id) && !p.IsUnused(id);
}

Json normalizer(const ModelFacts& facts) {
  Json::Array steps;
  if (!facts.character_map.empty()) {
    steps.push_back(Json::object(
        {{"type", "Precompiled"}, {"precompiled_charsmap", base64_text(facts.character_map)}}));
  }
  if (facts.removes_spaces) {
    steps.push_back(replace("Regex", R"(\A +| +\z)", ""));
    steps.push_back(replace("Regex", " {2,}", " "));
  }
  if (facts.adds_space) {
    steps.push_back(Json::object({{"type", "Prepend"}, {"prepend", kSpaceSign}}));
  }
  steps.push_back(replace("String", " ", kSpaceSign));
  return sequence("normalizers", std::move(steps));
}

Json split(const char* kind, std::string_view pattern, const char* behavior) {
  return Json::object({{"type", "Split"},
                       {"pattern", Json::object({{kind, pattern}})},
                       {"behavior", behavior},
                       {"invert", false}});
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
  return sequence("pretokenizers",
                  {words, split("Regex", names_in_texts(p), "MergedWithPrevious")});
}

Json decoder(const Processor& p, const ModelFacts& facts) {
  const bool has_space = facts.adds_space || facts.removes_spaces;
  Json::Array steps = {Json::object({{"type", "Metaspace"},
                                     {"replacement", kSpaceSign},
                                     {"prepend_scheme", has_space ? "always" : "never"},
                                     {"split", false}}),
                       replace("String", p.IdToPiece(p.unk_id()), facts.unk_surface)};
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
  Json json = Json::object({{"type", "BPE"},
                            {"dropout", nullptr},
                            {"unk_token", p.IdToPiece(p.unk_id())},
                            {"continuing_subword_prefix", nullptr},
                            {"end_of_word_suffix", nullptr},
                            {"fuse_unk", true},
                            {"byte_fallback", facts.has_byte_fallback},
                            {"ignore_merges", false},
                            {"vocab", Json::object()}});
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
    const double score = is_text(p, id) ? static_cast<double>(p.GetScore(id)) : never;
    json["vocab"].push_back(Json::Array{p.IdToPiece(id), score});
  }
  json["byte_fallback"] = facts.has_byte_fallback;
  return json;
}

Json added_tokens(const Processor& p) {
  Json list = Json::array();
  for (int id = 0; id < p.GetPieceSize(); ++id) {
    if (!p.IsControl(id)) continue;
    Json token = Json::object({{"id", id}, {"content", p.IdToPiece(id)}});
    for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"}) token[key] = false;
    token["special"] = true;
    list.push_back(std::move(token));
  }
  return list;
}

Json tokenizer_json(const Processor& p, const ModelFacts& facts) {
  Json json = Json::object({{"version", "1.0"},
                            {"truncation", nullptr},
                            {"padding", nullptr},
                            {"added_tokens", added_tokens(p)},
                            {"normalizer", normalizer(facts)},
                            {"pre_tokenizer", pre_tokenizer(p, facts)},
                            {"post_processor", nullptr},
                            {"decoder", decoder(p, facts)}});
  json["model"] = facts.type == ModelFacts::bpe ? bpe(p, facts) : unigram(p, facts);
  return json;
}

// The unknown token has no name there: special tokens vanish from texts, it does not.
Json config_json(const Processor& p) {
  Json json = Json::object({{"tokenizer_class", kAnyClass},
                            {kModelKey, kSentencePieceName},
                            {"clean_up_tokenization_spaces", false}});
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
  if (!is_sayable(processor, facts)) {
    const Json config = Json::object({{"tokenizer_class", "SentencePiece"}});
    return {{"tokenizer_config.json", config.dump(2) + "\n"}};
  }
  return {{"tokenizer.json", tokenizer_json(processor, facts).dump() + "\n"},
          {"tokenizer_config.json", config_json(processor).dump(2) + "\n"}};
}

std::unique_ptr<SubwordModel> subwords_of(const Tokenizer& tokenizer) {
  check(tokenizer.kind() == "SentencePiece" && tokenizer.files().size() == 1, ErrorKind::usage,
        "a {} tokenizer has one segmentation of a text here: others are drawn of heddle's own bpe "
        "and "
        "unigram tokenizers, for subword regularisation",
        tokenizer.kind());
  const std::string& name = tokenizer.files()[0].name;
  Processor processor;
  const ModelFacts facts = load_processor(tokenizer.model_bytes(), name, processor);
  check(
      is_sayable(processor, facts), ErrorKind::usage,
      "{}: it has words, symbols of a user or tokens of several words; segmentations are drawn of "
      "plain bpe and unigram models",
      name);
  return read_tokenizer_json(tokenizer_json(processor, facts), name).model;
}

bool is_for_transformers(const HubFiles& files) {
  return string_or(files.config, kModelKey, "", files.path("tokenizer_config.json")) ==
         kSentencePieceName;
}

}  // namespace heddle
