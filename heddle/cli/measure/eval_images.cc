// Accuracy, calibration and confusion of a model that classifies images.
#include <algorithm>
#include <array>
#include <cmath>

#include "heddle/base/progress.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/image_files.h"
#include "heddle/cli/measure/eval.h"
#include "heddle/cli/shared_command.h"
#include "heddle/data/images.h"
#include "heddle/dist/share_out.h"
#include "heddle/infer/answers.h"
#include "heddle/inspect/pages/text_pages.h"
#include "heddle/train/tasks/losses.h"

namespace heddle::cli {
namespace {

constexpr int64_t kAtOnce = 64;

// What is found of some images.
struct ClassifiedImages {
  std::vector<int64_t> entries = {};
  std::vector<std::vector<double>> probabilities = {};
  std::vector<std::string> left_out = {};  ///< messages on the others

  template <class V>
  void parts(V& v) {
    v(entries, probabilities, left_out);
  }
};

struct ImageReport {
  explicit ImageReport(int64_t classes) : confusion(classes) {}

  train::Confusion confusion;
  std::vector<int32_t> truths, answers;
  double nll = 0;
  int64_t among_five = 0;
  /// Answers by their probability: how many, how many right, and the sum of the probabilities.
  struct Bin {
    int64_t count = 0, right = 0;
    double sure = 0;
  };
  std::array<Bin, 15> bins;
  int64_t left_out = 0;  ///< images that could not be read

  void add(int32_t truth, std::span<const double> p) {
    const auto answer = static_cast<int32_t>(std::ranges::max_element(p) - p.begin());
    const double own = p[static_cast<size_t>(truth)], sure = p[static_cast<size_t>(answer)];
    truths.push_back(truth), answers.push_back(answer);
    confusion.add(truth, answer);
    nll -= std::log(own);
    among_five += train::rank_of(truth, p) < 5;
    Bin& bin = bins[std::min(bins.size() - 1, static_cast<size_t>(sure * 15))];
    ++bin.count, bin.right += answer == truth, bin.sure += sure;
  }
  double count() const { return static_cast<double>(truths.size()); }
  /// Mean over the answers of |share that is right - mean probability| of 15 bins of equal width.
  /// Source: Guo et al. 2017, "On Calibration of Modern Neural Networks".
  double calibration_error() const {
    double sum = 0;
    for (const Bin& bin : bins) sum += std::abs(static_cast<double>(bin.right) - bin.sure);
    return sum / count();
  }
};

std::string as_text(const ImageReport& r, int64_t labels, const std::string& part) {
  return fmt::format(
      "{}: accuracy {:.2f} %, top 5 {:.2f} %, macro F1 {:.4f}, loss {:.4f}, calibration error "
      "{:.4f} ({}, {})",
      part, 100 * r.confusion.accuracy(), 100 * static_cast<double>(r.among_five) / r.count(),
      r.confusion.macro_f1(), r.nll / r.count(), r.calibration_error(),
      counted(std::ssize(r.truths), "image"), counted(labels, "label"));
}

std::string as_json(const ImageReport& r, int64_t labels, const EvalFlags& flags,
                    const std::string& part) {
  Json json = Json::object({{"part", part}});
  json["accuracy"] = r.confusion.accuracy();
  json["top5"] = static_cast<double>(r.among_five) / r.count();
  json["macro_f1"] = r.confusion.macro_f1();
  json["loss"] = finite_or_null(r.nll / r.count());
  json["calibration_error"] = r.calibration_error();
  json["images"] = r.truths.size();
  json["left_out"] = r.left_out;
  json["labels"] = labels;
  json["precision"] = precision_name(flags.chosen_precision);
  return json.dump();
}

JudgedPart<ImageSource> images_of(const std::string& path, const std::vector<std::string>& labels) {
  JudgedPart<ImageSource> part = judged_part(find_images(path), path);
  relabel(part.source, labels);
  return part;
}

class ImageJudge {
 public:
  ImageJudge(const EvalFlags& flags, const ImageReader& reader)
      : flags_(flags),
        reader_(reader),
        part_(images_of(flags.data, reader.model().labels())),
        report_(std::ssize(reader.model().labels())) {}

  void run() {
    const auto count = std::ssize(source_.entries);
    const auto judge = [&](int64_t first, int64_t images) {
      return classified_from(first, images);
    };
    for (const ClassifiedImages& some :
         judge_in_passes<ClassifiedImages>(*flags_.group, count, kAtOnce, judge)) {
      take(some);
    }
    left_out_.report(count);
    report_.left_out = left_out_.count();
  }
  std::string names() const {
    std::string all;
    for (const ImageSource::Entry& entry : source_.entries) all += entry.name + "\n";
    return all;
  }
  const ImageReport& report() const { return report_; }
  const std::string& part() const { return part_.name; }
  inspect::Page page(const std::string& summary) const {
    return inspect::confusion_page({flags_.model, flags_.data, summary},
                                   class_names(reader_.model()), "image", report_.truths,
                                   report_.answers, wrong_);
  }

 private:
  ClassifiedImages classified_from(int64_t first, int64_t count) const {
    ClassifiedImages classified;
    std::vector<Image> block(static_cast<size_t>(count)), images;
    ReadableImages readable = read_in_parallel(count, [&](size_t i) {
      const size_t n = static_cast<size_t>(first) + i;
      const std::string path = source_.path(n);
      const DecodedImage image = source_.decode(n, path);
      check_takes(reader_.model(), reader_.processor, image.size, path);
      block[i] =
          reader_.processor.fit(ImageView{image.pixels.data(), image.size, source_.channels}.rgb());
    });
    classified.left_out = std::move(readable.left_out);
    for (const size_t i : readable.read) {
      images.push_back(std::move(block[i]));
      classified.entries.push_back(first + static_cast<int64_t>(i));
    }
    if (!images.empty()) {
      classified.probabilities =
          classify(reader_, images, flags_.chosen_precision, flags_.views == 2);
    }
    return classified;
  }

  void take(const ClassifiedImages& some) {
    for (const std::string& message : some.left_out) left_out_.note(message);
    for (size_t i = 0; i < some.entries.size(); ++i) {
      const ImageSource::Entry& entry = source_.entries[static_cast<size_t>(some.entries[i])];
      const std::vector<double>& p = some.probabilities[i];
      report_.add(entry.label, p);
      const int32_t answer = report_.answers.back();
      if (answer == entry.label || std::ssize(wrong_) >= inspect::kPageAnswers) continue;
      wrong_.push_back({{"", entry.name, ""}, entry.label, answer, p[entry.label], p[answer]});
    }
  }

  const EvalFlags& flags_;
  const ImageReader& reader_;
  JudgedPart<ImageSource> part_;
  const ImageSource& source_ = part_.source;
  ImageReport report_;
  std::vector<inspect::AnsweredQuestion> wrong_;
  Skipped left_out_{"eval", kLeftOutImages};
};

}  // namespace

void eval_images(const EvalFlags& flags) {
  check(flags.views == 1 || flags.views == 2, ErrorKind::usage,
        "--views is {}; an image has 1 view, and with its mirror image 2", flags.views);
  const ImageReader reader = load_image_reader(flags.model);
  check(class_scale(reader.model()) != ClassScale::none && reader.model().labels().size() >= 2,
        ErrorKind::data, "{}: it gives no probabilities of classes, 2 or more, to be measured",
        flags.model);
  std::optional<ImageJudge> judge;
  agree(
      *flags.group, "the data", [&] { judge.emplace(flags, reader); },
      [&] { return judge->names(); });
  judge->run();
  do_on_rank_0(*flags.group, [&] {
    const auto labels = std::ssize(reader.model().labels());
    const std::string text = as_text(judge->report(), labels, judge->part());
    print_result(flags.json ? as_json(judge->report(), labels, flags, judge->part()) : text);
    if (!flags.page.empty()) write_page("eval", "a page", flags.page, judge->page(text));
  });
}

}  // namespace heddle::cli
