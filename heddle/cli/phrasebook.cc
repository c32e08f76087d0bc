// heddle phrasebook: writes the embedded English-German phrasebook as parallel text.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <memory>

#include "heddle/base/error.h"
#include "heddle/cli/commands.h"
#include "heddle/data/phrasebook.h"

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string out;
  int64_t pairs = PhrasebookOptions{}.pairs;
  int64_t held_out = PhrasebookOptions{}.held_out_val;
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

void write_part(const fs::path& folder, const std::string& part,
                const std::vector<Phrase>& phrases) {
  write_lines(folder / (part + ".en"), phrases, &Phrase::source);
  write_lines(folder / (part + ".de"), phrases, &Phrase::target);
}

void run(const Options& o) {
  const Phrasebook book = make_phrasebook(
      {.pairs = o.pairs, .held_out_val = o.held_out, .held_out_test = o.held_out, .seed = o.seed});
  std::error_code error;
  fs::create_directories(o.out, error);
  check(!error, ErrorKind::system, "phrasebook: cannot make the folder {}: {}", o.out,
        error.message());
  write_part(o.out, "train", book.train);
  write_part(o.out, "val", book.val);
  write_part(o.out, "test", book.test);
  fmt::print(stderr,
             "phrasebook: {} pairs for training, {} for validation, {} for the test in {}\n",
             book.train.size(), book.val.size(), book.test.size(), o.out);
}

}  // namespace

void add_phrasebook(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("phrasebook", "Write the embedded English-German phrasebook as text");
  command->add_option("--out", options->out, "folder for {train,val,test}.{en,de}")->required();
  command->add_option("--pairs", options->pairs, "different pairs in all")->capture_default_str();
  command
      ->add_option("--held-out", options->held_out,
                   "pairs for validation, and as many for the test")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "another seed gives other pairs")
      ->capture_default_str();
  command->callback([options] { run(*options); });
}

}  // namespace heddle::cli
