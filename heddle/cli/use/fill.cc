// heddle fill: tokens for the masks of a text.
#include "heddle/infer/answers.h"

#include <utility>

#include "heddle/base/json/json.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/inspect/pages/text_pages.h"

namespace heddle::cli {
namespace {

struct Flags {
  TextFlags text;
  int64_t top = 5;
};

using Masks = std::vector<std::vector<Fill>>;

std::string as_json(const std::string& text, const Masks& masks) {
  Json line = Json::object({{"text", text}, {"masks", Json::array()}});
  for (const auto& fills : masks) {
    Json list = Json::array();
    for (const Fill& fill : fills) {
      list.push_back(Json::object({{"id", fill.id},
                                   {"token", fill.token},
                                   {"probability", fill.probability},
                                   {"text", fill.text}}));
    }
    line["masks"].push_back(std::move(list));
  }
  return line.dump();
}

// Texts are parted by an empty line; one of several masks says which is which.
void print_plain(const Masks& masks, bool is_first, Results out) {
  if (!is_first) out.print("");
  for (size_t i = 0; i < masks.size(); ++i) {
    if (masks.size() > 1) out.print(fmt::format("mask {}:", i + 1));
    for (const Fill& fill : masks[i]) {
      out.print(fmt::format("{:.4f}  {:<16} {}", fill.probability, fill.token, fill.text));
    }
  }
}

void run(const Flags& flags) {
  const bool has_page = wants_page(flags.text.page);
  const Precision precision = apply_compute_flags(flags.text.compute);
  const LoadedModel model = load_text_model(flags.text.model);
  const int32_t mask = model.tokenizer->mask_id();
  inspect::FillPage page(flags.text.model, mask < 0 ? "" : model.tokenizer->token(mask));
  bool is_first = true;
  dist::LocalGroup alone;
  const auto answer = [&](std::span<const std::string> texts, int64_t&, Results out) {
    const std::vector<Masks> all = fill_masks(model, texts, flags.top, precision);
    for (size_t i = 0; i < texts.size(); ++i) {
      if (flags.text.json) {
        out.print(as_json(texts[i], all[i]));
      } else {
        print_plain(all[i], std::exchange(is_first, false), out);
      }
      if (has_page) page.add(texts[i], all[i]);
    }
  };
  for_texts("fill", flags.text, 0, alone, answer);
  if (has_page) write_page("fill", counted(page.texts(), "text"), flags.text.page, page.page());
}

}  // namespace

void add_fill(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "fill",
      "Fill masks: likely tokens for the masks of texts ([MASK], or as the tokenizer spells it), "
      "with their probabilities",
      run);
  add_text_flags(command, flags.text);
  command.add_setting("--top", flags.top, "tokens for each mask");
}

}  // namespace heddle::cli
