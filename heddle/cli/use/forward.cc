// heddle forward: tensors in, tensors out, under Hugging Face's names.
#include <algorithm>

#include "heddle/base/log.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/infer/forward_images.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/vision/orientation.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string model, input, output;
  std::vector<std::string> images;
  ComputeFlags compute{.precision = "f32"};
  bool all = false;
};

void report_unused(const SafetensorsFile& file, const std::vector<std::string>& used) {
  for (const std::string& name : file.names()) {
    if (std::find(used.begin(), used.end(), name) == used.end()) {
      fmt::print(stderr, "forward: {}: '{}' is not used\n", file.path(), printable(name));
    }
  }
}

void run_image_files(const Flags& flags, const ForwardOptions& options) {
  const ImageReader reader = load_image_reader(flags.model);
  std::vector<Image> images;
  for (const std::string& path : flags.images) {
    const Image image = read_upright_image(path);
    check_takes(reader.model(), reader.processor, image.size(), path);
    images.push_back(reader.processor.fit(image));
  }
  const PixelValues pixels = pixel_values_of(images, flags.images, reader.processor);
  forward_images(reader.model(), pixels, flags.output, options);
}

void run(const Flags& flags) {
  check(flags.input.empty() != flags.images.empty(), ErrorKind::usage,
        "give either --input FILE with tensors, or, of a model that reads images, image files");
  inspect::check_output(flags.output, "the outputs");
  const ForwardOptions options{.all = flags.all, .precision = apply_compute_flags(flags.compute)};
  if (!flags.images.empty()) return run_image_files(flags, options);
  const LoadedModel model = load_model(flags.model);
  const SafetensorsFile inputs = SafetensorsFile::open(flags.input);
  report_unused(inputs, forward_inputs(*model.model));
  if (const auto* images = model.model->as<ImageModel>()) {
    return forward_images(*images, read_pixel_values(inputs), flags.output, options);
  }
  forward_tensors(*model.model, inputs, flags.output, options);
}

}  // namespace

void add_forward(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "forward", "One pass over tensors of a file, under Hugging Face's names and shapes", run);
  add_model_argument(command, flags.model);
  command.add_option("image", flags.images,
                     "JPEG or PNG files in place of --input, of a model that reads images");
  command.add_option(
      "--input", flags.input,
      "safetensors with input_ids [batch, time], of a translator decoder_input_ids too; "
      "attention_mask, decoder_attention_mask if there is padding; "
      "token_type_ids, position_ids, mems.I, perm_mask, target_mapping, input_mask if the "
      "model takes them; of a model that reads images pixel_values [batch, channels, height, "
      "width], and pixel_mask [batch, height, width] if some are padded; of a captioner "
      "decoder_input_ids beside them");
  command
      .add_option("-o,--output", flags.output,
                  "safetensors to write: logits, encoder_last_hidden_state; of an encoder "
                  "last_hidden_state, pooler_output; of a model with memory mems.I; of image files "
                  "pixel_values")
      .required()
      .writes_file();
  command.add_flag("--all", flags.all, "hidden states and attention maps of every layer too");
  add_compute_flags(command, flags.compute);
}

}  // namespace heddle::cli
