// Figures that tell a detector that learns from one that does not, and what to do.
#include "heddle/train/tasks/images/detector_doctor.h"

#include <algorithm>

#include "heddle/base/log.h"
#include "heddle/base/names.h"

namespace heddle::train {
namespace {

constexpr double kOneBox = 0.8;  // overlap from which queries are said to see one box

}  // namespace

DetectorDoctor::DetectorDoctor(const ObjectCounts& counts, const DetectorFacts& facts,
                               bool are_queries_near)
    : queries_(facts.queries), most_(counts.most), are_queries_near_(are_queries_near) {
  if (most_ > queries_) {
    warnings_.push_back(
        fmt::format("an image has {} objects, and the model {} queries: it can never find more "
                    "than these ({:.1f} % of the objects are too many); give {} {}",
                    most_, queries_,
                    100 * static_cast<double>(counts.beyond) / static_cast<double>(counts.objects),
                    field_name("num_queries"), most_ + most_ / 2));
    log_warning("{}", warnings_.back());
  }
  if (facts.loss.has_sigmoids()) return;  // their loss depends on boxes
  floor_ =
      class_loss_floor(counts.of_class, counts.images, facts.queries, facts.loss.eos_coefficient);
  log_info("a model that does not look at its images has a class loss of {:.4f} or more", *floor_);
}

Json DetectorDoctor::examine(const SetLossSums& s, bool is_warming_up) const {
  const double overlap = s.overlap / static_cast<double>(std::max<int64_t>(1, s.images));
  log_info(
      "class loss {:.4f}{}, distance {:.4f}, 1 - GIoU {:.4f}; of matched queries {:.1f} % see "
      "another class or none; two queries share {:.0f} % of their boxes",
      s.class_loss(), floor_ ? fmt::format(" (that of a blind model {:.4f})", *floor_) : "",
      s.distance_loss(), s.giou_loss(), 100 * s.class_error(), 100 * overlap);
  std::vector<std::string> warnings = warnings_;
  const auto warn = [&](std::string text) {
    log_warning("{}", text);
    warnings.push_back(std::move(text));
  };
  if (!is_warming_up && queries_ > 1 && overlap > kOneBox) {
    warn(fmt::format("the queries see one and the same box: lower the learning rate{}",
                     are_queries_near_ ? fmt::format(", or begin with queries further apart ({} 1)",
                                                     field_name("init_std"))
                                       : ""));
  }
  if (!is_warming_up && s.objects > 0 && floor_ && *floor_ > 0 && s.class_loss() >= *floor_) {
    warn(
        "the class loss is not below that of a model that does not look at its images: it has "
        "learned nothing from them yet");
  }
  Json found = Json::object({{"class_loss", s.class_loss()},
                             {"distance_loss", s.distance_loss()},
                             {"giou_loss", s.giou_loss()},
                             {"class_error", s.class_error()},
                             {"query_overlap", overlap},
                             {"most_objects", most_},
                             {"queries", queries_},
                             {"warnings", warnings}});
  if (floor_) found["blind_class_loss"] = *floor_;
  return found;
}

}  // namespace heddle::train
