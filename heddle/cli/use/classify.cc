// heddle classify: the classes of images, of texts, or of their words.
#include "heddle/infer/answers.h"

#include <algorithm>
#include <numeric>

#include "heddle/base/json/json.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/image_files.h"
#include "heddle/cli/lines.h"
#include "heddle/cli/shared_command.h"
#include "heddle/inspect/pages/text_pages.h"
#include "heddle/text/strings/strings.h"

namespace heddle::cli {
namespace {

struct Flags {
  TextFlags text;
  std::vector<std::string> images;
  int64_t top = 5;
  bool is_pair = false;
  Option has_top;
  Subcommand command;
  dist::GroupOptions ranks;
};

// What stands for the class of a word that has none, as in CoNLL-U.
constexpr const char* kNoLabel = "_";

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
    check(text.find('\t', tab + 1) == text.npos, ErrorKind::data,
          "classify: '{}' has more than one tab; --pair needs two texts with a tab between", text);
    result.push_back({text.substr(0, tab), text.substr(tab + 1)});
  }
  return result;
}

// image: the file, of classes of images
void print_one(const std::vector<std::string>& labels, const std::vector<double>& p,
               const Flags& flags, Results out, const std::string& image = "") {
  if (flags.text.json) {
    Json line = Json::object();
    if (!image.empty()) line["image"] = image;
    const Json classes = class_json(labels, p);
    for (const auto& [key, value] : classes.as_object()) line[key] = value;
    return out.print(line.dump());
  }
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return p[i]; });
  std::string line = image;
  order.resize(std::min(order.size(), static_cast<size_t>(flags.top)));
  for (const size_t i : order) {
    line += fmt::format("{}{}\t{:.4f}", line.empty() ? "" : "\t", labels[i], p[i]);
  }
  out.print(line);
}

// A word and its class a line, and an empty line behind each text: what train and eval read.
void print_words(const std::string& text, const std::vector<std::string>& words,
                 const std::vector<WordClass>& classes, const std::vector<std::string>& labels,
                 bool is_json, Results out) {
  Json line = Json::object({{"text", text}, {"words", Json::array()}});
  for (size_t w = 0; w < words.size(); ++w) {
    const bool has_label = classes[w].label >= 0;
    const std::string label = has_label ? labels[static_cast<size_t>(classes[w].label)] : kNoLabel;
    if (!is_json) {
      out.print(words[w] + "\t" + label);
      continue;
    }
    Json word = Json::object({{"word", words[w]}});
    word["label"] = has_label ? Json(label) : Json();
    word["probability"] = has_label ? Json(classes[w].probability) : Json();
    line["words"].push_back(std::move(word));
  }
  out.print(is_json ? line.dump() : "");
}

void run_words(const Flags& flags, const LoadedModel& model, const Precision& precision,
               dist::Group& group) {
  check(!flags.is_pair && flags.has_top.count() == 0, ErrorKind::usage,
        "{} is for classes of texts; {} gives each word its likeliest class",
        flags.is_pair ? "--pair" : "--top", flags.text.model);
  const bool has_page = !flags.text.page.empty();
  const std::vector<std::string> labels = class_names(*model.model);
  inspect::WordClassPage page(flags.text.model, labels);
  DroppedCharacters dropped(*model.tokenizer);
  const int64_t limit = model.max_length;
  const auto answer = [&](std::span<const std::string> texts, int64_t& cut, Results out) {
    std::vector<std::vector<std::string>> words;
    for (const std::string& text : texts) words.push_back(split_at_spaces(text));
    const auto classes = classify_words(model, words, precision, cut);
    for (const std::string& text : texts) dropped.count_in(text);
    for (size_t i = 0; i < texts.size(); ++i) {
      print_words(texts[i], words[i], classes[i], labels, flags.text.json, out);
      if (has_page) page.add(words[i], classes[i]);
    }
  };
  for_texts("classify", flags.text, limit, group, answer);
  add_of_ranks(group, dropped);
  warn_of_dropped_input("classify", dropped);
  if (has_page) write_page("classify", counted(page.texts(), "text"), flags.text.page, page.page());
}

void run_images(const Flags& flags, const Precision& precision, bool has_page, dist::Group& group) {
  check(flags.text.texts.empty() && !flags.is_pair, ErrorKind::usage,
        "{} is for texts; leave it out, or the images", flags.is_pair ? "--pair" : "--text");
  const ImageReader reader = load_image_reader(flags.text.model);
  const std::vector<std::string> labels = class_names(reader.model());
  inspect::ClassPage page(flags.text.model, labels, class_scale(reader.model()), flags.top,
                          "image");
  for_images({"classify", flags.images, flags.text.lines.skip_bad, flags.text.json}, group,
             {reader.model(), reader.processor}, [&](const ReadImages& read, Results out) {
               const auto all = classify(reader, read.images, precision);
               for (size_t i = 0; i < all.size(); ++i) {
                 print_one(labels, all[i], flags, out, read.paths[i]);
                 if (has_page) page.add(read.paths[i], all[i], &read.images[i]);
               }
             });
  if (!has_page) return;
  write_page("classify", counted(page.texts(), "image"), flags.text.page, page.page());
}

void classify_shared(const Flags& flags, dist::Group& group) {
  check(flags.top >= 1, ErrorKind::usage, "--top is {}; it must be at least 1", flags.top);
  const bool has_page = wants_page(flags.text.page);
  const Precision precision = apply_compute_flags(flags.text.compute);
  check_same_files(group, flags.ranks, flags.text.model, precision);
  if (!flags.images.empty()) return run_images(flags, precision, has_page, group);
  check_reads_texts(flags.text.model);
  const LoadedModel model = load_text_model(flags.text.model);
  if (model.model->heads().token_classes) return run_words(flags, model, precision, group);
  const std::vector<std::string> labels = class_names(*model.model);
  inspect::ClassPage page(flags.text.model, labels, class_scale(*model.model), flags.top);
  DroppedCharacters dropped(*model.tokenizer);
  const int64_t limit = model.max_length;
  const auto answer = [&](std::span<const std::string> texts, int64_t& cut, Results out) {
    const std::vector<TextToClassify> parts = parts_of(texts, flags.is_pair);
    const auto all = classify(model, parts, precision, cut);
    for (const TextToClassify& part : parts) {
      dropped.count_in(part.text);
      dropped.count_in(part.second.value_or(""));
    }
    for (size_t i = 0; i < texts.size(); ++i) {
      print_one(labels, all[i], flags, out);
      if (has_page) page.add(texts[i], all[i]);
    }
  };
  for_texts("classify", flags.text, limit, group, answer);
  add_of_ranks(group, dropped);
  warn_of_dropped_input("classify", dropped);
  if (has_page) write_page("classify", counted(page.texts(), "text"), flags.text.page, page.page());
}

void run(const Flags& flags) {
  run_shared(
      flags.command, flags.ranks, [&](dist::Group& group) { classify_shared(flags, group); },
      flags.text.page.empty());
}

}  // namespace

void add_classify(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "classify",
      "Classes of images or texts with their probabilities, the likeliest first; of a tagger each "
      "word and its class",
      run);
  flags.command = command;
  add_text_flags(command, flags.text, AnswersOf::lines_or_images);
  command.add_option("image", flags.images, "JPEG or PNG files, of a model that reads images");
  flags.has_top =
      command.add_setting("--top", flags.top, "classes printed of each text; --json gives all");
  command.add_flag("--pair", flags.is_pair, "two texts a line, with a tab between");
  add_group_flags(command, flags.ranks);
}

}  // namespace heddle::cli
