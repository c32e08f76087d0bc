// heddle forward: tensors in, tensors out, under Hugging Face's names.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "heddle/base/parallel.h"
#include "heddle/cli/commands.h"
#include "heddle/infer/forward.h"
#include "heddle/infer/model_dir.h"
#include "heddle/infer/precision.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string model, inputs, outputs, precision = "f32";
  int threads = 0;
  bool all = false;
};

void report_unused(const SafetensorsFile& file) {
  const std::vector<std::string> used = {"input_ids", "attention_mask", "decoder_input_ids",
                                         "decoder_attention_mask"};
  for (const std::string& name : file.names()) {
    if (std::find(used.begin(), used.end(), name) == used.end()) {
      fmt::print(stderr, "forward: {}: '{}' is not used\n", file.path(), name);
    }
  }
}

void run(const Flags& flags) {
  const DType precision = resolve_precision(flags.precision);
  check(flags.threads >= 0, ErrorKind::usage, "--threads is {}; it must be at least 1, or 0",
        flags.threads);
  if (flags.threads > 0) set_num_threads(flags.threads);
  const TranslationModel model = load_translation_model(flags.model, {.need_tokenizer = false});
  const SafetensorsFile inputs = SafetensorsFile::open(flags.inputs);
  report_unused(inputs);
  forward_tensors(model.model, inputs, flags.outputs, {.all = flags.all, .precision = precision});
}

}  // namespace

void add_forward(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "forward", "One pass over tensors of a file, under Hugging Face's names and shapes");
  command->add_option("model", flags->model, "a model directory, or a training run")->required();
  command
      ->add_option("--inputs", flags->inputs,
                   "safetensors with input_ids, decoder_input_ids [batch, time]; attention_mask, "
                   "decoder_attention_mask if there is padding")
      ->required();
  command
      ->add_option("--outputs", flags->outputs,
                   "safetensors to write: logits, encoder_last_hidden_state")
      ->required();
  command->add_flag("--all", flags->all, "hidden states and attention maps of every layer too");
  command->add_option("--precision", flags->precision, "f32, bf16 or auto")->capture_default_str();
  command->add_option("--threads", flags->threads, "threads; 0: one a core")->capture_default_str();
  command->callback([flags] { run(*flags); });
}

}  // namespace heddle::cli
