// heddle detect: the objects of images, with boxes around them.
#include "heddle/infer/detect.h"

#include "heddle/base/json/json.h"
#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/image_files.h"
#include "heddle/cli/shared_command.h"
#include "heddle/infer/answers.h"
#include "heddle/inspect/pages/detection_page.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string model, page;
  std::vector<std::string> images;
  ComputeFlags compute{.precision = "f32"};
  LineFlags lines;
  double threshold = 0.5;
  bool json = false;
  Subcommand command;
  dist::GroupOptions ranks;
};

// So that an image without objects does not look like a command that did nothing.
void say_likeliest(const std::string& path, const std::vector<std::string>& labels,
                   std::span<const ScoredBox> all, double threshold) {
  const auto best = std::ranges::max_element(all, {}, &ScoredBox::score);
  if (best == all.end()) return;
  log_info("{}: no object of at least {}; the likeliest: {} {:.2f}", path, threshold,
           labels[static_cast<size_t>(best->label)], best->score);
}

// A line of JSON an image; else a line an object, and none for an image without.
void print_boxes(const std::string& path, const std::vector<std::string>& labels, ImageSize size,
                 std::span<const ScoredBox> boxes, bool is_json, Results out) {
  if (is_json) {
    Json line = Json::object({{"image", path}});
    const Json objects = objects_json(boxes, labels, size);
    for (const auto& [key, value] : objects.as_object()) line[key] = value;
    return out.print(line.dump());
  }
  for (const ScoredBox& one : boxes) {
    out.print(fmt::format("{}\t{}\t{:.4f}\t{:.1f} {:.1f} {:.1f} {:.1f}", path,
                          labels[static_cast<size_t>(one.label)], one.score, one.box.x0, one.box.y0,
                          one.box.x1, one.box.y1));
  }
}

void detect_shared(const Flags& flags, dist::Group& group) {
  check(flags.threshold >= 0 && flags.threshold <= 1, ErrorKind::usage,
        "--threshold is {}; it must be at least 0 and at most 1", flags.threshold);
  const bool has_page = wants_page(flags.page);
  const Precision precision = apply_compute_flags(flags.compute);
  check_same_files(group, flags.ranks, flags.model, precision);
  const ImageReader reader = load_detector(flags.model);
  const std::vector<std::string> labels = class_names(reader.model());
  inspect::DetectionPage page(flags.model, labels, flags.threshold);
  const auto answer = [&](const ReadImages& read, Results out) {
    std::vector<Image> fitted;
    std::vector<ImageSize> sizes;
    for (const Image& image : read.images) {
      fitted.push_back(reader.processor.fit(image));
      sizes.push_back(image.size());
    }
    const auto all = detect(reader, fitted, sizes, precision);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto boxes = sure_boxes(all[i], flags.threshold, sizes[i]);
      print_boxes(read.paths[i], labels, sizes[i], boxes, flags.json, out);
      if (boxes.empty() && !flags.json) {
        say_likeliest(read.paths[i], labels, sure_boxes(all[i], 0, sizes[i]), flags.threshold);
      }
      if (has_page) {
        page.add(read.paths[i], sizes[i], read.images[i], sure_boxes(all[i], 0, sizes[i]));
      }
    }
  };
  for_read_images({"detect", flags.images, flags.lines.skip_bad, flags.json}, group,
                  {reader.model(), reader.processor}, answer);
  if (!has_page) return;
  write_page("detect", counted(page.images(), "image"), flags.page, page.page());
}

void run(const Flags& flags) {
  run_shared(
      flags.command, flags.ranks, [&](dist::Group& group) { detect_shared(flags, group); },
      flags.page.empty());
}

}  // namespace

void add_detect(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "detect", "Objects of images: class, score and box (left, top, right, bottom, in pixels)",
      run);
  flags.command = command;
  add_model_argument(command, flags.model);
  command.add_option("image", flags.images, "JPEG or PNG files").required();
  command.add_setting("--threshold", flags.threshold, "least score of an object");
  command.add_flag("--json", flags.json, "a line of JSON an image");
  add_page_flag(command, flags.page, "also write a page with boxes over the images", "-o,--page");
  add_skip_flag(command, flags.lines, true, AnswersOf::images);
  add_compute_flags(command, flags.compute);
  add_group_flags(command, flags.ranks);
}

}  // namespace heddle::cli
