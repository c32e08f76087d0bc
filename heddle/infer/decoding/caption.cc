// Images are encoded pass by pass; their memories are the sources of an engine's requests.
#include "heddle/infer/decoding/caption.h"

#include <algorithm>

#include "heddle/base/profile.h"
#include "heddle/base/rounded.h"
#include "heddle/infer/words.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

constexpr int64_t kLongestCaption = 48;  // tokens
constexpr size_t kForcedAtOnce = 64;

// What a pass that is given captions says of each of their tokens, the end last.
struct SeenTokens {
  std::vector<float> weights;  // [tokens, cells]
  std::vector<float> gates;    // [tokens], or empty
};

std::vector<SeenTokens> seen_tokens(const Captioner& model, std::span<const Tensor> memories,
                                    std::span<const std::vector<int32_t>> captions,
                                    const Precision& precision) {
  std::vector<int32_t> ids;
  std::vector<int64_t> tokens, cells;
  for (size_t i = 0; i < captions.size(); ++i) {
    ids.push_back(static_cast<int32_t>(model.facts().decoder_start_token_id));
    ids.insert(ids.end(), captions[i].begin(), captions[i].end());
    tokens.push_back(std::ssize(captions[i]) + 1);
    cells.push_back(memories[i].size(0));
  }
  const Segments targets = Segments::from_lengths(tokens), sources = Segments::from_lengths(cells);
  nn::Run run;
  run.use(precision);
  const Captioner::Attended y =
      model.decode_attending({.ids = ids, .segments = &targets},
                             concat({memories.begin(), memories.end()}, 0), sources, run);
  const std::vector<float> weights = y.weights.to_floats();
  const std::vector<float> gates = y.gates.defined() ? y.gates.to_floats() : std::vector<float>();
  std::vector<SeenTokens> all;
  auto at = weights.begin();
  for (int64_t i = 0; i < targets.count(); ++i) {
    const auto end = at + targets.length(i) * sources.length(i);
    SeenTokens& seen = all.emplace_back(SeenTokens{{at, end}, {}});
    if (!gates.empty()) {
      seen.gates = {gates.begin() + targets.begin(i), gates.begin() + targets.end(i)};
    }
    at = end;
  }
  return all;
}

std::vector<SeenWord> words_of(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                               const SeenTokens& tokens) {
  std::vector<SeenWord> words;
  const size_t cells = tokens.weights.size() / (ids.size() + 1);
  for (const WordSpan& span : word_spans(tokenizer, ids)) {
    SeenWord word{word_text(tokenizer, ids, span), std::vector<float>(cells), {}};
    const auto count = static_cast<float>(span.end - span.begin);
    float gate = 0;
    for (auto t = static_cast<size_t>(span.begin); t < static_cast<size_t>(span.end); ++t) {
      const float* const row = tokens.weights.data() + t * cells;
      for (size_t c = 0; c < cells; ++c) word.weights[c] += row[c] / count;
      if (!tokens.gates.empty()) gate += tokens.gates[t] / count;
    }
    if (!tokens.gates.empty()) word.gate = gate;
    words.push_back(std::move(word));
  }
  return words;
}

Json word_json(const SeenWord& word) {
  Json json = Json::object({{"text", word.text}});
  if (word.gate) json["gate"] = rounded(double{*word.gate}, 6);
  for (const float weight : word.weights) json["weights"].push_back(rounded(double{weight}, 6));
  return json;
}

Json caption_json(const SeenCaption& caption) {
  Json json = Json::object({{"text", caption.text}, {"score", caption.score}});
  if (caption.words.empty()) return json;
  json["words"] = Json::array();
  for (const SeenWord& word : caption.words) json["words"].push_back(word_json(word));
  return json;
}

}  // namespace

bool writes_captions(const std::string& path) {
  return load_model_config(path)->hub.head == Head::caption;
}

CaptionReader load_captioner(const std::string& path) {
  CaptionReader reader{load_model(path), {}};
  reader.model();  // says what is wanted
  load_tokenizers(reader.loaded, true);
  reader.processor = ImageProcessor::of_folder(reader.loaded.path);
  return reader;
}

TranslateOptions caption_options(const LoadedModel& model, const SearchConfig& above) {
  TranslateOptions options = default_options(model, above);
  if (options.longest_without_end == 0) options.longest_without_end = kLongestCaption;
  return options;
}

EncodedImages encode_images(const Captioner& model, const ImageProcessor& processor,
                            std::span<const Image> fitted, const Precision& precision,
                            int64_t most_pixels) {
  const ProfilePhase phase("encode");
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  EncodedImages encoded;
  size_t begin = 0;
  for (const size_t end : pass_ends(fitted, most_pixels)) {
    const ImageBatch batch(fitted.subspan(begin, end - begin), processor);
    const nn::ImageRows rows = batch.rows();
    const Tensor memory = model.encode(rows, run);
    const Segments cells = model.memory_segments(rows);
    for (int64_t i = 0; i < cells.count(); ++i) {
      encoded.memories.push_back(memory.slice(0, cells.begin(i), cells.length(i)).to_contiguous());
      encoded.grids.push_back(model.grid(batch.sizes()[static_cast<size_t>(i)]));
    }
    begin = end;
  }
  return encoded;
}

std::vector<Translation> caption_images(const Captioner& model, const Tokenizer& tokenizer,
                                        std::span<const Tensor> memories,
                                        TranslateOptions options) {
  suppress_unknown(options.search, tokenizer);
  std::vector<Translation> captions = translate_memories(model, memories, options);
  decode_texts(captions, tokenizer);
  return captions;
}

Request caption_request(const Captioner& model, const Tokenizer& tokenizer, ImageSize grid,
                        TranslateOptions options, int64_t number) {
  suppress_unknown(options.search, tokenizer);
  return memory_request(model, grid.height * grid.width, options, number);
}

void check_has_maps(const Captioner& model, const std::string& source) {
  check(has_maps(model), ErrorKind::data,
        "{}: it sees the mean of an image (attention_scoring none), so words have no maps; leave "
        "`maps` out",
        source);
}

std::vector<std::vector<SeenWord>> seen_words(const Captioner& model, const Tokenizer& tokenizer,
                                              std::span<const Tensor> memories,
                                              std::span<const std::vector<int32_t>> captions,
                                              const Precision& precision) {
  const NoGrad off;
  std::vector<std::vector<SeenWord>> all(captions.size());
  if (!has_maps(model)) return all;
  for (size_t begin = 0; begin < captions.size(); begin += kForcedAtOnce) {
    const size_t count = std::min(kForcedAtOnce, captions.size() - begin);
    const std::vector<SeenTokens> seen = seen_tokens(model, memories.subspan(begin, count),
                                                     captions.subspan(begin, count), precision);
    for (size_t i = 0; i < count; ++i) {
      all[begin + i] = words_of(tokenizer, captions[begin + i], seen[i]);
    }
  }
  return all;
}

std::vector<SeenCaption> plain_captions(const Translation& found) {
  std::vector<SeenCaption> captions = {{.text = found.text, .score = found.score}};
  for (const Translation& other : found.others) {
    captions.push_back({.text = other.text, .score = other.score});
  }
  return captions;
}

std::vector<std::vector<SeenCaption>> seen_captions(const CaptionReader& reader,
                                                    std::span<const Tensor> memories,
                                                    std::span<const Translation> found,
                                                    const Precision& precision) {
  std::vector<Tensor> of_each;
  std::vector<std::vector<int32_t>> ids;
  for (size_t i = 0; i < found.size(); ++i) {
    ids.push_back(found[i].ids);
    for (const Translation& other : found[i].others) ids.push_back(other.ids);
    of_each.resize(ids.size(), memories[i]);
  }
  auto words = seen_words(reader.model(), reader.loaded.target(), of_each, ids, precision);
  std::vector<std::vector<SeenCaption>> all;
  size_t at = 0;
  for (const Translation& best : found) {
    for (SeenCaption& caption : all.emplace_back(plain_captions(best))) {
      caption.words = std::move(words[at++]);
    }
  }
  return all;
}

Json captions_json(std::span<const SeenCaption> captions, const std::optional<SeenGrid>& grid) {
  Json json = caption_json(captions[0]);
  if (grid) json["grid"] = Json::Array{grid->cells.height, grid->cells.width};
  if (grid && grid->kept != SeenGrid{}.kept) {
    for (const double share : grid->kept) json["kept"].push_back(rounded(share, 6));
  }
  if (captions.size() == 1) return json;
  json["n_best"] = Json::array();
  for (const SeenCaption& caption : captions) json["n_best"].push_back(caption_json(caption));
  return json;
}

}  // namespace heddle
