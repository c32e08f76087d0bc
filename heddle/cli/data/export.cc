// heddle export: a model as Hugging Face's transformers loads it.
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
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

// The folder is made if need be: that is possible if the nearest one above it may be written to.
void check_folder(const std::string& path) {
  std::filesystem::path nearest = std::filesystem::absolute(path);
  while (!path_exists(nearest.string())) nearest = nearest.parent_path();
  check(is_directory(nearest.string()), ErrorKind::data,
        "{}: cannot write the model: {} is a file, not a folder; name another path", path,
        nearest.string());
  if (access(nearest.c_str(), W_OK) != 0) fail_errno("cannot write the model", path, errno);
}

void run(const Flags& flags) {
  ExportOptions options = flags.options;
  options.dtype = dtype_of_flag(flags.dtype);
  check_folder(flags.out);
  const Exported exported = export_model(flags.model, flags.out, options);
  fmt::print("{}: a {} in {}\n", flags.out, exported.type, flags.dtype);
  if (!exported.note.empty()) fmt::print(stderr, "export: {}\n", printable(exported.note));
}

}  // namespace

void add_export(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "export", "Write a model as Hugging Face's transformers loads it, with its tokenizer", run);
  add_model_argument(command, flags.model);
  command.add_option("-o,--out", flags.out, "folder to write; made if need be").required();
  command.add_setting(
      "--format", flags.options.format,
      "transformers: as it has the model; timm, of models of images; or the model_type that must "
      "come of it");
  command.add_setting("--dtype", flags.dtype, "of the weights: f32, bf16 or f16")
      .one_of({"f32", "bf16", "f16"});
  command.add_flag("--overwrite", flags.options.overwrite,
                   "replace the model that stands in the folder");
}

}  // namespace heddle::cli
