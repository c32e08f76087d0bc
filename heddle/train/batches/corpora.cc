// Writing the phrasebook, training a tokenizer where none is given, filling the caches.
#include "heddle/train/batches/corpora.h"

#include "corpora/agreement.h"
#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/base/progress.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/text/subword_sampler.h"
#include "heddle/text/tokenizer.h"
#include "heddle/text/training/tokenizer_trainer.h"
#include "heddle/train/batches/taught_pairs.h"

namespace heddle::train {
namespace {

EncoderDecoderFacts facts_of(const StackConfig& config) {
  auto unmade = nn::Parameters::shapes_alone();
  const std::unique_ptr<Model> model = config.make(nn::Scope(unmade));
  return model->need<EncoderDecoder>("train").facts();
}

// RUN/data, with the pairs of a corpus that is not in files.
std::string write_generated(const PairFields& own, const std::string& run) {
  const std::string folder = join_path(run, "data");
  if (path_exists(join_path(folder, "test." + own.target_lang))) return folder;  // written last
  make_directories(folder);
  const Phrasebook book =
      own.corpus == "agreement" ? make_agreement(kAgreementOptions) : make_phrasebook({});
  write_pairs(book, folder, own.source_lang, own.target_lang);
  return folder;
}

// Reads the text once, so that what is wrong with it is said with its place, and at once.
void check_lines(const ParallelFiles& files) {
  ParallelReader reader(files);
  std::string source, target;
  while (reader.next(source, target)) {
  }
}

// The pairs to train on: those of the folder, or a teacher's of their sources, in RUN/data.
ParallelFiles training_pairs(const TrainConfig& config, const RunPaths& paths,
                             const std::string& folder, const std::string& run) {
  const auto& own = config.task_config.as<PairFields>();
  const ParallelFiles pairs = find_parallel(folder, "train", own.source_lang, own.target_lang);
  if (paths.teacher.empty() || own.teaching == "word") return pairs;
  // What would end the run behind hours of a teacher's work is said before.
  check_lines(find_parallel(folder, "val", own.source_lang, own.target_lang));
  const std::string data = join_path(run, "data");
  make_directories(data);
  return taught_pairs(pairs, data,
                      {.teacher = paths.teacher,
                       .beam = own.teacher_beam,
                       .keeps = own.teaching == "added",
                       .languages = own.languages(),
                       .precision = resolve_precision(config.precision)});
}

// One vocabulary of a run: where it lies, what it is trained on, and the size it must have.
struct RunVocabulary {
  std::string path, given;  // given: a model to copy, or empty
  std::vector<std::string> texts;
  const char* size_key;
  int64_t size;
};

void train_vocabulary(const TrainConfig& config, const RunVocabulary& v) {
  const std::string& type = config.task_config.as<PairFields>().tokenizer_type;
  log_info("training a {} tokenizer of {} tokens", type, format_count(v.size));
  std::vector<LineReader> readers;
  for (const std::string& text : v.texts) readers.emplace_back(text);
  const auto next = [&](std::string& line) {
    for (LineReader& reader : readers) {
      if (reader.next(line)) return true;
    }
    return false;
  };
  train_tokenizer(next,
                  {.type = tokenizer_type(type),
                   .vocab_size = v.size,
                   .seed = static_cast<uint64_t>(config.seed)},
                  [](const std::string& message) { log_info("{}", message); })
      .save(v.path);
}

Tokenizer open_tokenizer(const TrainConfig& config, const ParallelFiles& files,
                         const RunVocabulary& v, int64_t eos) {
  if (!path_exists(v.path)) {
    if (!v.given.empty()) {
      Tokenizer::load(v.given).save(v.path);
    } else {
      check_lines(files);
      train_vocabulary(config, v);
    }
  }
  Tokenizer tokenizer = Tokenizer::load(v.path);
  check(tokenizer.vocab_size() == v.size, ErrorKind::data,
        "{}: the tokenizer has {} tokens, the model {}; set {} {}", v.path, tokenizer.vocab_size(),
        v.size, field_name(v.size_key), tokenizer.vocab_size());
  check(tokenizer.eos_id() == eos, ErrorKind::data,
        "{}: the tokenizer ends sentences with id {}, the model with {}; set `eos_token_id`",
        v.path, tokenizer.eos_id(), eos);
  return tokenizer;
}

struct RunTokens {
  TokenizerPair tokenizers;
  PairMarks marks;
  LanguageNames languages = {};
};

// Those of the model that is begun from.
RunTokens tokens_of_base(const PairFields& own, const std::string& from) {
  LoadedModel base = load_translation_model(from);
  TranslateOptions options = default_options(base);
  LanguageNames names = set_languages(base, own.languages(), options);
  PairMarks marks = pair_marks(base, options);
  const EncoderDecoderFacts& facts = base.translator().facts();
  const int64_t room = std::min(facts.longest_source - marks.source_rows(),
                                facts.longest_target - marks.target_rows());
  check(own.max_tokens - 1 <= room, ErrorKind::usage,
        "train: `max_tokens` {} is more than the {} that {} has positions for beside the tokens "
        "around a sentence",
        own.max_tokens, room + 1, from);
  return {{*std::move(base.tokenizer), std::move(base.target_tokenizer)},
          std::move(marks),
          std::move(names)};
}

RunTokens make_tokens(const TrainConfig& config, const ParallelFiles& pairs, const RunPaths& paths,
                      const std::string& run) {
  const auto& own = config.task_config.as<PairFields>();
  const EncoderDecoderFacts facts = facts_of(config.stack);
  const bool is_joint = !facts.has_two_vocabularies;
  const auto given = [&](const std::string& own_file, const char* of_teacher) {
    if (!own_file.empty() || paths.teacher.empty() || own.teaching != "word") return own_file;
    return join_path(find_model_dir(paths.teacher), of_teacher);
  };
  RunVocabulary first{join_path(run, "tokenizer.model"),
                      given(own.tokenizer, kTokenizerName),
                      {pairs.source},
                      "vocab_size",
                      facts.source_vocab_size};
  if (is_joint) first.texts.push_back(pairs.target);
  RunTokens all{{open_tokenizer(config, pairs, first, facts.eos_token_id)}, usual_marks(facts)};
  if (is_joint) return all;
  all.tokenizers.target = open_tokenizer(config, pairs,
                                         {join_path(run, "target_tokenizer.model"),
                                          given(own.target_tokenizer, kTargetTokenizerName),
                                          {pairs.target},
                                          "decoder_vocab_size",
                                          facts.target_vocab_size},
                                         facts.eos_token_id);
  return all;
}

// That the tokenizers whose segmentations are to be drawn have more than one. Those that the run
// trains have; of a given one that is gone a run that goes on has a copy.
void check_sampling(const TrainConfig& config, const PairFields& own, const std::string& from) {
  if (own.source_sampling == 0 && own.target_sampling == 0) return;
  const auto check_tokenizer = [](const Tokenizer& tokenizer, double rate) {
    if (rate > 0) SubwordSampler(tokenizer, rate);
  };
  if (!from.empty()) {
    const LoadedModel base = load_translation_model(from);
    check_tokenizer(*base.tokenizer, own.source_sampling);
    return check_tokenizer(base.target(), own.target_sampling);
  }
  const bool is_joint = !facts_of(config.stack).has_two_vocabularies;
  const auto check_given = [&](const std::string& path, double rate) {
    if (!path.empty() && path_exists(path)) check_tokenizer(Tokenizer::load(path), rate);
  };
  check_given(own.tokenizer, own.source_sampling);
  check_given(is_joint ? own.tokenizer : own.target_tokenizer, own.target_sampling);
}

}  // namespace

void PairFields::check_fit(const TrainConfig& config, const std::string& source) const {
  config.stack.config().check(source);
  check(target_tokenizer.empty() || config.stack.integer({"decoder_vocab_size"}) > 0,
        ErrorKind::usage,
        "{}: target_tokenizer gives the target tokens of its own; set decoder_vocab_size to "
        "their number",
        source);
  check(max_tokens <= batch_tokens, ErrorKind::usage,
        "{}: `max_tokens` {} is more than a batch of {} tokens; raise `batch_tokens` or "
        "lower `max_tokens`",
        source, max_tokens, batch_tokens);
  const bool is_word = teaching == "word";
  check(
      !is_word || r_drop == 0, ErrorKind::usage,
      "{}: `r_drop` compares two passes, and `teaching` word a pass with the teacher's; set one of "
      "them to 0",
      source);
  const TaskConfig untold(config.task);
  check(is_word || teacher_weight == untold.as<PairFields>().teacher_weight, ErrorKind::usage,
        "{}: `teacher_weight` is of `teaching` word", source);
  check(!is_word || teacher_beam == untold.as<PairFields>().teacher_beam, ErrorKind::usage,
        "{}: `teacher_beam` is of translations; with `teaching` word there are none", source);
  const EncoderDecoderFacts facts = facts_of(config.stack);
  check(guided_alignment == 0 || facts.leaves_weights, ErrorKind::usage,
        "{}: `guided_alignment` guides attention to the source by products, or of a recurrence; "
        "this model has none (attention_scoring)",
        source);
  const int64_t positions = facts.longest_target;
  check(max_tokens <= positions, ErrorKind::usage,
        "{}: `max_tokens` {} is more than the {} learned positions", source, max_tokens, positions);
}

void PairFields::check_data(const TrainConfig& config, const RunPaths& paths) const {
  const std::string& data = paths.data;
  check(paths.unlabelled.empty(), ErrorKind::usage,
        "train: translation has no `unlabelled` data; of text in one language let the teacher "
        "translate it, by heddle translate");
  const TaskConfig defaults(config.task);
  const auto& untold = defaults.as<PairFields>();
  check_teacher(paths, {{"teaching", teaching != untold.teaching},
                        {"teacher_beam", teacher_beam != untold.teacher_beam},
                        {"teacher_weight", teacher_weight != untold.teacher_weight}});
  check(!paths.from.empty() || config.stack.config().is_own_format(), ErrorKind::usage,
        "train: a {} is trained from one that is there, with its tokenizer; name it with `from`",
        config.model_type);
  check_sampling(config, *this, paths.from);
  const bool model_does = marks_languages(paths.from, languages());
  const bool teacher_does = teaching != "word" && marks_languages(paths.teacher, languages());
  check(model_does || teacher_does || !languages().are_asked(), ErrorKind::usage,
        "train: {} and {} are of models that are told languages by tokens (mbart, m2m_100), and "
        "there is none; leave them out",
        field_name("source_language"), field_name("target_language"));
  check(paths.val_data.empty(), ErrorKind::usage,
        "train: translation holds out val.{} and val.{} beside its training text; leave `val_data` "
        "out",
        source_lang, target_lang);
  if (corpus != "files") {
    check(data.empty(), ErrorKind::usage,
          "train: the corpus {} is drawn, so `data` {} would not be read; leave it out, or set "
          "`corpus` files",
          corpus, data);
    const char* target = corpus == "agreement" ? "fr" : "de";
    check(source_lang == "en" && target_lang == target, ErrorKind::usage,
          "the corpus {0} is en to {1}, not {2} to {3}; set `source_lang` en `target_lang` {1}",
          corpus, target, source_lang, target_lang);
    return;
  }
  check(!data.empty(), ErrorKind::usage,
        "train needs `data` DIR, a folder with train.{0}, train.{1}, val.{0}, val.{1}", source_lang,
        target_lang);
  check(!path_exists(data) || is_directory(data), ErrorKind::usage,
        "train: {0} is a file, and translation needs a folder with train.{1}, train.{2}, val.{1}, "
        "val.{2}; for a file of text give another task, as `task` causal_lm, or its recipe, as "
        "`recipe` shakespeare-char",
        data, source_lang, target_lang);
  for (const char* split : {"train", "val"}) {
    find_parallel(data, split, source_lang, target_lang);
  }
}

void write_pairs(const Phrasebook& book, const std::string& folder, const std::string& source_lang,
                 const std::string& target_lang) {
  const auto write = [&](const char* split, const std::vector<Phrase>& phrases) {
    std::string source, target;
    for (const Phrase& p : phrases) {
      source += p.source + "\n";
      target += p.target + "\n";
    }
    write_file_atomic(join_path(folder, fmt::format("{}.{}", split, source_lang)), source);
    write_file_atomic(join_path(folder, fmt::format("{}.{}", split, target_lang)), target);
  };
  write("train", book.train), write("val", book.val), write("test", book.test);
}

std::vector<std::string> held_out_targets(const Corpora& corpora) {
  const TextEncoder sources = text_encoder(corpora.tokenizer);
  const TextEncoder targets = text_encoder(corpora.target());
  const TokenizedCorpus& val = corpora.val;
  ParallelReader reader(corpora.held_out);
  std::vector<std::string> lines;
  std::string source, target;
  // What was left out is left out here too: nothing kept has its ids.
  while (std::ssize(lines) < val.size() && reader.next(source, target)) {
    const int64_t i = std::ssize(lines);
    if (val.source(i).ids() != sources.encode(source)) continue;
    if (val.target(i).ids() == targets.encode(target)) lines.push_back(target);
  }
  check(std::ssize(lines) == val.size(), ErrorKind::data,
        "{}: it was changed while it was read; run the command again", corpora.held_out.target);
  return lines;
}

// Those of the training text, and of the model that is begun from: nothing if one is not known.
std::optional<KnownWords> known_words(const std::string& texts, const std::string& from) {
  std::optional<KnownWords> first = KnownWords();
  if (!from.empty()) first = KnownWords::find(find_model_dir(from));
  if (!first) return std::nullopt;
  LineReader reader(texts);
  return KnownWords::of_texts([&](std::string& line) { return reader.next(line); },
                              *std::move(first));
}

Corpora open_corpora(const TrainConfig& config, const RunPaths& paths, const std::string& run) {
  const auto& own = config.task_config.as<PairFields>();
  own.check_data(config, paths);
  const std::string folder = own.corpus == "files" ? paths.data : write_generated(own, run);
  std::optional<RunTokens> known;  // what does not fit is said before a teacher is at work
  if (!paths.from.empty()) known = tokens_of_base(own, paths.from);
  const ParallelFiles pairs = training_pairs(config, paths, folder, run);
  const ParallelFiles held_out = find_parallel(folder, "val", own.source_lang, own.target_lang);
  RunTokens tokens = known ? *std::move(known) : make_tokens(config, pairs, paths, run);
  TokenizerPair& tokenizers = tokens.tokenizers;
  std::optional<TextEncoder> target_encoder;
  if (tokenizers.target) target_encoder = text_encoder(*tokenizers.target);
  const auto open = [&](const char* split, const ParallelFiles& files) {
    const auto log = [split](std::string_view text) { log_info("{}: {}", split, text); };
    return TokenizedCorpus::open_or_build(
        {.files = files,
         .cache_dir = join_path(run, "cache"),
         .name = fmt::format("{}.{}-{}", split, own.source_lang, own.target_lang),
         .max_source_tokens = own.max_tokens,
         .max_target_tokens = own.max_tokens,
         .target_encoder = target_encoder},
        text_encoder(tokenizers.source), log);
  };
  TokenizedCorpus train = open("train", pairs), val = open("val", held_out);
  return {std::move(tokenizers.source),
          std::move(tokenizers.target),
          std::move(train),
          std::move(val),
          held_out,
          known_words(pairs.source, paths.from),
          std::move(tokens.marks),
          std::move(tokens.languages)};
}

}  // namespace heddle::train
