// Marian's and M2M-100's tokenizers: SentencePiece finds the tokens of a text, vocab.json has their
// ids.
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <set>

#include "heddle/base/error.h"
#include "heddle/text/pipeline/pipeline.h"
#include "heddle/text/strings/pattern.h"
#include "heddle/text/strings/strings.h"

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
  for (const std::string& name :
       split_at_spaces(codes == "wmt21" ? kWmtLanguages : kM2mLanguages)) {
    tokens.push_back("__" + name + "__");
  }
  return tokens;
}

using Processor = sentencepiece::SentencePieceProcessor;

class MarianSubwords final : public SubwordModel {
 public:
  MarianSubwords(Vocabulary vocabulary, std::shared_ptr<const Processor> processor, int32_t unk,
                 bool has_targets)
      : SubwordModel(std::move(vocabulary)),
        processor_(std::move(processor)),
        unk_(unk),
        has_targets_(has_targets) {}

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const size_t end = has_targets_ && text.starts_with(">>") ? text.find("<<") : text.npos;
    if (end != text.npos) {
      ids.push_back(id_of(text.substr(0, end + 2)));
      text.remove_prefix(end + 2);
    }
    std::vector<std::string> tokens;
    const auto status = processor_->Encode(text, &tokens);
    check(status.ok(), ErrorKind::data, "tokenizer: cannot encode a text of {} bytes: {}",
          text.size(), status.ToString());
    for (const std::string& token : tokens) ids.push_back(id_of(token));
  }
  std::optional<int32_t> unk() const override { return unk_; }

 private:
  int32_t id_of(std::string_view token) const { return vocabulary().find(token).value_or(unk_); }

  std::shared_ptr<const Processor> processor_;
  int32_t unk_;
  bool has_targets_;  // ">>fr<<" in front of texts
};

// Texts of the tokens between special ones, which stand as they are with a space behind them.
TokenDecoder marian_decoder(std::shared_ptr<const Processor> processor,
                            std::set<std::string> special) {
  return [processor, special](std::vector<std::string>& tokens) {
    std::string text;
    std::vector<std::string> some;
    const auto flush = [&] {
      std::string part;
      const auto status = processor->Decode(some, &part);
      check(status.ok(), ErrorKind::data, "tokenizer: cannot decode {} tokens: {}", some.size(),
            status.ToString());
      text += part;
      some.clear();
    };
    for (const std::string& token : tokens) {
      if (!special.contains(token)) {
        some.push_back(token);
        continue;
      }
      flush();
      text += token + " ";
    }
    flush();
    text = replace_all(text, kSpaceSign, " ");
    const size_t begin = std::min(text.find_first_not_of(' '), text.size());
    tokens = {text.substr(begin, text.find_last_not_of(' ') + 1 - begin)};
  };
}

// `languages`: tokens behind those of the vocabulary.
Tokenizer load(HubFiles hub, const char* model_name, const char* vocab_name,
               const std::vector<std::string>& languages = {}) {
  const std::string path = hub.path(vocab_name);
  const auto processor = std::make_shared<Processor>();
  load_processor(hub.add(model_name), hub.path(model_name), *processor);
  Json json = Json::parse(hub.add(vocab_name), path);
  for (const std::string& name : languages) json[name] = json.size();
  for (int64_t i = 0; i < kMadeUpWords && !languages.empty(); ++i) {
    json[fmt::format("madeupword{}", i)] = json.size();
  }
  Vocabulary vocabulary = Vocabulary::of_json(json, path);
  PipelineDescription d;
  std::set<std::string> special;
  // The id of a token that is then found in texts, -1 if the vocabulary lacks it.
  const auto add_special = [&](const std::string& name) {
    const auto id = vocabulary.find(name);
    if (!id) return -1;
    special.insert(name);
    d.added.add(*id, {.content = name, .normalized = false, .special = true}, path);
    return *id;
  };
  for (const std::string& name : languages) add_special(name);
  d.special.unk = add_special(hub.special_name("unk_token", "<unk>"));
  d.special.eos = add_special(hub.special_name("eos_token", "</s>"));
  d.special.pad = add_special(hub.special_name("pad_token", "<pad>"));
  check(d.special.unk >= 0 && d.special.eos >= 0, ErrorKind::data,
        "{}: it has no '<unk>' or no '</s>', which every text needs; tokenizer_config.json may "
        "give other names",
        path);
  if (!languages.empty()) {
    d.special.bos = add_special(hub.special_name("bos_token", "<s>"));
    d.special.sep = d.special.eos;
  }
  d.kind = languages.empty() ? "Marian" : "M2M-100";
  d.around = eos_template(d.special.eos);
  d.decoder = marian_decoder(processor, std::move(special));
  d.model = std::make_unique<MarianSubwords>(std::move(vocabulary), processor, d.special.unk,
                                             languages.empty());
  lay_out_languages(hub, d);
  return make_tokenizer(std::move(d), std::move(hub.files));
}

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
  return load(std::move(hub), is_target ? kMarianTargetName : kMarianSourceName,
              is_target && is_separate ? kMarianTargetVocabName : kMarianVocabName);
}

Tokenizer load_m2m_tokenizer(HubFiles files) {
  files.keep_class("M2M100Tokenizer");
  const std::vector<std::string> languages = m2m_languages(files);
  return load(std::move(files), "sentencepiece.bpe.model", kMarianVocabName, languages);
}

}  // namespace heddle
