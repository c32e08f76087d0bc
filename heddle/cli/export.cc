// heddle export: a model as Hugging Face's transformers loads it.
#include <CLI/CLI.hpp>
#include <memory>

#include "heddle/base/error.h"
#include "heddle/base/terminal.h"
#include "heddle/cli/commands.h"
#include "heddle/infer/export.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string model, out, dtype = "f32";
  ExportOptions options;
};

DType dtype_of_flag(const std::string& name) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    if (name == dtype_name(dtype)) return dtype;
  }
  fail(ErrorKind::usage, "--dtype is '{}'; it must be f32, bf16 or f16", name);
}

void run(const Flags& flags) {
  ExportOptions options = flags.options;
  options.dtype = dtype_of_flag(flags.dtype);
  const Exported exported = export_model(flags.model, flags.out, options);
  fmt::print("{}: a {} in {}\n", flags.out, exported.type, flags.dtype);
  if (!exported.note.empty()) fmt::print(stderr, "export: {}\n", printable(exported.note));
}

}  // namespace

void add_export(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "export", "Write a model as Hugging Face's transformers loads it, with its tokenizer");
  command->add_option("model", flags->model, "a model directory, or a training run")->required();
  command->add_option("-o,--out", flags->out, "folder to write; made if need be")->required();
  command
      ->add_option("--format", flags->options.format,
                   "transformers: the model's own type, of a translator marian; marian: the same, "
                   "of translators only")
      ->check(CLI::IsMember({"transformers", "marian"}))
      ->capture_default_str();
  command->add_option("--dtype", flags->dtype, "of the weights: f32, bf16 or f16")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}))
      ->capture_default_str();
  command->add_flag("--overwrite", flags->options.overwrite,
                    "replace the model that stands in the folder");
  command->callback([flags] { run(*flags); });
}

}  // namespace heddle::cli
