// heddle phrasebook: writes the pairs that heddle generates as parallel text.

#include "corpora/agreement.h"
#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/files/folder_claim.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/train/batches/corpora.h"

namespace heddle::cli {
namespace {

struct Options {
  std::string out, corpus = "phrasebook";
  int64_t pairs = 0, held_out = -1;
  uint64_t seed = PhrasebookOptions{}.seed;
  bool overwrite = false;
};

const char* target_language(const Options& o) { return o.corpus == "agreement" ? "fr" : "de"; }

void check_free(const Options& o) {
  for (const char* part : {"train", "val", "test"}) {
    for (const char* language : {"en", target_language(o)}) {
      const std::string path = join_path(o.out, fmt::format("{}.{}", part, language));
      check(!path_exists(path), ErrorKind::usage,
            "phrasebook: {} is there already; choose another --out, or replace it with --overwrite",
            path);
    }
  }
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
  if (!o.overwrite) check_free(o);
  const FolderClaim claim(o.out);
  if (!o.overwrite) check_free(o);  // another may have written since
  const Phrasebook book = made(o);
  train::write_pairs(book, o.out, "en", target_language(o));
  fmt::print(stderr,
             "phrasebook: {} pairs for training, {} for validation, {} for the test in {}\n",
             format_count(std::ssize(book.train)), format_count(std::ssize(book.val)),
             format_count(std::ssize(book.test)), o.out);
}

}  // namespace

void add_phrasebook(Subcommand& app) {
  auto [command, options] = app.add_command<Options>(
      "phrasebook", "Write the sentence pairs that heddle generates as text", run);
  command.add_option("-o,--out", options.out, "folder for {train,val,test}.{en,de}, or .{en,fr}")
      .required();
  command
      .add_setting(
          "--corpus", options.corpus,
          "phrasebook: everyday English and German; agreement: English and French in which "
          "pronouns and adjectives depend on words far away")
      .one_of({"phrasebook", "agreement"});
  command
      .add_option("--pairs", options.pairs,
                  "different pairs in all [120000 of the phrasebook, 40000 of agreement]")
      .positive();
  command
      .add_option("--held-out", options.held_out,
                  "pairs for validation, and as many for the test [1000; 500]")
      .not_negative();
  command.add_setting("--seed", options.seed, "another seed gives other pairs");
  command.add_flag("--overwrite", options.overwrite, "replace such files that are there");
}

}  // namespace heddle::cli
