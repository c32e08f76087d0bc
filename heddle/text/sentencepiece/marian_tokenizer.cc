// Marian's and M2M-100's tokenizers: SentencePiece finds the tokens of a text, vocab.json has their
// ids.
#include "heddle/text/sentencepiece/marian_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <sstream>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/text/pipeline/added_tokens.h"
#include "heddle/text/pipeline/special_tokens.h"
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"
#include "heddle/text/strings/pattern.h"
#include "heddle/text/strings/strings.h"
#include "heddle/text/subwords/model_check.h"
#include "heddle/text/subwords/vocabulary.h"
#include "heddle/text/tokenizer_folder.h"
#include "heddle/text/tokenizer_impl.h"

namespace heddle {
namespace {

// Languages of M2M-100 and of its kin of WMT 2021, whose tokens stand behind the vocabulary in this
// order, and words that were made up to fill it.
constexpr const char* kM2mLanguages =
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl "
    "gu ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml "
    "mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th "
    "tl tn tr uk ur uz vi wo xh yi yo zh zu";
constexpr const char* kWmtLanguages = "en ha is ja cs ru zh de";
constexpr int64_t kMadeUpWords = 8;

std::vector<std::string> m2m_languages(const HubFiles& hub) {
  const std::string codes =
      string_or(hub.config, "language_codes", "m2m100", hub.path("tokenizer_config.json"));
  std::vector<std::string> tokens;
  std::istringstream names(codes == "wmt21" ? kWmtLanguages : kM2mLanguages);
  for (std::string name; names >> name;) tokens.push_back("__" + name + "__");
  return tokens;
}

class VocabularyTokenizer : public Tokenizer::Impl {
 public:
  // `languages`: tokens behind those of the vocabulary.
  VocabularyTokenizer(HubFiles hub, const char* model_name, const char* vocab_name,
                      const std::vector<std::string>& languages = {})
      : path_(hub.path(vocab_name)) {
    const std::string& bytes = hub.add(model_name);
    check_sentencepiece_model(bytes, hub.path(model_name));
    silence_sentencepiece();
    const auto status = processor_.LoadFromSerializedProto(bytes);
    check(status.ok(), ErrorKind::data, "{}: SentencePiece refuses the model: {}",
          hub.path(model_name), status.ToString());
    Json vocabulary = Json::parse(hub.add(vocab_name), path_);
    for (const std::string& name : languages) vocabulary[name] = vocabulary.size();
    for (int64_t i = 0; i < kMadeUpWords && !languages.empty(); ++i) {
      vocabulary[fmt::format("madeupword{}", i)] = vocabulary.size();
    }
    vocabulary_ = Vocabulary::of_json(vocabulary, path_);
    for (const std::string& name : languages) add_special(name);
    special.unk = add_special(hub.special_name("unk_token", "<unk>"));
    special.eos = add_special(hub.special_name("eos_token", "</s>"));
    special.pad = add_special(hub.special_name("pad_token", "<pad>"));
    check(special.unk >= 0 && special.eos >= 0, ErrorKind::data,
          "{}: it has no '<unk>' or no '</s>', which every text needs; tokenizer_config.json may "
          "give other names",
          path_);
    if (!languages.empty()) {
      special.bos = add_special(hub.special_name("bos_token", "<s>"));
      special.sep = special.eos;
    }
    added_.prepare(nullptr);
    around.single = {{.text = 0}, {.ids = {special.eos}}};
    around.pair = {{.text = 0}, {.text = 1}, {.ids = {special.eos}}};
    lay_out_languages(
        hub, [&](const std::string& name) { return vocabulary_.find(name); }, around);
    kind = languages.empty() ? "Marian" : "M2M-100";
    fingerprint = fingerprint_of(hub.files);
    files = std::move(hub.files);
  }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    added_.split(text, false, [&](std::string_view part, int32_t id) {
      if (id >= 0) return ids.push_back(id);
      encode_part(part, ids);
    });
    return ids;
  }

  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const override {
    std::string text;
    std::vector<std::string> tokens;
    const auto flush = [&] {
      std::string part;
      const auto status = processor_.Decode(tokens, &part);
      check(status.ok(), ErrorKind::data, "tokenizer: cannot decode {} tokens: {}", tokens.size(),
            status.ToString());
      text += part;
      tokens.clear();
    };
    for (const int32_t id : ids) {
      if (!is_special(id)) {
        tokens.push_back(token(id));
      } else if (!options.skip_special) {
        flush();
        text += token(id) + " ";
      }
    }
    flush();
    text = replace_all(text, kSpaceSign, " ");
    const size_t begin = std::min(text.find_first_not_of(' '), text.size());
    return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
  }

  int64_t vocab_size() const override { return vocabulary_.size(); }
  std::string token(int32_t id) const override {
    const std::string* found = vocabulary_.token(id);
    return found == nullptr ? "" : *found;
  }
  int32_t token_id(std::string_view token) const override {
    return vocabulary_.find(token).value_or(special.unk);
  }
  bool is_special(int32_t id) const override { return added_.is_special(id); }

 private:
  // The id of a token that is then found in texts, -1 if the vocabulary lacks it.
  int32_t add_special(const std::string& name) {
    const auto id = vocabulary_.find(name);
    if (!id) return -1;
    added_.add(*id, {.content = name, .normalized = false, .special = true}, path_);
    return *id;
  }

  // What stands between special tokens.
  void encode_part(std::string_view part, std::vector<int32_t>& ids) const {
    const size_t end = part.starts_with(">>") && kind == "Marian" ? part.find("<<") : part.npos;
    if (end != part.npos) {
      ids.push_back(token_id(part.substr(0, end + 2)));
      part.remove_prefix(end + 2);
    }
    std::vector<std::string> tokens;
    const auto status = processor_.Encode(part, &tokens);
    check(status.ok(), ErrorKind::data, "tokenizer: cannot encode a text of {} bytes: {}",
          part.size(), status.ToString());
    for (const std::string& text : tokens) ids.push_back(token_id(text));
  }

  std::string path_;
  Vocabulary vocabulary_;
  AddedTokens added_;
  sentencepiece::SentencePieceProcessor processor_;
};

Json vocabulary_json(const Tokenizer& tokenizer) {
  Json json = Json::object();
  for (int64_t id = 0; id < tokenizer.vocab_size(); ++id) {
    json[tokenizer.token(static_cast<int32_t>(id))] = id;
  }
  return json;
}

std::string token_or(const Tokenizer& tokenizer, int32_t id, const char* otherwise) {
  return id < 0 ? otherwise : tokenizer.token(id);
}

}  // namespace

std::vector<TokenizerFile> marian_tokenizer_files(const Tokenizer& source, const Tokenizer* target,
                                                  int64_t max_length) {
  Json json = Json::object({{"tokenizer_class", "MarianTokenizer"},
                            {"eos_token", token_or(source, source.eos_id(), "</s>")},
                            {"unk_token", token_or(source, source.unk_id(), "<unk>")},
                            {"pad_token", token_or(source, source.pad_id(), "<pad>")},
                            {"model_max_length", max_length},
                            {"separate_vocabs", target != nullptr}});
  const Tokenizer& of_target = target == nullptr ? source : *target;
  std::vector<TokenizerFile> files = {{kMarianSourceName, source.model_bytes()},
                                      {kMarianTargetName, of_target.model_bytes()},
                                      {kMarianVocabName, vocabulary_json(source).dump(2) + "\n"},
                                      {"tokenizer_config.json", json.dump(2) + "\n"}};
  if (target) files.push_back({kMarianTargetVocabName, vocabulary_json(*target).dump(2) + "\n"});
  return files;
}

Tokenizer load_marian_tokenizer(const std::string& folder, MarianSide side) {
  HubFiles hub = HubFiles::read(folder);
  const bool is_separate = hub.flag("separate_vocabs", false);
  const bool is_target = side == MarianSide::target;
  return Tokenizer(std::make_shared<VocabularyTokenizer>(
      std::move(hub), is_target ? kMarianTargetName : kMarianSourceName,
      is_target && is_separate ? kMarianTargetVocabName : kMarianVocabName));
}

Tokenizer load_m2m_tokenizer(HubFiles files) {
  files.keep_class("M2M100Tokenizer");
  const std::vector<std::string> languages = m2m_languages(files);
  return Tokenizer(std::make_shared<VocabularyTokenizer>(
      std::move(files), "sentencepiece.bpe.model", kMarianVocabName, languages));
}

}  // namespace heddle
