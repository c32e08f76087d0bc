// What heads look at: a pass over texts that are given, which no other request pays for.
#include <algorithm>

#include "heddle/inspect/attention_maps.h"
#include "heddle/inspect/attention_rollout.h"
#include "heddle/serve/api/between_steps.h"
#include "heddle/serve/api/translation_work.h"

namespace heddle::serve {
namespace {

struct AttentionRequest {
  SharedModel model = {};
  inspect::SubjectText text = {};
  inspect::HeadsOptions heads = {};
  bool rolls_out = false, is_page = false;
  double discard = 0;  // of what is rolled out

  int64_t tokens() const { return std::ssize(text.source.ids) + std::ssize(text.target) + 2; }
  // As many as one head of each kind has.
  void check_tokens() const;
  void check_weights(const inspect::Subject& subject) const;
  void answer(Exchange& e) const;
};

void refuse_weights(int64_t weights, const char* more = "") {
  refuse(
      "the maps have {}{} weights together; at most {}: choose `layers` and `heads`, or a shorter "
      "text",
      more, weights, kMostWeights);
}

// Before anything is computed: a pass over a long text would hold up all others.
void AttentionRequest::check_tokens() const {
  const int64_t source = std::ssize(text.source.ids) + text.marks.source_rows(),
                target = std::ssize(text.target) + text.marks.target_rows();
  const int64_t weights = source * source + source * target + target * target;
  if (weights > kMostWeights) refuse_weights(weights, "at least ");
}

// Before they are written.
void AttentionRequest::check_weights(const inspect::Subject& subject) const {
  const auto chosen = [](const std::vector<int64_t>& numbers, int64_t all) {
    return numbers.empty() ? all : std::min(all, std::ssize(numbers));
  };
  int64_t weights = 0;
  for (const inspect::AttentionKind& kind : subject.kinds()) {
    const int64_t each = subject.sides()[kind.queries].size() * subject.sides()[kind.keys].size();
    weights +=
        each * (rolls_out ? kind.layers
                          : chosen(heads.layers, kind.layers) * chosen(heads.heads, kind.heads));
  }
  if (weights > kMostWeights) refuse_weights(weights);
}

void AttentionRequest::answer(Exchange& e) const {
  const auto subject =
      inspect::Subject::of(std::shared_ptr<const LoadedModel>(model, &model->loaded()), text,
                           model->precision, model->name);
  check_weights(subject);
  if (!rolls_out) {
    const std::vector<inspect::HeadMap> maps = inspect::attention_maps(subject, heads);
    if (!is_page) return e.send(inspect::attention_json(subject, maps, {}));
    const inspect::Page page =
        inspect::attention_page(subject, maps, {}, inspect::first_shown(maps));
    return e.send_text(inspect::page_html(page), "text/html; charset=utf-8");
  }
  const std::vector<inspect::RolledMap> maps = inspect::attention_rollout(subject, discard);
  if (maps.empty()) refuse("the model's attention cannot be rolled out; leave `rollout` away");
  Json json = inspect::attention_json(subject, {}, {});
  json["rollout"] = inspect::json_list(maps, [](const inspect::RolledMap& map) {
    Json one = Json::object({{"kind", map.kind}});
    one["weights"] = inspect::weights_json(map.weights, map.rows, map.cols);
    return one;
  });
  e.send(json);
}

// A text whose tokens may have few enough weights among themselves.
std::string bounded_text(const Json& body, const char* key) {
  constexpr int64_t kMostTokens = 1 << 9;
  static_assert(kMostTokens * kMostTokens == kMostWeights);
  std::string text = text_of(body, key);
  if (is_beyond(text.size(), kMostTokens)) {
    refuse("`{}` has {} bytes; the maps of more than {} tokens are not answered", key, text.size(),
           kMostTokens);
  }
  return text;
}

// Reads a text with the model's tokenizer as it is set for this request. Errors: Refusal, Error.
inspect::SubjectText read_text(ServedModel& model, const Json& body) {
  const std::string text = bounded_text(body, "text");
  if (!has_member(body, "text")) refuse("`text` is missing");
  inspect::SubjectOptions options{.source = text};
  if (model.use != ModelUse::translate) {
    for (const char* key : {"source_lang", "target_lang"}) {
      if (has_member(body, key)) refuse("`{}` is for translators, which take `target` too", key);
    }
    return subject_text(model.loaded(), model.name, options);
  }
  if (!has_member(body, "target")) {
    refuse("`target` is missing: the translation, as /v1/translations gives it");
  }
  options.target = bounded_text(body, "target");
  options.translation = model.translating;
  set_request_languages(model, text_of(body, "source_lang"), text_of(body, "target_lang"),
                        *options.translation);
  return subject_text(model.loaded(), model.name, options);
}

// The one that is named, or of those that read such texts the first.
SharedModel attending_model(const Service& service, const Json& body) {
  if (has_member(body, "target")) {
    return translator_of(service, body, text_of(body, "source_lang"), text_of(body, "target_lang"));
  }
  const std::string name = text_of(body, "model");
  for (const SharedModel& model : service.models()) {
    const bool is_asked = name.empty() ? model->use != ModelUse::translate : model->name == name;
    if (is_asked && !model->reads_images()) return model;
  }
  throw Refusal{.status = 404,
                .message = name.empty()
                               ? "no model here reads one text; a translator needs `target`"
                               : fmt::format("there is no model '{}' of texts", name),
                .code = "model_not_found"};
}

}  // namespace

void attention(const SharedExchange& e) {
  const Json body = e->json();
  refuse_others(body, {"text", "target", "model", "source_lang", "target_lang", "layers", "heads",
                       "format", "rollout", "discard"});
  AttentionRequest asked{.model = attending_model(e->service, body)};
  asked.text = read_text(*asked.model, body);
  asked.heads.layers = ints_of(body, "layers");
  asked.heads.heads = ints_of(body, "heads");
  asked.heads.importance = false;
  asked.rolls_out = bool_of(body, "rollout", false);
  asked.discard = number_of(body, "discard", 0, 0, 1);
  if (asked.discard > 0 && !asked.rolls_out)
    refuse("`discard` goes with `rollout`, which is not asked for");
  if (asked.rolls_out && !(asked.heads.layers.empty() && asked.heads.heads.empty())) {
    refuse("`rollout` goes through all layers and heads; leave `layers` and `heads` away");
  }
  asked.is_page = choice_of(body, "format", {"json", "html"}) == "html";
  if (asked.is_page && asked.rolls_out) refuse("`format` html shows heads; leave `rollout` away");
  asked.check_tokens();
  const int64_t tokens = asked.tokens();
  work_between_steps(e, 16 * tokens, [e, asked = std::move(asked)] {
    asked.answer(*e);
    return false;
  });
  e->service.metrics().tokens_read(tokens);
}

}  // namespace heddle::serve
