// Tables of positions of every kind, and their page: heat map, waves, cosine similarity, numbers.
#include "heddle/inspect/positions.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/progress.h"
#include "heddle/base/rounded.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/models/captioner.h"
#include "heddle/models/detector.h"
#include "heddle/models/rotary.h"

namespace heddle::inspect {
namespace {

constexpr const char* kNoneAbout =
    "nothing is added to the tokens: in another order they give the same vectors in that order";

constexpr const char* kBiasAbout =
    "nothing is added to the tokens: each head adds a learned number to the score of a query and a "
    "key, by how far apart the two stand";

constexpr const char* kRecurrenceAbout =
    "nothing is added to the tokens: they are read one after the other, each from the state that "
    "those before it have left, which tells their order";

std::string sinusoidal_about(const nn::SinusoidalOptions& o) {
  const bool is_interleaved = o.layout == "interleaved";
  return fmt::format("PE(pos, {0}) = sin({2} / 10000^({3})), PE(pos, {1}) = cos({2} / 10000^({3}))",
                     is_interleaved ? "2i" : "i", is_interleaved ? "2i+1" : "d/2 + i",
                     o.offset == 0 ? "pos" : fmt::format("(pos + {})", o.offset),
                     o.frequencies == "paper" ? "2i/d" : "i/(d/2 - 1)");
}

void fill_sinusoidal(PositionTable& t, const nn::SinusoidalOptions& o) {
  t.about = sinusoidal_about(o);
  t.values =
      nn::sinusoidal_table(t.positions, t.columns, o).slice(0, o.offset, t.positions).to_floats();
  t.names.resize(t.columns);
  const int64_t half = t.columns / 2;
  for (int64_t i = 0; i < half; ++i) {
    const bool halves = o.layout == "halves";
    t.names[halves ? i : 2 * i] = fmt::format("sin {}", i);
    t.names[halves ? half + i : 2 * i + 1] = fmt::format("cos {}", i);
  }
}

// Of a model that was stretched beyond the texts of its training.
std::string stretched_about(const RotaryOptions& o) {
  if (o.type == "default" || o.factor == 1) return "";
  return fmt::format("; {} turn {:g} times as slowly, for longer texts (rope_type {})",
                     o.type == "linear" ? "all pairs" : "the slow pairs", o.factor, o.type);
}

// positions: those of the model
void fill_rotary(PositionTable& t, int64_t width, int64_t positions, const RotaryOptions& o) {
  check(width % 2 == 0, ErrorKind::shape,
        "rotary positions turn pairs of columns: the width must be even, not {}", width);
  t.columns = width / 2;
  t.about = fmt::format(
      "angles in radians, pos * {:g}^(-2i/d): queries and keys are turned by them, pair by pair, "
      "and their product feels the difference alone{}",
      o.theta, stretched_about(o));
  t.frequencies = rope_frequencies(width, positions, o);
  for (int64_t i = 0; i < t.columns; ++i) t.names.push_back(fmt::format("pair {}", i));
  for (int64_t pos = 0; pos < t.positions; ++pos) {
    for (const double f : t.frequencies) {
      t.values.push_back(static_cast<float>(static_cast<double>(pos) * f));
    }
  }
}

void name_columns(PositionTable& t) {
  for (int64_t i = 0; i < t.columns; ++i) t.names.push_back(std::to_string(i));
}

// The learned table among the parameters; of two, that of `stack`.
const nn::Parameter* find_table(const nn::Parameters& parameters, const std::string& stack) {
  const nn::Parameter* found = nullptr;
  for (const auto& p : parameters.all()) {
    const std::string& name = p->name();
    const bool is_table = name.ends_with("embed_positions.weight") ||
                          name.ends_with(".position_embeddings.weight") ||
                          name.ends_with("wpe.weight");
    if (is_table && (found == nullptr || name.find("." + stack + ".") != std::string::npos)) {
      found = p.get();
    }
  }
  return found;
}

bool has_parameter(const nn::Parameters& parameters, std::string_view end) {
  return std::ranges::any_of(parameters.all(),
                             [&](const auto& p) { return p->name().ends_with(end); });
}

// As many of the rows that were learned as are asked for, or all.
int64_t rows_shown(int64_t rows, const std::string& path, int64_t positions) {
  check(positions <= rows, ErrorKind::data,
        "{}: {} positions are asked for, the model learned {}; ask for at most so many", path,
        positions, rows);
  return positions == 0 ? rows : positions;
}

// The first `positions` rows of a learned table, or all.
PositionTable rows_of(const Tensor& table, const std::string& path, int64_t positions,
                      int64_t offset) {
  PositionTable t{.kind = "learned"};
  t.positions = rows_shown(table.size(0) - offset, path, positions);
  t.columns = table.size(1);
  t.values = table.slice(0, offset, t.positions).to_floats();
  name_columns(t);
  return t;
}

// "learned in training: NAME, NAME"
std::string about_learned(const nn::Parameter& table) {
  std::vector<std::string> names;
  for (const nn::Part& part : table.parts()) names.push_back(part.name);
  return fmt::format("learned in training: {}", fmt::join(names, ", "));
}

PositionTable learned_table(const nn::Parameters& parameters, const std::string& path,
                            const std::string& stack, int64_t positions, int64_t offset) {
  const nn::Parameter* found = find_table(parameters, stack);
  check(found != nullptr, ErrorKind::data, "{}: the model has no table of learned positions", path);
  PositionTable t = rows_of(found->value(), path, positions, offset);
  t.about = about_learned(*found);
  return t;
}

// Of images: that of the cells of their grid.
PositionTable grid_table(const ImageModel& model, const nn::GridPositions& learned,
                         const std::string& path, int64_t positions) {
  const NoGrad off;
  PositionTable t = rows_of(learned.vectors(), path, positions, 0);
  const bool is_of_axes = learned.of() == nn::PositionsOf::axes;
  t.kind = is_of_axes ? "axes" : "grid";
  t.about = about_learned(learned.table());
  const int64_t tokens = model.facts().tokens;
  if (tokens > 0) {
    t.about += fmt::format("; {} before the image{}, then", counted(tokens, "token"),
                           is_of_axes ? " without any" : "");
  }
  t.about += fmt::format("{} the cells of a grid of {} x {}, line by line", tokens > 0 ? "" : ";",
                         learned.grid().height, learned.grid().width);
  for (int64_t i = 0; is_of_axes && i < t.columns; ++i) {
    const int64_t half = t.columns / 2;
    t.names[i] = i < half ? fmt::format("x {}", i) : fmt::format("y {}", i - half);
  }
  return t;
}

// Of Swin, layer after layer: [(2 side - 1)^2, heads], by the way from a key to a query.
std::vector<const nn::Parameter*> window_biases(const nn::Parameters& parameters) {
  std::vector<const nn::Parameter*> tables;
  for (const auto& p : parameters.all()) {
    if (p->name().ends_with("relative_position_bias_table")) tables.push_back(p.get());
  }
  return tables;
}

// A column a head, by the way from the query, which is in the middle, to a key: a picture of it
// lies as the image does.
PositionTable window_table(std::span<const nn::Parameter* const> tables, const std::string& path,
                           int64_t positions) {
  const int64_t all = tables[0]->shape()[0];
  const auto line = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(all))));
  PositionTable t{.kind = "window"};
  t.positions = rows_shown(all, path, positions);
  t.window = (line + 1) / 2;
  t.about = fmt::format("learned in training, {} for each head: {}, ..", counted(all, "number"),
                        tables[0]->name());
  for (size_t layer = 0; layer < tables.size(); ++layer) {
    for (int64_t head = 0; head < tables[layer]->shape()[1]; ++head) {
      t.names.push_back(fmt::format("{}.{}", layer, head));
    }
  }
  t.columns = std::ssize(t.names);
  for (int64_t row = 0; row < t.positions; ++row) {
    t.row_names.push_back(
        fmt::format("{:+} {:+}", row / line - t.window + 1, row % line - t.window + 1));
    for (const nn::Parameter* table : tables) {
      const std::vector<float> heads = table->value().slice(0, all - 1 - row, 1).to_floats();
      t.values.insert(t.values.end(), heads.begin(), heads.end());
    }
  }
  return t;
}

PositionTable image_table(const ImageModel& model, const nn::Parameters& parameters,
                          const std::string& path, int64_t positions) {
  if (const auto* learned = model.grid_positions()) {
    return grid_table(model, *learned, path, positions);
  }
  const std::vector<const nn::Parameter*> tables = window_biases(parameters);
  if (tables.empty() && model.as<Detector>() != nullptr) {
    const bool is_learned = has_parameter(parameters, "position_embedding.row_embeddings.weight");
    fail(ErrorKind::data,
         "{}: a model of type {} adds {} of a cell's row and column to the queries and keys of "
         "each layer, on the grid that each image has of its own, so there is no such table",
         path, model.config().type, is_learned ? "learned vectors" : "sines and cosines");
  }
  check(!tables.empty(), ErrorKind::data,
        "{}: a {} has not learned a vector for each cell of an image, so there is no such table",
        path, model.config().type);
  return window_table(tables, path, positions);
}

void check_size(int64_t positions, int64_t width) {
  check(positions >= 1 && width >= 1, ErrorKind::usage,
        "{} positions of width {}: both must be at least 1", positions, width);
  check(positions <= (int64_t{1} << 26) / width, ErrorKind::usage,
        "{} positions of width {} are more numbers than a table may hold ({}); ask for fewer",
        positions, width, int64_t{1} << 26);
}

// Beyond so many numbers they are packed in 16 bits, some 2.7 bytes each instead of 9.
constexpr size_t kExactNumbers = 1 << 15;
constexpr size_t kMostNumbers = 1 << 22;

}  // namespace

PositionTable position_table(const PositionOptions& o) {
  check_size(o.positions, o.width);
  PositionTable t{.kind = o.kind, .positions = o.positions, .columns = o.width};
  if (o.kind == "sinusoidal") {
    fill_sinusoidal(t, o.sinusoidal);
  } else if (o.kind == "rotary") {
    check(o.base > 1 && std::isfinite(o.base), ErrorKind::usage,
          "`base` is {}; rotary positions need a number above 1", o.base);
    fill_rotary(t, o.width, o.positions, {.theta = o.base});
  } else if (o.kind == "none") {
    t.about = kNoneAbout;
    t.values.assign(t.positions * t.columns, 0.0f);
    name_columns(t);
  } else {
    fail(ErrorKind::usage,
         "there is no kind of positions '{}' without a model; choose sinusoidal, rotary or none",
         o.kind);
  }
  return t;
}

namespace {

constexpr int64_t kMany = 128;  // of a model that takes any number

// The zeros of a model that reads its tokens in turn.
PositionTable recurrence_table(int64_t positions, int64_t width) {
  PositionTable t = position_table({.kind = "none", .positions = positions, .width = width});
  t.kind = "recurrence", t.about = kRecurrenceAbout;
  return t;
}

// Of a model that reads tokens.
PositionTable token_table(const LoadedModel& m, int64_t positions) {
  if (const auto* turned = m.model->as<WithRotary>()) {
    const WithRotary::Facts facts = turned->rotary();
    PositionTable t{.kind = "rotary",
                    .positions = positions > 0 ? positions : std::min(facts.positions, kMany)};
    check_size(t.positions, facts.head_width);
    fill_rotary(t, facts.head_width, facts.positions, facts.options);
    return t;
  }
  const bool has_distances = has_parameter(m.parameters, "dec_attn.r_net.weight") ||
                             has_parameter(m.parameters, "rel_attn.r");
  check(!has_distances, ErrorKind::data,
        "{}: a model of type {} adds nothing to the tokens: each head compares a query with how "
        "far away a key is (relative positions), so there is no such table; heddle explain shows "
        "those scores",
        m.path, m.type);
  if (m.model->as<WithMemory>() != nullptr) {
    return recurrence_table(positions > 0 ? positions : kMany, m.model->width());
  }
  return learned_table(m.parameters, m.path, "", positions, 0);
}

// Of an encoder or a decoder.
PositionTable stack_table(const LoadedModel& m, const std::string& stack, int64_t positions) {
  const EncoderDecoderFacts& facts = m.translator().facts();
  const PositionFacts& p = facts.positions;
  if (p.kind == "learned") {
    return learned_table(m.parameters, m.path, stack, positions, p.sinusoidal.offset);
  }
  const bool is_bounded = p.positions > 0 && p.positions < kAnyLength;
  if (positions == 0) positions = is_bounded ? p.positions : kMany;
  const int64_t rows = p.width > 0 ? p.width : m.model->width();
  if (p.kind == "recurrence") return recurrence_table(positions, rows);
  // Rotary positions turn the columns of a head.
  const bool is_of_decoder = stack == "decoder" || facts.encoder_attention_heads == 0;
  const int64_t heads =
      is_of_decoder ? facts.decoder_attention_heads : facts.encoder_attention_heads;
  const int64_t width = p.kind == "rotary" ? rows / heads : rows;
  PositionTable t = position_table({.kind = p.kind,
                                    .positions = positions,
                                    .width = width,
                                    .sinusoidal = p.sinusoidal,
                                    .base = p.rope_theta});
  const bool has_bias = has_parameter(m.parameters, "relative_attention_bias.weight");
  if (t.kind == "none" && has_bias) t.kind = "bias", t.about = kBiasAbout;
  return t;
}

}  // namespace

PositionTable model_positions(const std::string& model, const std::string& stack,
                              int64_t positions) {
  const LoadedModel m = load_model(model);
  const bool has_two =
      m.model->as<EncoderDecoder>() != nullptr && m.model->as<Captioner>() == nullptr;
  check(stack.empty() || has_two, ErrorKind::usage,
        "`stack` is {}, and {} has one stack; leave it out", stack, model);
  if (const auto* images = m.model->as<ImageModel>()) {
    return image_table(*images, m.parameters, m.path, positions);
  }
  if (m.model->as<EncoderDecoder>() == nullptr) return token_table(m, positions);
  if (has_two) return stack_table(m, stack.empty() ? "encoder" : stack, positions);
  PositionTable t = stack_table(m, "decoder", positions);
  t.about += " (of the tokens of captions, not of the cells of an image)";
  return t;
}

Json to_json(const PositionTable& t) {
  Json json = Json::object();
  json["kind"] = t.kind;
  json["about"] = t.about;
  json["positions"] = t.positions;
  json["columns"] = t.names;
  if (t.window > 0) json["window"] = t.window, json["rows"] = t.row_names;
  if (!t.frequencies.empty()) json["frequencies"] = t.frequencies;
  json["values"] =
      rows_json(t.values, t.positions, t.columns, [](float x) { return static_cast<double>(x); });
  return json;
}

Page positions_page(const PositionTable& table, const std::string& title) {
  check(table.values.size() <= kMostNumbers, ErrorKind::usage,
        "{} numbers are too many for a page, which holds {}; ask for fewer `positions`, or for the "
        "numbers alone",
        table.values.size(), kMostNumbers);
  Page page{.title = "Positions" + title, .scripts = {"positions.js"}};
  Json& data = page.data;
  data["kind"] = table.kind;
  data["about"] = table.about;
  data["positions"] = table.positions;
  data["columns"] = table.columns;
  data["names"] = table.names;
  if (table.window > 0) {
    page.scripts.insert(page.scripts.begin(), "window_bias.js");
    data["window"] = table.window, data["rows"] = table.row_names;
  }
  if (table.kind == "rotary") {
    data["frequencies"] = table.frequencies;
  } else if (table.values.size() <= kExactNumbers) {
    data["values"] = json_list(table.values, [](float x) { return rounded(x, 6); });
  } else {
    float most = 0;
    for (const float x : table.values) most = std::max(most, std::abs(x));
    std::vector<float> shares;
    for (const float x : table.values) shares.push_back(most > 0 ? (x / most + 1) / 2 : 0.5f);
    data["packed"] = pack_weights(shares);
    data["most"] = static_cast<double>(most);
  }
  return page;
}

}  // namespace heddle::inspect
