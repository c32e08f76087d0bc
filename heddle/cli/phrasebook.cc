// heddle phrasebook: writes the pairs that heddle generates as parallel text.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <memory>

#include "heddle/base/error.h"
#include "heddle/cli/commands.h"
#include "heddle/data/agreement.h"
#include "heddle/data/phrasebook.h"

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string out, corpus = "phrasebook";
  int64_t pairs = 0, held_out = -1;
  uint64_t seed = PhrasebookOptions{}.seed;
};

void write_lines(const fs::path& path, const std::vector<Phrase>& phrases,
                 std::string Phrase::*side) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (const Phrase& p : phrases) file << p.*side << '\n';
  file.flush();
  check(file.good(), ErrorKind::system,
        "phrasebook: cannot write {}; see that the folder may be written and the disk has room",
        path.string());
}

void write_part(const Options& o, const std::string& part, const std::vector<Phrase>& phrases) {
  const fs::path folder = o.out;
  write_lines(folder / (part + ".en"), phrases, &Phrase::source);
  write_lines(folder / (part + (o.corpus == "agreement" ? ".fr" : ".de")), phrases,
              &Phrase::target);
}

Phrasebook made(const Options& o) {
  const bool is_agreement = o.corpus == "agreement";
  PhrasebookOptions options = is_agreement ? kAgreementOptions : PhrasebookOptions{};
  if (o.pairs > 0) options.pairs = o.pairs;
  if (o.held_out >= 0) options.held_out_val = options.held_out_test = o.held_out;
  options.seed = o.seed;
  return is_agreement ? make_agreement(options) : make_phrasebook(options);
}

void run(const Options& o) {
  const Phrasebook book = made(o);
  std::error_code error;
  fs::create_directories(o.out, error);
  check(!error, ErrorKind::system, "phrasebook: cannot make the folder {}: {}", o.out,
        error.message());
  write_part(o, "train", book.train);
  write_part(o, "val", book.val);
  write_part(o, "test", book.test);
  fmt::print(stderr,
             "phrasebook: {} pairs for training, {} for validation, {} for the test in {}\n",
             book.train.size(), book.val.size(), book.test.size(), o.out);
}

}  // namespace

void add_phrasebook(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("phrasebook", "Write the sentence pairs that heddle generates as text");
  command->add_option("--out", options->out, "folder for {train,val,test}.{en,de}, or .{en,fr}")
      ->required();
  command
      ->add_option(
          "--corpus", options->corpus,
          "phrasebook: everyday English and German; agreement: English and French in which "
          "pronouns and adjectives depend on words far away")
      ->check(CLI::IsMember({"phrasebook", "agreement"}))
      ->capture_default_str();
  command
      ->add_option("--pairs", options->pairs,
                   "different pairs in all [120000 of the phrasebook, 40000 of agreement]")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--held-out", options->held_out,
                   "pairs for validation, and as many for the test [1000; 500]")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seed", options->seed, "another seed gives other pairs")
      ->capture_default_str();
  command->callback([options] { run(*options); });
}

}  // namespace heddle::cli
