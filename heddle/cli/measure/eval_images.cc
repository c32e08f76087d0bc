// Accuracy, calibration and confusion of a model that classifies images.
#include <algorithm>
#include <array>
#include <cmath>

#include "heddle/base/log.h"
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

std::string as_text(const ImageReport& r, int64_t labels) {
  return fmt::format(
      "accuracy {:.2f} %, top 5 {:.2f} %, macro F1 {:.4f}, loss {:.4f}, calibration error {:.4f} "
      "({}, {})",
      100 * r.confusion.accuracy(), 100 * static_cast<double>(r.among_five) / r.count(),
      r.confusion.macro_f1(), r.nll / r.count(), r.calibration_error(),
      counted(std::ssize(r.truths), "image"), counted(labels, "label"));
}

std::string as_json(const ImageReport& r, int64_t labels, const EvalFlags& flags) {
  Json json = Json::object();
  json["accuracy"] = r.confusion.accuracy();
  json["top5"] = static_cast<double>(r.among_five) / r.count();
  json["macro_f1"] = r.confusion.macro_f1();
  json["loss"] = finite_or_null(r.nll / r.count());
  json["calibration_error"] = r.calibration_error();
  json["images"] = r.truths.size();
  json["left_out"] = r.left_out;
  json["labels"] = labels;
  json["precision"] = precision_name(resolve_precision(flags.compute.precision));
  return json.dump();
}

}  // namespace

void eval_images(const EvalFlags& flags) {
  check(flags.views == 1 || flags.views == 2, ErrorKind::usage,
        "--views is {}; an image has 1 view, and with its mirror image 2", flags.views);
  const bool has_page = wants_page(flags.page);
  const Precision precision = apply_compute_flags(flags.compute);
  const ImageReader reader = load_image_reader(flags.model);
  ImageSources found;
  const auto names = [&] {
    std::string all;
    for (const auto& entry : (found.val ? *found.val : found.train.value()).entries) {
      all += entry.name + "\n";
    }
    return all;
  };
  agree(
      *flags.group, "the data", [&] { found = find_images(flags.data); }, names);
  if (!found.val) {
    log_info("eval: {} has no images that are held out; all of them are judged", flags.data);
  }
  ImageSource& source = found.val ? *found.val : found.train.value();
  const std::vector<std::string>& labels = reader.model().labels();
  relabel(source, labels);
  ImageReport report(std::ssize(labels));
  std::vector<inspect::AnsweredQuestion> wrong;
  Skipped left_out("eval", kLeftOutImages);
  Progress progress("eval");
  const auto count = std::ssize(source.entries);
  const auto judge = [&](int64_t pass) {
    ClassifiedImages classified;
    const int64_t begin = pass * kAtOnce;
    std::vector<Image> block(static_cast<size_t>(std::min(kAtOnce, count - begin))), images;
    ReadableImages found_here = read_in_parallel(std::ssize(block), [&](size_t i) {
      const size_t n = static_cast<size_t>(begin) + i;
      const DecodedImage image = source.decode(n, source.path(n));
      block[i] =
          reader.processor.fit(ImageView{image.pixels.data(), image.size, source.channels}.rgb());
    });
    classified.left_out = std::move(found_here.left_out);
    for (const size_t i : found_here.read) {
      images.push_back(std::move(block[i]));
      classified.entries.push_back(begin + static_cast<int64_t>(i));
    }
    if (!images.empty()) {
      classified.probabilities = classify(reader, images, precision, flags.views == 2);
    }
    if (progress.is_due()) {
      progress.update(static_cast<double>(begin) / static_cast<double>(count),
                      fmt::format("{} of {}", format_count(begin), counted(count, "image")));
    }
    return classified;
  };
  for (const ClassifiedImages& some : dist::share_out_each<ClassifiedImages>(
           *flags.group, (count + kAtOnce - 1) / kAtOnce, judge)) {
    for (const std::string& message : some.left_out) left_out.note(message);
    for (size_t i = 0; i < some.entries.size(); ++i) {
      const auto& entry = source.entries[static_cast<size_t>(some.entries[i])];
      const std::vector<double>& p = some.probabilities[i];
      report.add(entry.label, p);
      const int32_t answer = report.answers.back();
      if (answer == entry.label || std::ssize(wrong) >= inspect::kPageAnswers) continue;
      wrong.push_back({{"", entry.name, ""}, entry.label, answer, p[entry.label], p[answer]});
    }
  }
  left_out.report(count);
  report.left_out = left_out.count();
  do_on_rank_0(*flags.group, [&] {
    const std::string text = as_text(report, std::ssize(labels));
    print_result(flags.json ? as_json(report, std::ssize(labels), flags) : text);
    if (!has_page) return;
    write_page("eval", "a page", flags.page,
               inspect::confusion_page({flags.model, flags.data, text},
                                       class_names(reader.model()), "image", report.truths,
                                       report.answers, wrong));
  });
}

}  // namespace heddle::cli
