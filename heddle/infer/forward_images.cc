// From channels first to rows of pixels, through the model, and back.
#include "heddle/infer/forward_images.h"

#include <list>

namespace heddle {
namespace {

constexpr const char* kPixelValues = "pixel_values";

struct OutputTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

// x: [rows of all images, width], as many of each
OutputTensor of_rows(const std::string& name, int64_t batch, const Tensor& x) {
  return {name, {batch, x.size(0) / batch, x.size(1)}, x.to_floats()};
}

OutputTensor of_attention(const nn::AttentionCall& call) {
  const int64_t windows = call.queries().count();
  OutputTensor out{
      call.name(), {windows, call.heads(), call.queries().length(0), call.keys().length(0)}, {}};
  for (int64_t s = 0; s < windows; ++s) {
    check(call.queries().length(s) == out.shape[2] && call.keys().length(s) == out.shape[3],
          ErrorKind::internal, "forward: {} has windows of several sizes", call.name());
    for (int64_t h = 0; h < call.heads(); ++h) {
      const std::vector<float> weights = call.weights(s, h).to_floats();
      out.values.insert(out.values.end(), weights.begin(), weights.end());
    }
  }
  return out;
}

// Channels last, image after image.
Tensor rows_of(const PixelValues& pixels) {
  const int64_t channels = pixels.shape[1], area = pixels.shape[2] * pixels.shape[3];
  Tensor x = Tensor::empty({pixels.shape[0] * area, channels}, DType::f32);
  float* to = x.data<float>();
  for (int64_t i = 0; i < pixels.shape[0]; ++i) {
    const float* const image = pixels.values.data() + i * channels * area;
    for (int64_t p = 0; p < area; ++p) {
      for (int64_t c = 0; c < channels; ++c) *to++ = image[c * area + p];
    }
  }
  return x;
}

void write(const std::string& path, const std::list<OutputTensor>& outputs) {
  std::vector<NamedTensorView> views;
  for (const OutputTensor& o : outputs) {
    views.push_back({o.name, DType::f32, o.shape, std::as_bytes(std::span(o.values))});
  }
  write_safetensors(path, std::move(views), {{"format", "pt"}});
}

}  // namespace

PixelValues read_pixel_values(const SafetensorsFile& file) {
  const StoredTensor* info = file.find(kPixelValues);
  check(info != nullptr, ErrorKind::data,
        "{}: there is no tensor {}; a model that reads images needs one [batch, channels, height, "
        "width], or image files in place of `input`",
        file.path(), kPixelValues);
  bool is_whole = info->shape.size() == 4;
  for (const int64_t size : info->shape) is_whole = is_whole && size > 0;
  check(is_whole, ErrorKind::data,
        "{}: {} has shape {}; [batch, channels, height, width] is needed, none of them 0",
        file.path(), kPixelValues, Shape(info->shape).str());
  return {.shape = info->shape, .values = info->floats()};
}

PixelValues pixel_values_of(std::span<const Image> images, std::span<const std::string> paths,
                            const ImageProcessor& processor) {
  const ImageSize size = images[0].size();
  const int64_t area = size.height * size.width;
  PixelValues pixels{.shape = {std::ssize(images), Image::kChannels, size.height, size.width},
                     .values = {},
                     .is_from_files = true};
  std::vector<float> rows(static_cast<size_t>(area * Image::kChannels));
  for (size_t i = 0; i < images.size(); ++i) {
    check(images[i].size() == size, ErrorKind::data,
          "{}: the model's image is {} x {} pixels, that of {} {} x {}; pixel_values has images of "
          "one size, so give them one by one",
          paths[i], images[i].height, images[i].width, paths[0], size.height, size.width);
    processor.normalize(images[i], rows.data());
    for (int64_t c = 0; c < Image::kChannels; ++c) {
      for (int64_t p = 0; p < area; ++p) pixels.values.push_back(rows[p * Image::kChannels + c]);
    }
  }
  return pixels;
}

void forward_images(const ImageModel& model, const PixelValues& pixels, const std::string& path,
                    const ForwardOptions& options) {
  const NoGrad off;
  const int64_t batch = pixels.shape[0];
  const std::vector<ImageSize> sizes(static_cast<size_t>(batch),
                                     {pixels.shape[2], pixels.shape[3]});
  check(pixels.shape[1] == model.facts().channels, ErrorKind::data,
        "pixel_values has {} channels; the model takes {}", pixels.shape[1],
        model.facts().channels);
  model.grid(sizes[0]);  // says what it takes
  const Segments segments = nn::image_segments(sizes);
  const ImageRows images{.x = rows_of(pixels), .segments = &segments, .sizes = &sizes};
  std::list<OutputTensor> outputs;
  if (pixels.is_from_files) outputs.push_back({kPixelValues, pixels.shape, pixels.values});
  nn::Observer observer;
  observer.hidden = [&](const std::string& name, const Tensor& x) {
    outputs.push_back(of_rows(name, batch, x));
  };
  observer.attention = [&](const nn::AttentionCall& call) {
    outputs.push_back(of_attention(call));
  };
  nn::Run run;
  run.use(options.precision);
  if (options.all) run.observer = &observer;
  for (const ModelOutput& o : model.forward(images, run)) {
    outputs.push_back(o.is_of_sequences
                          ? OutputTensor{o.name, {o.x.size(0), o.x.size(1)}, o.x.to_floats()}
                          : of_rows(o.name, batch, o.x));
  }
  write(path, outputs);
}

}  // namespace heddle
