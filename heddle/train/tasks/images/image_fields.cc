// Defaults of the task image_classification, and what of its fields does not fit together.
#include "heddle/train/tasks/images/image_fields.h"

#include <utility>

#include "heddle/base/names.h"
#include "heddle/train/tasks/images/pixel_task.h"

namespace heddle::train {

namespace {

void check_squares(const StackConfig& stack, int64_t edge) {
  const Json fields = to_json(stack.fields());
  const Json* width = fields.find("image_width");
  check(width == nullptr || width->is_null(), ErrorKind::usage,
        "train: training is on squares; leave `image_width`, and give `image_edge`");
  const int64_t size = stack.integer({"image_size"});
  check(size == edge || size == StackConfig(stack.type()).integer({"image_size"}), ErrorKind::usage,
        "train: `image_size` is {}, and images are trained at {} x {} pixels; leave it, and give "
        "`image_edge` {}",
        size, edge, edge, size);
}

}  // namespace

void check_new_model(StackConfig stack, int64_t edge) {
  check_squares(stack, edge);
  check_channels(stack.integer({"num_channels"}));
  check_patches(stack.integer({"patch_size"}), {edge, edge});
  stack.set("image_size", edge);
  stack.config().check("config");
}

void check_patches(int64_t edge, const ImageSize& image) {
  check(edge <= 0 || (image.height % edge == 0 && image.width % edge == 0), ErrorKind::usage,
        "patches of {} x {} do not fill images of {} x {}: the model would not see the rest; give "
        "another `patch_size` or `image_edge`",
        edge, edge, image.height, image.width);
}

// DeiT's optimisation (Touvron et al. 2021), for batches of 128.
void ImageFields::suit(TrainConfig& config) {
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

void ImageFields::check_fit(const TrainConfig& config, const std::string& source) const {
  augmentation.check(source);
  const Augmentation& how = augmentation;
  const Augmentation unset;
  const bool is_told = how.rand_augment_count != unset.rand_augment_count ||
                       how.rand_augment_magnitude != unset.rand_augment_magnitude;
  check(
      !is_told || how.auto_augment == "rand_augment", ErrorKind::usage,
      "{}: `rand_augment_count` and `rand_augment_magnitude` are for `auto_augment` rand_augment; "
      "give that, or leave them",
      source);
  const bool may_mix = how.mixup_alpha > 0 || how.cutmix_alpha > 0;
  check(may_mix || (mix_until == 1 && how.mix_probability == unset.mix_probability),
        ErrorKind::usage,
        "{}: `mix_until` and `mix_probability` are for batches that are mixed; give `mixup_alpha` "
        "or `cutmix_alpha`, or leave them",
        source);
  check(mix_until == 1 || config.max_updates > 0, ErrorKind::usage,
        "{}: `mix_until` is a share of max_updates; give `max_updates`", source);
  check(labelled_in_batch < batch_size, ErrorKind::usage,
        "{}: `labelled_in_batch` {} leaves no place in batches of {} for images without labels",
        source, labelled_in_batch, batch_size);
  const bool is_whole = config.train_only.empty() && config.freeze.empty() && config.lora_rank == 0;
  check(teacher_feature_weight == 0 || is_whole, ErrorKind::usage,
        "{}: features of a teacher are imitated by a model that is trained whole; leave "
        "`teacher_feature_weight`, or `train_only`, `freeze` and `lora_rank`",
        source);
  check(teacher_feature_layers.empty() || teacher_feature_weight > 0, ErrorKind::usage,
        "{}: `teacher_feature_layers` imitate nothing; give `teacher_feature_weight`", source);
  check(teacher_feature_layers.empty() || !config.recompute, ErrorKind::usage,
        "{}: `recompute` keeps no hidden states for `teacher_feature_layers`", source);
}

void ImageFields::check_data(const TrainConfig& config, const RunPaths& paths) const {
  check(!paths.data.empty(), ErrorKind::usage,
        "train needs `data`, a folder or a file of labelled images, for task {}", config.task);
  for (const std::string& path : {paths.data, paths.val_data}) {
    check(path.empty() || path_exists(path), ErrorKind::data,
          "{}: there is no such file or folder; labelled images are needed", path);
  }
  check(paths.unlabelled.empty() || !paths.teacher.empty(), ErrorKind::usage,
        "train: of the images of `unlabelled` only a teacher says what they show; name it with "
        "`teacher`");
  check(paths.unlabelled.empty() || path_exists(paths.unlabelled), ErrorKind::data,
        "{}: there is no such file or folder; images are needed", paths.unlabelled);
  check(teacher_feature_weight == 0 || !paths.teacher.empty(), ErrorKind::usage,
        "train: `teacher_feature_weight` {}, and nobody teaches; give `teacher`",
        teacher_feature_weight);
  const TaskConfig untold(config.task);
  const auto& defaults = untold.as<ImageFields>();
  check_teacher(paths,
                {{"teaching", teaching != defaults.teaching},
                 {"teacher_weight", teacher_weight != defaults.teacher_weight},
                 {"teacher_temperature", teacher_temperature != defaults.teacher_temperature},
                 {"teacher_views", teacher_views != defaults.teacher_views}});
  check(teaching == "soft" || teacher_temperature == defaults.teacher_temperature, ErrorKind::usage,
        "train: `teacher_temperature` {} is for `teaching` soft; give that, or leave it",
        teacher_temperature);
  const bool has_others = !paths.unlabelled.empty() || (label_share < 1 && !paths.teacher.empty());
  check(labelled_in_batch == 0 || has_others, ErrorKind::usage,
        "train: `labelled_in_batch` {}, but all images have labels; give `unlabelled` or "
        "`label_share`, with `teacher`",
        labelled_in_batch);
  // Before any image is read, what is known of the model.
  if (paths.from.empty() && image_edge > 0) check_new_model(config.stack, image_edge);
}

}  // namespace heddle::train
