// SentencePiece models: alone, or with the special tokens that their families put around texts.
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <iterator>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/text/strings/strings.h"

// Exported by the library (0.1.97 and 0.2.0) but absent from its installed headers.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

namespace heddle {

namespace {

constexpr int kFatal = 3;
constexpr int64_t kMaxModelBytes = int64_t{256} << 20;

using Processor = sentencepiece::SentencePieceProcessor;

/// How fairseq numbers the tokens of a SentencePiece model: <s> <pad> </s> <unk>, those of the
/// model from its fourth on, then languages and <mask>.
constexpr int32_t kFairseqOffset = 1, kFairseqUnk = 3;

/// SentencePiece does all of it: normalisation, splitting, unknown characters.
class SentencePieceSubwords final : public SubwordModel {
 public:
  /// `exact`: of a model that is alone; absent: U+2581 in texts is a space.
  SentencePieceSubwords(Vocabulary vocabulary, std::shared_ptr<const Processor> processor,
                        bool is_fairseq, std::shared_ptr<const ModelFacts> exact = nullptr)
      : SubwordModel(std::move(vocabulary)),
        processor_(std::move(processor)),
        is_fairseq_(is_fairseq),
        exact_(std::move(exact)) {}

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const bool has_sign = exact_ && text.find(kSpaceSign) != text.npos;
    const std::string other = has_sign ? unused_character(text, exact_->private_code_points) : "";
    if (!other.empty()) return encode_space_sign(text, other, ids);
    for (const int32_t id : ids_of(text)) {
      const bool is_unknown = id == processor_->unk_id();
      ids.push_back(!is_fairseq_ ? id : is_unknown ? kFairseqUnk : id + kFairseqOffset);
    }
  }
  std::optional<int32_t> unk() const override {
    return is_fairseq_ ? kFairseqUnk : processor_->unk_id();
  }

 private:
  std::vector<int32_t> ids_of(std::string_view text) const {
    std::vector<int> ids;
    const auto status = processor_->Encode(text, &ids);
    check(status.ok(), ErrorKind::data, "tokenizer: cannot encode a text of {} bytes: {}",
          text.size(), status.ToString());
    return ids;
  }

  /// SentencePiece would take U+2581 for a space: `other`, a character that falls back to bytes,
  /// stands in for it, and its four byte ids are then exchanged for U+2581's three. UTF-8 being
  /// self-synchronising, the four occur nowhere else.
  void encode_space_sign(std::string_view text, const std::string& other,
                         std::vector<int32_t>& ids) const {
    const std::vector<int32_t> own = ids_of(replace_all(text, kSpaceSign, other)),
                               from = vocabulary().find_bytes(other).value(),
                               to = vocabulary().find_bytes(kSpaceSign).value();
    for (auto at = own.begin();;) {
      const auto found = std::search(at, own.end(), from.begin(), from.end());
      ids.insert(ids.end(), at, found);
      if (found == own.end()) return;
      ids.insert(ids.end(), to.begin(), to.end());
      at = found + std::ssize(from);
    }
  }

  std::shared_ptr<const Processor> processor_;
  bool is_fairseq_;
  std::shared_ptr<const ModelFacts> exact_;
};

/// The text of ids; special ones stand as they are, or vanish.
std::string text_of(const Processor& processor, std::span<const int32_t> ids, bool skip_special) {
  std::string text;
  const auto append = [&](std::span<const int32_t> part) {
    if (part.empty()) return;
    std::string own;
    const auto status = processor.Decode(std::vector<int>(part.begin(), part.end()), &own);
    check(status.ok(), ErrorKind::data, "tokenizer: cannot decode {} ids: {}", part.size(),
          status.ToString());
    text += own;
  };
  size_t begin = 0;
  for (size_t i = 0; i < ids.size() && !skip_special; ++i) {
    if (!processor.IsControl(ids[i])) continue;
    append(ids.subspan(begin, i - begin));
    text += processor.IdToPiece(ids[i]);
    begin = i + 1;
  }
  append(ids.subspan(begin));
  return text;
}

/// A family: which special tokens it has, and how they stand around texts.
struct Family {
  std::vector<const char*> classes;  ///< see HubFiles::is_class()
  const char* kept_class;            ///< see HubFiles::keep_class()
  std::vector<const char*> special;
  bool adds_space;  ///< the model puts a space in front of each text, else finish() sees to it
  void (*finish)(const HubFiles&, const std::string&, PipelineDescription&);
  std::string languages = {};  ///< fairseq's numbers, and the languages behind the vocabulary
};

int32_t id_of(const PipelineDescription& d, const char* name, const std::string& path) {
  const auto id = d.model->vocabulary().find(name);
  check(id.has_value(), ErrorKind::data, "{}: it has no token '{}', which is needed around texts",
        path, name);
  return *id;
}

/// A </s>, and the 100 tokens of the text's gaps behind the vocabulary.
void finish_t5(const HubFiles&, const std::string& path, PipelineDescription& d) {
  constexpr int32_t kGaps = 100;
  const Template::Item end{.ids = {id_of(d, "</s>", path)}};
  d.around = {.single = {{.text = 0}, end}, .pair = {{.text = 0}, end, {.text = 1}, end}};
  const auto size = static_cast<int32_t>(d.model->vocabulary().size());
  for (int32_t i = 0; i < kGaps; ++i) {
    const std::string name = fmt::format("<extra_id_{}>", i);
    if (d.model->vocabulary().find(name)) continue;
    d.added.add(size + kGaps - 1 - i, {.content = name, .normalized = false, .special = true},
                path);
  }
}

/// A <sep> <cls>, the types of which are 0, 0 and 2; quotes and accents are made plain before.
void finish_xlnet(const HubFiles& files, const std::string& path, PipelineDescription& d) {
  const std::vector<int32_t> sep = {id_of(d, "<sep>", path)}, cls = {id_of(d, "<cls>", path)};
  d.around = {.single = {{.text = 0}, {.ids = sep}, {.type = 2, .ids = cls}},
              .pair = {{.text = 0},
                       {.ids = sep},
                       {.text = 1, .type = 1},
                       {.type = 1, .ids = sep},
                       {.type = 2, .ids = cls}}};
  std::string steps = R"({"type": "Replace", "pattern": {"String": "``"}, "content": "\""},
                         {"type": "Replace", "pattern": {"String": "''"}, "content": "\""})";
  if (!files.flag("keep_accents", false))
    steps += R"(, {"type": "NFKD"}, {"type": "StripAccents"})";
  if (files.flag("do_lower_case", false)) steps += R"(, {"type": "Lowercase"})";
  d.normalizer =
      read_normalizer(Json::parse(R"({"type": "Sequence", "normalizers": [)" + steps + "]}"), path);
}

/// <s> A, unless the files say otherwise. The space before a text stands before what follows a
/// special token too if the files say "legacy"; what has one already gets none.
void finish_llama(const HubFiles& files, const std::string& path, PipelineDescription& d) {
  const bool has_space = files.flag("add_prefix_space", true);
  d.pre_tokenizer = make_metaspace({std::string(kSpaceSign),
                                    !has_space                    ? PrependScheme::never
                                    : files.flag("legacy", false) ? PrependScheme::always
                                                                  : PrependScheme::first,
                                    false});
  const bool has_bos = files.flag("add_bos_token", true),
             has_eos = files.flag("add_eos_token", false);
  const int32_t bos = id_of(d, "<s>", path), eos = id_of(d, "</s>", path);
  d.around = {.single = {}, .pair = {}};
  std::string steps = R"({"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                         {"type": "ByteFallback"}, {"type": "Fuse"})";
  if (has_space) steps += R"(, {"type": "Strip", "content": " ", "start": 1, "stop": 0})";
  d.decoder =
      read_token_decoder(Json::parse(R"({"type": "Sequence", "decoders": [)" + steps + "]}"), path);
  const auto add_text = [&](std::vector<Template::Item>& items, int text) {
    if (has_bos) items.push_back({.type = text, .ids = {bos}});
    items.push_back({.text = text, .type = text});
    if (has_eos) items.push_back({.type = text, .ids = {eos}});
  };
  add_text(d.around.single, 0);
  add_text(d.around.pair, 0);
  add_text(d.around.pair, 1);
}

/// The languages around texts are laid out when all tokens are known.
void finish_fairseq(const HubFiles&, const std::string& path, PipelineDescription& d) {
  d.special.cls = id_of(d, "<s>", path);
  d.special.sep = id_of(d, "</s>", path);
}

constexpr const char* kMBartLanguages =
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR "
    "lt_LT lv_LV my_MM ne_NP nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN";
constexpr const char* kMBart50Languages =  // behind those
    "af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL "
    "ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI";

const std::vector<const char*> kFairseqSpecial = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};

const std::vector<Family> kFamilies = {
    {{"t5"}, "T5Tokenizer", {"<pad>", "</s>", "<unk>"}, true, finish_t5},
    {{"xlnet"},
     "XLNetTokenizer",
     {"<s>", "</s>", "<unk>", "<sep>", "<pad>", "<cls>", "<mask>", "<eop>", "<eod>"},
     true,
     finish_xlnet},
    {{"llama", "mistral", "mixtral"},
     "LlamaTokenizer",
     {"<unk>", "<s>", "</s>"},
     false,
     finish_llama},
    {{"mbart50"},
     "MBart50Tokenizer",
     kFairseqSpecial,
     true,
     finish_fairseq,
     std::string(kMBartLanguages) + " " + kMBart50Languages},
    {{"mbart"}, "MBartTokenizer", kFairseqSpecial, true, finish_fairseq, kMBartLanguages}};

/// With `adds_space` false, the model puts no space in front of texts, whatever it says.
std::unique_ptr<SubwordModel> subwords(std::string_view bytes, const Family& family,
                                       const std::string& path) {
  // normalizer_spec once more, with add_dummy_prefix alone.
  constexpr std::string_view kNoSpace("\x1A\x02\x18\x00", 4);
  const auto processor = std::make_shared<Processor>();
  load_processor(bytes, path, *processor, family.adds_space ? std::string_view() : kNoSpace);
  std::vector<std::string> tokens;
  const bool is_fairseq = !family.languages.empty();
  if (is_fairseq) tokens = {"<s>", "<pad>", "</s>", "<unk>"};
  for (int id = is_fairseq ? kFairseqUnk : 0; id < processor->GetPieceSize(); ++id) {
    tokens.push_back(processor->IdToPiece(id));
  }
  if (is_fairseq) {
    std::ranges::move(split_at_spaces(family.languages), std::back_inserter(tokens));
    tokens.emplace_back("<mask>");
  }
  return std::make_unique<SentencePieceSubwords>(Vocabulary::of_list(std::move(tokens), path),
                                                 processor, is_fairseq);
}

}  // namespace

void silence_sentencepiece() { sentencepiece::logging::SetMinLogLevel(kFatal); }

ModelFacts load_processor(std::string_view bytes, const std::string& name, Processor& processor,
                          std::string_view fields) {
  ModelFacts facts = check_sentencepiece_model(bytes, name);
  silence_sentencepiece();
  const auto status = fields.empty()
                          ? processor.LoadFromSerializedProto(bytes)
                          : processor.LoadFromSerializedProto(std::string(bytes).append(fields));
  check(status.ok(), ErrorKind::data, "{}: SentencePiece refuses the model: {}", name,
        status.ToString());
  return facts;
}

Tokenizer Tokenizer::from_bytes(std::string bytes, const std::string& name) {
  const auto processor = std::make_shared<Processor>();
  const auto facts = std::make_shared<const ModelFacts>(load_processor(bytes, name, *processor));
  PipelineDescription d;
  d.kind = "SentencePiece";
  d.special = {.pad = processor->pad_id(),
               .unk = processor->unk_id(),
               .bos = processor->bos_id(),
               .eos = processor->eos_id()};
  std::vector<std::string> tokens;
  for (int id = 0; id < processor->GetPieceSize(); ++id) {
    tokens.push_back(processor->IdToPiece(id));
    if (!processor->IsControl(id)) continue;
    d.added.add(id, {.content = tokens.back(), .normalized = false, .special = true}, name);
  }
  d.added.hide_special();
  const bool is_exact = facts->is_lossless && facts->has_byte_fallback;
  d.model = std::make_unique<SentencePieceSubwords>(Vocabulary::of_list(std::move(tokens), name),
                                                    processor, false, is_exact ? facts : nullptr);
  d.decode_ids = [processor](std::span<const int32_t> ids, bool skip_special) {
    return text_of(*processor, ids, skip_special);
  };
  d.beside = [processor, facts] { return files_for_transformers(*processor, *facts); };
  return make_tokenizer(std::move(d), {{kSentencePieceName, std::move(bytes)}});
}

Tokenizer load_sentencepiece(const std::string& path) {
  check(file_size(path) <= kMaxModelBytes, ErrorKind::data,
        "{}: {} bytes are too many for a SentencePiece model (at most {})", path, file_size(path),
        kMaxModelBytes);
  return Tokenizer::from_bytes(read_file(path), path);
}

std::optional<PipelineDescription> describe_sentencepiece(HubFiles& files,
                                                          const std::string& name) {
  const std::string path = files.path(name);
  for (const Family& family : kFamilies) {
    const auto is_it = [&](const char* known) { return files.is_class(known); };
    if (std::ranges::none_of(family.classes, is_it)) continue;
    files.keep_class(family.kept_class);
    PipelineDescription d;
    d.kind = "SentencePiece";
    d.model = subwords(files.add(name), family, path);
    d.decoder = read_token_decoder(
        Json::parse(R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"},
                        {"type": "Metaspace"}]})"),
        path);
    add_usual(family.special, d, path);
    for (const std::string& code : split_at_spaces(family.languages)) {
      add_usual({code.c_str()}, d, path);
    }
    family.finish(files, path, d);
    return d;
  }
  return std::nullopt;
}

}  // namespace heddle
