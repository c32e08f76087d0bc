// Labelled images: augmented to train on, prepared as they will be used to be judged by; with a
// teacher, images without labels too.
#include <algorithm>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/base/progress.h"
#include "heddle/dist/share_out.h"
#include "heddle/infer/answers.h"
#include "heddle/train/tasks/images/image_fields.h"
#include "heddle/train/tasks/images/image_judge.h"
#include "heddle/train/tasks/images/image_loss.h"
#include "heddle/train/tasks/images/image_pool.h"
#include "heddle/train/tasks/images/image_teacher.h"
#include "heddle/train/tasks/images/pixel_task.h"
#include "heddle/train/tasks/images/shown_images.h"

namespace heddle::train {
namespace {

struct ImageData {
  ImagePool train;
  ImageSet val;
};

void check_equal_squares(bool are, const RunPaths& paths) {
  check(are, ErrorKind::usage,
        "the images of {} are not equal squares; say by `image_edge` what they are resized to",
        paths.data);
}

// Before all images are decoded: what the first one shows to be wrong, where images say what size
// is trained at.
void check_first(const TrainConfig& config, const RunPaths& paths, const ImageSource& train) {
  const auto& own = config.task_config.as<ImageFields>();
  if (!paths.from.empty() || own.image_edge > 0 || train.entries.empty()) return;
  ImageSize size;
  try {
    size = train.decode(0, train.path(0)).size;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    return;  // it is left out, which is said then
  }
  check_equal_squares(size.height == size.width, paths);
  check_new_model(config.stack,
                  own.cache_edge > 0 ? std::min(own.cache_edge, size.height) : size.height);
}

// Of labels that no image has, the first few.
void warn_of_empty(const ImageSet& train, const std::string& path) {
  constexpr size_t kSaid = 5;
  std::vector<std::string> empty;
  const std::vector<std::vector<int64_t>> classes = train.by_label();
  for (size_t c = 0; c < classes.size(); ++c) {
    if (classes[c].empty()) empty.push_back(fmt::format("'{}'", train.labels()[c]));
  }
  if (empty.empty()) return;
  const size_t more = empty.size() - std::min(empty.size(), kSaid);
  empty.resize(empty.size() - more);
  log_warning("{}: no image to train on has the label {}{}", path, fmt::join(empty, ", "),
              more > 0 ? fmt::format(" and {} more", more) : "");
}

ImageData open_images(const TrainConfig& config, const RunPaths& paths, const std::string& run) {
  const auto& own = config.task_config.as<ImageFields>();
  const CacheLog log = [](std::string_view text) { log_info("{}", text); };
  ImageSetOptions options = {.path = paths.data,
                             .val_path = paths.val_data,
                             .val_share = own.val_share,
                             .seed = static_cast<uint64_t>(config.seed),
                             .cache_dir = join_path(run, "cache"),
                             .cache_edge = own.cache_edge};
  ImageSplit split = open_image_split(
      options, log, [&](const ImageSource& train) { check_first(config, paths, train); });
  std::vector<ImageSet> unlabelled;
  if (own.label_share < 1) {
    ChosenImages share = choose_share(split.train, own.label_share, options.seed);
    log_info("{} of {} labels count{}", format_count(share.chosen.size()),
             format_count(split.train.size()),
             paths.teacher.empty() ? "; the other images are left out" : "");
    split.train = share.chosen;
    const bool are_others = !paths.teacher.empty() && share.others.size() > 0;
    if (are_others) unlabelled.push_back(share.others);
  }
  if (!paths.unlabelled.empty()) {
    options.path = paths.unlabelled;
    unlabelled.push_back(open_unlabelled_set(options, log));
  }
  warn_of_empty(split.train, paths.data);
  return {ImagePool(split.train, std::move(unlabelled)), split.val};
}

}  // namespace

class ImageTask final : public PixelTask {
 public:
  using Fields = ImageFields;
  static constexpr TaskFacts kFacts = {Head::image_classes, "loss,accuracy,top5", 3'000, "images",
                                       true};

  ImageTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
      : PixelTask(config, paths, run), images_(open()) {
    StackConfig& stack = config_.stack;
    if (paths.from.empty()) {
      set_edge(fields().image_edge > 0 ? fields().image_edge : edge_of_images());
      check_new_model(stack, processor_.size.height);
      measure(images_.train.size(), [&](int64_t i) { return images_.train.image(i); });
      stack.set("image_size", processor_.size.height);
    } else {
      begin_at_size();
    }
    if (!paths.teacher.empty()) teacher_.emplace(paths.teacher, images_.train.labels());
    set_head();
    stack.hub().labels = images_.train.labels();
    begin_image_model();
    // Fails where the model takes no images of that size.
    static_cast<void>(model().need<ImageModel>("train").grid(target()));
    begin_imitation();
    begin_plan();
    const std::string as = preparation_key();
    const std::string by = teacher_ ? " taught " + teacher_->key() : "";
    set_keys(images_.train.key() + as + by, images_.val.key() + as);
    if (teacher_ && fields().teacher_views > 0 && !imitation_ && !mixes_all()) keep_answers(as);
    log_info("{} to train on{}, {} held out, {} classes, {} x {} pixels",
             counted(images_.train.size(), "image"),
             unlabelled() > 0 ? fmt::format(" ({} without label)", format_count(unlabelled())) : "",
             format_count(images_.val.size()), stack.hub().classes(), target().height,
             target().width);
  }

  std::vector<std::string> caches() const override {
    std::vector<std::string> paths = images_.train.caches();
    paths.push_back(images_.val.cache_path());
    return paths;
  }

  int64_t batches(int64_t epoch) override {
    return two_kinds_ ? two_kinds_->batches() : ModelTask::batches(epoch);
  }

  // A batch is mixed alike in however many parts it comes.
  std::vector<std::vector<int64_t>> parts(int64_t epoch, int64_t batch, int64_t parts) override {
    if (!fields().augmentation.mixes()) return ModelTask::parts(epoch, batch, parts);
    return split_for_mixing(batch_samples(epoch, batch), parts);
  }

  LossSums accumulate_whole(int64_t epoch, std::span<const int64_t> samples,
                            const nn::Run& run) override {
    const auto n = static_cast<int64_t>(samples.size());
    ImageBatch batch(std::vector<ImageSize>(samples.size(), target()),
                     {samples.begin(), samples.end()});
    const int64_t classes = std::ssize(images_.train.labels());
    ImageTargets targets{.labels = Tensor::zeros({n, classes}, DType::f32),
                         .smoothing = static_cast<float>(fields().label_smoothing),
                         .teacher_weight = fields().teacher_weight,
                         .temperature = fields().teacher_temperature,
                         .is_divergence = teacher_ && is_soft()};
    std::vector<Image> crops(samples.size());
    Mixing mixing;
    {
      const ProfilePhase phase("augment");
      if (is_mixing(run)) {
        mixing = draw_mixing(fields().augmentation,
                             make_key(seed(), run.dropout.update, hash_name("mixing"), 0));
      }
      parallel_for(n, [&](int64_t i) {
        crops[i] = augmented(samples[i], view_of(epoch, mixing));
        batch.lay(i, crops[i], processor_);
        if (!images_.train.has_label(samples[i])) return;
        targets.labels.data<float>()[i * classes + images_.train.label(samples[i])] = 1;
      });
      mix(mixing, {.pixels = batch.pixels(),
                   .channels = Image::kChannels,
                   .sizes = batch.sizes(),
                   .targets = floats(targets.labels),
                   .classes = classes});
    }
    if (teacher_) ask_teacher(epoch, samples, crops, mixing, run, targets);
    return accumulate_images(model(), batch.rows(), targets, run);
  }

  ValidationScore validate(const nn::Run& run, dist::Group& group) override {
    const int64_t n = images_.val.size();
    const auto pass = [&](int64_t i) {
      return judge(i * kAtOnce, std::min((i + 1) * kAtOnce, n), run);
    };
    std::vector<ImageAnswer> all;
    for (const auto& some :
         dist::share_out_each<std::vector<ImageAnswer>>(group, (n + kAtOnce - 1) / kAtOnce, pass)) {
      all.insert(all.end(), some.begin(), some.end());
    }
    worst_ = worst_of(all, kMostShown);
    return score_of(all);
  }

  // Also writes what the report shows, see kShownImagesName.
  std::vector<Json> samples() override {
    std::vector<Json> samples;
    for (const int64_t i : spread(images_.val.size(), 6)) {
      const ImageAnswer a = judge(i, i + 1, {})[0];
      samples.push_back(Json::object({{"image", images_.val.path(i)},
                                      {"label", label_name(images_.val.label(i))},
                                      {"model", label_name(a.answer)}}));
    }
    write_shown_images(run_, shown());
    return samples;
  }

 private:
  static constexpr int64_t kAtOnce = 128;
  static constexpr size_t kMostShown = 24;  // mistakes in the report

  const Fields& fields() const { return own<Fields>(); }
  bool is_soft() const { return fields().teaching == "soft"; }
  int64_t unlabelled() const { return images_.train.size() - images_.train.labelled(); }
  std::string label_name(int32_t label) const {
    return class_names(model())[static_cast<size_t>(label)];
  }
  static std::span<float> floats(Tensor& x) {
    return {x.data<float>(), static_cast<size_t>(x.elements())};
  }
  // 0 x 0: any.
  ImageSize target() const {
    if (processor_.do_center_crop) return processor_.crop_size;
    return processor_.do_resize && processor_.shortest_edge == 0 ? processor_.size : ImageSize();
  }

  // What is wrong with the size of a model that is begun from is said before images are decoded.
  ImageData open() {
    if (!paths_.from.empty()) {
      if (fields().image_edge > 0) set_edge(fields().image_edge);
      check(target().height > 0 && target().width > 0, ErrorKind::usage,
            "{} takes images of any size, and training wants one; give `image_edge`", paths_.from);
      check_patches(config_.stack.integer({"patch_size"}), target());
    }
    return open_images(config_, paths_, run_);
  }
  // What goes on at another size becomes a model of that size: copy_weights() makes its positions.
  void begin_at_size() {
    StackConfig& stack = config_.stack;
    const ImageSize to = target();
    const Json own = to_json(stack.fields());
    const Json base = to_json(config_of_model(paths_.from).fields());
    for (const char* key : {"image_size", "image_width"}) {
      const Json* side = own.find(key);
      if (side == nullptr) continue;
      check(*side == base.at(key) || *side == Json(to.height), ErrorKind::usage,
            "train: {} is {}, that of {} {}; leave it, and give `image_edge`", field_name(key),
            side->dump(), paths_.from, base.at(key).dump());
    }
    nn::Parameters shapes = nn::Parameters::shapes_alone();
    const std::unique_ptr<Model> model = stack.make(nn::Scope(shapes));
    const auto& begun = model->need<ImageModel>(paths_.from);
    static_cast<void>(begun.grid(to));  // fails where it takes no images of that size
    const ImageSize from = begun.facts().image_size;
    if (!own.contains("image_size") || from == to) return;
    log_info("{} was made for images of {} x {} pixels, and becomes a model for {} x {}{}",
             paths_.from, from.height, from.width, to.height, to.width,
             begun.grid_positions() != nullptr ? "; positions are interpolated" : "");
    stack.set("image_size", to.height);
    if (!own.contains("image_width")) return;
    set_from_string(stack.fields(), "image_width",
                    to.width == to.height ? "none" : std::to_string(to.width));
  }
  int64_t edge_of_images() const {
    const ImageSize first = images_.train.image(0).size;
    bool is_square = first.height == first.width;
    for (int64_t i = 0; i < images_.train.labelled() && is_square; ++i) {
      is_square = images_.train.image(i).size == first;
    }
    check_equal_squares(is_square, paths_);
    return first.height;
  }
  // A model that may have a head for the teacher has it where there is one, and keeps what it has.
  void set_head() {
    HubConfig& hub = config_.stack.hub();
    const std::vector<HeadClass> heads = config_.stack.config().heads();
    const bool may_have_two = std::ranges::count(heads, Head::distilled_classes, &HeadClass::head);
    const bool has_two = hub.head == Head::distilled_classes;
    hub.head =
        has_two || (teacher_ && may_have_two) ? Head::distilled_classes : Head::image_classes;
  }
  void begin_imitation() {
    if (fields().teacher_feature_weight == 0) return;
    imitation_.emplace(whole_parameters(), model().need<ImageModel>("train"), target(),
                       teacher_.value().width(), fields().teacher_feature_layers,
                       fields().teacher_feature_weight);
  }
  void begin_plan() {
    const int64_t batch = fields().batch_size, labelled = fields().labelled_in_batch;
    shuffle(images_.train.size(), batch);
    check(labelled == 0 || unlabelled() > 0, ErrorKind::usage,
          "train: `labelled_in_batch` is {}, and each of the {} images has a label; give a smaller "
          "`label_share`, or `unlabelled` images",
          labelled, images_.train.size());
    if (labelled > 0) two_kinds_.emplace(images_.train, batch, labelled, seed());
  }
  std::vector<int64_t> batch_samples(int64_t epoch, int64_t batch) override {
    return two_kinds_ ? two_kinds_->batch(epoch, batch) : ModelTask::batch_samples(epoch, batch);
  }

  // --- what is trained on ---

  // What a teacher says of images is kept; of mixed ones, which never come again, it is not.
  bool is_kept(const Mixing& mixing) const {
    return teacher_ && teacher_->keeps() && mixing.kind == Mixing::Kind::none;
  }
  // One an epoch; where answers are kept a few, which come again.
  int64_t view_of(int64_t epoch, const Mixing& mixing) const {
    return is_kept(mixing) ? epoch % fields().teacher_views : epoch;
  }
  Image augmented(int64_t sample, int64_t view) const {
    return augment(images_.train.image(sample).rgb(), fields().augmentation,
                   {target(), processor_.resample},
                   {seed(), static_cast<uint64_t>(view), static_cast<uint64_t>(sample)});
  }
  bool is_mixing(const nn::Run& run) const {
    const double until = fields().mix_until;
    return until >= 1 || static_cast<double>(run.dropout.update) <=
                             until * static_cast<double>(config_.max_updates);
  }
  bool mixes_all() const {
    const Augmentation& how = fields().augmentation;
    return how.mixes() && how.mix_probability >= 1 && fields().mix_until >= 1;
  }
  void keep_answers(const std::string& as) {
    const ImageFields& f = fields();
    const DType compute = resolve_precision(config_.precision).compute;
    teacher_->keep(join_path(run_, "cache"),
                   fmt::format("{}{} {} seed {} on {}", images_.train.key(), as,
                               to_json(f.augmentation).dump(), seed(), machine_signature(compute)),
                   f.teacher_views * images_.train.size());
  }
  // What no label says of an image, the teacher does: all of one without label, and of a mixed one
  // the share of that.
  void ask_teacher(int64_t epoch, std::span<const int64_t> samples, std::span<const Image> crops,
                   const Mixing& mixing, const nn::Run& run, ImageTargets& targets) {
    std::vector<float> logits;
    if (is_kept(mixing)) {
      std::vector<int64_t> rows;
      const int64_t first = view_of(epoch, mixing) * images_.train.size();
      for (const int64_t i : samples) rows.push_back(first + i);
      logits = teacher_->kept_logits(crops, rows, run);
    } else {
      ImageTeacher::Said said =
          teacher_->say(crops, mixing, run, imitation_ ? &imitation_->grid() : nullptr);
      logits = std::move(said.logits);
      targets.features = said.features;
      targets.imitation = imitation_ ? &*imitation_ : nullptr;
    }
    const int64_t classes = targets.labels.size(1);
    targets.taught = is_soft() ? softened(logits, classes, fields().teacher_temperature)
                               : hardened(logits, classes);
    if (unlabelled() == 0) return;
    const Tensor said = is_soft() ? softened(logits, classes, 1) : targets.taught;
    for (int64_t i = 0; i < std::ssize(samples); ++i) {
      float* const row = targets.labels.data<float>() + i * classes;
      float rest = 1;
      for (int64_t c = 0; c < classes; ++c) rest -= row[c];
      if (rest < 1e-6f) continue;
      for (int64_t c = 0; c < classes; ++c) row[c] += rest * said.data<float>()[i * classes + c];
    }
  }

  // --- what is judged by ---

  std::vector<ImageAnswer> judge(int64_t begin, int64_t end, const nn::Run& run) const {
    return judge_images(model(), images_.val, processor_, begin, end, run);
  }
  // Images as they are and augmented, and the worst mistakes of the last validation.
  Json shown() const {
    Json json = Json::object({{"augmented", Json::array()}, {"mistakes", Json::array()}});
    for (const int64_t i : spread(images_.train.size(), 6)) {
      Json one = Json::object(
          {{"image", shown_image(images_.train.image(i).rgb())}, {"name", images_.train.path(i)}});
      if (images_.train.has_label(i)) one["label"] = label_name(images_.train.label(i));
      for (int64_t view = 0; view < 4; ++view) {
        one["views"].push_back(shown_image(augmented(i, view)));
      }
      json["augmented"].push_back(std::move(one));
    }
    for (const ImageAnswer& a : worst_) {
      json["mistakes"].push_back(
          Json::object({{"image", shown_image(images_.val.image(a.image).rgb())},
                        {"name", images_.val.path(a.image)},
                        {"label", label_name(images_.val.label(a.image))},
                        {"answer", label_name(a.answer)},
                        {"probability", a.probability},
                        {"loss", a.loss}}));
    }
    return json;
  }

  ImageData images_;
  std::optional<ImageTeacher> teacher_;
  std::optional<Imitation> imitation_;
  std::optional<TwoKindsPlan> two_kinds_;
  std::vector<ImageAnswer> worst_;
};

template std::unique_ptr<TaskFields> new_fields<ImageTask>();

}  // namespace heddle::train
