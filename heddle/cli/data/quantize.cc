// heddle quantize: a model with weights of four or eight bits.
#include <cmath>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/data/documents.h"
#include "heddle/infer/loading/text_model.h"
#include "heddle/infer/perplexity.h"
#include "heddle/infer/quantize.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string model, out, to, output = "int8", text;
  QuantizeOptions options;
  ComputeFlags compute;
};

int bits_of_flag(const char* flag, const std::string& to) {
  check(to == "int4" || to == "int8", ErrorKind::usage, "{} is '{}'; it must be int4 or int8", flag,
        to);
  return to == "int4" ? 4 : 8;
}

// Perplexity of a text, before and after.
class PerplexityChange {
 public:
  PerplexityChange(std::string model, std::string path, const Precision& precision)
      : model_(std::move(model)), path_(std::move(path)), precision_(precision) {
    documents_ = read_documents(path_, "text");
  }
  void add(const LoadedModel& m) {
    const auto& language = m.model->need<LanguageModel>(model_);
    check(
        m.tokenizer.has_value(), ErrorKind::usage,
        "--evaluate: {} has no tokenizer; copy the tokenizer that the model was trained with there",
        model_);
    if (ids_.empty()) ids_ = document_ids(*m.tokenizer, documents_);
    const TextLikelihood l = likelihood_of_text(language, ids_, {.precision = precision_});
    perplexities_.push_back(std::exp(l.nll / static_cast<double>(l.tokens)));
  }
  std::string text() const {
    const double change = 100 * (perplexities_[1] / perplexities_[0] - 1);
    return fmt::format("perplexity {:.3f} before, {:.3f} quantized ({:+.2f} %), {} of {}",
                       perplexities_[0], perplexities_[1], change,
                       counted(std::ssize(ids_) - 1, "token"), path_);
  }

 private:
  std::string model_, path_;
  Precision precision_;
  std::vector<std::string> documents_;
  std::vector<int32_t> ids_;
  std::vector<double> perplexities_;
};

void run(const Flags& flags) {
  const Precision precision = apply_compute_flags(flags.compute);
  QuantizeOptions options = flags.options;
  options.format.bits = bits_of_flag("--to", flags.to);
  options.format.output_bits = bits_of_flag("--output-to", flags.output);
  const int64_t group = options.format.group_size;
  check(group == 32 || group == 64, ErrorKind::usage, "--group-size is {}; it must be 32 or 64",
        group);
  std::optional<PerplexityChange> evaluation;
  if (!flags.text.empty()) {
    evaluation.emplace(flags.model, flags.text, precision);
    options.before = options.after = [&](const LoadedModel& m) { evaluation->add(m); };
  }
  const QuantizedModel made = quantize_model(flags.model, flags.out, options);
  const QuantizedCounts& n = made.counts;
  fmt::print("{}: {} weights of layers in {}", flags.out, format_count(n.layers), flags.to);
  if (n.output > 0) {
    fmt::print(", {} of the output projection in {}", format_count(n.output), flags.output);
  }
  fmt::print(" (groups of {}), {} not quantized; {:.1f} MiB\n", group, format_count(n.kept),
             static_cast<double>(made.bytes) / (1 << 20));
  if (evaluation) fmt::print("{}\n", evaluation->text());
  if (!n.whole.empty()) {
    fmt::print(stderr, "quantize: in bf16, since panels of 32 rows do not fit them: {}\n",
               printable(fmt::format("{}", fmt::join(n.whole, ", "))));
  }
}

}  // namespace

void add_quantize(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "quantize", "Write a model with weights of four or eight bits, which all commands take", run);
  add_model_argument(command, flags.model);
  command.add_option("--to", flags.to, "int4 or int8").required().one_of({"int4", "int8"});
  command.add_option("-o,--out", flags.out, "folder to write; made if need be").required();
  command
      .add_setting(
          "--output-to", flags.output,
          "of the output projection and the embedding table that is tied to it: int4 or int8")
      .one_of({"int4", "int8"});
  command.add_setting("--group-size", flags.options.format.group_size,
                      "weights of a row that share a scale: 32 or 64");
  command
      .add_option("--evaluate", flags.text,
                  "file of text: the perplexity of a language model before and after")
      .type_name("FILE");
  command.add_flag("--overwrite", flags.options.overwrite,
                   "replace the model that stands in the folder");
  add_compute_flags(command, flags.compute);
}

}  // namespace heddle::cli
