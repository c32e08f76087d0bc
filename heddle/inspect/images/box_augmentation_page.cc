// Sections of images with their boxes painted on, drawn as a training run would draw them.
#include "heddle/inspect/images/box_augmentation_page.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heddle/base/progress.h"
#include "heddle/inspect/images/image_subject.h"
#include "heddle/inspect/run_history.h"

namespace heddle::inspect {
namespace {

constexpr int64_t kDraws = 6, kShown = 224;
constexpr int64_t kMostObjects = 300;  // as of a detector of many queries

// Of a class, again from the first where there are more.
constexpr auto kColors = std::to_array<Rgb>(
    {{230, 25, 75}, {60, 180, 75}, {255, 225, 25}, {0, 130, 200}, {245, 130, 48}, {240, 50, 230}});

// The edges of a box, inside of the image.
void paint(Image& image, const Box& box, const Rgb& color) {
  const auto pixel = [](double x, int64_t size) {
    return std::clamp<int64_t>(std::llrint(x), 0, size - 1);
  };
  const int64_t left = pixel(box.x0, image.width), right = pixel(box.x1 - 1, image.width),
                top = pixel(box.y0, image.height), bottom = pixel(box.y1 - 1, image.height);
  const auto set = [&](int64_t y, int64_t x) {
    std::ranges::copy(color, image.row(y) + x * Image::kChannels);
  };
  for (int64_t x = left; x <= right; ++x) set(top, x), set(bottom, x);
  for (int64_t y = top; y <= bottom; ++y) set(y, left), set(y, right);
}

Json shown(const BoxedImage& one, const std::string& caption) {
  const int64_t most = std::max(one.image.height, one.image.width);
  const auto side = [&](int64_t x) {
    return most <= kShown ? x : std::max<int64_t>(1, x * kShown / most);
  };
  Image image =
      resize(one.image, side(one.image.height), side(one.image.width), Resample::bilinear);
  const double down = static_cast<double>(image.height) / static_cast<double>(one.image.height);
  const double across = static_cast<double>(image.width) / static_cast<double>(one.image.width);
  for (const LabelledBox& object : one.boxes) {
    const Box& b = object.box;
    paint(image, {b.x0 * across, b.y0 * down, b.x1 * across, b.y1 * down},
          kColors[static_cast<size_t>(object.label) % kColors.size()]);
  }
  Json json = image_json(image, kShown);
  json["caption"] = fmt::format("{}: {} x {}, {}", caption, one.image.width, one.image.height,
                                counted(std::ssize(one.boxes), "object"));
  return json;
}

Json section(const BoxAugmentationView& view, const std::string& title, const std::string& text,
             const BoxAugmentation& how, int64_t draws) {
  Json images = Json::array();
  for (int64_t i = 0; i < draws; ++i) {
    const AugmentDraw draw{view.seed, static_cast<uint64_t>(i), static_cast<uint64_t>(view.sample)};
    images.push_back(
        shown(augment_of_set(view.set, how, kMostObjects, draw), fmt::format("draw {}", i + 1)));
  }
  return Json::object({{"title", title}, {"text", text}, {"images", std::move(images)}});
}

// One augmentation without the others. on: it as it is set, or at a setting that is common.
struct Alone {
  const char* key;
  const char* text;
  void (*on)(BoxAugmentation& how, const BoxAugmentation& set);
};

constexpr std::array kAlone = {
    Alone{"turns", "Mirrored, left to right or top to bottom, or turned: boxes go along.",
          [](BoxAugmentation& how, const BoxAugmentation& set) {
            how.turns = set.turns != "none" ? set.turns : "all";
          }},
    Alone{"scale_low, scale_high",
          "Objects get smaller, and the image with them, or larger, and a part of it is cut out.",
          [](BoxAugmentation& how, const BoxAugmentation& set) {
            const bool is_on = set.scale_low != 1 || set.scale_high != 1;
            how.scale_low = is_on ? set.scale_low : 0.5;
            how.scale_high = is_on ? set.scale_high : 1.5;
          }},
    Alone{"crop_edges", "Half of the images are cut down: objects of which little is left go.",
          [](BoxAugmentation& how, const BoxAugmentation& set) {
            how.crop_edges = set.crop_edges < 1 ? set.crop_edges : 0.5;
          }},
    Alone{"box_color_jitter", "Brightness, contrast and saturation, each by a factor of its own.",
          [](BoxAugmentation& how, const BoxAugmentation& set) {
            how.box_color_jitter = set.box_color_jitter > 0 ? set.box_color_jitter : 0.4;
          }},
    Alone{"mosaic", "Parts of four images of the set share one; in each draw here.",
          [](BoxAugmentation& how, const BoxAugmentation&) { how.mosaic = 1; }},
    Alone{"dense_targets", "Objects of other images of the set are copied in, where there is room.",
          [](BoxAugmentation& how, const BoxAugmentation& set) {
            how.dense_targets = set.dense_targets > 1 ? set.dense_targets : 3;
          }}};

// Whether a setting is among those that a reader has changed.
bool is_on(const std::vector<FieldDifference>& changed, std::string_view keys) {
  return std::ranges::any_of(changed, [&](const FieldDifference& d) {
    return keys == d.key || keys.starts_with(d.key + ",") || keys.ends_with(" " + d.key);
  });
}

}  // namespace

Page box_augmentation_page(const BoxAugmentationView& view) {
  Page page{.title = "Augmentation: " + short_names({view.name})[0],
            .data = {},
            .scripts = {"image_canvas.js", "augmentation.js"}};
  const BoxedImage original = view.set.at(view.sample);
  const ImageSize target = view.set.target(original.image.size());
  page.data["name"] = view.name;
  page.data["size"] = std::vector<int64_t>{target.width, target.height};
  page.data["seed"] = view.seed;
  page.data["original"] = shown(original, "the image");
  std::vector<std::string> settings;
  const std::vector<FieldDifference> changed = diff_fields(BoxAugmentation(), view.how);
  for (const FieldDifference& d : changed) settings.push_back(d.key + " " + d.second);
  Json sections = Json::array();
  sections.push_back(section(
      view, "All settings together",
      settings.empty() ? "Nothing is switched on: every draw is the image, resized."
                       : fmt::format("As a training run would see the image in {} epochs: {}.",
                                     view.draws, fmt::join(settings, ", ")),
      view.how, view.draws));
  for (const Alone& alone : kAlone) {
    BoxAugmentation how;
    how.min_visible = view.how.min_visible;
    alone.on(how, view.how);
    const char* const off = is_on(changed, alone.key) ? "" : " (off)";
    sections.push_back(section(view, std::string(alone.key) + off, alone.text, how, kDraws));
  }
  page.data["sections"] = std::move(sections);
  return page;
}

}  // namespace heddle::inspect
