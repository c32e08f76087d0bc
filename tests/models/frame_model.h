// A model over rows that are no tokens, made here alone: a new kind of input is a struct and a
// model that reads it.
#pragma once

#include "heddle/models/family.h"
#include "heddle/nn/attention.h"

namespace heddle {

// Frames of features, as a model of speech reads them.
struct FrameRows {
  static constexpr const char* kName = "frames";
  Tensor x;  // [rows, features]
  const Segments* segments = nullptr;
  std::shared_ptr<const RowIds> rows = nullptr;
};

struct FrameConfig {
  int64_t features = 3, width = 8;
  template <class V>
  void fields(V& v) {
    v("features", features, "numbers of a frame", at_least(1));
    v("width", width, "width of the states", at_least(1));
  }
  void check(const std::string&) const {}
};

// One layer of attention; classes by the state of the first frame.
class FrameModel final : public Model {
 public:
  using Config = FrameConfig;
  static HubFamily family() {
    return {.heads = {{Head::sequence_classes, "FrameForSequenceClassification"},
                      {Head::none, "FrameModel"}}};
  }

  FrameModel(const Scope& s, const Config& c, const HubConfig& hub)
      : Model(1, c.width),
        in_(s / "in", {.in = c.features, .out = c.width, .init = Init::normal(0.3)}),
        attention_("attention", Linear(s / "qkv", {.in = c.width, .out = 3 * c.width}),
                   Linear(s / "out", {.in = c.width, .out = c.width}),
                   {.heads = 2, .observed = "attentions.0"}),
        norm_(s / "norm", c.width, 1e-5) {
    heads_.pooler = [](const Tensor& h, const ModelInput& input, const Run&) {
      return first_rows(h, input.segments);
    };
    if (hub.head != Head::sequence_classes) return;
    heads_.sequence_classes =
        classes_of_pooled(s / "classes", {c.width, hub.classes(), 0.02, 0.1}, heads_.pooler);
  }

  nn::TensorNames names() const override { return {}; }
  Tensor hidden(const ModelInput& input, const Run& run) const override {
    const Tensor x = in_(input.as<FrameRows>().x, run);
    return norm_(attention_(x, {.segments = &input.segments, .rows = input.rows}, run));
  }

 private:
  Linear in_;
  nn::SelfAttention attention_;
  LayerNorm norm_;
};

namespace testing {

inline std::unique_ptr<Model> make_frames(nn::Parameters& parameters,
                                          Head head = Head::sequence_classes) {
  const auto config = new_config<FrameModel>();
  config->type = "frames";
  config->hub.head = head;
  return config->make(Scope(parameters));
}

// Samples of these lengths, from `first` on; the class of each is the sign of its first frame's
// first number.
struct Frames {
  Segments segments;
  std::vector<int32_t> classes;
  std::vector<float> x;
  RowIds ids;

  explicit Frames(const std::vector<int64_t>& lengths, int64_t first = 0)
      : segments(Segments::from_lengths(lengths)) {
    for (uint32_t s = 0; s < lengths.size(); ++s) {
      RngStream random(make_key(1, 2, first + s));
      for (uint32_t t = 0; t < lengths[s]; ++t) {
        for (int i = 0; i < 3; ++i) x.push_back(2 * random.uniform() - 1);
        ids.sample.push_back(static_cast<uint32_t>(first) + s), ids.position.push_back(t);
      }
      classes.push_back(x[3 * segments.begin(s)] > 0 ? 1 : 0);
    }
  }
  FrameRows rows() const {
    return {Tensor::from(x, {segments.rows(), 3}), &segments, std::make_shared<const RowIds>(ids)};
  }
};

}  // namespace testing
}  // namespace heddle
