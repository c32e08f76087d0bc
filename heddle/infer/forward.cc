// From padded [batch, time] ids to packed rows, through the model, and back.
#include "heddle/infer/forward.h"

#include <cstring>
#include <list>

#include "heddle/infer/forward_images.h"
#include "heddle/infer/output_tensors.h"
#include "heddle/models/captioner.h"
#include "heddle/nn/relative/relative_rows.h"
#include "heddle/ops/attention.h"
#include "heddle/ops/elementwise.h"

namespace heddle {
namespace {

std::string shape_text(const StoredTensor& info) { return Shape(info.shape).str(); }

template <class T>
std::vector<int64_t> read_integers(const StoredTensor& info) {
  std::vector<T> values(info.elements());
  if (!values.empty()) std::memcpy(values.data(), info.bytes.data(), info.bytes.size());
  return {values.begin(), values.end()};
}

// All values of a tensor of integers, which must be [batch, time].
std::vector<int64_t> read_grid(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor& info = file.info(name);
  check(info.dtype == DType::i64 || info.dtype == DType::i32, ErrorKind::data,
        "{}: {} has dtype {}; ids must be i64 or i32", file.path(), name, dtype_name(info.dtype));
  check(info.shape.size() == 2, ErrorKind::data, "{}: {} has shape {}; [batch, time] is needed",
        file.path(), name, shape_text(info));
  return info.dtype == DType::i64 ? read_integers<int64_t>(info) : read_integers<int32_t>(info);
}

// What becomes of tokens that a mask hides.
enum class Hidden { dropped, unseen };

// One side of the batch: its tokens, and where they stood.
struct BatchSide {
  int64_t batch = 0, time = 0;
  std::vector<int32_t> ids, position_ids, types;
  std::vector<uint8_t> unseen;  // [rows]; empty if nothing is
  std::vector<int64_t> cells;   // [rows] position in [batch * time]
  Segments segments;

  BatchSide(const SafetensorsFile& file, const std::string& name, const std::string& mask_name,
            int64_t vocab, Hidden hidden) {
    const std::vector<int64_t> all = read_grid(file, name);
    batch = file.info(name).shape[0];
    time = file.info(name).shape[1];
    const std::vector<float> mask = read_mask(file, mask_name);
    const bool hides = std::find(mask.begin(), mask.end(), 0.0f) != mask.end();
    std::vector<int64_t> lengths(batch);
    for (int64_t cell = 0; cell < batch * time; ++cell) {
      const bool is_hidden = mask[cell] == 0, is_known = all[cell] >= 0 && all[cell] < vocab;
      if (is_hidden && hidden == Hidden::dropped) continue;
      check(is_known || is_hidden, ErrorKind::data,
            "{}: {}[{}, {}] is {}; ids must be below the vocab_size {}", file.path(), name,
            cell / time, cell % time, all[cell], vocab);
      ids.push_back(is_known ? static_cast<int32_t>(all[cell]) : 0);
      position_ids.push_back(static_cast<int32_t>(cell % time));
      if (hides && hidden == Hidden::unseen) unseen.push_back(is_hidden);
      cells.push_back(cell);
      ++lengths[cell / time];
    }
    segments = Segments::from_lengths(lengths);
  }

  // Rows that are no tokens, from the first position on.
  explicit BatchSide(Segments rows)
      : batch(rows.count()), time(rows.max_length()), segments(std::move(rows)) {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t t = 0; t < segments.length(b); ++t) cells.push_back(b * time + t);
    }
  }

  bool is_unseen(size_t row) const { return !unseen.empty() && unseen[row] != 0; }
  nn::TokenRows tokens() const {
    return {.ids = ids,
            .segments = &segments,
            .position_ids = position_ids,
            .types = types,
            .unseen = unseen};
  }

  // Positions as the model counts them, over hidden tokens too.
  void count_positions(const SafetensorsFile& file, const std::string& name, const auto& model) {
    const std::vector<int64_t> all = read_grid(file, name);
    std::vector<std::vector<int32_t>> counted;
    for (int64_t b = 0; b < batch; ++b) {
      const std::vector<int32_t> line(all.begin() + b * time, all.begin() + (b + 1) * time);
      counted.push_back(model.positions(line));
    }
    for (size_t r = 0; r < cells.size(); ++r)
      position_ids[r] = counted[cells[r] / time][cells[r] % time];
  }

  // Checks that tokens are hidden before and behind the others only: a model that counts distances
  // would not see that some are missing.
  void check_whole(const SafetensorsFile& file, const std::string& mask_name,
                   const std::string& type) const {
    for (size_t r = 1; r < cells.size(); ++r) {
      const bool is_next = cells[r] == cells[r - 1] + 1 || cells[r] / time != cells[r - 1] / time;
      check(is_next, ErrorKind::data,
            "{}: {} hides [{}, {}] between others that are seen; a {} counts how far tokens stand "
            "from each other, and heddle leaves hidden ones out: give sequences without holes",
            file.path(), mask_name, cells[r] / time, cells[r] % time - 1, type);
    }
  }

  // Takes the tokens' entries of another tensor of the same shape, or of one line for all, if the
  // file has it.
  void read_beside(const SafetensorsFile& file, const std::string& name,
                   std::vector<int32_t>& into) const {
    const StoredTensor* info = file.find(name);
    if (info == nullptr) return;
    const std::vector<int64_t> all = read_grid(file, name);
    const bool is_for_all = info->shape == std::vector<int64_t>{1, time};
    if (!is_for_all) check_grid(file, name, *info);
    into.clear();
    for (const int64_t own : cells) {
      const int64_t cell = is_for_all ? own % time : own;
      check(all[cell] >= 0 && all[cell] <= std::numeric_limits<int32_t>::max(), ErrorKind::data,
            "{}: {}[{}, {}] is {}; it must be at least 0 and below 2^31", file.path(), name,
            cell / time, cell % time, all[cell]);
      into.push_back(static_cast<int32_t>(all[cell]));
    }
  }

  void check_grid(const SafetensorsFile& file, const std::string& name,
                  const StoredTensor& info) const {
    check(info.shape == std::vector<int64_t>{batch, time}, ErrorKind::data,
          "{}: {} has shape {}, but the ids have [{}, {}]; they must be equal", file.path(), name,
          shape_text(info), batch, time);
  }

  std::vector<float> read_mask(const SafetensorsFile& file, const std::string& mask_name) const {
    const StoredTensor* info = file.find(mask_name);
    if (info == nullptr) return std::vector<float>(batch * time, 1.0f);
    check_grid(file, mask_name, *info);
    return info->floats();
  }
};

std::string memory_name(size_t layer) { return fmt::format("mems.{}", layer); }

// Tensors to be written, with memory of their own.
class Outputs {
 public:
  // x: [rows, width] of a side    as: [batch, time, width], zeros where tokens are hidden
  void add_rows(const std::string& name, const BatchSide& side, const Tensor& x) {
    const int64_t width = x.size(1);
    const std::vector<float> rows = x.to_floats();
    std::vector<float>& out = add(name, {side.batch, side.time, width});
    for (size_t r = 0; r < side.cells.size(); ++r) {
      if (side.is_unseen(r)) continue;
      std::copy_n(rows.begin() + static_cast<int64_t>(r) * width, width,
                  out.begin() + side.cells[r] * width);
    }
  }

  // x: [sequences, width] as: [batch, width]
  void add_sequences(const std::string& name, const Tensor& x) {
    add(name, {x.size(0), x.size(1)}) = x.to_floats();
  }

  // x: [rows, experts] as: [batch * time, experts], as transformers gives it
  void add_flat_rows(const std::string& name, const BatchSide& side, const Tensor& x) {
    add_rows(name, side, x);
    all_.back().shape = {side.batch * side.time, x.size(1)};
  }

  // x: [rows, width], as many rows of each sequence    as: [batch, rows of one, width]
  void add_even_rows(const std::string& name, int64_t batch, const Tensor& x) {
    add(name, {batch, x.size(0) / std::max<int64_t>(1, batch), x.size(1)}) = x.to_floats();
  }

  // The weights of one attention call as [batch, heads, queries, keys]. Columns are the tokens of
  // `to`, behind what each sequence remembers; `rows` are those of `from` in its time, where the
  // queries are not all its tokens.
  void add_maps(const std::string& name, const nn::AttentionCall& call, const BatchSide& from,
                const BatchSide& to, std::span<const int64_t> rows = {}) {
    const Segments& queries = call.queries();
    const int64_t before = from.batch > 0 ? call.keys().length(0) - to.segments.length(0) : 0;
    const int64_t columns = before + to.time, heads = call.heads();
    std::vector<float>& out = add(name, {from.batch, heads, from.time, columns});
    for (int64_t b = 0; b < from.batch; ++b) {
      const int64_t keys = call.keys().length(b);
      if (queries.length(b) == 0 || keys == 0) continue;
      for (int64_t h = 0; h < heads; ++h) {
        const std::vector<float> map = call.weights(b, h).to_floats();
        for (int64_t i = 0; i < queries.length(b); ++i) {
          const int64_t q = queries.begin(b) + i;
          const int64_t row = rows.empty() ? from.cells[q] % from.time : rows[q];
          if (row < 0 || (rows.empty() && from.is_unseen(static_cast<size_t>(q)))) continue;
          float* line = out.data() + ((b * heads + h) * from.time + row) * columns;
          for (int64_t j = 0; j < keys; ++j) {
            const int64_t token = to.segments.begin(b) + j - before;
            line[j < before ? j : before + to.cells[token] % to.time] = map[i * keys + j];
          }
        }
      }
    }
  }

  // What a pass leaves for the next, as [time, batch, width], oldest first.
  void add_memory(const nn::Memory& memory) {
    const int64_t batch = memory.segments.count(), time = memory.segments.max_length();
    for (size_t i = 0; i < memory.layers.size(); ++i) {
      const std::vector<float> rows = memory.layers[i].to_floats();
      const int64_t width = memory.layers[i].size(1);
      std::vector<float>& out = add(memory_name(i), {time, batch, width});
      for (int64_t b = 0; b < batch; ++b) {
        for (int64_t r = memory.segments.begin(b); r < memory.segments.end(b); ++r) {
          const int64_t t = time - memory.segments.end(b) + r;
          std::copy_n(rows.begin() + r * width, width, out.begin() + (t * batch + b) * width);
        }
      }
    }
  }

  void write(const std::string& path) const { write_outputs(path, all_); }

 private:
  std::vector<float>& add(const std::string& name, std::vector<int64_t> shape) {
    int64_t n = 1;
    for (const int64_t size : shape) n *= size;
    all_.push_back({name, std::move(shape), std::vector<float>(static_cast<size_t>(n))});
    return all_.back().values;
  }

  std::list<OutputTensor> all_;  // references stay valid
};

// Of a model of one stack both sides are the same. What is of the tokens that an order predicts has
// a name of its own, and where there are such both streams have a number, as Hugging Face counts
// them.
nn::Observer observer_into(Outputs& out, const BatchSide& source, const BatchSide& target,
                           const nn::TokenOrder& order) {
  static constexpr std::string_view kTarget = "target_";
  nn::Observer observer;
  observer.hidden = [&](const std::string& name, const Tensor& x) {
    if (name.starts_with(kTarget)) {
      return out.add_even_rows(name.substr(kTarget.size()), target.batch, x);
    }
    out.add_rows(name, name.starts_with("encoder") ? source : target, x);
  };
  observer.router = [&](const std::string& name, const Tensor& logits) {
    out.add_flat_rows(name, target, logits);
  };
  observer.attention = [&](const nn::AttentionCall& call) {
    const std::string& name = call.name();
    const bool is_target = name.starts_with(kTarget);
    std::string shown = is_target ? name.substr(kTarget.size()) : name;
    if (order.targets.count() > 0) shown += is_target ? ".1" : ".0";
    std::vector<int64_t> rows;
    for (size_t t = 0; is_target && t < order.target_tokens.size(); ++t) {
      const int32_t token = order.target_tokens[t];
      rows.push_back(token < 0 ? -1 : target.cells[token] % target.time);
    }
    out.add_maps(shown, call, name.starts_with("encoder") ? source : target,
                 name.starts_with("decoder") ? target : source, rows);
  };
  return observer;
}

// --- memory and order ----------------------------------------------------------------------------

const StoredTensor& info_of_shape(const SafetensorsFile& file, const std::string& name,
                                  const std::vector<int64_t>& shape) {
  const StoredTensor& info = file.info(name);
  check(info.shape == shape, ErrorKind::data, "{}: {} has shape {}; {} is needed", file.path(),
        name, shape_text(info), Shape(shape).str());
  return info;
}

// mems.I: [time, batch, width] of each layer, if there are any.
nn::Memory read_memory(const SafetensorsFile& file, const TokenModel& model, int64_t batch) {
  const StoredTensor* first = file.find(memory_name(0));
  if (first == nullptr) return {};
  check(first->shape.size() == 3, ErrorKind::data,
        "{}: mems.0 has shape {}; [time, batch, width] is needed", file.path(), shape_text(*first));
  const int64_t time = first->shape[0], width = model.as<WithMemory>()->memory_width();
  nn::Memory memory{Segments::uniform(batch, time), {}};
  for (int64_t i = 0; i < model.layers(); ++i) {
    const std::vector<float> values =
        info_of_shape(file, memory_name(i), {time, batch, width}).floats();
    const Tensor rows = Tensor::empty({batch * time, width}, DType::f32);
    for (int64_t t = 0; t < time; ++t) {
      for (int64_t b = 0; b < batch; ++b) {
        std::copy_n(values.begin() + (t * batch + b) * width, width,
                    rows.data<float>() + (b * time + t) * width);
      }
    }
    memory.layers.push_back(rows);
  }
  return memory;
}

// Which tokens are hidden from which: by perm_mask [batch, time, time], and from all by one of
// attention_mask and input_mask [batch, time].
std::vector<uint8_t> read_hidden(const SafetensorsFile& file, const BatchSide& side) {
  const bool has_perm = file.find("perm_mask") != nullptr;
  const bool has_attention = file.find("attention_mask") != nullptr;
  const bool has_input = file.find("input_mask") != nullptr;
  check(!has_attention || !has_input, ErrorKind::data,
        "{}: there are attention_mask and input_mask, which is its opposite; give one",
        file.path());
  if (!has_perm && !has_attention && !has_input) return {};
  const int64_t n = side.time;
  std::vector<float> hidden(static_cast<size_t>(side.batch * n * n));
  if (has_perm) hidden = info_of_shape(file, "perm_mask", {side.batch, n, n}).floats();
  if (has_attention || has_input) {
    const std::vector<float> mask =
        side.read_mask(file, has_input ? "input_mask" : "attention_mask");
    for (int64_t i = 0; i < side.batch * n * n; ++i) {
      const float value = mask[i / (n * n) * n + i % n];
      hidden[i] += has_input ? value : 1 - value;
    }
  }
  std::vector<uint8_t> result;
  for (const float h : hidden) result.push_back(h > 0 ? 1 : 0);
  return result;
}

// target_mapping: [batch, predictions, time]; each row has a 1 where its token is, or no 1.
void read_targets(const SafetensorsFile& file, const BatchSide& side, nn::TokenOrder& order) {
  const StoredTensor* info = file.find("target_mapping");
  if (info == nullptr) return;
  check(info->shape.size() == 3, ErrorKind::data,
        "{}: target_mapping has shape {}; [batch, predictions, time] is needed", file.path(),
        shape_text(*info));
  const int64_t count = info->shape[1], n = side.time;
  const std::vector<float> map =
      info_of_shape(file, "target_mapping", {side.batch, count, n}).floats();
  order.targets = Segments::uniform(side.batch, count);
  std::vector<bool> is_taken(static_cast<size_t>(side.batch * n));
  for (int64_t row = 0; row < side.batch * count; ++row) {
    int64_t token = -1;
    for (int64_t j = 0; j < n; ++j) {
      const float value = map[row * n + j];
      if (value == 0) continue;
      const int64_t cell = row / count * n + j;
      check(value == 1 && token < 0 && !is_taken[cell], ErrorKind::data,
            "{}: target_mapping[{}, {}, {}] is {}; each row must be 0 but for one 1, at a token of "
            "its own",
            file.path(), row / count, row % count, j, value);
      is_taken[cell] = true;
      token = cell;
    }
    order.target_tokens.push_back(static_cast<int32_t>(token));
  }
}

// What an encoder-decoder reads, and the rows of its memory.
struct PairSource {
  std::optional<BatchSide> tokens;
  std::optional<PixelBatch> images;
  BatchSide memory;

  static PairSource read(const EncoderDecoder& model, const SafetensorsFile& inputs) {
    if (const auto* captioner = model.as<Captioner>()) return read_images(*captioner, inputs);
    BatchSide source(inputs, "input_ids", "attention_mask", model.facts().source_vocab_size,
                     Hidden::dropped);
    source.count_positions(inputs, "input_ids", model);
    return {source, {}, source};
  }
  Tensor encode(const EncoderDecoder& model, const nn::Run& run) const {
    return images ? model.encode(images->rows(), run) : model.encode(tokens->tokens(), run);
  }

 private:
  static PairSource read_images(const Captioner& model, const SafetensorsFile& inputs) {
    const PixelValues pixels = read_pixel_values(inputs);
    check_channels(pixels, model.images());
    PixelBatch images(pixels, 0, pixels.shape[0]);
    BatchSide cells(model.memory_segments(images.rows()));
    return {{}, std::move(images), std::move(cells)};
  }
};

void forward_pair(const EncoderDecoder& model, const SafetensorsFile& inputs,
                  const std::string& path, const ForwardOptions& options) {
  const NoGrad off;
  const PairSource source = PairSource::read(model, inputs);
  BatchSide target(inputs, "decoder_input_ids", "decoder_attention_mask",
                   model.facts().target_vocab_size, Hidden::dropped);
  target.count_positions(inputs, "decoder_input_ids", model);
  check(source.memory.batch == target.batch, ErrorKind::data,
        "{}: {} has a batch of {}, decoder_input_ids of {}; they must be equal", inputs.path(),
        source.images ? "pixel_values" : "input_ids", source.memory.batch, target.batch);
  if (model.facts().positions.are_distances) {
    source.memory.check_whole(inputs, "attention_mask", model.config().type);
    target.check_whole(inputs, "decoder_attention_mask", model.config().type);
  }
  Outputs out;
  const nn::TokenOrder none;
  const nn::Observer observer = observer_into(out, source.memory, target, none);
  nn::Run run;
  run.use(options.precision);
  if (options.all) run.observer = &observer;
  const Tensor memory = source.encode(model, run);
  out.add_rows("encoder_last_hidden_state", source.memory, memory);
  const Tensor h = model.decode(target.tokens(), memory, source.memory.segments, run);
  out.add_rows("logits", target, model.output()(h, run));
  out.write(path);
}

}  // namespace

void forward_tensors(const Model& any, const SafetensorsFile& inputs, const std::string& path,
                     const ForwardOptions& options) {
  if (const auto* both = any.as<EncoderDecoder>()) {
    return forward_pair(*both, inputs, path, options);
  }
  const auto& model = any.need<TokenModel>("forward");
  // Hidden tokens stay and see the others: what stands for a whole sequence may be one of them.
  const bool takes_order = model.as<WithOrder>() != nullptr;
  const bool remembers = model.as<WithMemory>() != nullptr;
  BatchSide side(inputs, "input_ids", takes_order ? "" : "attention_mask", model.vocab_size(),
                 remembers ? Hidden::dropped : Hidden::unseen);
  if (remembers) side.check_whole(inputs, "attention_mask", model.config().type);
  side.count_positions(inputs, "input_ids", model);
  side.read_beside(inputs, "token_type_ids", side.types);
  check(side.types.empty() || model.as<WithTokenTypes>() != nullptr, ErrorKind::data,
        "{}: there are token_type_ids, but a {} has no token types; leave them out", inputs.path(),
        model.config().type);
  side.read_beside(inputs, "position_ids", side.position_ids);
  const NoGrad off;
  Outputs out;
  nn::Run run;
  run.use(options.precision);
  nn::TokenRows tokens = side.tokens();
  nn::TokenOrder order;
  nn::Memory memory;
  if (takes_order) {
    order.hidden = read_hidden(inputs, side);
    read_targets(inputs, side, order);
    tokens.order = &order;
  }
  if (remembers) {
    memory = read_memory(inputs, model, side.batch);
    tokens.memory = &memory;
  }
  const nn::Observer observer = observer_into(out, side, side, order);
  if (options.all) run.observer = &observer;
  for (const ModelOutput& o : model.forward(tokens, run)) {
    if (o.is_of_sequences) {
      out.add_sequences(o.name, o.x);
    } else if (order.targets.count() > 0) {
      out.add_even_rows(o.name, side.batch, o.x);
    } else {
      out.add_rows(o.name, side, o.x);
    }
  }
  if (memory_length(model) > 0) out.add_memory(memory);
  out.write(path);
}

std::vector<std::string> forward_inputs(const Model& model) {
  if (model.as<ImageModel>() != nullptr) return {"pixel_values", "pixel_mask"};
  if (model.as<Captioner>() != nullptr) {
    return {"pixel_values", "pixel_mask", "decoder_input_ids", "decoder_attention_mask"};
  }
  if (model.as<EncoderDecoder>() != nullptr) {
    return {"input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask"};
  }
  std::vector<std::string> names = {"input_ids", "attention_mask", "token_type_ids",
                                    "position_ids"};
  for (int64_t i = 0; model.as<WithMemory>() != nullptr && i < model.layers(); ++i) {
    names.push_back(memory_name(i));
  }
  if (model.as<WithOrder>() != nullptr) {
    names.insert(names.end(), {"input_mask", "perm_mask", "target_mapping"});
  }
  return names;
}

}  // namespace heddle
