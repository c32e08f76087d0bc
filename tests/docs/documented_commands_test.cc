// Every command that the pages for users show is run, and what they print is compared. Data and
// models that a reader would have are small ones from a stock; trainings are cut short.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/support/cli_runner.h"
#include "tests/support/fences.h"
#include "tests/support/places.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

// Makes the stock: each item is named in the comments of the pages.
const std::string kMakeStock = std::string("IMAGES='") + kFixtures + R"sh(/images'
set -e
heddle phrasebook --out pairs --pairs 2000 --held-out 12 2>/dev/null
cat pairs/train.en > text
printf 'ROMEO: The quick brown fox, 1 2 3 4 5 6; JUMPS over? [it] lazy-dog!\nOnce upon a time.\n' >> text
head -n 4 pairs/val.en > lines
head -n 4 pairs/val.de > lines.de
(echo text,category; sed 's/.*/"&",question/' lines; sed 's/.*/"&",answer/' lines.de) > half.csv
(cat half.csv; for i in 1 2 3 4; do tail -n +2 half.csv; done) > table.csv
sed 's/category/label/' table.csv > labels.csv
(echo sentence$'\t'label; for i in 1 2 3 4 5; do sed 's/$/\t1/' lines; sed 's/$/\t0/' lines.de; done) | gzip > glue.tsv.gz
for i in 1 2 3 4 5; do sed 's/ /\tO\n/g; s/$/\tEND\n/' lines; done > words.conll
mkdir books && cp text books/train.txt && head -n 20 text > books/val.txt
mkdir six && (cd six
  printf 'je suis étudiant\nmerci\n' | tee train.fr > val.fr
  printf 'i am a student\nthanks\n' | tee train.en > val.en)
printf 'je\nsuis\nétudiant\nmerci\n' > fr.txt
printf 'a\nam\ni\nthanks\nstudent\n' > en.txt
for part in train val; do
  mkdir -p animals/$part/cat animals/$part/dog
  cp "$IMAGES"/4*.jpg animals/$part/cat && cp "$IMAGES"/{rgb,rgba,palette}.png animals/$part/dog
done
cp "$IMAGES"/444.jpg cat.jpg && cp "$IMAGES"/rgb.png dog.png
train() { heddle train --out "$@" > /dev/null 2>&1; }
train translator --data pairs --preset tiny --d-model 32 --encoder-ffn-dim 32 --decoder-ffn-dim 32 --vocab-size 400
train language --task causal_lm --data text --n-layer 3 --n-head 4 --n-embd 32 --n-positions 1024 --block-size 32
train masked --task masked_lm --data text --vocab-size 200 --hidden-size 32 --intermediate-size 32 --num-hidden-layers 2 --num-attention-heads 4 --block-size 24
train classifier --task sequence_classification --from masked --data table.csv --label-key category --block-size 24
train tagger --task token_classification --from masked --data words.conll --block-size 24
cp -r language/best gpt2
cp -r masked/best bert
cp -r masked/best encoder
)sh";

// heddle with its trainings cut short: flags in CUT take the place of those given.
std::string wrapper() {
  return std::string("#!/usr/bin/env bash\nprogram=") + kProgram + R"sh(
cut=()
if [[ ${1-} == train ]]; then read -ra cut <<<"${CUT-}"; fi
if [[ ${1-} == tokenizer && ${2-} == train ]]; then read -ra cut <<<"${TOKENIZER_CUT-}"; fi
if [[ ${#cut[@]} == 0 || " $* " == *" --help"* ]]; then exec "$program" "$@"; fi
kept=()
while (($#)); do
  for ((i = 0; i < ${#cut[@]}; i += 2)); do
    if [[ $1 == "${cut[i]}" ]]; then shift 2; continue 2; fi
  done
  kept+=("$1")
  shift
done
exec "$program" "${kept[@]}" "${cut[@]}"
)sh";
}

// Token ids for heddle forward: 8 bytes with the header's length, the header, int64 values.
std::string tensors_of_ids() {
  std::string text = R"({"input_ids":{"dtype":"I64","shape":[1,3],"data_offsets":[0,24]},)"
                     R"("decoder_input_ids":{"dtype":"I64","shape":[1,2],"data_offsets":[24,40]}})";
  std::string bytes;
  const auto add = [&](uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i));
  };
  add(text.size());
  bytes += text;
  for (const uint64_t id : {5, 6, 3, 2, 7}) add(id);
  return bytes;
}

constexpr const char* kCut =
    "--max-updates 2 --validate-every 2 --checkpoint-every 2 --log-every 1";

// The pages' commands run in folders of their own, one a fence.
class DocumentedCommands : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    place_ = std::make_unique<TempDir>();
    const fs::path program = *place_ / "bin" / "heddle";
    write_file(program, wrapper());
    fs::permissions(program, fs::perms::owner_all);
    fs::create_directory(*place_ / "stock");
    write_file(*place_ / "stock" / "in.safetensors", tensors_of_ids());
    const CliResult made = bash(kMakeStock, *place_ / "stock", "");
    ASSERT_EQ(made.exit_code, 0) << made.out << made.err;
  }
  static void TearDownTestSuite() { place_.reset(); }

  static CliResult bash(const std::string& script, const fs::path& folder,
                        const std::string& own_cut) {
    const bool is_cut = own_cut != "no";
    CliOptions options;
    options.folder = folder;
    options.environment["PATH"] = (*place_ / "bin").string() + ":" + std::getenv("PATH");
    options.environment["CUT"] = is_cut ? kCut + (" " + own_cut) : "";
    options.environment["TOKENIZER_CUT"] = is_cut ? own_cut : "";
    return run_command({"bash", "-o", "pipefail", "-ec", "exec 2>&1\n" + script}, options);
  }

  // A folder with what the fence names.
  static fs::path folder_for(const Fence& fence, const fs::path& before) {
    if (fence.goes_on && !before.empty()) return prepared(before, fence);
    static int number = 0;
    const fs::path folder = *place_ / ("fence" + std::to_string(++number));
    fs::create_directory(folder);
    return prepared(folder, fence);
  }
  static fs::path prepared(const fs::path& folder, const Fence& fence) {
    for (const auto& [name, item] : fence.settings) {
      if (name == "cut" || name == "compare") continue;
      const fs::path to = folder / name, from = *place_ / "stock" / item;
      if (!fs::exists(from)) throw std::runtime_error(fence.where + ": no " + item + " in stock");
      fs::create_directories(to.parent_path());
      fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    }
    return folder;
  }

  static void run(const Fence& fence, const fs::path& folder) {
    const auto found = fence.settings.find("cut");
    const std::string cut = found == fence.settings.end() ? "" : found->second;
    for (const ShownCommand& command : fence.commands()) {
      const CliResult result = bash(command.text, folder, cut);
      const bool fails = std::any_of(command.output.begin(), command.output.end(),
                                     [](auto& line) { return line.starts_with("heddle: "); });
      EXPECT_EQ(result.exit_code != 0, fails)
          << fence.where << ": exit code " << result.exit_code << "\n"
          << command.text << "\n"
          << result.out;
      if (::testing::Test::HasFailure()) return;
      EXPECT_EQ(missing_line(command.output, result.out, comparison_of(fence)), "")
          << fence.where << ": it is not in what this prints:\n"
          << command.text << "\n"
          << result.out;
    }
  }

  static void run_page(const std::string& name) {
    fs::path folder;
    int count = 0;
    for (const Fence& fence : fences_of(read_file(fs::path(kSource) / name), name)) {
      if (!fence.is_run) continue;
      folder = folder_for(fence, folder);
      run(fence, folder);
      ++count;
    }
    EXPECT_GT(count, 0) << name;
  }

  static inline std::unique_ptr<TempDir> place_;
};

TEST_F(DocumentedCommands, of_the_readme_run) { run_page("README.md"); }
TEST_F(DocumentedCommands, of_the_quick_start_run) { run_page("docs/quickstart.md"); }
TEST_F(DocumentedCommands, of_the_tour_run_and_print_what_is_shown) { run_page("docs/tour.md"); }
TEST_F(DocumentedCommands, of_getting_a_model_run) { run_page("docs/getting-a-model.md"); }

TEST(Pages, fences_say_whether_they_run_or_why_not) {
  for (const char* name : {"README.md", "docs/quickstart.md", "docs/tour.md", "docs/library.md",
                           "docs/getting-a-model.md"}) {
    const auto fences = fences_of(read_file(fs::path(kSource) / name), name);
    EXPECT_FALSE(fences.empty()) << name;
    for (const Fence& fence : fences) EXPECT_EQ(annotation_fault(fence), "");
  }
}

// The check itself: what must not pass does not.
TEST(Pages, fence_without_a_comment_or_a_reason_is_a_fault) {
  const auto fences = fences_of(
      "```\nheddle info x\n```\n<!-- test: no, -->\n```\na\n```\n<!-- test: no, needs a GPU -->\n"
      "```\nb\n```\n```cpp\nint x;\n```\n<!-- test: run -->\n```\nc\n```\n",
      "page");
  ASSERT_EQ(fences.size(), 5u);
  EXPECT_NE(annotation_fault(fences[0]), "");
  EXPECT_NE(annotation_fault(fences[1]), "");
  for (size_t i = 2; i < 5; ++i) EXPECT_EQ(annotation_fault(fences[i]), "") << i;
  EXPECT_TRUE(fences[4].is_run);
}

TEST(Pages, commands_stand_behind_dollars_with_their_output_below) {
  const auto fences = fences_of(
      "<!-- test: same A=b cut=\"--x 1\" -->\n```\n$ one \\\n  two\nout\n$ three\n```\n", "page");
  const auto commands = fences[0].commands();
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_EQ(commands[0].text, "one \\\n  two");
  EXPECT_EQ(commands[0].output, std::vector<std::string>{"out"});
  EXPECT_TRUE(fences[0].goes_on);
  EXPECT_EQ(fences[0].settings.at("cut"), "--x 1");
  EXPECT_EQ(fences[0].settings.at("A"), "b");
}

TEST(Pages, shown_lines_must_be_printed_in_their_order) {
  const std::string printed = "a\nloss 1.25 in 3 s\nb\n";
  EXPECT_EQ(missing_line({"a", "b"}, printed, Comparison::exact), "");
  EXPECT_EQ(missing_line({"b", "a"}, printed, Comparison::exact), "a");
  EXPECT_EQ(missing_line({"loss 9.5 in 2 min 03 s"}, printed, Comparison::exact),
            "loss 9.5 in 2 min 03 s");
  EXPECT_EQ(missing_line({"loss 9.5 in 2 min 03 s"}, printed, Comparison::numbers), "");
  EXPECT_EQ(missing_line({"cost 9.5 in 2 s"}, printed, Comparison::numbers), "cost 9.5 in 2 s");
  EXPECT_EQ(missing_line({"cost 9.5 at 2 s"}, printed, Comparison::form), "");
}

}  // namespace
}  // namespace heddle::testing
