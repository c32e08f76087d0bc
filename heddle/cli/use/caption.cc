// heddle caption: a sentence of each image, and where each word looked.
#include "heddle/infer/decoding/caption.h"

#include "heddle/base/json/json.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/image_files.h"
#include "heddle/cli/shared_command.h"
#include "heddle/inspect/pages/caption_page.h"

namespace heddle::cli {
namespace {

struct Flags : TranslateFlags {
  std::string page;
  std::vector<std::string> images;
  bool json = false, maps = false, sample = false;
  LineFlags lines;
  dist::GroupOptions ranks;
};

TranslateOptions options_of(const Flags& flags, const LoadedModel& model, Precision precision) {
  TranslateOptions o = caption_options(flags, model, precision);
  take_sampling(o.search, flags.search, flags.sample);
  o.scores = flags.json || flags.n_best > 1 || !flags.page.empty();
  return o;
}

// The captions of an image, best first.
using Captions = std::vector<SeenCaption>;

void print_captions(const std::string& path, const Captions& captions, const SeenGrid& grid,
                    const Flags& flags, Results out) {
  if (!flags.json) {
    for (const SeenCaption& caption : captions) {
      const std::string score =
          captions.size() > 1 ? fmt::format("{:.6f}\t", caption.score) : std::string();
      out.print(fmt::format("{}\t{}{}", path, score, caption.text));
    }
    return;
  }
  Json line = Json::object({{"image", path}});
  const Json said =
      captions_json(captions, flags.maps ? std::optional<SeenGrid>(grid) : std::nullopt);
  for (const auto& [key, value] : said.as_object()) line[key] = value;
  out.print(line.dump());
}

class Captioning {
 public:
  Captioning(const Flags& flags, const Precision& precision)
      : flags_(flags),
        reader_(load_captioner(flags.model)),
        options_(options_of(flags, reader_.loaded, precision)),
        page_(flags.model) {
    if (flags.maps) check_has_maps(reader_.model(), flags.model);
  }

  void answer(const ReadImages& read, Results out) {
    std::vector<Image> fitted;
    for (const Image& image : read.images) fitted.push_back(reader_.processor.fit(image));
    const EncodedImages encoded =
        encode_images(reader_.model(), reader_.processor, fitted, options_.precision);
    const std::vector<Captions> all = captions_of(encoded, read.first);
    for (size_t i = 0; i < all.size(); ++i) {
      const SeenGrid grid{encoded.grids[i], reader_.processor.kept(read.images[i].size())};
      print_captions(read.paths[i], all[i], grid, flags_, out);
      if (flags_.page.empty()) continue;
      // Cells lie over what the model sees.
      const Image& shown = reader_.processor.do_center_crop ? fitted[i] : read.images[i];
      page_.add(read.paths[i], shown, grid.cells, all[i]);
    }
  }
  ImagesFor reads_for() const { return {reader_.model(), reader_.processor}; }
  const inspect::CaptionPage& page() const { return page_; }

 private:
  // first: the number of the first image: draws differ from image to image.
  std::vector<Captions> captions_of(const EncodedImages& encoded, int64_t first) {
    TranslateOptions options = options_;
    options.search.first_line += first;
    const std::vector<Translation> found =
        caption_images(reader_.model(), reader_.loaded.target(), encoded.memories, options);
    if (flags_.maps || !flags_.page.empty()) {
      return seen_captions(reader_, encoded.memories, found, options_.precision);
    }
    std::vector<Captions> all;
    for (const Translation& best : found) all.push_back(plain_captions(best));
    return all;
  }

  const Flags& flags_;
  CaptionReader reader_;
  TranslateOptions options_;
  inspect::CaptionPage page_;
};

void caption_shared(const Flags& flags, dist::Group& group) {
  check(flags.n_best >= 1 && flags.n_best <= 1024, ErrorKind::usage,
        "--n-best is {}; it must be from 1 to 1024", flags.n_best);
  check(!flags.maps || flags.json, ErrorKind::usage,
        "--maps are numbers of the JSON lines; give --json too, or --page for a page of them");
  flags.search.check_draws();
  check_caption_flags(flags);
  const Precision precision = apply_translate_flags(flags);
  const bool has_page = wants_page(flags.page);
  check_same_files(group, flags.ranks, flags.model, precision);
  Captioning captioning(flags, precision);
  for_read_images({"caption", flags.images, flags.lines.skip_bad, flags.json}, group,
                  captioning.reads_for(),
                  [&](const ReadImages& read, Results out) { captioning.answer(read, out); });
  if (!has_page) return;
  write_page("caption", counted(captioning.page().images(), "image"), flags.page,
             captioning.page().page());
}

void run(const Flags& flags) {
  run_shared(
      flags.command, flags.ranks, [&](dist::Group& group) { caption_shared(flags, group); },
      flags.page.empty());
}

}  // namespace

void add_caption(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "caption", "Captions of images: a sentence each, and where each word looked", run);
  flags.command = command;
  add_model_argument(command, flags.model);
  command.add_option("image", flags.images, "JPEG or PNG files").required();
  add_target_flags(command, flags, "caption", " [as the model says, or 48]");
  command.add_setting("--n-best", flags.n_best,
                      "captions of each image, best first, as lines IMAGE, score, caption; widens "
                      "the beam to as many; with --sample, so many draws");
  add_sampling_flags(command, flags.search, flags.sample);
  command.add_flag("--json", flags.json,
                   "a line of JSON an image, with text and score (log p over the length penalty)");
  command.add_flag("--maps", flags.maps,
                   "with --json: of each word the weights of the cells of the image's grid (rows, "
                   "columns), line by line, and, of a decoder that has one, the gate: how much the "
                   "image counted");
  add_page_flag(command, flags.page, "also write a page of where each word looked", "-o,--page");
  add_skip_flag(command, flags.lines, true, AnswersOf::images);
  add_compute_flags(command, flags.compute);
  add_group_flags(command, flags.ranks);
}

}  // namespace heddle::cli
