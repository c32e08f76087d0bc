// heddle classify: the classes of texts.
#include "heddle/infer/classify.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "heddle/base/json.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/dropped_warning.h"
#include "heddle/cli/text_flags.h"
#include "heddle/inspect/text_pages.h"

namespace heddle::cli {
namespace {

struct Flags {
  TextFlags text;
  int64_t top = 5;
  bool is_pair = false;
};

std::vector<TextToClassify> parts_of(std::span<const std::string> texts, bool is_pair) {
  std::vector<TextToClassify> result;
  for (const std::string& text : texts) {
    if (!is_pair) {
      result.push_back({text});
      continue;
    }
    const size_t tab = text.find('\t');
    check(tab != text.npos, ErrorKind::data,
          "classify: '{}' has no tab; --pair needs two texts with a tab between", text);
    result.push_back({text.substr(0, tab), text.substr(tab + 1)});
  }
  return result;
}

void print_one(const std::vector<std::string>& labels, const std::vector<double>& p,
               const Flags& flags) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return p[i]; });
  if (flags.text.json) {
    Json line = Json::object();
    line["label"] = labels[order[0]];
    for (size_t i = 0; i < p.size(); ++i) line["probabilities"][labels[i]] = p[i];
    return print_result(line.dump());
  }
  std::string line;
  order.resize(std::min(order.size(), static_cast<size_t>(flags.top)));
  for (const size_t i : order) {
    line += fmt::format("{}{}\t{:.4f}", line.empty() ? "" : "\t", labels[i], p[i]);
  }
  print_result(line);
}

void run(const Flags& flags) {
  check(flags.top >= 1, ErrorKind::usage, "--top is {}; it must be at least 1", flags.top);
  const bool has_page = !flags.text.page.empty();
  if (has_page) inspect::check_output(flags.text.page, "the page");
  const Precision precision = apply_compute_flags(flags.text.compute);
  const TextModel model = load_text_model(flags.text.model);
  inspect::ClassPage page(flags.text.model, model.model().labels(), class_scale(model.model()),
                          flags.top);
  int64_t cut = 0, count = 0;
  DroppedCharacters dropped(model.tokenizer);
  for_texts("classify", flags.text, [&](std::span<const std::string> texts) {
    int64_t cut_here = 0;
    const std::vector<TextToClassify> parts = parts_of(texts, flags.is_pair);
    const auto all = classify(model, parts, precision, cut_here);
    for (const TextToClassify& part : parts) {
      dropped.without(part.text);
      dropped.without(part.second.value_or(""));
    }
    cut += cut_here;
    count += static_cast<int64_t>(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      print_one(model.model().labels(), all[i], flags);
      if (has_page) page.add(texts[i], all[i]);
    }
  });
  warn_of_cut("classify", cut, count, model.max_length);
  warn_of_dropped_input("classify", dropped);
  if (has_page) write_text_page("classify", flags.text, page.page(), page.texts());
}

}  // namespace

void add_classify(Subcommand& app) {
  auto flags = std::make_shared<Flags>();
  Subcommand command = app.add_subcommand(
      "classify", "Classes of texts with their probabilities, the likeliest first");
  add_text_flags(*command, flags->text);
  command->add_option("--top", flags->top, "classes printed of each text; --json gives all")
      ->capture_default_str();
  command->add_flag("--pair", flags->is_pair, "two texts a line, with a tab between");
  command->callback([flags] { run(*flags); });
}

}  // namespace heddle::cli
