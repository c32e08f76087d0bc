// From channels first to rows of pixels, through the model, and back.
#include "heddle/infer/forward_images.h"

#include <algorithm>

#include "heddle/infer/output_tensors.h"
#include "heddle/models/backbone.h"

namespace heddle {
namespace {

constexpr const char* kPixelValues = "pixel_values";
constexpr const char* kPixelMask = "pixel_mask";

// x: [rows of all images, width], as many of each
OutputTensor of_rows(const std::string& name, int64_t batch, const Tensor& x) {
  return {name, {batch, x.size(0) / batch, x.size(1)}, x.to_floats()};
}

// The same of a model of maps, channels first: [batch, width, grid.height, grid.width].
OutputTensor of_maps(const std::string& name, int64_t batch, const ImageSize& grid,
                     const Tensor& x) {
  const int64_t area = grid.height * grid.width, width = x.size(1);
  OutputTensor out{name, {batch, width, grid.height, grid.width}, {}};
  const std::vector<float> rows = x.to_floats();
  out.values.reserve(rows.size());
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t c = 0; c < width; ++c) {
      for (int64_t p = 0; p < area; ++p) out.values.push_back(rows[(b * area + p) * width + c]);
    }
  }
  return out;
}

// What a model without a head gives of `batch` images of one size, as transformers shapes it.
class States {
 public:
  States(const ImageModel& model, int64_t batch, const ImageSize& image)
      : batch_(batch), image_(image), backbone_(model.as<Backbone>()) {
    if (backbone_ != nullptr) stem_ = backbone_->stem_grid(image);
  }

  // The states that an observer sees, in their order.
  OutputTensor hidden(const std::string& name, const Tensor& x) {
    if (!stem_) return of_rows(name, batch_, x);
    const size_t stage = seen_++;
    return of_maps(name, batch_, stage == 0 ? *stem_ : backbone_->grid_of(image_, stage - 1), x);
  }
  OutputTensor output(const ModelOutput& o) const {
    const bool is_map = stem_ && backbone_->head() == Head::none;
    if (o.is_of_sequences) {
      OutputTensor out{o.name, {o.x.size(0), o.x.size(1)}, o.x.to_floats()};
      if (is_map) out.shape.insert(out.shape.end(), {1, 1});
      return out;
    }
    return is_map ? of_maps(o.name, batch_, backbone_->grid(image_), o.x)
                  : of_rows(o.name, batch_, o.x);
  }

 private:
  int64_t batch_;
  ImageSize image_;
  const Backbone* backbone_;
  std::optional<ImageSize> stem_;
  size_t seen_ = 0;
};

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

// The outputs of images begin .. end - 1, which are of one size.
std::vector<OutputTensor> pass(const ImageModel& model, const PixelValues& pixels, int64_t begin,
                               int64_t end, const ForwardOptions& options) {
  const int64_t batch = end - begin;
  const ImageSize& image = pixels.sizes[static_cast<size_t>(begin)];
  model.grid(image);  // says what it takes
  States states(model, batch, image);
  const PixelBatch images(pixels, begin, end);
  std::vector<OutputTensor> outputs;
  nn::Observer observer;
  observer.hidden = [&](const std::string& name, const Tensor& x) {
    outputs.push_back(states.hidden(name, x));
  };
  observer.attention = [&](const nn::AttentionCall& call) {
    outputs.push_back(of_attention(call));
  };
  nn::Run run;
  run.use(options.precision);
  if (options.all) run.observer = &observer;
  for (const ModelOutput& o : model.forward(images.rows(), run)) {
    outputs.push_back(states.output(o));
  }
  return outputs;
}

// Copies a block of `from`'s shape into the corner of one of `to`'s, of whose axes none is shorter.
void copy_block(std::span<const int64_t> from, const float* x, std::span<const int64_t> to,
                float* y) {
  if (from.empty()) {
    *y = *x;
    return;
  }
  int64_t inner = 1, outer = 1;
  for (size_t axis = 1; axis < from.size(); ++axis) inner *= from[axis], outer *= to[axis];
  for (int64_t i = 0; i < from[0]; ++i) {
    copy_block(from.subspan(1), x + i * inner, to.subspan(1), y + i * outer);
  }
}

// One output of several images, of each a tensor of its own, as one of them all: each axis is as
// long as the longest, zeros are behind what is shorter.
OutputTensor joined(const std::vector<const OutputTensor*>& images) {
  std::vector<int64_t> block = images[0]->shape;
  for (const OutputTensor* one : images) {
    check(one->name == images[0]->name && one->shape.size() == block.size(), ErrorKind::internal,
          "forward: images of two sizes give {} and {}", images[0]->name, one->name);
    for (size_t axis = 0; axis < block.size(); ++axis) {
      block[axis] = std::max(block[axis], one->shape[axis]);
    }
  }
  const int64_t elements = Shape(block).elements();
  OutputTensor all{images[0]->name, block, {}};
  all.shape[0] *= std::ssize(images);
  all.values.resize(static_cast<size_t>(elements * std::ssize(images)));
  float* to = all.values.data();
  for (const OutputTensor* one : images) {
    copy_block(one->shape, one->values.data(), block, to);
    to += elements;
  }
  return all;
}

// Images of several sizes one by one: they have the bits that they have in any batch.
std::vector<OutputTensor> passes(const ImageModel& model, const PixelValues& pixels,
                                 const ForwardOptions& options) {
  std::vector<std::vector<OutputTensor>> of_images;
  for (int64_t i = 0; i < pixels.shape[0]; ++i) {
    of_images.push_back(pass(model, pixels, i, i + 1, options));
  }
  std::vector<OutputTensor> outputs;
  for (size_t o = 0; o < of_images[0].size(); ++o) {
    std::vector<const OutputTensor*> same;
    for (const auto& one : of_images) same.push_back(&one[o]);
    outputs.push_back(joined(same));
  }
  return outputs;
}

// The sizes of images that pixel_mask [images, height, width] marks with ones, zeros beside and
// below them.
std::vector<ImageSize> read_sizes(const SafetensorsFile& file, const PixelValues& pixels) {
  const int64_t batch = pixels.shape[0], height = pixels.shape[2], width = pixels.shape[3];
  const StoredTensor* info = file.find(kPixelMask);
  if (info == nullptr) return std::vector<ImageSize>(static_cast<size_t>(batch), {height, width});
  check(info->shape == std::vector<int64_t>{batch, height, width}, ErrorKind::data,
        "{}: {} has shape {}, but {} {}; [{}, {}, {}] is needed", file.path(), kPixelMask,
        Shape(info->shape).str(), kPixelValues, Shape(pixels.shape).str(), batch, height, width);
  const std::vector<float> mask = info->floats();
  std::vector<ImageSize> sizes;
  for (int64_t i = 0; i < batch; ++i) {
    const float* const own = mask.data() + i * height * width;
    ImageSize size;
    while (size.height < height && own[size.height * width] == 1) ++size.height;
    while (size.width < width && own[size.width] == 1) ++size.width;
    for (int64_t p = 0; p < height * width; ++p) {
      const int64_t row = p / width, column = p % width;
      const bool is_image = p == 0 || (row < size.height && column < size.width);
      check(own[p] == (is_image ? 1 : 0), ErrorKind::data,
            "{}: {}[{}, {}, {}] is {}; ones must be a rectangle at the top left, the image, and "
            "all else 0",
            file.path(), kPixelMask, i, row, column, own[p]);
    }
    sizes.push_back(size);
  }
  return sizes;
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
  PixelValues pixels{.shape = info->shape, .values = info->floats(), .sizes = {}};
  pixels.sizes = read_sizes(file, pixels);
  return pixels;
}

PixelValues pixel_values_of(std::span<const Image> images, std::span<const std::string> paths,
                            const ImageProcessor& processor) {
  const ImageSize size = images[0].size();
  const int64_t area = size.height * size.width;
  PixelValues pixels{.shape = {std::ssize(images), Image::kChannels, size.height, size.width},
                     .values = {},
                     .sizes = std::vector<ImageSize>(images.size(), size),
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

PixelBatch::PixelBatch(const PixelValues& pixels, int64_t begin, int64_t end)
    : sizes_(pixels.sizes.begin() + begin, pixels.sizes.begin() + end),
      segments_(nn::image_segments(sizes_)),
      x_(Tensor::empty({segments_.rows(), pixels.shape[1]}, DType::f32)) {
  const int64_t channels = pixels.shape[1], width = pixels.shape[3];
  const int64_t area = pixels.shape[2] * width;
  float* to = x_.data<float>();
  for (int64_t i = begin; i < end; ++i) {
    const float* const image = pixels.values.data() + i * channels * area;
    const ImageSize size = sizes_[static_cast<size_t>(i - begin)];
    for (int64_t p = 0; p < size.height * size.width; ++p) {
      const float* const pixel = image + p / size.width * width + p % size.width;
      for (int64_t c = 0; c < channels; ++c) *to++ = pixel[c * area];
    }
  }
}

void check_channels(const PixelValues& pixels, const ImageFacts& facts) {
  check(pixels.shape[1] == facts.channels, ErrorKind::data,
        "pixel_values has {} channels; the model takes {}", pixels.shape[1], facts.channels);
}

void forward_images(const ImageModel& model, const PixelValues& pixels, const std::string& path,
                    const ForwardOptions& options) {
  const NoGrad off;
  check_channels(pixels, model.facts());
  const bool is_one_size = std::ranges::all_of(
      pixels.sizes, [&](const ImageSize& size) { return size == pixels.sizes[0]; });
  std::vector<OutputTensor> outputs = is_one_size ? pass(model, pixels, 0, pixels.shape[0], options)
                                                  : passes(model, pixels, options);
  if (pixels.is_from_files) outputs.push_back({kPixelValues, pixels.shape, pixels.values});
  write_outputs(path, outputs);
}

}  // namespace heddle
