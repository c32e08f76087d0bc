// heddle augment: what augmentation makes of an image, or of one with boxes, as a page.
#include <algorithm>

#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/data/detections.h"
#include "heddle/inspect/images/augmentation_page.h"
#include "heddle/inspect/images/box_augmentation_page.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string image, second, data, page;
  int64_t image_edge = 0, draws = 12, sample = 0;
  uint64_t seed = 1;
  Augmentation how;
  BoxAugmentation boxes;
};

// Larger images are made smaller, so that the page is done in a moment.
constexpr int64_t kLongest = 512;

ImageSize bounded(ImageSize size) {
  const int64_t most = std::max(size.height, size.width);
  if (most <= kLongest) return size;
  const auto side = [&](int64_t x) { return std::max<int64_t>(1, x * kLongest / most); };
  return {side(size.height), side(size.width)};
}

ImageSize size_of(const Flags& flags, const Image& image) {
  if (flags.image_edge > 0) return {flags.image_edge, flags.image_edge};
  return bounded(image.size());
}

// Errors: usage, naming a field with a value that it does not take.
template <class How>
void check_fields(const How& how) {
  for (const Field& field : FieldList(how)) {
    const std::string broken = broken_rule(field);
    check(broken.empty(), ErrorKind::usage, "augment: `{}` {}", field.key, broken);
  }
  how.check("augment");
}

inspect::Page page_of_boxes(const Flags& flags) {
  const DetectionSources found = find_detections(flags.data);
  check(found.train != nullptr, ErrorKind::data, "{}: it has no images to train on", flags.data);
  const DetectionSource source = found.train();
  const auto count = std::ssize(source.images.entries);
  check(flags.sample >= 0 && flags.sample < count, ErrorKind::usage,
        "--sample is {}; {} has images 0 to {} to train on", flags.sample, flags.data, count - 1);
  const auto path = [&](int64_t i) { return source.images.path(static_cast<size_t>(i)); };
  BoxCleaner cleaner;
  const auto at = [&](int64_t i) {
    const auto entry = static_cast<size_t>(i);
    const DecodedImage decoded = source.images.decode(entry, path(i));
    const ImageView view{decoded.pixels.data(), decoded.size, source.images.channels};
    return BoxedImage{view.rgb(), cleaner.clean(source, entry, decoded.size, decoded.size)};
  };
  inspect::Page page = inspect::box_augmentation_page({.how = flags.boxes,
                                                       .set = {count, at, bounded},
                                                       .sample = flags.sample,
                                                       .name = path(flags.sample),
                                                       .draws = flags.draws,
                                                       .seed = flags.seed});
  cleaner.warn(source.file);
  return page;
}

inspect::Page page_of_image(const Flags& flags) {
  check(!flags.second.empty() || (flags.how.mixup_alpha == 0 && flags.how.cutmix_alpha == 0),
        ErrorKind::usage,
        "--mixup-alpha and --cutmix-alpha mix two images; give a second one behind {}",
        flags.image);
  const inspect::ImageToAugment image{read_image(flags.image), flags.image};
  inspect::AugmentationView view{.how = flags.how,
                                 .size = size_of(flags, image.image),
                                 .draws = flags.draws,
                                 .seed = flags.seed};
  if (!flags.second.empty()) {
    view.second = inspect::ImageToAugment{read_image(flags.second), flags.second};
  }
  return inspect::augmentation_page(image, view);
}

void run(const Flags& flags) {
  check(flags.image_edge >= 0 && flags.image_edge <= 4096, ErrorKind::usage,
        "--image-edge is {}; it must be from 1 to 4096, or 0 for the image's size",
        flags.image_edge);
  check(flags.draws >= 1 && flags.draws <= 100, ErrorKind::usage,
        "--draws is {}; it must be from 1 to 100", flags.draws);
  check_fields(flags.how);
  check_fields(flags.boxes);
  check(flags.image.empty() != flags.data.empty(), ErrorKind::usage,
        "augment needs an image, or --data with images whose objects have boxes, and not both");
  wants_page(flags.page);
  const inspect::Page page = flags.data.empty() ? page_of_image(flags) : page_of_boxes(flags);
  write_page("augment", counted(std::ssize(page.data.at("sections").as_array()), "section"),
             flags.page, page);
}

// A flag for each field that training has; with_data: of what needs --data, or excludes it.
template <class How>
void add_field_flags(Subcommand& command, How& how, const Option& data, bool with_data) {
  const auto restrict = [&](const Option& flag) {
    with_data ? flag.needs(data) : flag.excludes(data);
  };
  for (const Field& field : FieldList(how)) {
    const std::string name = flag_name(field.key);
    if (auto* const* is_on = std::get_if<bool*>(&field.member)) {
      restrict(command.add_flag(name, **is_on, field.help));
    } else if (auto* const* number = std::get_if<int64_t*>(&field.member)) {
      restrict(command.add_setting(name, **number, field.help));
    } else if (auto* const* real = std::get_if<double*>(&field.member)) {
      restrict(command.add_setting(name, **real, field.help));
    } else if (auto* const* text = std::get_if<std::string*>(&field.member)) {
      restrict(command.add_setting(name, **text, field.help).may_be_empty());
    } else if (auto* const* several = std::get_if<std::vector<int64_t>*>(&field.member)) {
      restrict(command.add_setting(name, **several, field.help).delimiter(','));
    } else {
      fail(ErrorKind::internal, "augment: no flag for {}", field.key);
    }
  }
}

}  // namespace

void add_augment(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "augment", "Show an image under each augmentation of training, and under all together", run);
  command.add_option("image", flags.image, "a JPEG or PNG file");
  command.add_option("second", flags.second, "another, which MixUp and CutMix mix it with");
  const Option data = command.add_option(
      "--data", flags.data, "in place of an image: a set with boxes, as detectors are trained on");
  command.add_setting("--sample", flags.sample, "the image of --data that is shown, from 0")
      .needs(data);
  add_page_flag(command, flags.page, "the page that is written", "-o,--page").required();
  command
      .add_setting("--image-edge", flags.image_edge,
                   "height and width that a model is trained at; 0: the image's own")
      .excludes(data);
  command.add_setting("--draws", flags.draws, "images of all settings together");
  command.add_setting("--seed", flags.seed, "of the draws");
  command.begin_group("Augmentation, as of heddle train");
  add_field_flags(command, flags.how, data, false);
  command.begin_group("Augmentation of images with boxes (--data)");
  add_field_flags(command, flags.boxes, data, true);
}

}  // namespace heddle::cli
