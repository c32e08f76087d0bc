// From padded [batch, time] ids to packed rows, through the model, and back.
#include "heddle/infer/forward.h"

#include <cstring>
#include <list>

#include "heddle/ops/attention.h"
#include "heddle/tensor/convert.h"

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

// One side of the batch: the words that the mask leaves, and where they stood.
struct Side {
  int64_t batch = 0, time = 0;
  std::vector<int32_t> ids, places, types;
  std::vector<int64_t> cells;  // [rows] place in [batch * time]
  Segments segments;

  Side(const SafetensorsFile& file, const std::string& name, const std::string& mask_name,
       int64_t vocab) {
    const std::vector<int64_t> all = read_grid(file, name);
    batch = file.info(name).shape[0];
    time = file.info(name).shape[1];
    const std::vector<float> mask = read_mask(file, mask_name);
    std::vector<int64_t> lengths(batch);
    for (int64_t cell = 0; cell < batch * time; ++cell) {
      if (mask[cell] == 0) continue;
      check(all[cell] >= 0 && all[cell] < vocab, ErrorKind::data,
            "{}: {}[{}, {}] is {}; ids must be below the vocab_size {}", file.path(), name,
            cell / time, cell % time, all[cell], vocab);
      ids.push_back(static_cast<int32_t>(all[cell]));
      places.push_back(static_cast<int32_t>(cell % time));
      cells.push_back(cell);
      ++lengths[cell / time];
    }
    segments = Segments::from_lengths(lengths);
  }

  nn::WordRows words() const { return {ids, &segments, nullptr, places, types}; }

  // Positions as the model counts them, over hidden words too.
  void count_positions(const SafetensorsFile& file, const std::string& name, const Model& model) {
    const std::vector<int64_t> all = read_grid(file, name);
    std::vector<std::vector<int32_t>> counted;
    for (int64_t b = 0; b < batch; ++b) {
      const std::vector<int32_t> line(all.begin() + b * time, all.begin() + (b + 1) * time);
      counted.push_back(model.positions(line));
    }
    for (size_t r = 0; r < cells.size(); ++r) places[r] = counted[cells[r] / time][cells[r] % time];
  }

  // Takes the words' entries of another tensor of the same shape, if the file has it.
  void read_beside(const SafetensorsFile& file, const std::string& name,
                   std::vector<int32_t>& into) const {
    const StoredTensor* info = file.find(name);
    if (info == nullptr) return;
    const std::vector<int64_t> all = read_grid(file, name);
    check_grid(file, name, *info);
    into.clear();
    for (const int64_t cell : cells) {
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
    std::vector<float> mask(batch * time, 1.0f);
    const StoredTensor* info = file.find(mask_name);
    if (info == nullptr) return mask;
    check_grid(file, mask_name, *info);
    convert_to_floats(info->bytes.data(), info->dtype, mask);
    return mask;
  }
};

// Tensors to be written, with memory of their own.
class Outputs {
 public:
  // x: [rows, width] of a side    as: [batch, time, width]
  void add_rows(const std::string& name, const Side& side, const Tensor& x) {
    const int64_t width = x.size(1);
    const std::vector<float> rows = x.to_floats();
    std::vector<float>& out = add(name, {side.batch, side.time, width});
    for (size_t r = 0; r < side.cells.size(); ++r) {
      std::copy_n(rows.begin() + static_cast<int64_t>(r) * width, width,
                  out.begin() + side.cells[r] * width);
    }
  }

  // x: [sequences, width] as: [batch, width]
  void add_sequences(const std::string& name, const Tensor& x) {
    add(name, {x.size(0), x.size(1)}) = x.to_floats();
  }

  // x: [rows, experts] as: [batch * time, experts], as transformers gives it
  void add_flat_rows(const std::string& name, const Side& side, const Tensor& x) {
    add_rows(name, side, x);
    all_.back().shape = {side.batch * side.time, x.size(1)};
  }

  // The weights of one attention call as [batch, heads, queries, keys].
  void add_maps(const std::string& name, const Side& from, const Side& to, const Tensor& q,
                const Tensor& k, const AttentionOptions& o) {
    std::vector<float>& out = add(name, {from.batch, o.heads, from.time, to.time});
    for (int64_t b = 0; b < from.batch; ++b) {
      const int64_t queries = from.segments.length(b), keys = to.segments.length(b);
      if (queries == 0 || keys == 0) continue;
      for (int64_t h = 0; h < o.heads; ++h) {
        const std::vector<float> map =
            attention_weights(q, k, from.segments, to.segments, o, b, h).to_floats();
        for (int64_t i = 0; i < queries; ++i) {
          const int64_t row = from.cells[from.segments.begin(b) + i] % from.time;
          float* line = out.data() + ((b * o.heads + h) * from.time + row) * to.time;
          for (int64_t j = 0; j < keys; ++j) {
            line[to.cells[to.segments.begin(b) + j] % to.time] = map[i * keys + j];
          }
        }
      }
    }
  }

  void write(const std::string& path) const {
    std::vector<NamedTensorView> views;
    for (const Output& o : all_) {
      views.push_back({o.name, DType::f32, o.shape, std::as_bytes(std::span(o.values))});
    }
    write_safetensors(path, std::move(views), {{"format", "pt"}});
  }

 private:
  struct Output {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<float> values;
  };

  std::vector<float>& add(const std::string& name, std::vector<int64_t> shape) {
    int64_t n = 1;
    for (const int64_t size : shape) n *= size;
    all_.push_back({name, std::move(shape), std::vector<float>(static_cast<size_t>(n))});
    return all_.back().values;
  }

  std::list<Output> all_;  // references stay valid
};

nn::Observer observer_into(Outputs& out, const Side& source, const Side& target) {
  nn::Observer observer;
  observer.hidden = [&](const std::string& name, const Tensor& x) {
    out.add_rows(name, name.starts_with("encoder") ? source : target, x);
  };
  observer.router = [&](const std::string& name, const Tensor& logits) {
    out.add_flat_rows(name, target, logits);
  };
  observer.attention = [&](const std::string& name, const Tensor& q, const Tensor& k,
                           const Segments&, const Segments&, const AttentionOptions& options) {
    out.add_maps(name, name.starts_with("encoder") ? source : target,
                 name.starts_with("decoder") ? target : source, q, k, options);
  };
  return observer;
}

}  // namespace

void forward_tensors(const Transformer& model, const SafetensorsFile& inputs,
                     const std::string& path, const ForwardOptions& options) {
  const TransformerConfig& c = model.config();
  const Side source(inputs, "input_ids", "attention_mask", c.vocab_size);
  const Side target(inputs, "decoder_input_ids", "decoder_attention_mask", c.target_vocab_size());
  check(source.batch == target.batch, ErrorKind::data,
        "{}: input_ids has a batch of {}, decoder_input_ids of {}; they must be equal",
        inputs.path(), source.batch, target.batch);
  const NoGrad off;
  Outputs out;
  const nn::Observer observer = observer_into(out, source, target);
  nn::Run run;
  run.use(options.precision);
  if (options.all) run.observer = &observer;
  const Tensor memory = model.encode(source.words(), run);
  out.add_rows("encoder_last_hidden_state", source, memory);
  const Tensor h = model.decode(target.words(), memory, source.segments, run);
  out.add_rows("logits", target, model.output()(h, run));
  out.write(path);
}

void forward_tensors(const Model& model, const SafetensorsFile& inputs, const std::string& path,
                     const ForwardOptions& options) {
  Side side(inputs, "input_ids", "attention_mask", model.vocab_size());
  side.count_positions(inputs, "input_ids", model);
  side.read_beside(inputs, "token_type_ids", side.types);
  side.read_beside(inputs, "position_ids", side.places);
  const NoGrad off;
  Outputs out;
  const nn::Observer observer = observer_into(out, side, side);
  nn::Run run;
  run.use(options.precision);
  if (options.all) run.observer = &observer;
  for (const ModelOutput& o : model.forward(side.words(), run)) {
    o.is_sequences ? out.add_sequences(o.name, o.x) : out.add_rows(o.name, side, o.x);
  }
  out.write(path);
}

std::vector<std::string> forward_inputs(bool is_registry_model) {
  if (is_registry_model) return {"input_ids", "attention_mask", "token_type_ids", "position_ids"};
  return {"input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask"};
}

}  // namespace heddle
