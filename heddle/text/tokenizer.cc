// Text to token ids and back: what all kinds of tokenizers share.
#include "heddle/text/tokenizer.h"

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/utf8.h"
#include "heddle/text/pipeline/pipeline.h"
#include "heddle/text/pipeline/special_tokens.h"
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"
#include "heddle/text/strings/pattern.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

Encoding fill_in(const std::vector<Template::Item>& items, std::span<const int32_t> first,
                 std::span<const int32_t> second) {
  Encoding result;
  for (const Template::Item& item : items) {
    const std::span<const int32_t> ids = item.text < 0    ? std::span<const int32_t>(item.ids)
                                         : item.text == 0 ? first
                                                          : second;
    result.ids.insert(result.ids.end(), ids.begin(), ids.end());
    result.types.insert(result.types.end(), ids.size(), item.type);
  }
  return result;
}

void check_id(int32_t id, int64_t size) {
  check(id >= 0 && id < size, ErrorKind::data,
        "tokenizer: id {} is not in the vocabulary, whose ids are 0 to {}", id, size - 1);
}

/// Names of the same two files, of byte-level BPE.
constexpr std::pair<const char*, const char*> kBpeNames[] = {{"vocab.json", "merges.txt"},
                                                             {"encoder.json", "vocab.bpe"}};
constexpr const char* kSentencePieceNames[] = {"spiece.model", kSentencePieceName,
                                               "sentencepiece.bpe.model"};

Tokenizer finish(HubFiles files, bool is_class_known, PipelineDescription description) {
  apply_special_tokens(files, is_class_known, description);
  lay_out_languages(files, description);
  take_config_aside(files, description);
  const bool is_bpe = description.kind.find("BPE") != std::string::npos;
  if (!is_bpe) {
    description.parts.clean_up =
        files.flag("clean_up_tokenization_spaces", description.parts.clean_up);
  }
  return make_tokenizer(std::move(description), std::move(files.files));
}

int32_t required_id(const PipelineParts& parts, const std::string& name, const std::string& path) {
  const auto id = parts.model->vocabulary().find(name);
  check(id.has_value(), ErrorKind::data,
        "{}: it has no '{}', which is needed around each text; tokenizer_config.json may give "
        "another name",
        path, name);
  return *id;
}

Tokenizer load_json(HubFiles files, const std::string& name) {
  const std::string path = files.path(name);
  PipelineDescription description = read_tokenizer_json(Json::parse(files.add(name), path), path);
  files.usual_class = kAnyClass;
  return finish(std::move(files), false, std::move(description));
}

Tokenizer load_byte_level_bpe(HubFiles files, const char* vocab_name, const char* merges_name) {
  const std::string vocab_path = files.path(vocab_name), merges_path = files.path(merges_name);
  check(path_exists(vocab_path) && path_exists(merges_path), ErrorKind::data,
        "{}: byte-level BPE needs {} and {}; one is missing", files.folder, vocab_name,
        merges_name);
  PipelineDescription result;
  result.kind = "byte-level BPE";
  const Json vocab = Json::parse(files.add(vocab_name), vocab_path);
  const std::string& merges = files.add(merges_name);
  check(!first_invalid_utf8(merges), ErrorKind::data, "{}: not UTF-8", merges_path);
  PipelineParts& parts = result.parts;
  parts.model = make_bpe(Vocabulary::of_json(vocab, vocab_path),
                         merges_of_lines(merges, merges_path), {}, merges_path);
  parts.pre_tokenizer = make_byte_level(files.flag("add_prefix_space", false), true);
  parts.decoder = decode_byte_level;
  const Vocabulary& known = parts.model->vocabulary();
  const bool has_ends = known.find("<s>") && known.find("</s>") && known.find("<mask>");
  const bool is_roberta = has_ends && !files.is_class("gpt2");
  if (has_ends) files.keep_class(is_roberta ? "RobertaTokenizer" : "GPT2Tokenizer");
  if (is_roberta) {
    add_usual({"<s>", "<pad>", "</s>", "<unk>", "<mask>"}, parts, vocab_path);
    result.special.cls = required_id(parts, files.special_name("cls_token", "<s>"), vocab_path);
    result.special.sep = required_id(parts, files.special_name("sep_token", "</s>"), vocab_path);
    result.around = roberta_template(result.special.cls, result.special.sep);
  } else {
    if (!has_ends) files.usual_class = "GPT2Tokenizer";
    add_usual({"<|endoftext|>"}, parts, vocab_path);
    if (files.flag("add_bos_token", false)) {
      const Template::Item bos{
          .ids = {
              required_id(parts, files.special_name("bos_token", "<|endoftext|>"), vocab_path)}};
      result.around = {.single = {bos, {.text = 0}},
                       .pair = {bos, {.text = 0}, bos, {.text = 1, .type = 1}}};
    }
  }
  return finish(std::move(files), true, std::move(result));
}

std::vector<std::string> vocab_lines(std::string_view text, const std::string& path) {
  const auto bad = first_invalid_utf8(text);
  check(!bad, ErrorKind::data, "{}: not UTF-8: byte 0x{:02x} at offset {}", path,
        static_cast<unsigned char>(text[bad.value_or(0)]), bad.value_or(0));
  const std::vector<std::string_view> found = lines_of(text);
  std::vector<std::string> lines(found.begin(), found.end());
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

Tokenizer load_word_piece(HubFiles files, const std::string& name) {
  const std::string path = files.path(name);
  PipelineDescription result;
  result.kind = "WordPiece";
  PipelineParts& parts = result.parts;
  const std::string unk = files.special_name("unk_token", "[UNK]");
  parts.model = make_word_piece(Vocabulary::of_lines(vocab_lines(files.add(name), path), path),
                                {.unk = unk}, path);
  BertNormalizerOptions options;
  options.lowercase = files.flag("do_lower_case", true);
  options.handle_chinese_chars = files.flag("tokenize_chinese_chars", true);
  options.strip_accents = files.flag("strip_accents", options.lowercase);
  parts.normalizer = make_bert_normalizer(options);
  parts.pre_tokenizer = make_bert_pre_tokenizer();
  parts.decoder = make_wordpiece_decoder("##", true);
  parts.clean_up = true;
  files.usual_class = "BertTokenizer";
  add_usual({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}, parts, path);
  result.special.unk = parts.model->unk().value_or(-1);
  result.special.cls = required_id(parts, files.special_name("cls_token", "[CLS]"), path);
  result.special.sep = required_id(parts, files.special_name("sep_token", "[SEP]"), path);
  result.around = bert_template(result.special.cls, result.special.sep);
  return finish(std::move(files), true, std::move(result));
}

/// From one .json, .txt or .bpe file of a folder; the others that belong to it are read too.
Tokenizer load_file(const std::string& path) {
  check(path_exists(path), ErrorKind::data, "{}: there is no such file", path);
  const std::string folder = parent_path(path);
  const std::string name = path.substr(path.rfind('/') == path.npos ? 0 : path.rfind('/') + 1);
  for (const auto& [vocab, merges] : kBpeNames) {
    if (name == vocab || name == merges) {
      return load_byte_level_bpe(HubFiles::read(folder), vocab, merges);
    }
  }
  if (name.ends_with(".json")) return load_json(HubFiles::read(folder), name);
  return load_word_piece(HubFiles::read(folder), name);
}

}  // namespace

Tokenizer Tokenizer::load(const std::string& path) {
  if (is_directory(path)) {
    if (std::optional<Tokenizer> found = find_tokenizer(path)) return *found;
    fail(ErrorKind::data,
         "{}: no tokenizer is there; tokenizer.json, vocab.json and merges.txt, vocab.txt, "
         "source.spm and vocab.json, {} is needed",
         path, fmt::join(kSentencePieceNames, " or "));
  }
  const bool is_hub_file =
      path.ends_with(".json") || path.ends_with(".txt") || path.ends_with(".bpe");
  return is_hub_file ? load_file(path) : load_sentencepiece(path);
}

Tokenizer Tokenizer::from_bytes(std::string bytes, const std::string& name) {
  return sentencepiece_tokenizer(std::move(bytes), name);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  // ICU, SentencePiece and byte pair encoding count in 32 bits.
  check(text.size() < size_t{1} << 31, ErrorKind::data,
        "tokenizer: a text of {} bytes is too long; cut it into parts of less than 2 GiB",
        text.size());
  check_utf8(text, "tokenizer: the text");
  return impl_->encode(text);
}

Encoding Tokenizer::with_special(std::span<const int32_t> ids, int32_t language) const {
  if (language < 0) return fill_in(impl_->around.single, ids, {});
  std::vector<Template::Item> items = impl_->around.single;
  for (Template::Item& item : items) {
    for (int32_t& id : item.ids) id = language_of(token(id)).empty() ? id : language;
  }
  return fill_in(items, ids, {});
}

std::vector<std::pair<std::string, int32_t>> Tokenizer::languages() const {
  std::vector<std::pair<std::string, int32_t>> found;
  for (int32_t id = 0; id < vocab_size(); ++id) {
    if (!is_special(id)) continue;
    std::string name = language_of(token(id));
    if (!name.empty()) found.emplace_back(std::move(name), id);
  }
  return found;
}

Encoding Tokenizer::with_special(std::span<const int32_t> first,
                                 std::span<const int32_t> second) const {
  return fill_in(impl_->around.pair, first, second);
}

int64_t Tokenizer::special_count(bool is_pair) const {
  int64_t count = 0;
  for (const auto& item : is_pair ? impl_->around.pair : impl_->around.single) {
    count += static_cast<int64_t>(item.ids.size());
  }
  return count;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, const DecodeOptions& options) const {
  for (const int32_t id : ids) check_id(id, vocab_size());
  return impl_->decode(ids, options);
}

int64_t Tokenizer::vocab_size() const { return impl_->vocab_size(); }
int32_t Tokenizer::pad_id() const { return impl_->special.pad; }
int32_t Tokenizer::unk_id() const { return impl_->special.unk; }
int32_t Tokenizer::bos_id() const { return impl_->special.bos; }
int32_t Tokenizer::eos_id() const { return impl_->special.eos; }
int32_t Tokenizer::cls_id() const { return impl_->special.cls; }
int32_t Tokenizer::sep_id() const { return impl_->special.sep; }
int32_t Tokenizer::mask_id() const { return impl_->special.mask; }
bool Tokenizer::is_special(int32_t id) const { return impl_->is_special(id); }

std::string Tokenizer::token(int32_t id) const {
  check_id(id, vocab_size());
  return impl_->token(id);
}

int32_t Tokenizer::token_id(std::string_view token) const {
  return token.empty() ? unk_id() : impl_->token_id(token);
}

const std::string& Tokenizer::kind() const { return impl_->kind; }
const std::string& Tokenizer::fingerprint() const { return impl_->fingerprint; }
const std::vector<TokenizerFile>& Tokenizer::files() const { return impl_->files; }

const std::string& Tokenizer::model_bytes() const {
  check(impl_->files.size() == 1, ErrorKind::usage,
        "tokenizer: it has {} files ({} first); keep them in a folder", impl_->files.size(),
        impl_->files.empty() ? "" : impl_->files[0].name);
  return impl_->files[0].bytes;
}

void Tokenizer::save(const std::string& path) const { write_file_atomic(path, model_bytes()); }

void Tokenizer::save_folder(const std::string& folder) const {
  for (const auto& files : {impl_->files, impl_->beside()}) {
    for (const TokenizerFile& file : files) {
      write_file_atomic(join_path(folder, file.name), file.bytes);
    }
  }
}

std::optional<Tokenizer> find_tokenizer(const std::string& folder) {
  const auto has = [&](const char* name) { return path_exists(join_path(folder, name)); };
  if (has(kSentencePieceName) && is_for_transformers(HubFiles::read(folder))) {
    return load_sentencepiece(join_path(folder, kSentencePieceName));
  }
  if (has("tokenizer.json")) return load_json(HubFiles::read(folder), "tokenizer.json");
  for (const auto& [vocab, merges] : kBpeNames) {
    if (has(vocab) && has(merges)) {
      return load_byte_level_bpe(HubFiles::read(folder), vocab, merges);
    }
  }
  if (has(kMarianSourceName) && has(kMarianVocabName)) {
    return load_marian_tokenizer(folder, MarianSide::source);
  }
  if (has(kMarianVocabName) && has("sentencepiece.bpe.model")) {
    return load_m2m_tokenizer(HubFiles::read(folder));
  }
  if (has("vocab.txt")) return load_word_piece(HubFiles::read(folder), "vocab.txt");
  for (const char* name : kSentencePieceNames) {
    if (!has(name)) continue;
    HubFiles files = HubFiles::read(folder);
    if (auto description = describe_sentencepiece(files, name)) {
      return finish(std::move(files), true, std::move(*description));
    }
    return load_sentencepiece(join_path(folder, name));
  }
  return {};
}

std::optional<TokenizerPair> find_tokenizer_pair(const std::string& folder) {
  if (path_exists(join_path(folder, kMarianSourceName))) {
    return TokenizerPair{load_marian_tokenizer(folder, MarianSide::source),
                         load_marian_tokenizer(folder, MarianSide::target)};
  }
  std::optional<Tokenizer> both = find_tokenizer(folder);
  if (!both) return {};
  return TokenizerPair{*std::move(both)};
}

Tokenizer tokenizer_of_file(TokenizerFile file) {
  const std::string name = file.name;
  HubFiles files;
  files.files.push_back(std::move(file));
  return name.ends_with(".json") ? load_json(std::move(files), name)
                                 : load_word_piece(std::move(files), name);
}

}  // namespace heddle
