// Captions of images: what a decoder says of what it looks at, and, where scenes are known, whether
// that is true.
#include <algorithm>
#include <map>
#include <numeric>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/base/progress.h"
#include "heddle/data/captions.h"
#include "heddle/dist/share_out.h"
#include "heddle/infer/decoding/caption.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/recurrent/attention_penalties.h"
#include "heddle/text/strings/strings.h"
#include "heddle/text/training/tokenizer_trainer.h"
#include "heddle/train/batches/caption_batch.h"
#include "heddle/train/metrics/caption_scores.h"
#include "heddle/train/tasks/images/pixel_task.h"
#include "heddle/train/tasks/images/shown_images.h"
#include "heddle/train/tasks/images/trained_backbone.h"
#include "heddle/train/tasks/losses.h"

namespace heddle::train {
namespace {

struct CaptionFields : TaskFields {
  int64_t image_edge = 0, batch_size = 64, captions_of_image = 1, cache_edge = 0;
  int64_t min_word_count = 1, judged_images = 500;
  double label_smoothing = 0, attention_regularisation = 1, attention_entropy = 0, val_share = 0.1;
  std::string backbone, tokenizer, tokenizer_type = "word";

  void suit(TrainConfig& config) override {
    config.optimizer = "adamw";
    config.schedule = "cosine";
    config.learning_rate = 1e-3;
    config.min_learning_rate = 1e-5;
    config.warmup_updates = 500;
    config.adam_beta2 = 0.98;
    config.adam_epsilon = 1e-8;
    config.weight_decay = 0.01;
    config.clip_norm = 5;
  }
  void check_data(const TrainConfig& config, const RunPaths& paths) const override {
    check(!paths.data.empty(), ErrorKind::usage,
          "train needs `data`, images with captions, for task {}", config.task);
    for (const std::string& path : {paths.data, paths.val_data}) {
      check(path.empty() || path_exists(path), ErrorKind::data,
            "{}: there is no such file or folder; images with captions are needed", path);
    }
    check_backbone(backbone, paths);
    if (paths.from.empty()) config.stack.config().check("config");  // before any image is read
  }
  template <class V>
  void fields(V& v) {
    v("backbone", backbone, TrainedBackbone::kAbout);
    v("image_edge", image_edge,
      "height and width that images are squeezed to; 0: those of the model that is begun from, "
      "else those of the images",
      between(0, 65535));
    v("batch_size", batch_size, "images of a batch", between(1, 1 << 30));
    v("captions_of_image", captions_of_image,
      "captions that a batch has of each of its images, drawn anew each epoch; 0: all",
      at_least(0));
    v("label_smoothing", label_smoothing, "share of probability given to all tokens",
      from_below(0, 1));
    v("attention_regularisation", attention_regularisation,
      "times the mean over the cells of (1 - the weights that a caption's words give a cell)^2: "
      "each is to be looked at; of heads the mean counts, of layers the last (of more than four "
      "the last but one)",
      at_least(0));
    v("attention_entropy", attention_entropy,
      "times the mean entropy of a token's weights (of the same heads and layer), in nats: what is "
      "written is to come from few cells",
      at_least(0));
    v("tokenizer", tokenizer, "a SentencePiece .model to use; empty: one is made of the captions");
    v("tokenizer_type", tokenizer_type,
      "of the one that is made: word has a token for each word between spaces, the others have "
      "vocab_size tokens",
      one_of({"word", "bpe", "unigram"}));
    v("min_word_count", min_word_count, "how often a word must come to be a token of type word",
      at_least(1));
    v("val_share", val_share,
      "share of the images that is held out, chosen by the seed, where none are", between(0, 1));
    v("judged_images", judged_images,
      "held-out images whose captions a validation judges by their scenes, at most; 0: none",
      at_least(0));
    v("cache_edge", cache_edge, kCacheEdgeAbout, between(0, 65535));
  }
};

CaptionSplit open_captions(const TrainConfig& config, const RunPaths& paths,
                           const std::string& run) {
  const auto& own = config.task_config.as<CaptionFields>();
  return open_caption_split({.path = paths.data,
                             .val_path = paths.val_data,
                             .val_share = own.val_share,
                             .seed = static_cast<uint64_t>(config.seed),
                             .cache_dir = join_path(run, "cache"),
                             .cache_edge = own.cache_edge},
                            [](std::string_view text) { log_info("{}", text); });
}

// The words that come often enough, the most frequent first.
std::vector<std::string> words_of(const CaptionSet& set, int64_t least) {
  std::map<std::string, int64_t> counts;
  for (int64_t i = 0; i < set.size(); ++i) {
    for (const std::string& caption : set.captions(i)) {
      for (const std::string_view word : split_at_spaces(caption)) ++counts[std::string(word)];
    }
  }
  std::vector<std::string> words;
  for (const auto& [word, count] : counts) {
    if (count >= least) words.push_back(word);
  }
  std::ranges::stable_sort(words, std::greater(),
                           [&](const std::string& word) { return counts.at(word); });
  return words;
}

Tokenizer make_tokenizer(const TrainConfig& config, const CaptionSet& set) {
  const auto& own = config.task_config.as<CaptionFields>();
  if (own.tokenizer_type == "word") {
    const std::vector<std::string> words = words_of(set, own.min_word_count);
    check(!words.empty(), ErrorKind::data, "no word of the captions comes {} times",
          own.min_word_count);
    return word_list_tokenizer(words);
  }
  std::vector<std::string> captions;
  for (int64_t i = 0; i < set.size(); ++i) {
    captions.insert(captions.end(), set.captions(i).begin(), set.captions(i).end());
  }
  return train_tokenizer(captions,
                         {.type = tokenizer_type(own.tokenizer_type),
                          .vocab_size = config.stack.integer({"vocab_size"}),
                          .seed = static_cast<uint64_t>(config.seed)},
                         [](const std::string& message) { log_info("{}", message); });
}

// That of the model that the run begins from, or the one in RUN/tokenizer.model, put there first if
// there is none.
Tokenizer open_tokenizer(const TrainConfig& config, const RunPaths& paths, const std::string& run,
                         const CaptionSet& set) {
  if (!paths.from.empty()) return *std::move(load_captioner(paths.from).loaded.tokenizer);
  const std::string path = join_path(run, kTokenizerName);
  if (!path_exists(path)) {
    const std::string& given = config.task_config.as<CaptionFields>().tokenizer;
    (given.empty() ? make_tokenizer(config, set) : Tokenizer::load(given)).save(path);
  }
  return Tokenizer::load(path);
}

// What the model is given of a batch.
struct CaptionPass {
  const CaptionBatch& captions;
  nn::ImageRows images;
  Segments targets, sources;
  nn::TokenRows tokens;
  // Rows of the images' memories, one for each caption; empty: each image has one.
  std::vector<int32_t> cells;

  CaptionPass(const Captioner& model, const ImageBatch& batch, const CaptionBatch& of)
      : captions(of), images(batch.rows()), targets(Segments::from_lengths(of.lengths)) {
    const Segments memories = model.memory_segments(images);
    std::vector<int64_t> lengths;
    for (const int32_t image : of.images) {
      lengths.push_back(memories.length(image));
      for (int64_t r = memories.begin(image); r < memories.end(image); ++r) {
        cells.push_back(static_cast<int32_t>(r));
      }
    }
    // The captions of an image stand together.
    const bool has_one_each = std::ssize(of.images) == batch.size() &&
                              std::ranges::adjacent_find(of.images) == of.images.end();
    if (has_one_each) cells.clear();
    sources = Segments::from_lengths(lengths);
    tokens = {
        .ids = of.target_in, .segments = &targets, .rows = std::make_shared<const RowIds>(of.rows)};
  }
  CaptionPass(const CaptionPass&) = delete;
  CaptionPass& operator=(const CaptionPass&) = delete;
};

}  // namespace

class CaptionTask final : public PixelTask {
 public:
  using Fields = CaptionFields;
  static constexpr TaskFacts kFacts = {Head::caption, "loss,true", 15'000, "images"};

  CaptionTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
      : PixelTask(config, paths, run),
        images_(open_captions(config, paths, run)),
        tokenizer_(open_tokenizer(config, paths, run, images_.train)) {
    StackConfig& stack = config_.stack;
    if (!fields().backbone.empty()) begin_backbone();
    if (fields().image_edge > 0) set_edge(fields().image_edge);
    if (paths.from.empty()) {
      if (!backbone_) {
        if (fields().image_edge == 0) fit_images();
        measure(images_.train.size(), [&](int64_t i) { return images_.train.image(i); });
      }
      const int64_t side =
          processor_.do_center_crop ? processor_.crop_size.height : processor_.size.height;
      if (side > 0) stack.set("image_size", side);
      stack.set("vocab_size", tokenizer_.vocab_size());
    }
    set_cache_edge(fields().cache_edge);
    stack.hub().head = Head::caption;
    begin_image_model();
    keep_taken(images_.train);
    keep_taken(images_.val);
    encode_all(images_.train, train_ids_);
    encode_all(images_.val, val_ids_);
    numbers_.emplace(train_ids_);
    find_judged();
    const std::string as = preparation_key() + " " + tokenizer_.fingerprint();
    set_keys(images_.train.key() + as, images_.val.key() + as);
    log_info("{} to train on, {} held out, {} in the vocabulary",
             counted(images_.train.size(), "image"), format_count(images_.val.size()),
             counted(tokenizer_.vocab_size(), "token"));
    shuffle(images_.train.size(), fields().batch_size);
  }

  std::vector<std::string> caches() const override {
    return {images_.train.cache_path(), images_.val.cache_path()};
  }

  LossSums accumulate_whole(int64_t epoch, std::span<const int64_t> samples,
                            const nn::Run& run) override {
    CaptionBatch captions;
    for (size_t i = 0; i < samples.size(); ++i) {
      const auto& all = train_ids_[static_cast<size_t>(samples[i])];
      for (const size_t c : drawn(epoch, samples[i])) {
        captions.add(static_cast<int64_t>(i), all[c], captioner().facts(),
                     numbers_->of(samples[i], c));
      }
    }
    return loss_of(images_.train, samples, captions, run, true);
  }

  ValidationScore validate(const nn::Run& run, dist::Group& group) override {
    const auto passes_of = [](int64_t images) { return (images + kAtOnce - 1) / kAtOnce; };
    const LossSums sums = shared_loss(group, passes_of(images_.val.size()), [&](int64_t pass) {
      return held_out_loss(pass * kAtOnce, run);
    });
    ValidationScore score{.loss = sums.nll / static_cast<double>(sums.predicted)};
    if (judged_.empty()) return score;
    CaptionScores found;
    for (const CaptionScores& of_pass : dist::share_out_each<CaptionScores>(
             group, passes_of(std::ssize(judged_)),
             [&](int64_t pass) { return judged_captions(static_cast<size_t>(pass * kAtOnce)); })) {
      found += of_pass;
    }
    worst_ = worst_captions(found.wrong, kMostShown);
    const auto share = [&](CaptionKind kind) {
      return found.kinds[static_cast<size_t>(kind)].true_share();
    };
    score.metrics = {{"true", found.asked().true_share()},
                     {"true_relations", share(CaptionKind::relation)},
                     {"grammatical", found.asked().grammatical_share()}};
    if (captioner().facts().cross_attention_layers == 0) return score;
    const PointingSums pointing = found.pointing_of_all().all();
    score.metrics.push_back({"peak_inside", pointing.peak_share()});
    score.metrics.push_back({"mass_ratio", pointing.mass_ratio()});
    return score;
  }

  // Written greedily. Also writes what the report shows, see kShownImagesName.
  std::vector<Json> samples() override {
    const std::vector<int64_t> chosen = spread(images_.val.size(), 6);
    const std::vector<Translation> captions =
        caption_images(captioner(), tokenizer_, encoded(chosen).memories, options());
    std::vector<Json> samples;
    std::vector<std::string> written;
    for (size_t k = 0; k < chosen.size(); ++k) {
      written.push_back(captions[k].text);
      samples.push_back(Json::object({{"image", images_.val.path(chosen[k])},
                                      {"reference", images_.val.captions(chosen[k])[0]},
                                      {"caption", written.back()}}));
    }
    Json shown = shown_images();
    if (judged_.empty()) shown["written"] = shown_writing(images_.val, chosen, written);
    write_shown_images(run_, shown);
    return samples;
  }

 private:
  static constexpr int64_t kAtOnce = 64;
  static constexpr size_t kMostShown = 12;  // mistakes in the report

  const Fields& fields() const { return own<Fields>(); }
  const Captioner& captioner() const { return model().need<Captioner>(config_.model_type); }
  SaveOptions save_options() const override {
    return {.tokenizer = &tokenizer_,
            .searched_as = paths_.from.empty() ? "" : find_model_dir(paths_.from)};
  }
  TranslateOptions options() const {
    return {.longest_without_end = 48,
            .scores = false,
            .precision = resolve_precision(config_.precision)};
  }

  void begin_backbone() {
    backbone_.emplace(fields().backbone);
    processor_ = backbone_->processor();
    set_from_string(config_.stack.fields(), "backbone_config", backbone_->config().dump());
  }
  void take_weights() override {
    if (backbone_) backbone_->copy_weights(whole_parameters(), "model.backbone.");
    backbone_.reset();
  }

  // Where all have one size, images are brought to that, whoever gives them.
  void fit_images() {
    const ImageSize first = images_.train.image(0).size;
    for (int64_t i = 1; i < images_.train.size(); ++i) {
      if (images_.train.image(i).size != first) return;
    }
    set_size(first);
  }
  void keep_taken(CaptionSet& set) {
    const auto size = [&](int64_t i) { return set.image(i).size; };
    if (auto some = taken(set.size(), size, [&](int64_t i) { return set.path(i); })) {
      set = set.select(*some);
    }
  }
  void encode_all(const CaptionSet& set, CaptionIds& ids) {
    ids.resize(static_cast<size_t>(set.size()));
    parallel_for(set.size(), [&](int64_t i) {
      for (const std::string& caption : set.captions(i)) {
        ids[static_cast<size_t>(i)].push_back(tokenizer_.encode(caption));
      }
    });
  }
  void find_judged() {
    SceneReader reader;
    for (const int64_t i : spread(images_.val.size(), fields().judged_images)) {
      std::optional<CaptionScene> scene = reader.read(images_.val.scene(i));
      if (!scene) continue;
      judged_.push_back(i);
      const auto captions = images_.val.captions(i);
      exam_.add(*std::move(scene), {captions.begin(), captions.end()});
    }
    reader.warn("train");
    const bool is_selected = config_.select == "true";
    if ((!is_selected && config_.early_stop != "true") || !judged_.empty()) return;
    const std::string wanting = field_name(is_selected ? "select" : "early_stop");
    check(fields().judged_images > 0, ErrorKind::usage,
          "train: `judged_images` is 0, so no caption is judged by truth, which {0} true goes by; "
          "give more of them, or {0} loss",
          wanting);
    fail(ErrorKind::usage,
         "train: none of {} that `judged_images` takes says what it shows (\"objects\"), so "
         "captions "
         "cannot be judged by truth; {} loss",
         counted(std::min(fields().judged_images, images_.val.size()), "held-out image"), wanting);
  }

  // Of a pass of held-out images.
  LossSums held_out_loss(int64_t begin, const nn::Run& run) const {
    std::vector<int64_t> samples;
    CaptionBatch captions;
    for (int64_t i = begin; i < std::min(begin + kAtOnce, images_.val.size()); ++i) {
      for (const std::vector<int32_t>& ids : val_ids_[static_cast<size_t>(i)]) {
        captions.add(i - begin, ids, captioner().facts(), 0);
      }
      samples.push_back(i);
    }
    const NoGrad off;
    return loss_of(images_.val, samples, captions, run, false);
  }
  // Of a pass of those that are judged by their scenes.
  CaptionScores judged_captions(size_t begin) const {
    const size_t end = std::min(begin + static_cast<size_t>(kAtOnce), judged_.size());
    const std::span<const int64_t> images = std::span(judged_).subspan(begin, end - begin);
    return score_captions(captioner(), tokenizer_, encoded(images), exam_.part(begin, end),
                          options());
  }

  // Some that are trained on, and those of which most was wrong at the last validation.
  Json shown_images() const {
    Json training = Json::array(), mistakes = Json::array();
    for (const int64_t i : spread(images_.train.size(), 6)) {
      training.push_back(shown_captions(images_.train, i));
    }
    for (const ImageMistakes& one : worst_) {
      const auto at = static_cast<size_t>(one.image);
      mistakes.push_back(shown_untruths(images_.val, judged_[at], one.texts, exam_.scenes[at]));
    }
    return Json::object({{"augmented", std::move(training)}, {"mistakes", std::move(mistakes)}});
  }

  // Numbers of the captions that count of an image in an epoch.
  std::vector<size_t> drawn(int64_t epoch, int64_t image) const {
    const size_t all = train_ids_[static_cast<size_t>(image)].size();
    std::vector<size_t> numbers(all);
    std::iota(numbers.begin(), numbers.end(), size_t{0});
    const auto wanted = static_cast<size_t>(fields().captions_of_image);
    if (wanted == 0 || wanted >= all) return numbers;
    RngStream random(make_key(seed(), static_cast<uint64_t>(epoch), hash_name("captions"),
                              static_cast<uint64_t>(image)));
    for (size_t k = 0; k < wanted; ++k) std::swap(numbers[k], numbers[k + random.below(all - k)]);
    numbers.resize(wanted);
    return numbers;
  }

  Image fitted(const CaptionSet& set, int64_t i) const {
    return processor_.fit(set.image(i).rgb());
  }
  EncodedImages encoded(std::span<const int64_t> images) const {
    std::vector<Image> all(images.size());
    parallel_for(std::ssize(images), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      all[at] = fitted(images_.val, images[at]);
    });
    return encode_images(captioner(), processor_, all, options().precision);
  }

  // Summed over the captions; with gradients, if they are wanted.
  LossSums loss_of(const CaptionSet& set, std::span<const int64_t> samples,
                   const CaptionBatch& captions, const nn::Run& run, bool has_gradients) const {
    std::vector<Image> images(samples.size());
    std::vector<ImageSize> sizes;
    const auto n = static_cast<int64_t>(samples.size());
    {
      const ProfilePhase phase("prepare");
      parallel_for(n, [&](int64_t i) {
        const auto at = static_cast<size_t>(i);
        images[at] = fitted(set, samples[at]);
      });
    }
    for (const Image& image : images) sizes.push_back(image.size());
    ImageBatch batch(std::move(sizes), {samples.begin(), samples.end()});
    parallel_for(n, [&](int64_t i) { batch.lay(i, images[static_cast<size_t>(i)], processor_); });
    const CaptionPass pass(captioner(), batch, captions);  // until the backward pass has ended
    CrossEntropy ce;
    double penalty = 0;
    {
      const ProfilePhase phase("forward");
      ce = forward(pass, run, has_gradients, penalty);
    }
    if (has_gradients) {
      const ProfilePhase phase("backward");
      backward(ce.loss);
    }
    return {ce.total + penalty, ce.nll, ce.predicted, n};
  }

  CrossEntropy forward(const CaptionPass& pass, const nn::Run& run, bool has_gradients,
                       double& penalty) const {
    Tensor memory = captioner().encode(pass.images, run);
    if (!pass.cells.empty()) memory = gather_rows(memory, pass.cells);
    const Segments &targets = pass.targets, &sources = pass.sources;
    const bool is_regularised =
        has_gradients && fields().attention_regularisation + fields().attention_entropy > 0;
    const Captioner::Attended y =
        is_regularised ? captioner().decode_attending(pass.tokens, memory, sources, run)
                       : Captioner::Attended{captioner().decode(pass.tokens, memory, sources, run)};
    CrossEntropy ce = captioner().output().loss(
        y.h, pass.captions.target_out,
        {.smoothing = has_gradients ? static_cast<float>(fields().label_smoothing) : 0}, run);
    if (!is_regularised || !y.weights.defined()) return ce;
    // The loss is a sum over tokens, these are means.
    const auto add_penalty = [&](double factor, const auto& mean) {
      if (factor == 0) return;
      const double each = factor * static_cast<double>(ce.predicted);
      const Tensor added = scale(mean(), static_cast<float>(each));
      penalty += static_cast<double>(added.item());
      ce.loss = add(ce.loss, added);
    };
    const double cells_of_a_source =
        static_cast<double>(sources.rows()) / static_cast<double>(sources.count());
    add_penalty(fields().attention_regularisation / cells_of_a_source,
                [&] { return unevenness(y.weights, targets, sources); });
    add_penalty(fields().attention_entropy,
                [&] { return mean_entropy(y.weights, targets.rows()); });
    return ce;
  }

  CaptionSplit images_;
  std::optional<TrainedBackbone> backbone_;  // until its weights are taken
  Tokenizer tokenizer_;
  CaptionIds train_ids_, val_ids_;
  std::optional<CaptionNumbers> numbers_;  // of train_ids_
  std::vector<int64_t> judged_;            // held-out images whose scenes are known
  CaptionExam exam_;
  std::vector<ImageMistakes> worst_;  // by numbers in judged_, of the last validation
};

template std::unique_ptr<TaskFields> new_fields<CaptionTask>();

}  // namespace heddle::train
