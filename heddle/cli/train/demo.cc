// heddle demo: trains the phrasebook translator, or a classifier of images, and shows what it has
// learned.
#include <algorithm>

#include "corpora/phrasebook.h"
#include "heddle/base/files/files.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/base/utf8.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/lines.h"
#include "heddle/cli/train/demo.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/words.h"
#include "heddle/inspect/run_history.h"
#include "heddle/train/metrics/metrics.h"
#include "heddle/train/trainer.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string out;
  int threads = 0;
  bool has_images = false;
};

std::string padded(const std::string& text, size_t columns) {
  const size_t have = count_characters(text);
  return text + std::string(have < columns ? columns - have : 0, ' ');
}

void show_held_out(const LoadedModel& model, const std::string& run, Precision precision) {
  const auto sources = read_lines(join_path(run, "data/test.en"), "demo");
  const auto references = read_lines(join_path(run, "data/test.de"), "demo");
  std::vector<std::string> hypotheses;
  int64_t exact = 0;
  for (Translation& t :
       translate_lines(model, sources, {.scores = false, .precision = precision})) {
    hypotheses.push_back(std::move(t.text));
    exact += hypotheses.back() == references[hypotheses.size() - 1];
  }
  const train::BleuScore bleu = train::corpus_bleu(hypotheses, references);
  fmt::print(
      "\n{} held-out sentences, never seen in training: BLEU {:.2f}, {:.1f} % translated "
      "exactly as the grammar does\n",
      format_count(std::ssize(references)), bleu.score,
      100.0 * static_cast<double>(exact) / static_cast<double>(references.size()));
}

// The translation word by word, under each the English word it attended to most.
void show_sentence(const LoadedModel& model, const Phrase& phrase, Precision precision) {
  const Translation t =
      translate_lines(model, std::vector<std::string>{phrase.source}, {.precision = precision})[0];
  const auto ids = model.tokenizer->encode(phrase.source);
  std::string words = "       ", looked = "       ";
  for (const WordLink& link : word_attention(model, ids, t.ids, precision)) {
    const size_t width = std::max(count_characters(link.target), count_characters(link.source)) + 2;
    words += padded(link.target, width);
    looked += padded(link.source, width);
  }
  fmt::print(
      "\n  en   {}\n  de   {}{}\n{}\n{}\n", phrase.source, t.text,
      t.text == phrase.target ? "" : fmt::format("\n  (the grammar says: {})", phrase.target),
      words, looked);
}

// What becomes of a word that is not in the grammar, and how that is said.
void show_unknown_word(const LoadedModel& model, Precision precision) {
  const std::vector<std::string> line = {"Where is the nearest elephant?"};
  const Translation t = translate_lines(model, line, {.precision = precision})[0];
  fmt::print(
      "\nOther words it has never seen, and invents something for them; translate then says so:\n"
      "\n  en   {}\n  de   {}\n",
      line[0], t.text);
  std::fflush(stdout);
  UnknownWords("translate", model).look_at(line);
}

void run_text_demo(const std::string& out) {
  const train::TrainConfig config = train::load_recipe("phrasebook");
  check_own_run(out, config);
  const train::RunResult r = train::train_model(
      config, {.paths = {}, .out = out, .on_event = inspect::report_writer(out)});
  if (r.was_interrupted) return;
  const LoadedModel model = load_translation_model(out);
  const Precision precision = resolve_precision(config.precision);
  fmt::print("trained in {}: {} parameters, {} updates\n", format_duration(r.seconds),
             format_count(model.parameters.elements()), format_count(r.updates));
  show_held_out(model, out, precision);
  fmt::print(
      "\nFive sentences that were not trained on, and for each German word the English "
      "word that\nthe decoder attended to most:\n");
  for (const Phrase& phrase : demo_sentences()) show_sentence(model, phrase, precision);
  show_unknown_word(model, precision);
  fmt::print("\nTry your own:  echo 'We have to get up at half past six.' | {} translate {}\n",
             program_invocation_name, out);
}

void run(const Flags& flags) {
  apply_threads(flags.threads);
  if (flags.has_images) return run_image_demo(flags.out.empty() ? "runs/shapes" : flags.out);
  run_text_demo(flags.out.empty() ? "runs/phrasebook" : flags.out);
}

}  // namespace

void check_own_run(const std::string& run, const train::TrainConfig& config) {
  if (!train::is_run(run)) return;
  for (const FieldDifference& d : diff_fields(train::stored_config(run), config)) {
    check(train::is_limit(d.key), ErrorKind::usage,
          "demo: {} holds another training run ({} is {}, the demo's {}); choose another --out, or "
          "remove that run first",
          run, d.key, d.first, d.second);
  }
}

void add_demo(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "demo",
      "Train an English to German phrasebook translator in minutes and show it; or a classifier of "
      "images",
      run);
  command.add_option("-o,--out", flags.out,
                     "folder of the run; a finished one is shown again [runs/phrasebook, of images "
                     "runs/shapes]");
  command.add_flag("--images", flags.has_images,
                   "draw images of shapes, train a small ViT on them, and show where it looks");
  add_threads_flag(command, flags.threads);
}

}  // namespace heddle::cli
