// Average precision of a model that finds objects in images.
#include <algorithm>

#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/image_files.h"
#include "heddle/cli/measure/eval.h"
#include "heddle/cli/shared_command.h"
#include "heddle/data/detections.h"
#include "heddle/dist/share_out.h"
#include "heddle/infer/answers.h"
#include "heddle/infer/detect.h"
#include "heddle/inspect/pages/detection_page.h"
#include "heddle/train/metrics/average_precision.h"

namespace heddle::cli {
namespace {

constexpr int64_t kAtOnce = 16;  // decoded and fitted by all threads; passes are of fewer

JudgedPart<DetectionSource> images_of(const std::string& path,
                                      const std::vector<std::string>& labels) {
  JudgedPart<DetectionSource> part = judged_part(find_detections(path), path);
  relabel_for_model(part.source, labels);
  return part;
}

// What is found in some images.
struct FoundObjects {
  std::vector<int64_t> entries = {};
  std::vector<ImageSize> sizes = {};
  std::vector<std::vector<ScoredBox>> boxes = {};
  std::vector<std::string> left_out = {};  ///< messages on the others

  template <class V>
  void parts(V& v) {
    v(entries, sizes, boxes, left_out);
  }
};

class DetectionJudge {
 public:
  DetectionJudge(const EvalFlags& flags, const ImageReader& reader)
      : flags_(flags),
        reader_(reader),
        part_(images_of(flags.data, reader.model().labels())),
        page_(flags.model, class_names(reader.model()), 0.5) {}

  void run() {
    const auto count = std::ssize(source_.images.entries);
    const auto judge = [&](int64_t first, int64_t images) { return find(first, images); };
    for (FoundObjects& some : judge_in_passes<FoundObjects>(*flags_.group, count, kAtOnce, judge)) {
      take(some);
    }
    cleaner_.warn(source_.file);
    left_out_.report(count);
  }
  int64_t left_out() const { return left_out_.count(); }
  const std::string& part() const { return part_.name; }
  /// The images' names and how many boxes each has.
  std::string names() const {
    std::string all;
    for (size_t i = 0; i < source_.images.entries.size(); ++i) {
      all += fmt::format("{} {}\n", source_.images.entries[i].name, source_.boxes[i].size());
    }
    return all;
  }
  const std::vector<train::DetectedImage>& judged() const { return judged_; }
  const inspect::DetectionPage& page() const { return page_; }

 private:
  FoundObjects find(int64_t first, int64_t count) {
    FoundObjects all;
    const auto n = static_cast<size_t>(count);
    std::vector<Image> all_shown(n), all_fitted(n), fitted;
    std::vector<ImageSize> all_sizes(n);
    // A photograph may be many times as large as what is kept of it, so a thread holds one alone.
    ReadableImages readable = read_in_parallel(count, [&](size_t i) {
      const size_t entry = static_cast<size_t>(first) + i;
      const std::string path = source_.images.path(entry);
      const DecodedImage decoded = source_.images.decode(entry, path);
      check_takes(reader_.model(), reader_.processor, decoded.size, path);
      const Image image =
          ImageView{decoded.pixels.data(), decoded.size, source_.images.channels}.rgb();
      all_sizes[i] = image.size();
      all_fitted[i] = reader_.processor.fit(image);
      if (!flags_.page.empty()) all_shown[i] = inspect::page_image(image);
    });
    all.left_out = std::move(readable.left_out);
    const std::vector<size_t>& read = readable.read;
    if (read.empty()) return all;
    for (const size_t i : read) {
      fitted.push_back(std::move(all_fitted[i]));
      all.sizes.push_back(all_sizes[i]);
      all.entries.push_back(first + static_cast<int64_t>(i));
    }
    all.boxes = detect(reader_, fitted, all.sizes, flags_.chosen_precision);
    for (size_t i = 0; i < read.size() && !flags_.page.empty(); ++i) {
      page_.add(source_.images.entries[static_cast<size_t>(all.entries[i])].name, all.sizes[i],
                all_shown[read[i]], sure_boxes(all.boxes[i], 0, all.sizes[i]));
    }
    return all;
  }

  void take(FoundObjects& found) {
    for (const std::string& message : found.left_out) left_out_.note(message);
    for (size_t i = 0; i < found.entries.size(); ++i) {
      const auto entry = static_cast<size_t>(found.entries[i]);
      cleaner_.compare_size(source_, entry, found.sizes[i]);
      // As the file has them, like pycocotools: neither clipped nor dropped.
      judged_.push_back({source_.ids[entry], source_.boxes[entry], std::move(found.boxes[i])});
    }
  }

  const EvalFlags& flags_;
  const ImageReader& reader_;
  JudgedPart<DetectionSource> part_;
  const DetectionSource& source_ = part_.source;
  BoxCleaner cleaner_;
  std::vector<train::DetectedImage> judged_;
  inspect::DetectionPage page_;
  Skipped left_out_{"eval", kLeftOutImages};
};

int64_t objects_in(std::span<const train::DetectedImage> images) {
  int64_t objects = 0;
  for (const train::DetectedImage& one : images) objects += std::ssize(one.truths);
  return objects;
}

void print_text(const train::DetectionScores& s, const DetectionJudge& judge,
                const std::vector<std::string>& labels) {
  const std::span<const train::DetectedImage> images = judge.judged();
  const auto text = [](double x) { return x < 0 ? std::string("none") : fmt::format("{:.4f}", x); };
  const auto of_sizes = [&](double small, double medium, double large) {
    return fmt::format("small {}, medium {}, large {}", text(small), text(medium), text(large));
  };
  print_result(fmt::format("{}: mAP {}, mAP50 {}, mAP75 {} ({}, {})", judge.part(), text(s.ap),
                           text(s.ap50), text(s.ap75), counted(std::ssize(images), "image"),
                           counted(objects_in(images), "object")));
  print_result(fmt::format("mAP {}", of_sizes(s.ap_small, s.ap_medium, s.ap_large)));
  print_result(fmt::format("recall of 1 box {}, of 10 {}, of 100 {}; {}", text(s.ar1), text(s.ar10),
                           text(s.ar100), of_sizes(s.ar_small, s.ar_medium, s.ar_large)));
  for (size_t c = 0; c < labels.size(); ++c) {
    if (s.class_ap[c] < 0) continue;
    print_result(
        fmt::format("{}\tmAP {:.4f}\tmAP50 {:.4f}", labels[c], s.class_ap[c], s.class_ap50[c]));
  }
}

Json as_json(const train::DetectionScores& s, const DetectionJudge& judge,
             const std::vector<std::string>& labels, const EvalFlags& flags) {
  Json json = Json::object({{"part", judge.part()}});
  for (const train::Metric& m : s.metrics()) json[m.name] = m.value;
  for (size_t c = 0; c < labels.size(); ++c) {
    json["classes"][labels[c]] =
        Json::object({{"map", s.class_ap[c]}, {"map_50", s.class_ap50[c]}});
  }
  json["images"] = judge.judged().size();
  json["left_out"] = judge.left_out();
  json["objects"] = objects_in(judge.judged());
  json["precision"] = precision_name(flags.chosen_precision);
  return json;
}

}  // namespace

void eval_objects(const EvalFlags& flags) {
  const ImageReader reader = load_detector(flags.model);
  std::optional<DetectionJudge> judge;
  agree(
      *flags.group, "the data", [&] { judge.emplace(flags, reader); },
      [&] { return judge->names(); });
  DetectionJudge& evaluation = *judge;
  evaluation.run();
  do_on_rank_0(*flags.group, [&] {
    const std::vector<std::string> labels = class_names(reader.model());
    const train::DetectionScores scores =
        train::score_detections(evaluation.judged(), std::ssize(labels));
    if (scores.ap < 0) {
      log_warning("eval: {}: no object is in its images, so there is nothing to find", flags.data);
    }
    if (flags.json) {
      print_result(as_json(scores, evaluation, labels, flags).dump());
    } else {
      print_text(scores, evaluation, labels);
    }
    if (flags.page.empty()) return;
    write_page("eval", counted(evaluation.page().images(), "image"), flags.page,
               evaluation.page().page());
  });
}

}  // namespace heddle::cli
