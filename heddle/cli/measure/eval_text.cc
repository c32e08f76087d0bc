// heddle eval of language models: how well they predict a text.
#include <cmath>
#include <numeric>

#include "heddle/base/progress.h"
#include "heddle/base/utf8.h"
#include "heddle/cli/lines.h"
#include "heddle/cli/measure/eval.h"
#include "heddle/cli/shared_command.h"
#include "heddle/data/documents.h"
#include "heddle/dist/share_out.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/loading/text_model.h"
#include "heddle/infer/perplexity.h"
#include "heddle/inspect/pages/text_pages.h"
#include "heddle/text/strings/strings.h"

namespace heddle::cli {
namespace {

// What the tokens stand for.
struct TextUnits {
  int64_t bytes = 0, characters = 0, words = 0;  // words between spaces
  int64_t dropped = 0;                           // characters without a token, not among these
  bool are_known = true;  // false: what the tokens stand for is no part of the text as it is
};

struct TextReport : TextUnits {
  TextLikelihood likelihood;

  double per(int64_t units) const { return likelihood.nll / static_cast<double>(units); }
  double bits_per(int64_t units) const { return per(units) / std::log(2.0); }
  double accuracy() const {
    return static_cast<double>(likelihood.hits) / static_cast<double>(likelihood.tokens);
  }
};

// Warns of characters that are dropped.
TextUnits count_units(const Tokenizer& tokenizer, std::span<const std::string> documents,
                      const std::string& path) {
  DroppedCharacters dropped(tokenizer);
  TextUnits units;
  for (const std::string& document : documents) {
    const int64_t before = dropped.count();
    const std::string rest = dropped.without(document);
    if (dropped.count() > before) units.are_known &= dropped.is_rest_whole(document, rest);
    units.bytes += std::ssize(rest);
    units.characters += count_characters(rest);
    units.words += std::ssize(split_at_spaces(rest));
  }
  units.dropped = dropped.count();
  if (units.are_known) {
    warn_of_dropped(dropped, path);
  } else {
    warn_of_dropped(dropped, path,
                    "the tokens stand for no exact part of the text, so there are no figures per "
                    "word, byte and character");
  }
  return units;
}

// Each expert's share of what the tokens of a layer chose.
std::vector<double> shares_of(const std::vector<int64_t>& layer) {
  const auto all = static_cast<double>(std::accumulate(layer.begin(), layer.end(), int64_t{0}));
  std::vector<double> shares;
  for (const int64_t count : layer) shares.push_back(static_cast<double>(count) / all);
  return shares;
}

// A row a layer of a mixture; "" of other models.
std::string routing_text(const std::vector<std::vector<int64_t>>& routing) {
  if (routing.empty()) return "";
  std::string text =
      fmt::format("\nshare of each expert in the choices of a layer, even: {:.1f} %\nlayer ",
                  100.0 / static_cast<double>(routing[0].size()));
  for (size_t e = 0; e < routing[0].size(); ++e) text += fmt::format("{:6}", e);
  for (size_t i = 0; i < routing.size(); ++i) {
    text += fmt::format("\n{:5} ", i);
    for (const double share : shares_of(routing[i])) text += fmt::format("{:6.1f}", 100 * share);
  }
  return text;
}

std::string as_json(const TextReport& r, const Precision& precision) {
  Json json = Json::object();
  json["ppl"] = finite_or_null(std::exp(r.per(r.likelihood.tokens)));
  const auto if_known = [&](const Json& figure) { return r.are_known ? figure : Json(); };
  json["ppl_word"] = if_known(finite_or_null(std::exp(r.per(r.words))));
  json["nll"] = finite_or_null(r.likelihood.nll);
  json["bits_per_byte"] = if_known(finite_or_null(r.bits_per(r.bytes)));
  json["bits_per_character"] = if_known(finite_or_null(r.bits_per(r.characters)));
  json["accuracy"] = r.accuracy();
  json["tokens"] = r.likelihood.tokens;
  json["words"] = if_known(r.words);
  json["characters"] = if_known(r.characters);
  json["bytes"] = if_known(r.bytes);
  json["dropped_characters"] = r.dropped;
  json["windows"] = r.likelihood.windows;
  json["context"] = r.likelihood.context;
  json["stride"] = r.likelihood.stride;
  if (r.likelihood.memory >= 0) json["memory"] = r.likelihood.memory;
  json["precision"] = precision_name(precision);
  if (!r.likelihood.routing.empty()) {
    Json layers = Json::array();
    for (const auto& layer : r.likelihood.routing) {
      const std::vector<double> shares = shares_of(layer);
      layers.push_back(Json::Array(shares.begin(), shares.end()));
    }
    json["routing"] = layers;
  }
  return json.dump();
}

// What a token saw of those before it.
std::string context_text(const TextLikelihood& l) {
  if (l.memory == 1) {
    return fmt::format("segments of {}, and the state behind those before", l.context);
  }
  if (l.memory > 1) {
    return fmt::format("segments of {}, and a memory of {} tokens before them", l.context,
                       l.memory);
  }
  if (l.memory == 0) return fmt::format("segments of {}, without memory", l.context);
  return fmt::format(
      "context {}, stride {}: each token sees at least {} before it, or all there are", l.context,
      l.stride, l.context - l.stride);
}

std::string as_text(const TextReport& r) {
  const TextLikelihood& l = r.likelihood;
  std::string text = fmt::format("perplexity {:.3f} per token ({})", std::exp(r.per(l.tokens)),
                                 counted(l.tokens, "token"));
  if (r.are_known) {
    text += fmt::format(
        ", {:.3f} per word ({})\n"
        "bits {:.4f} per byte ({}), {:.4f} per character ({})",
        std::exp(r.per(r.words)), counted(r.words, "word"), r.bits_per(r.bytes),
        counted(r.bytes, "byte"), r.bits_per(r.characters), counted(r.characters, "character"));
  }
  if (r.dropped > 0) text += fmt::format("\n{} not read", counted(r.dropped, "character"));
  return text + fmt::format("\nnext-token accuracy {:.2f} %\n{}{}", 100 * r.accuracy(),
                            context_text(l), routing_text(l.routing));
}

}  // namespace

std::vector<std::string> documents_of(const EvalFlags& flags) {
  std::vector<std::string> documents;
  agree(
      *flags.group, "the data", [&] { documents = read_documents(flags.data, flags.text_key); },
      [&] { return fmt::format("{}", fmt::join(documents, "\n")); });
  return documents;
}

void eval_text(const EvalFlags& flags) {
  check(!flags.seed, ErrorKind::usage, "--seed is for models of masked tokens; {} is none",
        flags.model);
  const bool has_page = !flags.page.empty();
  const LoadedModel model = load_prompt_model(flags.model);
  const auto* language = model.model->as<LanguageModel>();
  check(language != nullptr, ErrorKind::data,
        "{}: a {} predicts tokens in any order; eval takes models that do so in the text's",
        flags.model, model.type);
  check(model.tokenizer.has_value(), ErrorKind::usage,
        "--data: {} has no tokenizer; copy the tokenizer that the model was trained with there",
        flags.model);
  const std::vector<std::string> documents = documents_of(flags);
  const std::vector<int32_t> ids = document_ids(*model.tokenizer, documents);
  const TextUnits units = count_units(*model.tokenizer, documents, flags.data);
  check(ids.size() >= 2, ErrorKind::data,
        "{}: the text has {} tokens; at least 2 are needed, since the first is not predicted",
        flags.data, ids.size());
  const TextPrediction prediction(*language, ids,
                                  {.context = flags.context,
                                   .stride = flags.stride,
                                   .memory = !flags.no_memory,
                                   .batch_tokens = flags.batch_tokens,
                                   .precision = flags.chosen_precision,
                                   .details = has_page ? inspect::kPagePredictions : 0});
  const auto parts = dist::share_out_each<WindowsLikelihood>(
      *flags.group, prediction.parts(), [&](int64_t part) { return prediction.predict(part); });
  do_on_rank_0(*flags.group, [&] {
    const TextReport report{units, prediction.join(parts)};
    print_result(flags.json ? as_json(report, flags.chosen_precision) : as_text(report));
    if (!has_page) return;
    write_page(
        "eval", "a page", flags.page,
        inspect::prediction_page({flags.model, flags.data, as_text(report)}, *model.tokenizer, ids,
                                 report.likelihood.details, language->vocab_size()));
  });
}

}  // namespace heddle::cli
