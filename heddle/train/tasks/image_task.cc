// Labelled images: augmented to train on, prepared as they will be used to be judged by.
#include <algorithm>
#include <array>
#include <cmath>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/base/progress.h"
#include "heddle/data/images.h"
#include "heddle/infer/image_batch.h"
#include "heddle/ops/loss.h"
#include "heddle/train/tasks/losses.h"
#include "heddle/train/tasks/model_task.h"
#include "heddle/vision/mixing.h"

namespace heddle::train {
namespace {

struct ImageFields : TaskFields {
  int64_t image_edge = 0, batch_size = 128, cache_edge = 0;
  double label_smoothing = 0, val_share = 0.1;
  Augmentation augmentation;

  // DeiT's optimisation (Touvron et al. 2021), for batches of 128.
  void suit(TrainConfig& config) override {
    config.optimizer = "adamw";
    config.schedule = "cosine";
    config.learning_rate = 1e-3;
    config.min_learning_rate = 1e-5;
    config.warmup_updates = 500;
    config.adam_beta2 = 0.999;
    config.adam_epsilon = 1e-8;
    config.weight_decay = 0.05;
    config.clip_norm = 1;
    config.select = "accuracy";
  }
  void check_fit(const TrainConfig&, const std::string& source) const override {
    augmentation.check(source);
  }
  void check_data(const TrainConfig& config, const RunPaths& paths) const override {
    check(!paths.data.empty(), ErrorKind::usage,
          "train needs `data`, a folder or a file of labelled images, for task {}", config.task);
    for (const std::string& path : {paths.data, paths.val_data}) {
      check(path.empty() || path_exists(path), ErrorKind::data,
            "{}: there is no such file or folder; labelled images are needed", path);
    }
  }
  template <class V>
  void fields(V& v) {
    v("image_edge", image_edge,
      "height and width that images are trained at; 0: those of the model that is begun from, else "
      "those of the images, if all are equal squares",
      between(0, 65535));
    v("batch_size", batch_size, "images of a batch", between(1, 1 << 30));
    v("label_smoothing", label_smoothing, "share of each label that all classes get",
      from_below(0, 1));
    augmentation.fields(v);
    v("val_share", val_share,
      "share of each class that is held out, chosen by the seed, where no images are",
      between(0, 1));
    v("cache_edge", cache_edge,
      "larger images are kept with a shorter edge of so many pixels; 0: as they are", at_least(0));
  }
};

ImageSplit open_images(const TrainConfig& config, const RunPaths& paths, const std::string& run) {
  const auto& own = config.task_config.as<ImageFields>();
  return open_image_split({.path = paths.data,
                           .val_path = paths.val_data,
                           .val_share = own.val_share,
                           .seed = static_cast<uint64_t>(config.seed),
                           .cache_dir = join_path(run, "cache"),
                           .cache_edge = own.cache_edge},
                          [](std::string_view text) { log_info("{}", text); });
}

// Mean and deviation of each channel over all pixels, of 0 to 1, in fixed order.
void measure(const ImageSet& images, ImageProcessor& processor) {
  constexpr int64_t kParts = 64;
  struct Sums {
    std::array<double, 3> sum = {}, squares = {};
    int64_t pixels = 0;
  };
  std::vector<Sums> parts(kParts);
  parallel_for(kParts, [&](int64_t part) {
    Sums& s = parts[part];
    for (int64_t i = part; i < images.size(); i += kParts) {
      const ImageView view = images.image(i);
      const int64_t pixels = view.size.height * view.size.width;
      s.pixels += pixels;
      for (int64_t p = 0; p < pixels; ++p) {
        for (int64_t c = 0; c < 3; ++c) {
          const double level = view.pixels[p * view.channels + (view.channels == 3 ? c : 0)];
          s.sum[c] += level, s.squares[c] += level * level;
        }
      }
    }
  });
  Sums all;
  for (const Sums& s : parts) {
    all.pixels += s.pixels;
    for (size_t c = 0; c < 3; ++c) all.sum[c] += s.sum[c], all.squares[c] += s.squares[c];
  }
  const auto n = static_cast<double>(all.pixels);
  for (size_t c = 0; c < 3; ++c) {
    const double mean = all.sum[c] / n;
    processor.image_mean[c] = mean / 255;
    processor.image_std[c] = std::max(1.0, std::sqrt(all.squares[c] / n - mean * mean)) / 255;
  }
}

}  // namespace

class ImageTask final : public ModelTask {
 public:
  using Fields = ImageFields;
  static constexpr TaskFacts kFacts = {Head::image_classes, "loss,accuracy,top5", 3'000, "images"};

  ImageTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
      : ModelTask(config, paths, run), images_(open_images(config, paths, run)) {
    StackConfig& stack = config_.stack;
    if (paths.from.empty()) {
      set_edge(fields().image_edge > 0 ? fields().image_edge : edge_of_images());
      processor_.do_normalize = true;
      measure(images_.train, processor_);
      stack.set("image_size", processor_.size.height);
    } else {
      stack.hub() = config_of_model(paths.from).hub();
      processor_ = ImageProcessor::of_folder(find_model_dir(paths.from));
      if (fields().image_edge > 0) set_edge(fields().image_edge);
    }
    check(target().height > 0 && target().width > 0, ErrorKind::usage,
          "{} takes images of any size, and training wants one; give `image_edge`", paths.from);
    check_patches(stack.integer({"patch_size"}));
    stack.hub().head = Head::image_classes;
    stack.hub().labels = images_.train.labels();
    begin_model();
    const std::string prepared = processor_.to_json().dump();
    const std::string as = " as " + checksum(std::as_bytes(std::span(prepared)));
    set_keys(images_.train.key() + as, images_.val.key() + as);
    log_info("{} to train on, {} held out, {} classes, {} x {} pixels",
             counted(images_.train.size(), "image"), format_count(images_.val.size()),
             stack.hub().classes(), target().height, target().width);
    shuffle(images_.train.size(), fields().batch_size);
  }

  LossSums accumulate_whole(int64_t epoch, std::span<const int64_t> samples,
                            const nn::Run& run) override {
    const auto n = static_cast<int64_t>(samples.size());
    ImageBatch batch(std::vector<ImageSize>(samples.size(), target()),
                     {samples.begin(), samples.end()});
    const int64_t classes = std::ssize(images_.train.labels());
    Tensor targets = Tensor::full({n, classes}, smoothing() / static_cast<float>(classes));
    {
      const ProfilePhase phase("augment");
      parallel_for(n, [&](int64_t i) {
        const Image image = images_.train.image(samples[i]).rgb();
        batch.lay(
            i,
            augment(image, fields().augmentation, {target(), processor_.resample},
                    {seed(), static_cast<uint64_t>(epoch), static_cast<uint64_t>(samples[i])}),
            processor_);
        targets.data<float>()[i * classes + images_.train.label(samples[i])] += 1 - smoothing();
      });
      mix(draw_mixing(fields().augmentation, mixing_key(epoch, samples[0])),
          {.pixels = batch.pixels(),
           .channels = Image::kChannels,
           .sizes = batch.sizes(),
           .targets = {targets.data<float>(), static_cast<size_t>(targets.elements())},
           .classes = classes});
    }
    return accumulate_shares(model(), batch.rows(), targets, run);
  }

  ValidationScore validate(const nn::Run& run) override {
    LossSums sums;
    int64_t right = 0, among_five = 0;
    for (int64_t begin = 0; begin < images_.val.size(); begin += kAtOnce) {
      const Judged judged = judge(begin, std::min(begin + kAtOnce, images_.val.size()), run);
      sums += judged.sums;
      right += std::ranges::count(judged.ranks, 0);
      among_five += std::ranges::count_if(judged.ranks, [](int64_t rank) { return rank < 5; });
    }
    const auto n = static_cast<double>(images_.val.size());
    return {.loss = sums.nll / n,
            .metrics = {{"accuracy", static_cast<double>(right) / n},
                        {"top5", static_cast<double>(among_five) / n}}};
  }

  std::vector<Json> samples() override {
    std::vector<Json> samples;
    const std::vector<std::string>& labels = images_.train.labels();
    for (const int64_t i : spread(images_.val.size(), 6)) {
      samples.push_back(Json::object({{"image", images_.val.path(i)},
                                      {"label", labels[images_.val.label(i)]},
                                      {"model", labels[judge(i, i + 1, {}).answers[0]]}}));
    }
    return samples;
  }

  // The weights last: a folder that has them has all.
  void save_model(const std::string& folder) const override {
    make_directories(folder);
    write_file_atomic(join_path(folder, kPreprocessorName), processor_.to_json().dump(2) + "\n");
    ModelTask::save_model(folder);
  }

 private:
  static constexpr int64_t kAtOnce = 128;

  const Fields& fields() const { return own<Fields>(); }
  float smoothing() const { return static_cast<float>(fields().label_smoothing); }
  // 0 x 0: any.
  ImageSize target() const {
    if (processor_.do_center_crop) return processor_.crop_size;
    return processor_.do_resize && processor_.shortest_edge == 0 ? processor_.size : ImageSize();
  }
  RngKey mixing_key(int64_t epoch, int64_t first) const {
    return make_key(seed(), static_cast<uint64_t>(epoch), hash_name("mixing"),
                    static_cast<uint64_t>(first));
  }

  void set_edge(int64_t edge) {
    processor_.do_resize = true, processor_.size = {edge, edge};
    processor_.shortest_edge = processor_.longest_edge = 0;
    processor_.do_center_crop = false;
  }
  int64_t edge_of_images() const {
    const ImageSize first = images_.train.image(0).size;
    bool is_square = first.height == first.width;
    for (int64_t i = 0; i < images_.train.size() && is_square; ++i) {
      is_square = images_.train.image(i).size == first;
    }
    check(is_square, ErrorKind::usage,
          "the images of {} are not equal squares; say by `image_edge` what they are resized to",
          paths_.data);
    return first.height;
  }
  void check_patches(int64_t edge) const {
    check(
        edge <= 0 || (target().height % edge == 0 && target().width % edge == 0), ErrorKind::usage,
        "patches of {} x {} do not fill images of {} x {}: the model would not see the rest; give "
        "another `patch_size` or `image_edge`",
        edge, edge, target().height, target().width);
  }
  // What the model makes of held-out images.
  struct Judged {
    LossSums sums;
    std::vector<int64_t> ranks = {};  // of the true classes, see rank_of()
    std::vector<int32_t> answers = {};
  };
  Judged judge(int64_t begin, int64_t end, const nn::Run& run) const {
    std::vector<Image> images(static_cast<size_t>(end - begin));
    std::vector<int32_t> truths(images.size());
    parallel_for(end - begin, [&](int64_t i) {
      images[i] = processor_.fit(images_.val.image(begin + i).rgb());
      truths[i] = images_.val.label(begin + i);
    });
    const ImageBatch batch(images, processor_);
    const NoGrad off;
    const Tensor logits = class_logits(model(), batch.rows(), run);
    const CrossEntropy ce = cross_entropy(logits, truths, {});
    Judged judged{{ce.total, ce.nll, ce.predicted, batch.rows().segments->rows()}};
    const std::vector<float> values = logits.to_floats();
    const int64_t classes = logits.size(1);
    for (size_t i = 0; i < truths.size(); ++i) {
      const std::span row(values.data() + i * classes, static_cast<size_t>(classes));
      judged.ranks.push_back(rank_of(truths[i], row));
      judged.answers.push_back(static_cast<int32_t>(std::ranges::max_element(row) - row.begin()));
    }
    return judged;
  }

  ImageSplit images_;
  ImageProcessor processor_;
};

template std::unique_ptr<TaskFields> new_fields<ImageTask>();

}  // namespace heddle::train
