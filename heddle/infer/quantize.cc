// Which weights are rounded to few bits, and the folder that they come into.
#include "heddle/infer/quantize.h"

#include <filesystem>
#include <system_error>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/infer/loading/model_folder.h"
#include "heddle/io/tensor_file.h"
#include "heddle/kernels/kernels.h"

namespace heddle {
namespace {

// Whether each tensor of a checkpoint that the parameter holds is whole panels of it.
bool fits_panels(const nn::Parameter& p) {
  if (p.shape().rank() != 2 || p.elements() == 0) return false;
  for (size_t i = 0; i < p.parts().size(); ++i) {
    const nn::Part& part = p.parts()[i];
    if (part.layout == nn::Layout::channels_first || !part.file_shape.empty()) return false;
    if (i + 1 < p.parts().size() && part.rows % QuantizedRows::kPanel != 0) return false;
  }
  return true;
}

// The tied table is read with it: looking a token up unpacks its row.
nn::Parameter* output_of(const Model& model) {
  const auto& output = model.heads().output;
  return output ? output->parameter() : nullptr;
}

// config.json of heddle's own translators names their tokenizers; the files beside it are copied.
void save_quantized(LoadedModel& model, const std::string& out, const Json& quantization) {
  SaveOptions options{.dtype = DType::bf16, .quantization = quantization};
  if (model.model->config().is_own_format()) {
    if (model.tokenizer) options.tokenizer = &*model.tokenizer;
    if (model.target_tokenizer) options.target = &*model.target_tokenizer;
    options.searched_as = model.path;
  }
  save_model(out, *model.model, model.parameters, options);
  copy_files_beside_weights(model.path, out);
}

}  // namespace

Json quantization_config(const QuantizedFormat& format) {
  Json json = Json::object();
  json["quant_method"] = kQuantizationMethod;
  json["bits"] = int64_t{format.bits};
  json["group_size"] = format.group_size;
  json["output_bits"] = int64_t{format.output_bits};
  return json;
}

QuantizedCounts quantize_weights(const Model& model, nn::Parameters& parameters,
                                 const QuantizedFormat& format, const std::string& source) {
  check(!parameters.is_quantized(), ErrorKind::data,
        "{}: its weights are quantized already; take the model that it was made of", source);
  const nn::Parameter* const output = output_of(model);
  QuantizedCounts counts;
  for (const auto& p : parameters.all()) {
    check(kernels().all_finite(p->value().rows()), ErrorKind::data,
          "{}: '{}' is not finite: the weights are damaged, and rounding would hide it", source,
          p->name());
    const bool is_output = p.get() == output;
    const bool is_wanted = p->is_linear_matrix() || is_output;
    if (!is_wanted || !fits_panels(*p)) {
      counts.kept += p->elements();
      for (const nn::Part& part : p->parts()) {
        if (is_wanted) counts.whole.push_back(part.name);
      }
      continue;
    }
    p->take(QuantizedTensor::rounded(p->value(), is_output ? format.output_bits : format.bits,
                                     format.group_size));
    (is_output ? counts.output : counts.layers) += p->elements();
  }
  check(counts.layers + counts.output > 0, ErrorKind::data,
        "{}: a {} has no matrix of a linear layer that could be quantized", source,
        model.config().type);
  return counts;
}

QuantizedModel quantize_model(const std::string& path, const std::string& out,
                              const QuantizeOptions& options) {
  const std::string folder = find_model_dir(path);
  const LoadOptions as_it_is{.tokenizers = LoadOptions::Tokenizers::if_there};
  NewModelFolder target(out, folder, options.overwrite);
  QuantizedModel result;
  {
    LoadedModel model = load_model(folder, as_it_is);
    if (options.before) options.before(model);
    result.counts = quantize_weights(*model.model, model.parameters, options.format, folder);
    target.write([&](const std::string& made) {
      save_quantized(model, made, quantization_config(options.format));
    });
  }
  if (options.after) options.after(load_model(out, as_it_is));
  std::error_code ignored;
  result.bytes =
      static_cast<int64_t>(std::filesystem::file_size(join_path(out, kWeightsName), ignored));
  return result;
}

}  // namespace heddle
