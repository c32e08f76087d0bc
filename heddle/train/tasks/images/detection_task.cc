// Objects in images: augmented to train on, prepared as they will be used to be judged by.
#include <algorithm>
#include <utility>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/base/progress.h"
#include "heddle/dist/share_out.h"
#include "heddle/infer/answers.h"
#include "heddle/infer/detect.h"
#include "heddle/ops/elementwise.h"
#include "heddle/train/batches/object_images.h"
#include "heddle/train/metrics/average_precision.h"
#include "heddle/train/metrics/detection_mistakes.h"
#include "heddle/train/tasks/images/detector_doctor.h"
#include "heddle/train/tasks/images/pixel_task.h"
#include "heddle/train/tasks/images/set_loss.h"
#include "heddle/train/tasks/images/shown_images.h"
#include "heddle/train/tasks/images/trained_backbone.h"
#include "heddle/vision/box_augment.h"

namespace heddle::train {
namespace {

struct DetectionFields : TaskFields {
  int64_t shortest_edge = 0, longest_edge = 0, batch_size = 8, cache_edge = 0;
  double val_share = 0.1, backbone_factor = 1;
  std::vector<std::string> class_names;
  std::string drawn = "none", backbone;
  BoxAugmentation augmentation;
  int64_t drawn_images = 20'000, drawn_held_out = 200, drawn_height = 128, drawn_width = 128;

  // From nothing on little data: norms over groups and before sublayers, one rate for all, no
  // dropout, clipping (facebookresearch/detr#157); queries that begin far apart.
  void suit(TrainConfig& config) override {
    config.optimizer = "adamw";
    config.schedule = "cosine";
    config.learning_rate = 2e-4;
    config.min_learning_rate = 1e-5;
    config.warmup_updates = 500;
    config.adam_beta2 = 0.999;
    config.adam_epsilon = 1e-8;
    config.weight_decay = 1e-4;
    config.clip_norm = 0.1;
    config.ema_decay = 0.999;
    config.select = "map";
    const FieldList model = config.stack.fields();
    for (const auto& [key, value] : std::initializer_list<std::pair<const char*, const char*>>{
             {"normalize_before", "true"},
             {"auxiliary_loss", "true"},
             {"dropout", "0"},
             {"init_std", "1"},
             {"num_queries", "50"},
             {"d_model", "192"},
             {"encoder_layers", "3"},
             {"decoder_layers", "3"},
             {"encoder_attention_heads", "6"},
             {"decoder_attention_heads", "6"},
             {"encoder_ffn_dim", "512"},
             {"decoder_ffn_dim", "512"},
             {"backbone_config",
              R"({"model_type": "resnet", "norm": "group", "layer_type": "basic",)"
              R"( "embedding_size": 32, "hidden_sizes": [32, 64, 128], "depths": [1, 1, 1]})"}}) {
      set_from_string(model, key, value);
    }
  }
  void check_fit(const TrainConfig&, const std::string& source) const override {
    augmentation.check(source);
    heddle::check(longest_edge == 0 || shortest_edge <= longest_edge, ErrorKind::usage,
                  "{}: `shortest_edge` {} is above `longest_edge` {}", source, shortest_edge,
                  longest_edge);
    heddle::check(longest_edge == 0 || shortest_edge > 0, ErrorKind::usage,
                  "{}: `longest_edge` is {} without `shortest_edge`, which it bounds; give both",
                  source, longest_edge);
  }
  void check_data(const TrainConfig& config, const RunPaths& paths) const override {
    const bool is_drawn = drawn != "none";
    heddle::check(!paths.data.empty() || is_drawn, ErrorKind::usage,
                  "train needs `data`, images with boxes, for task {}; or `drawn` shapes",
                  config.task);
    heddle::check(paths.data.empty() || !is_drawn, ErrorKind::usage,
                  "train: there are `data`, {}, and `drawn` images; give one of them", paths.data);
    heddle::check(paths.val_data.empty() || !is_drawn, ErrorKind::usage,
                  "train: there are `val_data`, {}, and `drawn` images; `drawn_held_out` says how "
                  "many of these are held out",
                  paths.val_data);
    heddle::check(!is_drawn || cache_edge == 0, ErrorKind::usage,
                  "train: `cache_edge` is for images in files; of drawn ones give `drawn_height` "
                  "and `drawn_width`");
    for (const std::string& path : {paths.data, paths.val_data}) {
      heddle::check(path.empty() || path_exists(path), ErrorKind::data,
                    "{}: there is no such file or folder; images with boxes are needed", path);
    }
    check_backbone(backbone, paths);
    if (paths.from.empty()) config.stack.config().check("config");  // before any image is read
  }
  template <class V>
  void fields(V& v) {
    v("shortest_edge", shortest_edge,
      "pixels of the shorter edge that images are resized to, their shape stays; 0: that of the "
      "model that is begun from, else as they are",
      between(0, 65535));
    v("longest_edge", longest_edge, "no edge gets longer; 0: no bound", between(0, 65535));
    v("batch_size", batch_size, "images of a batch", between(1, 1 << 30));
    augmentation.fields(v);
    v("backbone", backbone, TrainedBackbone::kAbout);
    v("backbone_learning_rate_factor", backbone_factor,
      "of the backbone, whose weights may be trained already", at_least(0));
    v("val_share", val_share,
      "share of the images that is held out, chosen by the seed, where none are", between(0, 1));
    v("cache_edge", cache_edge, kCacheEdgeAbout, between(0, 65535));
    v("class_names", class_names, "of data that numbers its classes (boxes.tsv)");
    std::vector<std::string> kinds = drawn_kinds();
    kinds.insert(kinds.begin(), "none");
    v("drawn", drawn, "images that heddle draws itself, in place of `data`",
      one_of(std::move(kinds)));
    v("drawn_images", drawn_images, "how many of them are trained on", between(1, 1 << 30));
    v("drawn_held_out", drawn_held_out, "how many others are held out", between(1, 1 << 30));
    v("drawn_height", drawn_height, "their height in pixels", between(1, 4096));
    v("drawn_width", drawn_width, "their width in pixels", between(1, 4096));
  }
};

ObjectSplit open_images(const TrainConfig& config, const RunPaths& paths, const std::string& run) {
  const auto& own = config.task_config.as<DetectionFields>();
  const auto seed = static_cast<uint64_t>(config.seed);
  if (own.drawn != "none") {
    return drawn_images({.kind = own.drawn,
                         .images = own.drawn_images,
                         .held_out = own.drawn_held_out,
                         .size = {own.drawn_height, own.drawn_width},
                         .seed = seed});
  }
  const DetectionSplit split =
      open_detection_split({.path = paths.data,
                            .val_path = paths.val_data,
                            .val_share = own.val_share,
                            .seed = seed,
                            .cache_dir = join_path(run, "cache"),
                            .cache_edge = own.cache_edge,
                            .class_names = own.class_names},
                           [](std::string_view text) { log_info("{}", text); });
  return {ObjectImages::of(split.train), ObjectImages::of(split.val)};
}

std::vector<ObjectTarget> targets_of(std::span<const LabelledBox> boxes, ImageSize size) {
  std::vector<ObjectTarget> objects;
  for (const LabelledBox& one : boxes) {
    if (one.is_crowd) continue;
    const Box box = resized(one.box, size, {1, 1});
    objects.push_back({one.label,
                       {static_cast<float>(box.center_x()), static_cast<float>(box.center_y()),
                        static_cast<float>(box.width()), static_cast<float>(box.height())}});
  }
  return objects;
}

}  // namespace

class DetectionTask final : public PixelTask {
 public:
  using Fields = DetectionFields;
  static constexpr TaskFacts kFacts = {Head::objects, "loss,map,map_50", 10'000, "images"};

  DetectionTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
      : PixelTask(config, paths, run), images_(open()) {
    StackConfig& stack = config_.stack;
    stack.hub().head = Head::objects;
    stack.hub().labels = images_.train.classes;
    begin_image_model();
    keep_taken(images_.train);
    keep_taken(images_.val);
    const std::string as = preparation_key();
    set_keys(images_.train.key + as, images_.val.key + as);
    log_info("{} to train on, {} held out, {} classes, {} queries",
             counted(images_.train.size, "image"), format_count(images_.val.size),
             stack.hub().classes(), facts().queries);
    look_at_objects();
    shuffle(images_.train.size, fields().batch_size);
  }

  std::vector<std::string> caches() const override {
    if (images_.train.cache.empty()) return {};
    return {images_.train.cache, images_.val.cache};
  }

  LossSums accumulate_whole(int64_t epoch, std::span<const int64_t> samples,
                            const nn::Run& run) override {
    const auto n = static_cast<int64_t>(samples.size());
    std::vector<Image> images(samples.size());
    BatchObjects objects(samples.size());
    {
      const ProfilePhase phase("augment");
      parallel_for(n, [&](int64_t i) {
        const auto at = static_cast<size_t>(i);
        BoxedImage one = augmented(static_cast<uint64_t>(epoch), samples[at]);
        objects[at] = targets_of(one.boxes, one.image.size());
        images[at] = std::move(one.image);
      });
    }
    std::vector<ImageSize> sizes;
    for (const Image& image : images) sizes.push_back(image.size());
    ImageBatch batch(std::move(sizes), {samples.begin(), samples.end()});
    parallel_for(n, [&](int64_t i) { batch.lay(i, images[static_cast<size_t>(i)], processor_); });
    std::vector<RngKey> keys;
    for (const int64_t sample : samples) {
      keys.push_back(make_key(seed(), static_cast<uint64_t>(epoch), hash_name("denoising"),
                              static_cast<uint64_t>(sample)));
    }
    return accumulate_objects(batch, objects, keys, run);
  }

  ValidationScore validate(const nn::Run& run, dist::Group& group) override {
    SetLossSums sums;
    std::vector<DetectedImage> found;
    const int64_t n = images_.val.size;
    const auto pass = [&](int64_t i) {
      return judge_images(i * kAtOnce, std::min((i + 1) * kAtOnce, n), run);
    };
    for (Judged& judged : dist::share_out_each<Judged>(group, (n + kAtOnce - 1) / kAtOnce, pass)) {
      sums += judged.sums;
      std::ranges::move(judged.found, std::back_inserter(found));
    }
    const DetectionScores scores = score_detections(found, std::ssize(images_.val.classes));
    worst_ = worst_detections(found, kMostShown);
    const bool is_warming_up = run.dropout.update <= static_cast<uint64_t>(config_.warmup_updates);
    findings_ = doctor_.examine(sums, is_warming_up);
    ValidationScore score{.loss = sums.loss(facts().loss), .metrics = scores.metrics()};
    score.metrics.resize(2);  // over all IoU, and of 0.5
    score.metrics.push_back({"class_accuracy", 1 - sums.class_error()});
    return score;
  }

  Json findings() const override { return findings_; }

  // Also writes what the report shows, see kShownImagesName.
  std::vector<Json> samples() override {
    std::vector<Json> samples;
    for (const int64_t i : spread(images_.val.size, 6)) {
      const Judged judged = judge_images(i, i + 1, {});
      const DetectedImage& one = judged.found[0];
      const auto sure = std::ssize(mistakes_of(one).sure);
      samples.push_back(Json::object(
          {{"image", images_.val.name(i)},
           {"label", counted(std::ssize(one.truths), "object")},
           {"model", fmt::format("{} of at least {}", counted(sure, "object"), kSureScore)}}));
    }
    write_shown_images(run_, shown());
    return samples;
  }

  double rate_factor(const nn::Parameter& parameter) const override {
    const bool is_backbone = parameter.name().find("backbone.") != std::string::npos;
    return PixelTask::rate_factor(parameter) * (is_backbone ? fields().backbone_factor : 1);
  }

 private:
  static constexpr int64_t kAtOnce = 16, kLookedAt = 1000;
  static constexpr size_t kMostShown = 12;  // mistakes in the report

  const Fields& fields() const { return own<Fields>(); }
  const Detector& detector() const { return model().need<Detector>(config_.model_type); }
  const DetectorFacts& facts() const { return detector().detector(); }

  // What does not suit a detector is said before images are decoded.
  ObjectSplit open() {
    if (paths_.from.empty()) {
      processor_.do_normalize = true;
      processor_.image_mean = {0.485, 0.456, 0.406};  // ImageNet's, as of all DETRs
      processor_.image_std = {0.229, 0.224, 0.225};
    }
    if (!fields().backbone.empty()) begin_backbone();
    if (fields().shortest_edge > 0) set_edges();
    set_cache_edge(fields().cache_edge);
    check_sees_all(processor_, paths_.from);
    return open_images(config_, paths_, run_);
  }
  // Of its processor what makes numbers of pixels: how large images are is a detector's own.
  void begin_backbone() {
    backbone_.emplace(fields().backbone);
    processor_ = backbone_->processor();
    processor_.do_resize = processor_.do_center_crop = false;
    processor_.size = processor_.crop_size = {};
    processor_.shortest_edge = processor_.longest_edge = 0;
    set_from_string(config_.stack.fields(), "backbone_config", backbone_->config().dump());
  }
  void take_weights() override {
    if (backbone_)
      backbone_->copy_weights(whole_parameters(), "model.backbone.conv_encoder.model.");
    backbone_.reset();
  }
  void set_edges() {
    processor_.do_resize = true, processor_.do_center_crop = false;
    processor_.size = {};
    processor_.shortest_edge = fields().shortest_edge;
    processor_.longest_edge = fields().longest_edge;
  }

  void keep_taken(ObjectImages& images) const {
    if (const auto some = taken(images.size, images.image_size, images.name)) {
      images = images.select(*some);
    }
  }

  // How many there are, and what a model that does not look at images could make of them.
  void look_at_objects() {
    const ObjectCounts counts = count_objects(images_.train, kLookedAt, facts().queries);
    const Json fields = to_json(config_.stack.fields());
    const Json* apart = fields.find("init_std");
    doctor_ = DetectorDoctor(counts, facts(), apart != nullptr && apart->as_double() < 1);
  }

  BoxedImage augmented(uint64_t epoch, int64_t sample) const {
    const BoxedSet set{images_.train.size, images_.train.at,
                       [&](ImageSize size) { return processor_.resized(size); }};
    return augment_of_set(set, fields().augmentation, facts().queries,
                          {seed(), epoch, static_cast<uint64_t>(sample)});
  }

  // The loss of a batch is that of each image, so many times.
  LossSums accumulate_objects(const ImageBatch& batch, const BatchObjects& objects,
                              std::span<const RngKey> keys, const nn::Run& run) const {
    const bool all = trains_all_layers();
    const int64_t layers = all ? facts().layers : 1, n = batch.size();
    SetLossSums last;
    Tensor loss;
    {
      const ProfilePhase phase("forward");
      NoisedObjects noised =
          with_noise(objects, keys, std::ssize(model().labels()), facts().denoising);
      const ObjectPredictions seen = detector().predict(batch.rows(), all, run, &noised);
      const std::vector<Matches> matches =
          match_objects(seen, layers, facts().queries, objects, facts().loss);
      last = judge(seen, layers - 1, facts().queries, objects, matches.back(), facts().loss);
      loss = set_loss(seen, facts().queries, objects, matches, facts().loss, static_cast<float>(n));
      const Tensor restored =
          restoration_loss(noised, layers, objects, facts().loss, static_cast<float>(n));
      if (restored.defined()) loss = loss + restored;
    }
    const ProfilePhase phase("backward");
    const double total = static_cast<double>(loss.item());
    backward(loss);
    return {total, last.loss(facts().loss) * static_cast<double>(n), n, n};
  }
  bool trains_all_layers() const {
    const Json fields = to_json(config_.stack.fields());
    const Json* all = fields.find("auxiliary_loss");
    return all != nullptr && all->as_bool();
  }

  // What the model makes of held-out images.
  struct Judged {
    SetLossSums sums;
    std::vector<DetectedImage> found = {};

    template <class V>
    void parts(V& v) {
      v(sums, found);
    }
  };
  Judged judge_images(int64_t begin, int64_t end, const nn::Run& run) const {
    const auto n = static_cast<size_t>(end - begin);
    std::vector<Image> images(n);
    std::vector<ImageSize> sizes(n);
    std::vector<DetectedImage> judged(n);
    BatchObjects objects(n);
    parallel_for(end - begin, [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      BoxedImage one = images_.val.at(begin + i);
      images[at] = processor_.fit(one.image);
      sizes[at] = one.image.size();
      objects[at] = targets_of(one.boxes, sizes[at]);
      judged[at] = {images_.val.id(begin + i), std::move(one.boxes), {}};
    });
    const ImageBatch batch(images, processor_);
    const NoGrad off;
    const ObjectPredictions seen = detector().predict(batch.rows(), false, run);
    const int64_t queries = facts().queries;
    const std::vector<Matches> matches = match_objects(seen, 1, queries, objects, facts().loss);
    const SetLossSums sums = judge(seen, 0, queries, objects, matches[0], facts().loss, true);
    if (!std::isfinite(sums.loss(facts().loss))) return {sums, {}};  // the run says what is wrong
    auto found = scored_boxes(seen, queries, sizes, run_);
    for (size_t i = 0; i < n; ++i) judged[i].found = std::move(found[i]);
    return {sums, std::move(judged)};
  }

  // Images as they are and augmented, and those of the last validation in which most is wrong.
  Json shown() {
    if (shown_training_.is_null()) shown_training_ = shown_training();
    const ObjectImages& val = images_.val;
    Json mistakes = Json::array();
    for (const DetectionMistakes& one : worst_) {
      mistakes.push_back(Json::object({{"image", shown_detections(val.at(one.image).image, one)},
                                       {"name", val.name(one.image)},
                                       {"objects", one.truths.size()},
                                       {"missed", one.missed()},
                                       {"wrong", one.wrong()}}));
    }
    return Json::object({{"labels", class_names(model())},
                         {"score", kSureScore},
                         {"overlap", kSureOverlap},
                         {"augmented", shown_training_},
                         {"mistakes", std::move(mistakes)}});
  }
  Json shown_training() const {
    Json images = Json::array();
    for (const int64_t i : spread(images_.train.size, 4)) {
      Json one = Json::object(
          {{"image", shown_objects(images_.train.at(i))}, {"name", images_.train.name(i)}});
      for (uint64_t epoch = 0; epoch < 2; ++epoch) {
        one["views"].push_back(shown_objects(augmented(epoch, i)));
      }
      images.push_back(std::move(one));
    }
    return images;
  }

  std::optional<TrainedBackbone> backbone_;  // until its weights are taken
  ObjectSplit images_;
  DetectorDoctor doctor_;
  Json findings_;
  std::vector<DetectionMistakes> worst_;  // of the last validation
  Json shown_training_;                   // the same at each validation
};

template std::unique_ptr<TaskFields> new_fields<DetectionTask>();

}  // namespace heddle::train
