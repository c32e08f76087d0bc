// Sections of images with captions, drawn as a training run would draw them.
#include "heddle/inspect/images/augmentation_page.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heddle/base/error.h"
#include "heddle/inspect/images/image_subject.h"
#include "heddle/inspect/run_history.h"
#include "heddle/vision/mixing.h"
#include "heddle/vision/policies.h"

namespace heddle::inspect {
namespace {

constexpr int64_t kDraws = 4, kPolicyDraws = 6, kLargestLevel = 30;
constexpr int64_t kShown = 128, kShownLarge = 256;  // pixels of the longer side on the page

constexpr auto kOpNames =
    std::to_array<const char*>({"identity", "shear_x", "shear_y", "translate_x", "translate_y",
                                "rotate", "brightness", "color", "contrast", "sharpness",
                                "posterize", "solarize", "auto_contrast", "equalize", "invert"});

Json shown(const Image& image, const std::string& caption, int64_t longest = kShown) {
  Json json = image_json(image, longest);
  json["caption"] = caption;
  return json;
}

Json section(const std::string& title, const std::string& text, Json images) {
  return Json::object({{"title", title}, {"text", text}, {"images", std::move(images)}});
}

class Sections {
 public:
  Sections(const Image& image, const AugmentationView& view) : view_(view), image_(image) {}

  Json all() {
    Json sections = Json::array();
    sections.push_back(combined());
    const std::vector<Json> single = alone();
    for (const Json& s : single) sections.push_back(s);
    if (view_.second) {
      sections.push_back(mixed(Mixing::Kind::mixup));
      sections.push_back(mixed(Mixing::Kind::cutmix));
    }
    sections.push_back(operations());
    return sections;
  }

 private:
  Image draw(const Augmentation& how, int64_t i) const {
    return augment(image_, how, {view_.size, Resample::bilinear},
                   {view_.seed, static_cast<uint64_t>(i), 0});
  }

  Json draws_of(const Augmentation& how, int64_t count) const {
    Json images = Json::array();
    for (int64_t i = 0; i < count; ++i)
      images.push_back(shown(draw(how, i), fmt::format("draw {}", i + 1)));
    return images;
  }

  Json combined() const {
    std::string settings;
    Augmentation how = view_.how;  // mixing takes two images, and has sections of its own
    const Augmentation none;
    how.mixup_alpha = none.mixup_alpha, how.cutmix_alpha = none.cutmix_alpha;
    how.mix_probability = none.mix_probability;
    for (const FieldDifference& d : diff_fields(none, how)) {
      settings += fmt::format("{}{} {}", settings.empty() ? "" : ", ", d.key, d.second);
    }
    return section("All settings together",
                   settings.empty()
                       ? "Nothing is switched on: every draw is the image, resized."
                       : fmt::format("As a training run would see the image in {} epochs: {}.",
                                     view_.draws, settings),
                   draws_of(view_.how, view_.draws));
  }

  // One augmentation without the others.
  Json one(const std::string& key, Json value, bool is_on, const std::string& text,
           int64_t count) const {
    Augmentation how;
    how.augment_fill = view_.how.augment_fill;
    how.rand_augment_count = view_.how.rand_augment_count;
    how.rand_augment_magnitude = view_.how.rand_augment_magnitude;
    const auto unknown = from_json(how, Json::object({{key, value}}), "augment");
    check(unknown.empty(), ErrorKind::internal, "augment: there is no field {}", key);
    return section(fmt::format("{} {}{}", key, value.is_string() ? value.as_string() : value.dump(),
                               is_on ? "" : " (off)"),
                   text, draws_of(how, count));
  }

  std::vector<Json> alone() const {
    const Augmentation& h = view_.how;
    const auto number = [&](const char* key, double value, double common, const char* text) {
      return one(key, value > 0 ? value : common, value > 0, text, kDraws);
    };
    std::vector<Json> list = {
        number("random_resized_crop", h.random_resized_crop, 0.08,
               "A part of at least that share of the area, resized."),
        one("random_crop",
            h.random_crop > 0 ? h.random_crop : std::max<int64_t>(1, view_.size.height / 8),
            h.random_crop > 0, "Shifted by up to so many pixels; what is uncovered is filled.",
            kDraws),
        one("flip", true, h.flip, "Half of the images are mirrored.", kDraws),
        number("color_jitter", h.color_jitter, 0.4,
               "Brightness, contrast and saturation, each by a factor of its own.")};
    const std::array<std::pair<const char*, const char*>, 3> policies = {
        {{"rand_augment", "Operations drawn from all, at one magnitude."},
         {"cifar10", "One of 25 pairs of operations that were found for CIFAR-10."},
         {"trivial", "One operation, at a magnitude that is drawn too."}}};
    for (const auto& [name, text] : policies) {
      list.push_back(one("auto_augment", name, h.auto_augment == name, text, kPolicyDraws));
    }
    list.push_back(
        one("random_erasing", 1.0, h.random_erasing > 0,
            fmt::format("A rectangle is painted over{}.",
                        h.random_erasing > 0 ? fmt::format(", here in each draw; in training with "
                                                           "probability {}",
                                                           h.random_erasing)
                                             : ""),
            kDraws));
    return list;
  }

  // Each operation at the magnitude of RandAugment, and at the largest, in both directions.
  Json operations() const {
    Json images = Json::array();
    const int64_t level = view_.how.rand_augment_magnitude;
    const Image plain = draw({}, 0);
    for (size_t k = 0; k < kOpNames.size(); ++k) {
      const auto op = static_cast<ImageOp>(k);
      std::vector<double> magnitudes;
      for (const int64_t at : {level, kLargestLevel}) {
        const double m = magnitude_at(op, at, {}, view_.size);
        magnitudes.push_back(m);
        if (is_signed(op)) magnitudes.push_back(-m);
      }
      std::ranges::sort(magnitudes);
      const auto repeated = std::ranges::unique(magnitudes);
      magnitudes.erase(repeated.begin(), repeated.end());
      for (const double m : magnitudes) {
        Image changed = plain;
        apply(changed, op, m, view_.how.fill());
        const std::string amount = magnitudes.size() > 1 ? fmt::format(" {:.3g}", m) : "";
        images.push_back(shown(changed, kOpNames[k] + amount));
      }
    }
    return section("Every operation",
                   fmt::format("Those of the policies, at magnitude {} and {} of {}: pixels, "
                               "degrees, or parts of 1, in either direction.",
                               level, kLargestLevel, kLargestLevel),
                   std::move(images));
  }

  Json mixed(Mixing::Kind kind) const {
    const bool is_mixup = kind == Mixing::Kind::mixup;
    Augmentation how;
    const double own = is_mixup ? view_.how.mixup_alpha : view_.how.cutmix_alpha;
    const double alpha = own > 0 ? own : is_mixup ? 0.8 : 1.0;
    (is_mixup ? how.mixup_alpha : how.cutmix_alpha) = alpha;
    const std::array<Image, 2> both = {
        draw({}, 0), augment(view_.second->image, {}, {view_.size}, {view_.seed})};
    Json images = Json::array();
    for (int64_t i = 0; i < kPolicyDraws; ++i) {
      const Mixing mixing =
          draw_mixing(how, make_key(view_.seed, static_cast<uint64_t>(i), hash_name("mixing")));
      images.push_back(mix_of(both, mixing));
    }
    return section(
        fmt::format("{}_alpha {}{}", is_mixup ? "mixup" : "cutmix", alpha, own > 0 ? "" : " (off)"),
        is_mixup ? "Both images added up, each by its share; labels are mixed by the same shares."
                 : "A rectangle of the one image in the other; labels are mixed by the areas.",
        std::move(images));
  }

  Json mix_of(const std::array<Image, 2>& both, const Mixing& mixing) const {
    std::vector<float> pixels;
    for (const Image& image : both) {
      pixels.insert(pixels.end(), image.pixels.begin(), image.pixels.end());
    }
    std::vector<float> targets = {1, 0, 0, 1};
    const std::array<ImageSize, 2> sizes = {both[0].size(), both[1].size()};
    mix(mixing, {.pixels = pixels,
                 .channels = Image::kChannels,
                 .sizes = sizes,
                 .targets = targets,
                 .classes = 2});
    Image result(both[0].height, both[0].width);
    for (size_t i = 0; i < result.pixels.size(); ++i) {
      result.pixels[i] = static_cast<uint8_t>(std::lround(pixels[i]));
    }
    return shown(
        result, fmt::format("{:.0f} % first, {:.0f} % second", 100 * targets[0], 100 * targets[1]));
  }

  const AugmentationView& view_;
  const Image& image_;
};

}  // namespace

Page augmentation_page(const ImageToAugment& image, const AugmentationView& view) {
  Page page{.title = "Augmentation: " + short_names({image.name})[0],
            .data = {},
            .scripts = {"image_canvas.js", "augmentation.js"}};
  page.data["name"] = image.name;
  page.data["size"] = std::vector<int64_t>{view.size.width, view.size.height};
  page.data["seed"] = view.seed;
  page.data["original"] =
      shown(image.image, fmt::format("{} x {} pixels", image.image.width, image.image.height),
            kShownLarge);
  if (view.second) page.data["second"] = shown(view.second->image, view.second->name, kShownLarge);
  page.data["sections"] = Sections(image.image, view).all();
  return page;
}

}  // namespace heddle::inspect
