// heddle augment: what augmentation makes of an image, as a page.
#include <algorithm>

#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/inspect/images/augmentation_page.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string image, second, page;
  int64_t image_edge = 0, draws = 12;
  uint64_t seed = 1;
  Augmentation how;
};

// Larger images are made smaller, so that the page is done in a moment.
constexpr int64_t kLongest = 512;

ImageSize size_of(const Flags& flags, const Image& image) {
  if (flags.image_edge > 0) return {flags.image_edge, flags.image_edge};
  const int64_t most = std::max(image.height, image.width);
  if (most <= kLongest) return image.size();
  const auto side = [&](int64_t x) { return std::max<int64_t>(1, x * kLongest / most); };
  return {side(image.height), side(image.width)};
}

void run(const Flags& flags) {
  check(flags.image_edge >= 0 && flags.image_edge <= 4096, ErrorKind::usage,
        "--image-edge is {}; it must be from 1 to 4096, or 0 for the image's size",
        flags.image_edge);
  check(flags.draws >= 1 && flags.draws <= 100, ErrorKind::usage,
        "--draws is {}; it must be from 1 to 100", flags.draws);
  for (const Field& field : FieldList(flags.how)) {
    const std::string broken = broken_rule(field);
    check(broken.empty(), ErrorKind::usage, "augment: `{}` {}", field.key, broken);
  }
  flags.how.check("augment");
  check(!flags.second.empty() || (flags.how.mixup_alpha == 0 && flags.how.cutmix_alpha == 0),
        ErrorKind::usage,
        "--mixup-alpha and --cutmix-alpha mix two images; give a second one behind {}",
        flags.image);
  wants_page(flags.page);
  const inspect::ImageToAugment image{read_image(flags.image), flags.image};
  inspect::AugmentationView view{.how = flags.how,
                                 .size = size_of(flags, image.image),
                                 .draws = flags.draws,
                                 .seed = flags.seed};
  if (!flags.second.empty()) {
    view.second = inspect::ImageToAugment{read_image(flags.second), flags.second};
  }
  const inspect::Page page = inspect::augmentation_page(image, view);
  write_page("augment", counted(std::ssize(page.data.at("sections").as_array()), "section"),
             flags.page, page);
}

// A flag for each field that training has.
void add_field_flags(Subcommand& command, Augmentation& how) {
  for (const Field& field : FieldList(how)) {
    const std::string name = flag_name(field.key);
    if (auto* const* is_on = std::get_if<bool*>(&field.member)) {
      command.add_flag(name, **is_on, field.help);
    } else if (auto* const* number = std::get_if<int64_t*>(&field.member)) {
      command.add_setting(name, **number, field.help);
    } else if (auto* const* real = std::get_if<double*>(&field.member)) {
      command.add_setting(name, **real, field.help);
    } else if (auto* const* text = std::get_if<std::string*>(&field.member)) {
      command.add_setting(name, **text, field.help).may_be_empty();
    } else if (auto* const* several = std::get_if<std::vector<int64_t>*>(&field.member)) {
      command.add_setting(name, **several, field.help).delimiter(',');
    } else {
      fail(ErrorKind::internal, "augment: no flag for {}", field.key);
    }
  }
}

}  // namespace

void add_augment(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "augment", "Show an image under each augmentation of training, and under all together", run);
  command.add_option("image", flags.image, "a JPEG or PNG file").required();
  command.add_option("second", flags.second, "another, which MixUp and CutMix mix it with");
  add_page_flag(command, flags.page, "the page that is written", "-o,--page").required();
  command.add_setting("--image-edge", flags.image_edge,
                      "height and width that a model is trained at; 0: the image's own");
  command.add_setting("--draws", flags.draws, "images of all settings together");
  command.add_setting("--seed", flags.seed, "of the draws");
  command.begin_group("Augmentation, as of heddle train");
  add_field_flags(command, flags.how);
}

}  // namespace heddle::cli
