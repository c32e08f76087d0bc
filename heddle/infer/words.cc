// Tokens into words: a space or a change to or from punctuation begins a new one. Teacher-forced
// passes over batches of pairs, their attention maps, and the words in them.
#include "heddle/infer/words.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "heddle/base/files/mmap.h"
#include "heddle/base/work_notes.h"
#include "heddle/kernels/kernels.h"
#include "heddle/models/transformer.h"
#include "heddle/text/pipeline/special_tokens.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

// The text of a token without its space; of a byte token "<0x2C>" the byte.
std::string bare_token(const std::string& token) {
  if (const auto byte = byte_of_token(token)) return {*byte};
  return token.starts_with(kSpaceSign) ? token.substr(kSpaceSign.size()) : token;
}

}  // namespace

bool is_punctuation(std::string_view token) {
  return !token.empty() && std::all_of(token.begin(), token.end(), [](char c) {
    return std::ispunct(static_cast<unsigned char>(c)) != 0 && c != '\'' && c != '-';
  });
}

std::string token_text(const Tokenizer& tokenizer, int32_t id) {
  if (tokenizer.kind() == "byte-level BPE" && !tokenizer.is_special(id)) {
    return tokenizer.decode({&id, 1});
  }
  return replace_all(tokenizer.token(id), kSpaceSign, " ");
}

std::vector<std::string> names_of_ends(const Tokenizer& tokenizer, const PairMarks& marks) {
  std::vector<std::string> names = {"(end)"};
  for (size_t i = 1; i < marks.source_end.size(); ++i) {
    names.push_back(tokenizer.token(marks.source_end[i]));
  }
  return names;
}

std::string token_bytes(const Tokenizer& tokenizer, int32_t id) {
  const std::string token = tokenizer.token(id);
  if (tokenizer.is_special(id)) return token;
  if (tokenizer.kind() == "byte-level BPE") return bytes_of_letters(token).value_or(token);
  if (const auto byte = byte_of_token(token)) return {*byte};
  return replace_all(token, kSpaceSign, " ");
}

std::vector<WordSpan> word_spans(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<WordSpan> words;
  bool has_text = false;  // the last word; else there is only the space before it
  const auto drop_space = [&] {
    if (!words.empty() && !has_text) words.pop_back();
  };
  for (int64_t i = 0; i < std::ssize(ids); ++i) {
    const std::string token = tokenizer.token(ids[static_cast<size_t>(i)]);
    const std::string text = bare_token(token);
    const bool is_mark = is_punctuation(text);
    const bool is_other = has_text && is_mark != words.back().is_punctuation;
    if (words.empty() || token.starts_with(kSpaceSign) || is_other) {
      drop_space();
      words.push_back({i, i});
      has_text = false;
    }
    words.back().end = i + 1;
    if (text.empty()) continue;
    has_text = true;
    words.back().is_punctuation = is_mark;
  }
  drop_space();
  return words;
}

std::string word_text(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                      const WordSpan& word) {
  const auto begin = static_cast<size_t>(word.begin), end = static_cast<size_t>(word.end);
  const std::string text = tokenizer.decode(ids.subspan(begin, end - begin));
  const size_t first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

EncodedWords encode_words(const Tokenizer& tokenizer, std::span<const std::string> words,
                          int64_t longest) {
  EncodedWords result;
  std::vector<int32_t> ids;
  for (const std::string& word : words) {
    const std::vector<int32_t> own = tokenizer.encode(word);
    const bool has_first = !own.empty() && std::ssize(ids) < longest;
    result.first_rows.push_back(has_first ? std::ssize(ids) : -1);
    ids.insert(ids.end(), own.begin(), own.end());
  }
  if (std::ssize(ids) > longest) {
    ids.resize(static_cast<size_t>(longest));
    result.was_cut = true;
  }
  result.encoding = tokenizer.with_special(ids);
  // The special ids stand before and behind: where the text begins is where its ids do.
  const std::vector<int32_t>& all = result.encoding.ids;
  const auto at = std::search(all.begin(), all.end(), ids.begin(), ids.end()) - all.begin();
  for (int64_t& row : result.first_rows) {
    if (row >= 0) row += at;
  }
  return result;
}

// --- alignment -----------------------------------------------------------------------------------

namespace {

using Ids = std::span<const std::vector<int32_t>>;

// Sums the weights of the chosen heads of one attention call into the maps of its segments.
void add_weights(const nn::AttentionCall& call, std::span<const int64_t> heads,
                 std::span<Tensor> maps) {
  for (int64_t s = 0; s < call.queries().count(); ++s) {
    float* sum = maps[s].data<float>();
    for (const int64_t h : heads) {
      const Tensor w = call.weights(s, h);
      for (int64_t i = 0; i < w.elements(); ++i) sum[i] += w.data<float>()[i];
    }
  }
}

// Of each pair of a batch, averaged over these heads of these layers.
std::vector<Tensor> maps_of(const EncoderDecoder& model, const TranslationBatch& batch,
                            std::span<const int64_t> layers, std::span<const int64_t> heads,
                            const Precision& precision) {
  const Segments &keys = batch.source_segments, &queries = batch.target_segments;
  std::vector<Tensor> maps;
  for (int64_t i = 0; i < keys.count(); ++i) {
    maps.push_back(Tensor::zeros({queries.length(i), keys.length(i)}, DType::f32));
  }
  nn::Observer observer;
  observer.attention = [&](const nn::AttentionCall& call) {
    for (const int64_t layer : layers) {
      if (call.name() == fmt::format("cross_attentions.{}", layer)) add_weights(call, heads, maps);
    }
  };
  nn::Run run;
  run.use(precision);
  const Tensor memory = model.encode(nn::TokenRows{batch.source, &keys}, run);
  run.observer = &observer;
  model.decode({batch.target_in, &queries, nullptr}, memory, keys, run);
  const auto count = static_cast<float>(layers.size() * heads.size());
  for (const Tensor& map : maps) {
    for (int64_t i = 0; i < map.elements(); ++i) map.data<float>()[i] /= count;
  }
  return maps;
}

// Whether a token holds punctuation and nothing else: of ASCII, without the signs that stand inside
// words, and the dashes and quotes of U+2010 to U+203F.
bool has_only_marks(std::string_view token) {
  size_t marks = 0;
  for (size_t at = 0; at < token.size();) {
    const std::string_view rest = token.substr(at);
    if (rest.starts_with(kSpaceSign)) {
      at += kSpaceSign.size();
      continue;
    }
    if (rest.starts_with("\xE2\x80") && rest.size() > 2 && static_cast<uint8_t>(rest[2]) >= 0x90) {
      at += 3;
    } else if (std::ispunct(static_cast<unsigned char>(rest[0])) && rest[0] != '\'' &&
               rest[0] != '-') {
      ++at;
    } else {
      return false;
    }
    ++marks;
  }
  return marks > 0;
}

// Leaves out the punctuation at the ends of a word, unless there is nothing else.
void trim(WordSpan& word, const std::vector<bool>& is_mark) {
  WordSpan inner = word;
  while (inner.begin < inner.end && is_mark[inner.begin]) ++inner.begin;
  word.is_punctuation = inner.begin == inner.end;
  if (word.is_punctuation) return;
  while (is_mark[inner.end - 1]) --inner.end;
  word = inner;
}

// The weight of a source word for a target word: summed over the source word's tokens, averaged
// over the target word's.
double word_weight(const Tensor& map, const WordSpan& target, const WordSpan& source,
                   bool shifted) {
  double sum = 0;
  for (int64_t i = target.begin; i < target.end; ++i) {
    const float* row = map.data<float>() + (i + shifted) * map.size(1);
    for (int64_t j = source.begin; j < source.end; ++j) sum += row[j];
  }
  return sum / static_cast<double>(target.end - target.begin);
}

// The number of the source's word with the most attention, the first among equals: among those that
// are punctuation if the target's is, or among all if none is like it. source: at least one
size_t best_source(const Tensor& map, const WordSpan& target, std::span<const WordSpan> source,
                   bool shifted) {
  const auto is_like = [&](const WordSpan& word) {
    return word.is_punctuation == target.is_punctuation;
  };
  const bool has_like = std::any_of(source.begin(), source.end(), is_like);
  size_t best = 0;
  double most = -1;
  for (size_t s = 0; s < source.size(); ++s) {
    if (has_like && !is_like(source[s])) continue;
    const double w = word_weight(map, target, source[s], shifted);
    if (w > most) most = w, best = s;
  }
  return best;
}

}  // namespace

void check_attends(const EncoderDecoderFacts& c) {
  check(c.cross_attention_layers > 0, ErrorKind::data,
        "this model has no attention over its source, by which words could be aligned: it sees one "
        "fixed context (attention_scoring none)");
}

int64_t aligning_layer(const EncoderDecoderFacts& c) {
  return aligning_layer(c.cross_attention_layers);
}

void check_alignment(const EncoderDecoderFacts& c, const AlignmentOptions& o, ErrorKind kind) {
  if (!o.layers.empty() || !o.heads.empty()) check_attends(c);
  for (const int64_t layer : o.layers) {
    check(layer >= 0 && layer < c.cross_attention_layers, kind,
          "there is no decoder layer {}; the model has the layers 0 to {}", layer,
          c.cross_attention_layers - 1);
  }
  for (const int64_t head : o.heads) {
    check(head >= 0 && head < c.decoder_attention_heads, kind,
          "there is no head {}; the model's decoder has the heads 0 to {}", head,
          c.decoder_attention_heads - 1);
  }
}

std::vector<Tensor> cross_attention_maps(const EncoderDecoder& model, Ids sources, Ids targets,
                                         const AlignmentOptions& options) {
  check_mapped_files();
  const EncoderDecoderFacts& c = model.facts();
  check(sources.size() == targets.size(), ErrorKind::internal,
        "attention maps of {} sources and {} targets", sources.size(), targets.size());
  check_attends(c);
  check_alignment(c, options, ErrorKind::shape);
  std::vector<int64_t> layers = options.layers, heads = options.heads;
  if (layers.empty()) layers = {aligning_layer(c)};
  for (int64_t h = 0; options.heads.empty() && h < c.decoder_attention_heads; ++h) {
    heads.push_back(h);
  }
  const PairMarks marks = options.marks.value_or(usual_marks(c));
  const NoGrad off;
  std::vector<Tensor> maps(sources.size());
  std::vector<size_t> pairs;
  int64_t tokens = 0;
  const auto finish = [&] {
    if (pairs.empty()) return;
    auto done = maps_of(model, pack_pairs(sources, targets, pairs, marks), layers, heads,
                        options.precision);
    for (size_t i = 0; i < pairs.size(); ++i) {
      check(kernels().all_finite(done[i].rows()), ErrorKind::data,
            "the attention weights are not finite; the model's weights are damaged, or too large "
            "for this precision (try `precision` f32)");
      // Without the rows of what is given, which predict nothing.
      const int64_t given = marks.target_rows() - 1;
      maps[pairs[i]] = done[i].slice(0, given, done[i].size(0) - given);
    }
    note_work();
    pairs.clear();
    tokens = 0;
  };
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto rows = static_cast<int64_t>(sources[i].size() + targets[i].size()) +
                      marks.source_rows() + marks.target_rows();
    if (tokens + rows > options.batch_tokens) finish();
    pairs.push_back(i);
    tokens += rows;
  }
  finish();
  return maps;
}

Tensor cross_attention_map(const EncoderDecoder& model, std::span<const int32_t> source,
                           std::span<const int32_t> target, int64_t layer, Precision precision,
                           std::optional<PairMarks> marks) {
  AlignmentOptions options{.marks = std::move(marks), .precision = precision};
  if (layer >= 0) options.layers = {layer};
  const std::vector<int32_t> sources[] = {{source.begin(), source.end()}};
  const std::vector<int32_t> targets[] = {{target.begin(), target.end()}};
  return cross_attention_maps(model, sources, targets, options)[0];
}

std::vector<WordSpan> split_words(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<WordSpan> words;
  std::vector<bool> is_mark(ids.size());
  bool is_inside = false;
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string token = tokenizer.token(ids[i]);
    if (tokenizer.is_special(ids[i]) && !language_of(token).empty()) {
      is_inside = false;
      continue;
    }
    is_mark[i] = has_only_marks(token);
    for (size_t at = 0; at < token.size();) {
      if (token.compare(at, kSpaceSign.size(), kSpaceSign) == 0) {
        is_inside = false;
        at += kSpaceSign.size();
        continue;
      }
      if (!is_inside) words.push_back({static_cast<int64_t>(i), 0});
      is_inside = true;
      words.back().end = static_cast<int64_t>(i) + 1;
      ++at;
    }
  }
  for (WordSpan& word : words) trim(word, is_mark);
  return words;
}

Alignment align_words(const Tensor& map, std::span<const WordSpan> source,
                      std::span<const WordSpan> target, bool shifted) {
  Alignment links;
  if (source.empty()) return links;
  for (size_t t = 0; t < target.size(); ++t) {
    const size_t best = best_source(map, target[t], source, shifted);
    links.push_back({static_cast<int32_t>(best), static_cast<int32_t>(t)});
  }
  std::sort(links.begin(), links.end());
  return links;
}

std::vector<Alignment> align_pairs(const LoadedModel& model, Ids sources, Ids targets,
                                   const AlignmentOptions& options) {
  const auto maps = cross_attention_maps(model.translator(), sources, targets, options);
  std::vector<Alignment> all;
  for (size_t i = 0; i < maps.size(); ++i) {
    all.push_back(align_words(maps[i], split_words(model.tokenizer.value(), sources[i]),
                              split_words(model.target(), targets[i]), options.shifted));
  }
  return all;
}

std::string to_pharaoh(const Alignment& alignment) {
  std::string text;
  for (const AlignmentLink& link : alignment) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}-{}", link.source, link.target);
  }
  return text;
}

std::vector<WordLink> word_attention(const LoadedModel& model, std::span<const int32_t> source,
                                     std::span<const int32_t> target, Precision precision) {
  const Tensor map = cross_attention_map(model.translator(), source, target, -1, precision);
  std::vector<WordSpan> words = word_spans(*model.tokenizer, source);
  std::erase_if(words, [](const WordSpan& word) { return word.is_punctuation; });
  std::vector<WordLink> links;
  for (const WordSpan& word : word_spans(model.target(), target)) {
    if (word.is_punctuation) continue;
    links.push_back({.target = word_text(model.target(), target, word), .source = ""});
    if (words.empty()) continue;
    const size_t best = best_source(map, word, words, false);
    links.back().source = word_text(*model.tokenizer, source, words[best]);
    links.back().source_index = static_cast<int64_t>(best);
    links.back().weight = word_weight(map, word, words[best], false);
  }
  return links;
}

}  // namespace heddle
