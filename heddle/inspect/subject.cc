// Models made ready for looking: their rows as tokens and words, one pass as a function, its
// attention calls.
#include "heddle/inspect/subject.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/names.h"
#include "heddle/base/utf8.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/loading/text_model.h"
#include "heddle/infer/words.h"
#include "heddle/inspect/matrix.h"
#include "heddle/text/strings/strings.h"
#include "heddle/text/tokenizer.h"
#include "heddle/train/tasks/losses.h"

namespace heddle::inspect {
namespace {

using Ids = std::vector<int32_t>;

// A token as a reader is shown it.
std::string shown_token(const std::string& token) {
  if (token == kSpaceSign) return "(space)";
  return token.starts_with(kSpaceSign) ? token.substr(kSpaceSign.size()) : "+" + token;
}

// Its number where a vocabulary has no token for an id.
std::string name_of(const Tokenizer& tokenizer, int32_t id) {
  const std::string token = tokenizer.token(id);
  return token.empty() ? fmt::format("#{}", id) : token;
}

// Special tokens before and after the words are words of their own.
struct Ends {
  std::string before;
  std::vector<std::string> after;
};

// Adds a token that is a word of its own.
void add_alone(Side& side, const std::string& text) {
  side.words.push_back({side.size(), side.size() + 1, text});
  side.tokens.push_back(text);
}

// A word that is only a space is called as its token is.
void name_spaces(Side& side) {
  for (Side::Word& word : side.words) {
    if (word.text.empty()) word.text = side.tokens[static_cast<size_t>(word.begin)];
  }
}

Side side_of(std::string name, const Tokenizer& tokenizer, const Ids& ids, const Ends& ends) {
  Side side{.name = std::move(name), .tokens = {}, .words = {}};
  if (!ends.before.empty()) add_alone(side, ends.before);
  const int64_t first = side.size();
  for (const int32_t id : ids) side.tokens.push_back(shown_token(name_of(tokenizer, id)));
  int64_t begin = first;
  for (const WordSpan& word : word_spans(tokenizer, ids)) {
    const int64_t end = first + static_cast<int64_t>(word.end);
    side.words.push_back({begin, end, word_text(tokenizer, ids, word)});
    // Punctuation and first tokens without a space continue nothing.
    std::string& token = side.tokens[static_cast<size_t>(first) + word.begin];
    if (token.starts_with("+") && token.size() > 1) token.erase(0, 1);
    begin = end;
  }
  if (begin < side.size() && !side.words.empty()) side.words.back().end = side.size();
  if (begin < side.size() && side.words.empty()) side.words.push_back({begin, side.size(), ""});
  name_spaces(side);
  for (const std::string& token : ends.after) add_alone(side, token);
  return side;
}

std::string without_spaces(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \n\t");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \n\t") + 1 - begin);
}

// The same of any tokenizer: what each token adds to the text so far. A space, or a change to or
// from punctuation, begins a word; special tokens are words of their own. A character that is split
// over tokens is of the one that ends it; those before show their bytes.
Side side_of_text(const Tokenizer& tokenizer, const Ids& ids) {
  const DecodeOptions as_it_is{.clean_up = false};
  Side side{.name = "text", .tokens = {}, .words = {}};
  Ids so_far;
  std::string before;
  size_t last = 0;  // word that a token added to
  bool is_new = true, was_mark = false, was_space = false;
  for (const int32_t id : ids) {
    if (tokenizer.is_special(id) || tokenizer.token(id).empty()) {
      add_alone(side, name_of(tokenizer, id));
      is_new = true;
      continue;
    }
    so_far.push_back(id);
    std::string whole = tokenizer.decode(so_far, as_it_is);
    const bool is_unfinished = whole.ends_with(kUnknownCharacter);
    while (whole.ends_with(kUnknownCharacter)) {
      whole.resize(whole.size() - kUnknownCharacter.size());
    }
    const std::string added =
        whole.starts_with(before) ? whole.substr(before.size()) : tokenizer.token(id);
    before = std::move(whole);
    const std::string text = without_spaces(added);
    // A part of a character, or a token that shows nothing yet.
    const bool is_part = is_unfinished || added.empty(), is_space = !is_part && text.empty();
    const bool is_mark = is_punctuation(text);
    is_new = is_new || is_space || is_mark != was_mark || added.starts_with(' ') ||
             added.starts_with('\n');
    if (is_new) side.words.push_back({side.size(), side.size(), ""});
    if (is_space) {
      side.tokens.push_back(added.find('\n') == added.npos ? "(space)" : "(newline)");
    } else {
      side.tokens.push_back((is_new || was_space ? "" : "+") +
                            (is_part ? tokenizer.token(id) : text));
    }
    last = side.words.size() - 1;
    side.words[last].end = side.size();
    side.words[last].text += text;
    is_new = false;
    was_mark = is_mark;
    was_space = is_space;
  }
  // What ends within a character.
  if (!so_far.empty())
    side.words[last].text += tokenizer.decode(so_far, as_it_is).substr(before.size());
  name_spaces(side);
  return side;
}

Side side_of_ids(const Ids& ids) {
  Side side{.name = "text", .tokens = {}, .words = {}};
  for (const int32_t id : ids) add_alone(side, fmt::format("#{}", id));
  return side;
}

// The words, and before them, as one word, the states that a model remembers: zeros where a text
// begins.
Side side_behind_memory(const Side& text, int64_t before) {
  Side side{.name = "memory", .tokens = {}, .words = {{0, before, "(memory)"}}};
  side.tokens.assign(static_cast<size_t>(before), "(memory)");
  side.tokens.insert(side.tokens.end(), text.tokens.begin(), text.tokens.end());
  for (const Side::Word& w : text.words) {
    side.words.push_back({w.begin + before, w.end + before, w.text});
  }
  return side;
}

// Ids and types of a text of at most `longest` tokens, special ones included.
Encoding text_ids(const Tokenizer& tokenizer, int64_t longest, const SubjectOptions& options) {
  check_text(options.source, field_name("text"));
  Ids ids = tokenizer.encode(options.source);
  check(!ids.empty(), ErrorKind::usage,
        "`text` is empty; give a sentence, as in `text` \"a man rides a horse\"");
  const int64_t room = std::max<int64_t>(1, longest - tokenizer.special_count());
  if (static_cast<int64_t>(ids.size()) > room) {
    check(options.truncate, ErrorKind::data,
          "`text` has {} tokens; the model takes {}, special ones included. Shorten it, or cut it "
          "with `truncate`",
          ids.size() + static_cast<size_t>(tokenizer.special_count()), longest);
    ids.resize(static_cast<size_t>(room));
  }
  Encoding text = tokenizer.with_special(ids);
  if (std::ranges::count(text.types, 0) == std::ssize(text.types)) text.types.clear();
  return text;
}

// Of a translator: what it reads, and what it is to have written.
SubjectText pair_text(const LoadedModel& model, const std::string& given,
                      const SubjectOptions& options) {
  check(options.ids.empty(), ErrorKind::usage,
        "`ids`: {} is a translator with a tokenizer; give the sentence as `text`", given);
  SubjectText text{.texts = {options.source, options.target.value_or("")}};
  TranslateOptions translate = options.translation.value_or(default_options(model));
  text.marks = text_marks(model, translate);
  text.source.ids =
      source_ids(model, options.source, field_name("text"), options.truncate, nullptr);
  check(!text.source.ids.empty(), ErrorKind::usage,
        "`text` is empty; give a sentence, as in `text` \"a man rides a horse\"");
  if (options.target) {
    text.target =
        target_ids(model, *options.target, field_name("target"), options.truncate, nullptr);
    check(!text.target.empty(), ErrorKind::usage,
          "`target` is empty; give a translation, or leave `target` away for the model's own");
    return text;
  }
  if (!translate.as_transformers && !translate.search.beam) translate.search.beam = 5;
  translate.truncate = options.truncate;
  translate.precision = options.precision;
  const Translation best = translate_lines(model, std::vector{options.source}, translate)[0];
  text.target.assign(best.ids.begin() + text.marks.target_rows() - 1, best.ids.end());
  text.texts[1] = best.text;
  return text;
}

double mean_loss(const train::LossSums& sums) {
  return sums.predicted == 0 ? 0 : sums.nll / static_cast<double>(sums.predicted);
}

}  // namespace

SubjectText subject_text(const LoadedModel& model, const std::string& given,
                         const SubjectOptions& options) {
  if (model.model->as<EncoderDecoder>() != nullptr) return pair_text(model, given, options);
  check(!options.target, ErrorKind::usage,
        "`target`: {} is a model of type {}, which reads one text; leave `target` away", given,
        model.type);
  const TokenModel& stack = model.tokens();
  check(!options.ids.empty() || model.tokenizer, ErrorKind::usage,
        "{}: the folder has no tokenizer; give the text as token ids, as in `ids` 12,7,30", given);
  SubjectText text;
  text.source = options.ids.empty() ? text_ids(*model.tokenizer, stack.max_length(), options)
                                    : Encoding{.ids = options.ids, .types = {}};
  if (options.ids.empty()) {
    check_tokenizer_ids(model, text.source.ids);
  } else {
    nn::check_ids(text.source.ids, stack.vocab_size(), field_name("ids"), ErrorKind::usage);
  }
  text.texts = {options.ids.empty() ? options.source
                                    : fmt::format("{}", fmt::join(options.ids, " "))};
  return text;
}

Subject::Result Subject::result(const nn::Observer* observer) const {
  const NoGrad off;
  nn::Run run;
  run.use(precision_);
  run.observer = observer;
  return run_(run);
}

void Subject::note_calls(std::vector<AttentionKind> kinds) {
  nn::Observer observer;
  observer.attention = [&](const nn::AttentionCall& call) {
    for (AttentionKind& kind : kinds) {
      if (!call.name().starts_with(kind.prefix)) continue;
      ++kind.layers;
      kind.heads = call.heads();
      kind.is_causal = call.is_causal();
      kind.before = call.keys().length(0) - sides_[kind.keys].size();
    }
  };
  plain_ = result(&observer);
  std::erase_if(kinds, [](const AttentionKind& k) { return k.layers == 0; });
  check(!kinds.empty(), ErrorKind::data, "{}: the {} has no layer whose attention can be shown",
        path_, type_);
  for (AttentionKind& kind : kinds) {
    if (kind.before == 0) continue;
    sides_.push_back(side_behind_memory(sides_[kind.keys], kind.before));
    kind.keys = sides_.size() - 1;
  }
  kinds_ = std::move(kinds);
}

void Subject::be_translator(const LoadedModel& model, const SubjectText& text) {
  const PairMarks& marks = text.marks;
  Ids written(marks.target_start.begin() + 1, marks.target_start.end());
  written.insert(written.end(), text.target.begin(), text.target.end());
  const Tokenizer& reads = model.tokenizer.value();
  sides_ = {side_of("source", reads, text.source.ids, {"", names_of_ends(reads, marks)}),
            side_of("target", model.target(), written, {"(start)", {}}),
            side_of("written", model.target(), written, {"", {"(end)"}})};
  measure_ = "rise of the loss, nats per token";
  const size_t only = 0;
  const EncoderDecoder* translator = &model.translator();
  const TranslationBatch pair = pack_pairs(std::span(&text.source.ids, 1),
                                           std::span(&text.target, 1), std::span(&only, 1), marks);
  run_ = [=](const nn::Run& run) {
    const train::LossSums sums = train::batch_loss(*translator, pair, run);
    return Result{.loss = mean_loss(sums), .states = {}};
  };
  note_calls({{"encoder", "encoder_attentions.", 0, 0},
              {"decoder", "decoder_attentions.", 1, 1},
              {"cross", "cross_attentions.", 2, 0}});
}

void Subject::be_stack(const LoadedModel& loaded, const SubjectText& text) {
  const Model* stack = loaded.model.get();
  const TokenModel& model = loaded.tokens();
  sides_ = {loaded.tokenizer ? side_of_text(*loaded.tokenizer, text.source.ids)
                             : side_of_ids(text.source.ids)};
  const auto* language = model.as<LanguageModel>();
  const bool has_loss = language != nullptr && text.source.ids.size() > 1;
  measure_ =
      has_loss ? "rise of the loss, nats per token" : "relative change of the last hidden states";
  const PackedTexts one(model, std::span(&text.source, 1));
  run_ = [=](const nn::Run& run) {
    Result result;
    if (has_loss) {
      result.loss = mean_loss(train::batch_loss(*language, one.tokens(), run));
    } else {
      result.states = stack->forward(one.tokens(), run)[0].x.to_floats();
    }
    return result;
  };
  note_calls({{"self", "attentions.", 0, 0}});
}

Subject Subject::of(std::shared_ptr<const LoadedModel> model, const SubjectText& text,
                    const Precision& precision, const std::string& name) {
  Subject subject;
  subject.path_ = name.empty() ? model->path : name;
  subject.given_ = subject.path_;
  subject.type_ = model->type;
  subject.texts_ = text.texts;
  subject.precision_ = precision;
  subject.model_ = std::move(model);
  if (subject.model_->model->as<EncoderDecoder>() != nullptr) {
    subject.be_translator(*subject.model_, text);
  } else {
    subject.be_stack(*subject.model_, text);
  }
  return subject;
}

Subject Subject::open(const std::string& path, const SubjectOptions& options) {
  const bool translates = is_translator(path);
  const auto model = std::make_shared<LoadedModel>(
      translates ? load_translation_model(path)
                 : load_model(path, {.tokenizers = LoadOptions::Tokenizers::if_there}));
  SubjectOptions told = options;
  if (translates) {
    told.translation = default_options(*model);
    set_languages(*model, options.source_language, options.target_language, *told.translation);
  } else {
    check(options.source_language.empty() && options.target_language.empty(), ErrorKind::usage,
          "{} and {} are of translators, and {} is a model of type {}; leave them out",
          field_name("source_language"), field_name("target_language"), path, model->type);
  }
  Subject subject = of(model, subject_text(*model, path, told), options.precision);
  subject.given_ = path;
  return subject;
}

double Subject::change(const nn::Observer& observer) const {
  const Result now = result(&observer);
  if (now.states.empty()) return now.loss - plain_.loss;
  return relative_change(plain_.states, now.states);
}

std::vector<int64_t> Side::find(const std::string& word) const {
  const auto tokens_of = [&](const auto& is_same) {
    std::vector<int64_t> found;
    for (const Word& w : words) {
      if (!is_same(w.text)) continue;
      for (int64_t i = w.begin; i < w.end; ++i) found.push_back(i);
    }
    return found;
  };
  std::vector<int64_t> found = tokens_of([&](const std::string& text) { return text == word; });
  if (!found.empty()) return found;
  const std::string low = lower_case(word);
  return tokens_of([&](const std::string& text) { return lower_case(text) == low; });
}

std::string Side::list_words(size_t most) const {
  std::string list;
  for (size_t i = 0; i < std::min(most, words.size()); ++i) {
    list += (i > 0 ? ", " : "") + words[i].text;
  }
  return words.size() > most ? list + ", ..." : list;
}

}  // namespace heddle::inspect
