// heddle embed: a line or an image in, a vector out.
#include "heddle/infer/embed.h"

#include <algorithm>

#include "heddle/base/json/json.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/image_files.h"
#include "heddle/cli/shared_command.h"
#include "heddle/inspect/pages/text_pages.h"

namespace heddle::cli {
namespace {

struct Flags {
  TextFlags text;
  std::vector<std::string> images, pooling;
  bool normalize = false, no_normalize = false;
  int64_t max_length = 0;
  Subcommand command;
  dist::GroupOptions ranks;
};

void apply(const Flags& flags, EmbedOptions& options) {
  if (!flags.pooling.empty()) options.pooling.clear();
  for (const std::string& name : flags.pooling) options.pooling.push_back(pooling_of(name));
  if (flags.normalize || flags.no_normalize) options.normalize = flags.normalize;
}

void apply(const Flags& flags, SentenceEncoder& encoder) {
  apply(flags, encoder.options);
  if (flags.max_length == 0) return;
  const int64_t most = encoder.text.tokens().max_length();
  check(flags.max_length >= 1 && flags.max_length <= most, ErrorKind::usage,
        "--max-length is {}; the model takes 1 to {} tokens", flags.max_length, most);
  encoder.text.max_length = flags.max_length;
}

// image: the file, of vectors of images
void print_vector(const std::vector<float>& x, bool is_json, Results out,
                  const std::string& image = "") {
  if (!is_json) return out.print(fmt::format("{}", fmt::join(x, " ")));
  Json line = Json::object();
  if (!image.empty()) line["image"] = image;
  line["embedding"] = x;
  out.print(line.dump());
}

void run_images(const Flags& flags, const Precision& precision, bool has_page, dist::Group& group) {
  check(flags.text.texts.empty() && flags.max_length == 0, ErrorKind::usage,
        "{} is for texts; leave it out, or the images",
        flags.max_length == 0 ? "--text" : "--max-length");
  const ImageReader reader = load_image_reader(flags.text.model);
  const ImageFacts& facts = reader.model().facts();
  const bool has_class_token = facts.tokens > 0;
  EmbedOptions options;
  options.pooling = {facts.reads_token() ? Pooling::cls : Pooling::mean};
  apply(flags, options);
  check(has_class_token || std::ranges::count(options.pooling, Pooling::cls) == 0, ErrorKind::usage,
        "--pooling cls: {} has no class token; take --pooling mean", flags.text.model);
  inspect::SimilarityPage page(flags.text.model);
  for_images({"embed", flags.images, flags.text.lines.skip_bad, flags.text.json}, group,
             {reader.model(), reader.processor}, [&](const ReadImages& read, Results out) {
               const auto all = embed(reader, read.images, options, precision);
               for (size_t i = 0; i < all.size(); ++i) {
                 print_vector(all[i], flags.text.json, out, read.paths[i]);
                 if (has_page) page.add(read.paths[i], all[i]);
               }
             });
  if (!has_page) return;
  write_page("embed", counted(page.texts(), "image"), flags.text.page, page.finish());
}

void embed_shared(const Flags& flags, dist::Group& group) {
  const bool has_page = wants_page(flags.text.page);
  const Precision precision = apply_compute_flags(flags.text.compute);
  check_same_files(group, flags.ranks, flags.text.model, precision);
  if (!flags.images.empty()) return run_images(flags, precision, has_page, group);
  check_reads_texts(flags.text.model);
  SentenceEncoder encoder = load_sentence_encoder(flags.text.model);
  apply(flags, encoder);
  inspect::SimilarityPage page(flags.text.model);
  const int64_t limit = encoder.text.max_length;
  const auto answer = [&](std::span<const std::string> texts, int64_t& cut, Results out) {
    const auto all = embed(encoder, texts, precision, cut);
    for (size_t i = 0; i < texts.size(); ++i) {
      print_vector(all[i], flags.text.json, out);
      if (has_page) page.add(texts[i], all[i]);
    }
  };
  for_texts("embed", flags.text, limit, group, answer);
  if (has_page) write_page("embed", counted(page.texts(), "text"), flags.text.page, page.finish());
}

void run(const Flags& flags) {
  run_shared(
      flags.command, flags.ranks, [&](dist::Group& group) { embed_shared(flags, group); },
      flags.text.page.empty());
}

}  // namespace

void add_embed(Subcommand& app) {
  auto [command, flags] =
      app.add_command<Flags>("embed",
                             "Vectors of sentences or images: a line or a file in, a vector out, "
                             "as the model's sentence-transformers files say",
                             run);
  flags.command = command;
  add_text_flags(command, flags.text, AnswersOf::lines_or_images);
  command.add_option("image", flags.images, "JPEG or PNG files, of a model that reads images");
  command.add_option(
      "--pooling", flags.pooling,
      "mean, cls, max, mean_sqrt_len_tokens, weightedmean or lasttoken; several "
      "are laid end to end (else as the files say, or mean; of images cls, the class token, where "
      "the model classifies by it, else mean)");
  Option yes = command.add_flag("--normalize", flags.normalize, "vectors of length 1");
  command.add_flag("--no-normalize", flags.no_normalize, "vectors as they are pooled")
      .excludes(yes);
  command.add_option("--max-length", flags.max_length,
                     "tokens of a text, special ones included; longer ones are cut (else as the "
                     "files say)");
  add_group_flags(command, flags.ranks);
}

}  // namespace heddle::cli
