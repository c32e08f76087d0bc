// Tokenizers out of the files of a folder, whatever their kind.
#include "heddle/text/tokenizer.h"

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/utf8.h"
#include "heddle/text/pipeline/pipeline.h"
#include "heddle/text/pipeline/special_tokens.h"
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

/// Names of the same two files, of byte-level BPE.
constexpr std::pair<const char*, const char*> kBpeNames[] = {{"vocab.json", "merges.txt"},
                                                             {"encoder.json", "vocab.bpe"}};
constexpr const char* kSentencePieceNames[] = {"spiece.model", kSentencePieceName,
                                               "sentencepiece.bpe.model"};

Tokenizer finish(HubFiles files, bool is_class_known, PipelineDescription description) {
  description.special.unk = description.model->unk().value_or(-1);
  apply_special_tokens(files, is_class_known, description);
  lay_out_languages(files, description);
  take_config_aside(files, description);
  const bool is_bpe = description.kind.find("BPE") != std::string::npos;
  if (!is_bpe) {
    description.clean_up = files.flag("clean_up_tokenization_spaces", description.clean_up);
  }
  return make_tokenizer(std::move(description), std::move(files.files));
}

int32_t required_id(const PipelineDescription& d, const std::string& name,
                    const std::string& path) {
  const auto id = d.model->vocabulary().find(name);
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
  check_utf8(merges, merges_path);
  result.model = make_bpe(Vocabulary::of_json(vocab, vocab_path),
                          merges_of_lines(merges, merges_path), {}, merges_path);
  result.pre_tokenizer = make_byte_level(files.flag("add_prefix_space", false), true);
  result.decoder = decode_byte_level;
  const Vocabulary& known = result.model->vocabulary();
  const bool has_ends = known.find("<s>") && known.find("</s>") && known.find("<mask>");
  const bool is_roberta = has_ends && !files.is_class("gpt2");
  if (has_ends) files.keep_class(is_roberta ? "RobertaTokenizer" : "GPT2Tokenizer");
  if (is_roberta) {
    add_usual({"<s>", "<pad>", "</s>", "<unk>", "<mask>"}, result, vocab_path);
    result.special.cls = required_id(result, files.special_name("cls_token", "<s>"), vocab_path);
    result.special.sep = required_id(result, files.special_name("sep_token", "</s>"), vocab_path);
    result.around = roberta_template(result.special.cls, result.special.sep);
  } else {
    if (!has_ends) files.usual_class = "GPT2Tokenizer";
    add_usual({"<|endoftext|>"}, result, vocab_path);
    if (files.flag("add_bos_token", false)) {
      const Template::Item bos{
          .ids = {
              required_id(result, files.special_name("bos_token", "<|endoftext|>"), vocab_path)}};
      result.around = {.single = {bos, {.text = 0}},
                       .pair = {bos, {.text = 0}, bos, {.text = 1, .type = 1}}};
    }
  }
  return finish(std::move(files), true, std::move(result));
}

std::vector<std::string> vocab_lines(std::string_view text, const std::string& path) {
  check_utf8(text, path);
  const std::vector<std::string_view> found = lines_of(text);
  std::vector<std::string> lines(found.begin(), found.end());
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

Tokenizer load_word_piece(HubFiles files, const std::string& name) {
  const std::string path = files.path(name);
  PipelineDescription result;
  result.kind = "WordPiece";
  const std::string unk = files.special_name("unk_token", "[UNK]");
  result.model = make_word_piece(Vocabulary::of_lines(vocab_lines(files.add(name), path), path),
                                 {.unk = unk}, path);
  BertNormalizerOptions options;
  options.lowercase = files.flag("do_lower_case", true);
  options.handle_chinese_chars = files.flag("tokenize_chinese_chars", true);
  options.strip_accents = files.flag("strip_accents", options.lowercase);
  result.normalizer = make_bert_normalizer(options);
  result.pre_tokenizer = make_bert_pre_tokenizer();
  result.decoder = make_wordpiece_decoder("##", true);
  files.usual_class = "BertTokenizer";
  add_usual({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}, result, path);
  result.special.cls = required_id(result, files.special_name("cls_token", "[CLS]"), path);
  result.special.sep = required_id(result, files.special_name("sep_token", "[SEP]"), path);
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
