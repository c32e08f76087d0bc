// An image made ready for looking: one pass as a function, its attention calls, what lies where.
#include "heddle/inspect/images/image_subject.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include "heddle/base/log_sum_exp.h"
#include "heddle/base/progress.h"
#include "heddle/infer/answers.h"
#include "heddle/infer/detect.h"
#include "heddle/inspect/matrix.h"
#include "heddle/text/strings/strings.h"

namespace heddle::inspect {
namespace {

constexpr std::string_view kStates = "hidden_states.";

// Attention calls by the names that observers are given: of one stack, or of a detector's encoder
// over the image and decoder over its queries.
struct KindOfCall {
  std::string_view prefix, title;
  bool has_image_queries, has_image_keys;
};
constexpr std::array<KindOfCall, 4> kKinds = {
    {{"attentions.", "layer", true, true},
     {"encoder_attentions.", "encoder layer", true, true},
     {"decoder_attentions.", "decoder layer", false, false},
     {"cross_attentions.", "cross layer", false, true}}};

std::vector<std::string> token_names(int64_t count) {
  std::vector<std::string> names = {"[class]", "[distillation]"};
  for (int64_t i = std::ssize(names); i < count; ++i) names.push_back(fmt::format("[token {}]", i));
  names.resize(static_cast<size_t>(count));
  return names;
}

// The number behind a prefix; -1 if the name is another.
int64_t number_of(std::string_view name, std::string_view prefix) {
  int64_t number = -1;
  if (!name.starts_with(prefix)) return -1;
  const char* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + prefix.size(), end, number);
  return error == std::errc() && at == end ? number : -1;
}

double log_probability(const std::vector<float>& logits, size_t label) {
  return logits[label] - log_sum_exp(logits);
}

std::vector<double> row_norms(const Tensor& x) {
  const std::vector<float> values = x.to_floats();
  std::vector<double> norms(static_cast<size_t>(x.size(0)));
  for (size_t i = 0; i < values.size(); ++i) {
    norms[i / static_cast<size_t>(x.size(1))] += static_cast<double>(values[i]) * values[i];
  }
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

}  // namespace

std::string CellGrid::name(int64_t cell) const {
  if (cell < std::ssize(tokens)) return tokens[static_cast<size_t>(cell)];
  const int64_t at = cell - std::ssize(tokens);
  return fmt::format("row {}, column {}", at / size.width, at % size.width);
}

ImageSubject::ImageSubject(const std::string& path, const Image& image, std::string name,
                           const Precision& precision)
    : given_(path),
      name_(std::move(name)),
      reader_(load_image_reader(path)),
      fitted_(reader_.processor.fit(image)),
      batch_(std::span(&fitted_, 1), reader_.processor),
      precision_(precision) {
  note_objects();
  note_calls();
  note_classes();
}

ImageSubject::Result ImageSubject::result(const nn::Observer* observer) const {
  const NoGrad off;
  nn::Run run;
  run.use(precision_);
  run.observer = observer;
  const ImageModel& model = reader_.model();
  const nn::ImageRows rows = batch_.rows();
  const Tensor states = model.hidden(rows, run);
  const Heads::OfInput& head = model.heads().sequence_classes;
  if (!head) return {.logits = {}, .states = states.to_floats()};
  return {.logits = head(states, rows, run).to_floats(), .states = {}};
}

void ImageSubject::note_calls() {
  const ImageModel& model = reader_.model();
  const auto* const windowed = model.as<WithWindows>();
  int64_t last = -1;
  nn::Observer observer;
  observer.attention = [&](const nn::AttentionCall& call) {
    for (const KindOfCall& kind : kKinds) {
      const int64_t layer = number_of(call.name(), kind.prefix);
      if (layer < 0) continue;
      ImageCall noted{.name = call.name(),
                      .title = fmt::format("{} {}", kind.title, layer),
                      .layer = layer,
                      .heads = call.heads()};
      if (windowed != nullptr) {
        note_windows(noted, windowed->windows(layer, fitted_.size()));
      } else {
        check(call.queries().count() == 1, ErrorKind::internal, "{} has {} segments of one image",
              call.name(), call.queries().count());
        noted.queries = find_grid(call.queries().rows(), kind.has_image_queries);
        noted.keys = find_grid(call.keys().rows(), kind.has_image_keys);
      }
      calls_.push_back(std::move(noted));
    }
  };
  observer.hidden = [&](const std::string& name, const Tensor& x) {
    const int64_t number = number_of(name, kStates);
    if (number < last) return;
    last = number;
    norms_ = row_norms(x);
  };
  plain_ = result(&observer);
  if (grids_.empty() || std::ssize(norms_) != grids_.back().cells()) norms_.clear();
  check(!calls_.empty(), ErrorKind::data, "{}: the {} has no attention over an image to be shown",
        path(), type());
}

// The image's grid, or that of a detector's queries, which are of no part of the image.
size_t ImageSubject::find_grid(int64_t rows, bool is_of_image) {
  CellGrid grid;
  if (is_of_image) {
    const ImageModel& model = reader_.model();
    grid = {token_names(model.facts().tokens), model.grid(fitted_.size())};
  } else {
    for (int64_t i = 0; i < rows; ++i) {
      grid.tokens.push_back(fmt::format("query {}", i));
      if (i >= std::ssize(objects_)) continue;
      const SeenObject& seen = objects_[static_cast<size_t>(i)];
      grid.tokens.back() += fmt::format(": {} {:.2f}", seen.label, seen.score);
    }
  }
  check(grid.cells() == rows, ErrorKind::internal,
        "attention has {} rows over an image of {} cells", rows, grid.cells());
  const auto at = std::ranges::find(grids_, grid);
  if (at != grids_.end()) return static_cast<size_t>(at - grids_.begin());
  grids_.push_back(std::move(grid));
  return grids_.size() - 1;
}

// Each stage has a grid of its own.
void ImageSubject::note_windows(ImageCall& call, const ImageWindows& windows) {
  const CellGrid grid{{}, windows.grid};
  if (grids_.empty() || grids_.back() != grid) grids_.push_back(grid);
  call.queries = call.keys = grids_.size() - 1;
  const int64_t rows = windows.side * windows.side;
  for (int64_t begin = 0; begin < std::ssize(windows.tokens); begin += rows) {
    const auto of_window = [&](const std::vector<int32_t>& all) {
      return std::vector<int32_t>(all.begin() + begin, all.begin() + begin + rows);
    };
    const std::vector<int32_t> cells = of_window(windows.tokens);
    call.windows.push_back({cells, cells, of_window(windows.regions)});
  }
}

void ImageSubject::note_objects() {
  const auto* const detector = reader_.model().as<Detector>();
  if (detector == nullptr) return;
  const NoGrad off;
  nn::Run run;
  run.use(precision_);
  const ObjectPredictions seen = detector->predict(batch_.rows(), false, run);
  const std::vector<std::string> names = class_names(reader_.model());
  const ImageSize whole{1, 1};  // boxes are shares of the image
  for (const ScoredBox& one :
       query_boxes(seen, detector->detector().queries, {&whole, 1}, path())) {
    objects_.push_back({names[static_cast<size_t>(one.label)],
                        one.score,
                        {one.box.x0, one.box.y0, one.box.x1, one.box.y1}});
  }
}

void ImageSubject::note_classes() {
  if (plain_.logits.empty()) return;
  const std::vector<double> p =
      classify(reader_, std::span<const Image>(&fitted_, 1), precision_)[0];
  const std::vector<std::string> names = class_names(reader_.model());
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return p[i]; });
  for (const size_t i : order) classes_.push_back({names[i], p[i]});
}

std::string ImageSubject::measure() const {
  return plain_.logits.empty() ? "relative change of the last hidden states"
                               : "fall of log p of the likeliest class, nats";
}

double ImageSubject::change(const nn::Observer& observer) const {
  const Result now = result(&observer);
  if (!now.logits.empty()) {
    const auto most =
        static_cast<size_t>(std::ranges::max_element(plain_.logits) - plain_.logits.begin());
    return log_probability(plain_.logits, most) - log_probability(now.logits, most);
  }
  return relative_change(plain_.states, now.states);
}

Json image_json(const Image& image, int64_t longest) {
  const int64_t most = std::max(image.height, image.width);
  if (most > longest) {
    const auto side = [&](int64_t x) { return std::max<int64_t>(1, x * longest / most); };
    return image_json(resize(image, side(image.height), side(image.width), Resample::bilinear),
                      longest);
  }
  const std::string_view bytes(reinterpret_cast<const char*>(image.pixels.data()),
                               image.pixels.size());
  return Json::object(
      {{"height", image.height}, {"width", image.width}, {"pixels", base64_text(bytes)}});
}

std::string likeliest_class(const ImageSubject& subject) {
  if (subject.classes().empty()) return "";
  const ImageClass& first = subject.classes().front();
  return fmt::format("{} ({:.1f} %)", first.label, 100 * first.probability);
}

}  // namespace heddle::inspect
