// Two kinds of files say how images are prepared: transformers' and timm's.
#include "heddle/vision/image_processor.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/vision/image_ops.h"

namespace heddle {
namespace {

// What a length alone means as "size", which differs between the classes that wrote it.
enum class LengthMeans { square, shortest_edge, crop_of_shortest_edge };

struct ProcessorKind {
  const char* name;  // ViTImageProcessor, ViTImageProcessorFast, ViTFeatureExtractor
  LengthMeans length;
};
// Those that do nothing but what stands in their file. Others of transformers' give keys of the
// same names another meaning, or have steps of their own.
constexpr std::array kProcessorKinds = {
    ProcessorKind{"ViT", LengthMeans::square},
    ProcessorKind{"DeiT", LengthMeans::square},
    ProcessorKind{"Beit", LengthMeans::square},
    ProcessorKind{"Blip", LengthMeans::square},
    ProcessorKind{"Siglip", LengthMeans::square},
    ProcessorKind{"Bit", LengthMeans::shortest_edge},
    ProcessorKind{"CLIP", LengthMeans::shortest_edge},
    ProcessorKind{"Detr", LengthMeans::shortest_edge},
    ProcessorKind{"ConditionalDetr", LengthMeans::shortest_edge},
    ProcessorKind{"DeformableDetr", LengthMeans::shortest_edge},
    ProcessorKind{"ConvNext", LengthMeans::crop_of_shortest_edge}};

// A file without a class is read as ViT's.
LengthMeans length_of_class(const Json& json, const std::string& source) {
  const Json* type = json.find("image_processor_type");
  if (type == nullptr) type = json.find("feature_extractor_type");
  if (type == nullptr) return LengthMeans::square;
  const std::string& name = type->as_string(source + ": the processor's type");
  const std::string kind =
      name.substr(0, std::min(name.find("ImageProcessor"), name.find("FeatureExtractor")));
  const auto* const found = std::ranges::find_if(
      kProcessorKinds, [&](const ProcessorKind& known) { return known.name == kind; });
  std::vector<std::string> names;
  for (const ProcessorKind& known : kProcessorKinds) names.emplace_back(known.name);
  check(found != kProcessorKinds.end(), ErrorKind::data,
        "{}: images are prepared by {}; of transformers' processors heddle follows those of {}",
        source, name, fmt::join(names, ", "));
  return found->length;
}

int64_t length(const Json& json, std::string_view key, const std::string& source) {
  const int64_t value = json.get_int(key, source);
  check(value > 0 && value <= kMostPixels, ErrorKind::data,
        "{}: '{}' is {}; a length in pixels is needed", source, key, value);
  return value;
}

// Files of transformers' fast processors have null where nothing is set.
bool is_set(const Json& json, std::string_view key) {
  const Json* const value = json.find(key);
  return value != nullptr && !value->is_null();
}

bool flag(const Json& json, std::string_view key, bool otherwise, const std::string& source) {
  return is_set(json, key) ? json.get_bool(key, source) : otherwise;
}

ImageSize height_and_width(const Json& json, std::string_view key, const std::string& source) {
  const Json& value = json.at(key, source);
  if (value.is_object()) return {length(value, "height", source), length(value, "width", source)};
  const int64_t edge = length(json, key, source);
  return {edge, edge};
}

std::array<double, 3> channels(const Json& json, std::string_view key, const std::string& source) {
  const Json& value = json.at(key, source);
  std::array<double, 3> result;
  if (value.is_number()) {
    result.fill(value.as_double());
    return result;
  }
  const Json::Array& values = value.as_array(fmt::format("{}: '{}'", source, key));
  check(values.size() == 3, ErrorKind::data,
        "{}: '{}' has {} numbers; one each for red, green and blue is needed", source, key,
        values.size());
  for (size_t i = 0; i < 3; ++i)
    result[i] = values[i].as_double(fmt::format("{}: '{}'", source, key));
  return result;
}

void read_normal(ImageProcessor& p, const Json& json, const char* mean, const char* std,
                 const std::string& source) {
  p.do_normalize = true;
  p.image_mean = channels(json, mean, source);
  p.image_std = channels(json, std, source);
  for (const double s : p.image_std) {
    check(s > 0, ErrorKind::data, "{}: '{}' holds {}; it must be above 0", source, std, s);
  }
}

Json list_of(const std::array<double, Image::kChannels>& values) {
  return Json(std::vector<double>(values.begin(), values.end()));
}

constexpr int64_t kUncut = 384;

// The shorter edge is cut to `edge` of edge / share pixels, or from kUncut on nothing is cut.
void crop_of_shortest_edge(ImageProcessor& p, int64_t edge, double share) {
  if (edge >= kUncut) {
    p.size = {edge, edge};
    return;
  }
  p.shortest_edge = static_cast<int64_t>(static_cast<double>(edge) / share);
  p.do_center_crop = true;
  p.crop_size = {edge, edge};
}

double share(const Json& json, const std::string& source) {
  const double value = json.get_double("crop_pct", source);
  check(value >= 0.001 && value <= 1, ErrorKind::data,
        "{}: 'crop_pct' is {}; a share from 0.001 to 1 is needed", source, value);
  return value;
}

void read_size(ImageProcessor& p, const Json& json, LengthMeans meaning,
               const std::string& source) {
  const Json& size = json.at("size", source);
  int64_t edge = 0;
  if (!size.is_object()) {
    edge = length(json, "size", source);
    p.longest_edge = is_set(json, "max_size") ? length(json, "max_size", source) : 0;
  } else if (is_set(size, "shortest_edge")) {
    edge = length(size, "shortest_edge", source);
    p.longest_edge = is_set(size, "longest_edge") ? length(size, "longest_edge", source) : 0;
  }
  if (edge == 0) {
    p.size = height_and_width(json, "size", source);
  } else if (meaning == LengthMeans::crop_of_shortest_edge) {
    crop_of_shortest_edge(p, edge, edge < kUncut ? share(json, source) : 1);
  } else if (size.is_object() || meaning == LengthMeans::shortest_edge) {
    p.shortest_edge = edge;
  } else {
    p.size = {edge, edge};
  }
}

Resample resample_of(int64_t number, const std::string& source) {
  check(number == 2 || number == 3, ErrorKind::data,
        "{}: 'resample' is {}; images are resized with 2 (bilinear) or 3 (bicubic)", source,
        number);
  return static_cast<Resample>(number);
}

// Half of what is left over; negative where the image is smaller, which is then the upper half.
int64_t margin(int64_t whole, int64_t part, bool is_half_to_even) {
  const int64_t rest = whole - part,
                down = static_cast<int64_t>(std::floor(static_cast<double>(rest) / 2));
  return is_half_to_even && rest % 2 != 0 && down % 2 != 0 ? down + 1 : down;
}

// What is cut out of an image that was resized.
PixelBox crop_of(const ImageProcessor& p, ImageSize resized) {
  return {.top = margin(resized.height, p.crop_size.height, p.crops_as_torchvision),
          .left = margin(resized.width, p.crop_size.width, p.crops_as_torchvision),
          .height = p.crop_size.height,
          .width = p.crop_size.width};
}

}  // namespace

ImageProcessor ImageProcessor::of_folder(const std::string& folder) {
  const std::string path = join_path(folder, kPreprocessorName);
  if (path_exists(path)) return of_hub(Json::load(path), path);
  const std::string config = join_path(folder, "config.json");
  const Json json = path_exists(config) ? Json::load(config) : Json();
  const Json* timm = json.find("pretrained_cfg");
  check(timm != nullptr, ErrorKind::data,
        "{}: nothing says how images are prepared for this model: there is no "
        "preprocessor_config.json, and no pretrained_cfg in config.json",
        folder);
  return of_timm(*timm, config + ": pretrained_cfg");
}

ImageProcessor ImageProcessor::of_hub(const Json& json, const std::string& source) {
  ImageProcessor p;
  const LengthMeans meaning = length_of_class(json, source);
  check(!flag(json, "rescale_offset", false, source), ErrorKind::data,
        "{}: 'rescale_offset' is true; heddle subtracts nothing from scaled pixels but a mean",
        source);
  p.do_resize = json.get_bool("do_resize", source);
  if (flag(json, "do_center_crop", false, source)) {
    p.do_center_crop = true;
    p.crop_size = height_and_width(json, "crop_size", source);
  }
  if (p.do_resize) {
    read_size(p, json, meaning, source);
    // DETR's first files do not say it, nor could its processor do otherwise.
    const bool is_silent = !is_set(json, "resample") && p.longest_edge > 0;
    p.resample = resample_of(is_silent ? 2 : json.get_int("resample", source), source);
  }
  p.do_rescale = flag(json, "do_rescale", true, source);
  if (is_set(json, "rescale_factor")) p.rescale_factor = json.get_double("rescale_factor", source);
  if (json.get_bool("do_normalize", source))
    read_normal(p, json, "image_mean", "image_std", source);
  return p;
}

ImageProcessor ImageProcessor::of_timm(const Json& json, const std::string& source) {
  ImageProcessor p;
  const std::vector<int64_t> size =
      json.at("input_size", source).as_ints(source + ": 'input_size'");
  check(size.size() == 3 && size[0] == 3 && size[1] > 0 && size[2] > 0, ErrorKind::data,
        "{}: 'input_size' must be [3, height, width]", source);
  const std::string& interpolation = json.get_string("interpolation", source);
  check(interpolation == "bilinear" || interpolation == "bicubic", ErrorKind::data,
        "{}: 'interpolation' is '{}'; images are resized with bilinear or bicubic", source,
        interpolation);
  const std::string mode =
      json.contains("crop_mode") ? json.get_string("crop_mode", source) : "center";
  check(mode == "center" || mode == "squash", ErrorKind::data,
        "{}: 'crop_mode' is '{}'; center and squash can be followed", source, mode);
  const double part = share(json, source);
  const auto scaled = [&](int64_t edge) {
    return static_cast<int64_t>(std::floor(static_cast<double>(edge) / part));
  };
  p.do_resize = p.do_center_crop = p.crops_as_torchvision = true;
  p.resample = interpolation == "bicubic" ? Resample::bicubic : Resample::bilinear;
  p.crop_size = {size[1], size[2]};
  if (mode == "squash") {
    p.size = {scaled(size[1]), scaled(size[2])};
  } else {
    check(size[1] == size[2], ErrorKind::data,
          "{}: 'crop_mode' is center, but 'input_size' is {} x {}; a square can be followed",
          source, size[1], size[2]);
    p.shortest_edge = scaled(size[1]);
  }
  read_normal(p, json, "mean", "std", source);
  return p;
}

Json ImageProcessor::to_json() const {
  const auto sides = [](ImageSize s) {
    return Json::object({{"height", s.height}, {"width", s.width}});
  };
  const bool keeps_shape = shortest_edge > 0;
  Json json =
      Json::object({{"image_processor_type", keeps_shape && longest_edge > 0 ? "DetrImageProcessor"
                                             : keeps_shape || do_center_crop ? "BitImageProcessor"
                                                                             : "ViTImageProcessor"},
                    {"do_resize", do_resize}});
  if (do_resize) {
    json["size"] = keeps_shape ? Json::object({{"shortest_edge", shortest_edge}}) : sides(size);
    if (longest_edge > 0) json["size"]["longest_edge"] = longest_edge;
    json["resample"] = static_cast<int64_t>(resample);
  }
  json["do_center_crop"] = do_center_crop;
  if (do_center_crop) json["crop_size"] = sides(crop_size);
  json["do_rescale"] = do_rescale;
  json["rescale_factor"] = rescale_factor;
  json["do_normalize"] = do_normalize;
  if (do_normalize) {
    json["image_mean"] = list_of(image_mean);
    json["image_std"] = list_of(image_std);
  }
  return json;
}

Json ImageProcessor::to_timm(ImageSize made_for) const {
  check(do_rescale && std::fabs(rescale_factor * 255 - 1) < 1e-6, ErrorKind::data,
        "pixels are multiplied by {}; timm's are by 1/255", do_rescale ? rescale_factor : 1.0);
  const bool is_squeezed = !do_resize || shortest_edge == 0;
  const ImageSize kept = do_center_crop ? crop_size : do_resize && is_squeezed ? size : made_for;
  const ImageSize whole = !do_resize    ? kept
                          : is_squeezed ? size
                                        : ImageSize{shortest_edge, shortest_edge};
  check(kept.height * whole.width == kept.width * whole.height && kept.height <= whole.height &&
            (is_squeezed || kept.height == kept.width),
        ErrorKind::data, "images are resized to {} x {} and cut to {} x {}; timm has no such crop",
        whole.height, whole.width, kept.height, kept.width);
  // Its floor(kept / share) must be `whole`: where rounding says less, a smaller share.
  double share = static_cast<double>(kept.height) / static_cast<double>(whole.height);
  while (static_cast<int64_t>(static_cast<double>(kept.height) / share) < whole.height) {
    share = std::nextafter(share, 0.0);
  }
  return Json::object(
      {{"input_size", std::vector<int64_t>{Image::kChannels, kept.height, kept.width}},
       {"fixed_input_size", true},
       {"interpolation", resample == Resample::bicubic ? "bicubic" : "bilinear"},
       {"crop_pct", share},
       {"crop_mode", is_squeezed ? "squash" : "center"},
       {"mean", list_of(image_mean)},
       {"std", list_of(image_std)}});
}

ImageSize ImageProcessor::resized(ImageSize image) const {
  if (!do_resize) return image;
  if (shortest_edge == 0) return size;
  const double small = static_cast<double>(std::min(image.height, image.width)),
               large = static_cast<double>(std::max(image.height, image.width));
  int64_t edge = shortest_edge;
  double exact = static_cast<double>(edge);  // the other edge is that of the unrounded one
  if (longest_edge > 0 && large / small * exact > static_cast<double>(longest_edge)) {
    exact = static_cast<double>(longest_edge) * small / large;
    edge = std::llrint(exact);
  }
  if (longest_edge > 0 && std::min(image.height, image.width) == edge) return image;
  const auto other = std::max<int64_t>(1, static_cast<int64_t>(exact * large / small));
  edge = std::max<int64_t>(1, edge);  // of an image that is thousands of times as long as wide
  return image.width < image.height ? ImageSize{other, edge} : ImageSize{edge, other};
}

Image ImageProcessor::fit(const Image& image) const {
  const ImageSize to = resized(image.size());
  const Image scaled = do_resize ? resize(image, to.height, to.width, resample) : image;
  if (!do_center_crop || scaled.size() == crop_size) return scaled;
  return crop(scaled, crop_of(*this, scaled.size()));
}

std::array<double, 4> ImageProcessor::kept(ImageSize image) const {
  if (!do_center_crop) return {0, 0, 1, 1};
  const ImageSize to = resized(image);
  const auto cut = crop_of(*this, to);
  const auto share = [](int64_t x, int64_t whole) {
    return static_cast<double>(x) / static_cast<double>(whole);
  };
  return {share(cut.left, to.width), share(cut.top, to.height),
          share(cut.left + cut.width, to.width), share(cut.top + cut.height, to.height)};
}

void ImageProcessor::normalize(const Image& image, float* to) const {
  const int64_t count = image.height * image.width;
  for (int64_t c = 0; c < Image::kChannels; ++c) {
    std::array<float, 256> table;
    for (int level = 0; level < 256; ++level) {
      auto value = static_cast<float>(do_rescale ? level * rescale_factor : level);
      if (do_normalize) {
        value = (value - static_cast<float>(image_mean[c])) / static_cast<float>(image_std[c]);
      }
      table[level] = value;
    }
    for (int64_t i = c; i < 3 * count; i += 3) to[i] = table[image.pixels[i]];
  }
}

}  // namespace heddle
