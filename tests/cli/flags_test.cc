// The flags of all commands beside each other: one name for each thing, help of a size that is
// read, and hints where a name or a value is wrong.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "heddle/base/json/json.h"
#include "tests/cli/language_model.h"
#include "tests/support/cli_runner.h"
#include "tests/support/fences.h"

namespace heddle::testing {
namespace {

using Words = std::vector<std::string>;

std::string help_of(Words words, const char* flag = "--help") {
  words.emplace_back(flag);
  const CliResult result = run_heddle(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

// Those that `heddle --help` and `heddle tokenizer --help` name.
std::vector<Words> all_commands() {
  std::vector<Words> commands;
  const auto add_those_of = [&](const Words& parent) {
    for (const std::string& line : lines_of(help_of(parent))) {
      std::smatch name;
      if (!std::regex_search(line, name, std::regex("^  ([a-z]+)  "))) continue;
      commands.push_back(parent);
      commands.back().push_back(name[1]);
    }
  };
  add_those_of({});
  std::erase(commands, Words{"tokenizer"});
  add_those_of({"tokenizer"});
  return commands;
}

// "-o,--output FILE": the names and the value of each flag of a help.
std::vector<std::string> flags_of(const std::string& help) {
  std::vector<std::string> flags;
  for (const std::string& line : lines_of(help)) {
    std::smatch found;
    if (std::regex_search(line, found, std::regex("^  (-[^ ]+)( [A-Z][^ ]*)?"))) {
      flags.push_back(found[1].str() + found[2].str());
    }
  }
  return flags;
}

void expect_refused(const Words& words, const std::string& part) {
  const CliResult result = run_heddle(words);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
}

TEST(Flags, each_thing_has_one_flag_in_all_commands) {
  const std::vector<Words> commands = all_commands();
  EXPECT_GE(commands.size(), 35u);
  std::set<std::string> outputs, pages, threads;
  for (const Words& words : commands) {
    for (const std::string& flag : flags_of(help_of(words))) {
      const std::string names = flag.substr(0, flag.find(' '));
      if (names.starts_with("-o") || names.ends_with("--out") || names.ends_with("--output")) {
        outputs.insert(names);
      }
      if (flag.find("FILE.html") != flag.npos) pages.insert(flag);
      if (names.ends_with("--threads")) threads.insert(names);
    }
  }
  EXPECT_EQ(outputs, (std::set<std::string>{"-o,--out", "-o,--output", "-o,--page"}));
  EXPECT_EQ(pages, (std::set<std::string>{"--page FILE.html", "-o,--page FILE.html"}));
  EXPECT_EQ(threads, (std::set<std::string>{"-t,--threads"}));
}

TEST(Flags, former_and_foreign_names_say_what_the_flag_is_called) {
  for (const auto& [words, part] : std::vector<std::pair<Words, std::string>>{
           {{"eval", "m", "--hyp-out", "x"},
            "eval: unknown flag '--hyp-out'; it is --output here."},
           {{"eval", "m", "--text", "x"}, "it is --data here"},
           {{"attention", "m", "-o", "x.html"}, "unknown flag '-o'; it is --page here"},
           {{"attention", "m", "--source", "x"}, "it is --text here"},
           {{"translate", "m", "--steps", "x.html"}, "it is --page here"},
           {{"translate", "m", "--num-beams", "4"}, "it is --beam here"},
           {{"forward", "m", "--inputs", "x"}, "it is --input here"},
           {{"align", "m", "--align-out", "x"}, "it is --output here"},
           {{"export", "m", "--output", "x"}, "it is --out here"},
           {{"train", "--lr", "1"}, "it is --learning-rate here"},
           {{"generate", "m", "--truncate-prompt"}, "it is --truncate here"},
           {{"classify", "--model", "m"}, "the model stands without a flag"},
           {{"fill", "m", "the [MASK]"}, "A text is given as --text 'the [MASK]'"}}) {
    expect_refused(words, part);
  }
}

TEST(Flags, output_of_what_is_printed_is_no_page) {
  for (const std::string command :
       {"translate", "generate", "embed", "classify", "detect", "fill"}) {
    for (const std::string flag : {"-o", "--output", "--out"}) {
      if (command == "detect" && flag == "-o") continue;  // it names a page there
      const std::string hint = "results go to the standard output: add '> ";
      expect_refused({command, "m", flag, "out.de"}, hint + "out.de'. See heddle " + command);
      expect_refused({command, "m", flag + "=out.de"}, hint + "out.de'");
      expect_refused({command, "m", flag}, hint + "FILE'");
      expect_refused({command, "m", flag, "x.html"}, "it is --page here");
    }
  }
  expect_refused({"translate", "m", "t.en", "-o", "out.de"}, "add '> out.de'");
  expect_refused({"detect", "m", "a.png", "-o", "out.tsv"}, "add '> out.tsv'");
}

TEST(Flags, help_of_a_command_names_no_flag_of_others) {
  for (const std::string command : {"encode", "decode"}) {
    const std::string help = help_of({"tokenizer", command});
    EXPECT_NE(help.find("--skip-bad"), help.npos);
    EXPECT_EQ(help.find("--json"), help.npos) << help;
  }
}

TEST(Flags, wrong_values_say_what_is_needed) {
  expect_refused({"translate", "m", "--beam", "five"},
                 "--beam is 'five'; a whole number is needed");
  expect_refused({"generate", "m", "--top-p", "much"}, "--top-p is 'much'; a number is needed");
  expect_refused({"demo", "--threads", "-1"}, "--threads is -1; it must be at least 1, or 0");
  expect_refused({"score", "--tokenize", "x"}, "--tokenize is 'x'; it must be one of 13a, none");
  for (const char* number : {"9223372036854775808", "-99999999999999999999"}) {
    expect_refused({"generate", "m", "-n", number},
                   fmt::format("--max-new-tokens is '{}', which is too large a number", number));
  }
  expect_refused({"analyze", "base", "--threads", "-1"}, "--threads is -1");
  expect_refused({"bench", "list", "--threads", "-1"}, "--threads is -1");
  expect_refused({"serve", "m", "--queue-seconds", "10000000000"},
                 "--queue-seconds is 10000000000; it must be from 1 to 1000000000");
  expect_refused({"serve", "m", "--max-texts", "9223372036854775807"}, "--max-texts is");
  expect_refused({"generate", "--server", "http://localhost:1", "-p", "x", "--samples", "-1"},
                 "--samples -1");
  expect_refused({"translate", "--server", "http://localhost:1", "--max-length", "-5"},
                 "--max-length is -5");
  expect_refused({"align", "m", "--json"}, "it needs --gold FILE");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"caption", "m", "x.png", "-o", "x.txt"},
                                             {"fill", "m", "--text", "a", "--page", "x.txt"},
                                             {"translate", "m", "x.txt", "--page", "x.de"}}) {
    expect_refused(words, "a page is called FILE.html");
  }
  expect_refused({"align", "m", "--gold-base", "1"}, "--gold");
  expect_refused({"align", "m", "--gold-reversed"}, "--gold");
  expect_refused({"attention", "m", "--text", "a", "--ids", "3"}, "exclude each other");
  expect_refused({"analyze", "gpt2", "--patch", "4"}, "give --image");
  expect_refused({"analyze", "gpt2", "--target-length", "5"}, "one sequence");
  expect_refused({"analyze", "gpt2", "--image", "32", "--patch", "4", "--window", "-3"},
                 "--window is -3");
  expect_refused({"load", "http://localhost:1", "--rate", "1e-11"}, "--rate is 1e-11");
  expect_refused({"load", "http://localhost:1", "--seconds", "1e10"}, "--seconds is");
  expect_refused({"translate", "--server", "http://localhost:1", "--wait", "1e300"}, "--wait is");
}

TEST(Flags, what_a_form_of_a_command_would_pass_over_is_refused) {
  for (const auto& [words, message] : std::vector<std::pair<Words, std::string>>{
           {{"translate", "m", "--page", "x.html", "--json"}, "--json excludes --page"},
           {{"translate", "m", "--page", "x.html", "--alignment"}, "--alignment excludes --page"},
           {{"translate", "m", "--page", "x.html", "--n-best", "2"}, "--n-best excludes --page"},
           {{"translate", "m", "--wait", "3"}, "--wait requires --server"},
           {{"generate", "m", "--page", "x.html", "--echo"}, "--page excludes --echo"},
           {{"generate", "m", "--top", "3", "--stop", "x"}, "--stop excludes --top"},
           {{"generate", "m", "--top", "3", "--samples", "2"}, "--samples excludes --top"},
           {{"generate", "m", "--top", "3", "--temperature", "2"}, "--temperature excludes --top"},
           {{"generate", "m", "--top", "3", "--echo"}, "--top excludes --echo"},
           {{"explain", "--scores", "1 2", "--head", "1"}, "--head is of a model"},
           {{"explain", "m", "--text", "x", "--causal"}, "--causal is of matrices"},
           {{"analyze", "tiny", "--latency", "3"}, "--latency requires --ranks"},
           {{"analyze", "tiny", "--seconds", "3"}, "--seconds requires --measure"}}) {
    expect_refused(words, message);
  }
}

class TextFlags : public LanguageModelFixture {};

// CLI11 takes what stands in brackets for a list.
TEST_F(TextFlags, brackets_and_commas_of_a_prompt_are_its_own) {
  for (const std::string prompt : {"[my, dog]", "[INST] the old man [/INST]", "[]", "{}"}) {
    const CliResult given = run_heddle({"generate", model(), "--prompt", prompt, "--echo"});
    EXPECT_EQ(given.exit_code, 0) << given.err;
    EXPECT_EQ(given.out,
              run_heddle({"generate", model(), "--echo"}, with_input(prompt + "\n")).out);
  }
}

// An unset variable of a script: `--out "$RUN"`.
TEST(Flags, empty_paths_are_refused_by_name) {
  for (const auto& [words, name] : std::vector<std::pair<Words, std::string>>{
           {{"train", "--out", ""}, "--out"},
           {{"train", "--out", "x", "--data", ""}, "--data"},
           {{"demo", "-o", ""}, "--out"},
           {{"export", "m", "--out", ""}, "--out"},
           {{"export", "", "--out", "x"}, "model"},
           {{"quantize", "m", "--to", "int8", "-o", ""}, "--out"},
           {{"phrasebook", "--out", ""}, "--out"},
           {{"shapes", "--out", ""}, "--out"},
           {{"eval", "m", "--src", "a", "--ref", "b", "-o", ""}, "--output"},
           {{"attention", "m", "--text", "a", "--page", ""}, "--page"},
           {{"serve", "m", "--keys", ""}, "--keys"},
           {{"translate", "m", "--server", "http://x", "--key-file", ""}, "--key-file"},
           {{"score", "--hyp", "a", "--ref", ""}, "--ref"},
           {{"forward", "m", "--input", "", "-o", "x"}, "--input"}}) {
    expect_refused(words, name + " is ''; it must not be empty. See heddle " + words[0]);
  }
}

TEST(Flags, short_ones_are_those_of_other_programs) {
  const std::string generate = help_of({"generate"});
  for (const char* flag : {"-p,--prompt", "-n,--max-new-tokens", "-t,--threads"}) {
    EXPECT_NE(generate.find(flag), std::string::npos) << flag;
  }
  const std::string version = run_heddle({"--version"}).out;
  EXPECT_NE(version, "");
  for (const char* flag : {"-v", "-V"}) EXPECT_EQ(run_heddle({flag}).out, version);
}

TEST(Help, command_help_is_the_help_of_the_command) {
  EXPECT_EQ(run_heddle({"help", "train"}).out, help_of({"train"}));
  EXPECT_EQ(run_heddle({"help", "tokenizer", "train"}).out, help_of({"tokenizer", "train"}));
  EXPECT_EQ(run_heddle({"help"}).out, run_heddle({"--help"}).out);
}

TEST(Help, commands_stand_in_groups) {
  const std::string help = run_heddle({"--help"}).out;
  size_t at = 0;
  for (const char* part : {"\nTrain:\n  train ", "\nUse:\n  translate ", "\nMeasure:\n  eval ",
                           "\nLook inside:\n", "\nData and files:\n", "\nTools:\n"}) {
    const size_t found = help.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << help;
    at = found;
  }
}

TEST(Help, of_training_is_a_page_of_what_most_runs_set) {
  const std::string help = help_of({"train"});
  EXPECT_LT(lines_of(help).size(), 60u) << help;
  for (const char* flag : {"--recipe", "--learning-rate", "--max-updates", "--help-all"}) {
    EXPECT_NE(help.find(flag), std::string::npos) << flag;
  }
  EXPECT_EQ(help.find("--rope-theta"), std::string::npos);
  const std::string all = help_of({"train"}, "--help-all");
  EXPECT_NE(all.find("--rope-theta"), std::string::npos);
  EXPECT_GT(lines_of(all).size(), 200u);
}

TEST(Help, says_what_teaching_means_for_each_task_and_other_tasks_refuse_it) {
  const std::string all = help_of({"train"}, "--help-all");
  const size_t at = all.find("--teaching ");
  ASSERT_NE(at, std::string::npos);
  const std::string help = all.substr(at, all.find("\n\n", at) - at);
  const size_t translation = help.find("of translation: "), images = help.find("of image_class");
  for (const auto& [word, begin] : {std::pair{"sequence: ", translation},
                                    {"added: ", translation},
                                    {"hard: ", images},
                                    {"soft: ", images}}) {
    EXPECT_NE(help.find(word, begin), std::string::npos) << word << help;
  }
  const auto refusal = [](const std::string& task, const std::string& teaching) {
    const CliResult result = run_heddle({"train", "--task", task, "--data", "none", "--out", "none",
                                         "--teacher", "none", "--teaching", teaching});
    EXPECT_EQ(result.exit_code, 2);
    return result.err;
  };
  for (const char* word : {"hard", "soft"}) {
    const std::string of_translation = refusal("translation", word);
    EXPECT_NE(of_translation.find("sequence, added"), std::string::npos) << of_translation;
    const std::string of_text = refusal("causal_lm", word);
    EXPECT_NE(of_text.find("has no --teaching"), std::string::npos) << of_text;
  }
  const std::string of_images = refusal("image_classification", "added");
  EXPECT_NE(of_images.find("hard, soft"), std::string::npos) << of_images;
}

TEST(Help, of_a_task_or_a_preset_has_its_settings_alone) {
  const std::string masked = help_of({"train", "--task", "masked_lm"});
  EXPECT_NE(masked.find("--mask-share number         share"), std::string::npos) << masked;
  for (const char* other : {"--label-smoothing", "--n-layer ", "--sampling"}) {
    EXPECT_EQ(masked.find(other), std::string::npos) << other;
  }
  const std::string gpt2 = help_of({"train", "--preset", "gpt2-medium"});
  EXPECT_NE(gpt2.find("--n-layer integer           number of blocks [24]"), std::string::npos)
      << gpt2;
  EXPECT_EQ(gpt2.find("--mask-share"), std::string::npos);
  const std::string recipe = help_of({"train", "--recipe", "shakespeare-char"});
  EXPECT_NE(recipe.find("[0.01]"), std::string::npos) << recipe;
}

TEST(Models, names_of_the_hub_say_that_a_folder_is_needed_and_how_it_comes) {
  for (const auto& [name, folder] : {std::pair{"bert-base-uncased", "bert-base-uncased"},
                                     std::pair{"openai-community/gpt2", "gpt2"}}) {
    const std::string command =
        std::string("`hf download ") + name + " --local-dir " + folder + "`";
    for (const Words& words : std::vector<Words>{{"fill", name, "--text", "x"},
                                                 {"generate", name, "-p", "x"},
                                                 {"tokenizer", "info", name},
                                                 {"info", name}}) {
      const CliResult result = run_heddle(words);
      EXPECT_EQ(result.exit_code, 3) << words[0];
      EXPECT_NE(result.err.find(command), std::string::npos) << result.err;
    }
  }
  for (const Words& words : std::vector<Words>{{"info", "/no/such"},
                                               {"tokenizer", "info", "joint.model"},
                                               {"info", "tokenizer.json"}}) {
    const CliResult result = run_heddle(words);
    EXPECT_EQ(result.exit_code, 3) << words.back();
    EXPECT_EQ(result.err.find("huggingface"), std::string::npos) << result.err;
  }
}

TEST(Models, pointer_of_git_lfs_is_named_as_one) {
  const TempDir folder;
  write_file(folder / "config.json", R"({"model_type": "gpt2"})");
  write_file(folder / "model.safetensors",
             "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 437955512\n");
  const CliResult result = run_heddle({"info", folder.path().string()});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("git lfs pull"), std::string::npos) << result.err;
}

// Runs whose vocabularies came out smaller than was asked for.
TEST(RunAsModel, every_command_takes_one_and_sees_the_model_that_was_made) {
  const TempDir folder;
  std::string text;
  for (int i = 0; i < 100; ++i) text += "the old man reads a book\n";
  write_file(folder / "text", text);
  const auto train = [&](const char* name, const char* vocab) {
    const std::string run = (folder / name).string();
    const CliResult trained = run_heddle({"train",
                                          "--task",
                                          "masked_lm",
                                          "--data",
                                          (folder / "text").string(),
                                          "--out",
                                          run,
                                          "--hidden-size",
                                          "8",
                                          "--num-hidden-layers",
                                          "1",
                                          "--num-attention-heads",
                                          "1",
                                          "--intermediate-size",
                                          "8",
                                          "--block-size",
                                          "8",
                                          "--max-updates",
                                          "1",
                                          "--vocab-size",
                                          vocab,
                                          "--seed",
                                          vocab});
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    return run;
  };
  const std::string run = train("run", "1000"), other = train("other", "2000");
  const Json info = Json::parse(run_heddle({"info", run, "--json"}).out);
  EXPECT_LT(info.at("config").get_int("vocab_size"), 1000);
  const auto parameters = [](const std::string& model) {
    return Json::parse(run_heddle({"analyze", model, "--json"}).out).get_int("parameters");
  };
  EXPECT_EQ(parameters(run), parameters(run + "/best/config.json"));
  EXPECT_EQ(run_heddle({"tokenizer", "info", run}).exit_code, 0);
  const CliResult compared = run_heddle({"compare", run, other});
  EXPECT_NE(compared.out.find("seed"), std::string::npos) << compared.out;
  EXPECT_EQ(compared.out.find("vocab_size"), std::string::npos) << compared.out;
}

TEST(Train, field_of_another_model_names_the_models_own) {
  expect_refused({"train", "--task", "causal_lm", "--n-layers", "4", "--out", "/no/run"},
                 "model_type gpt2 has no --n-layers; there it is --n-layer");
  expect_refused({"train", "--preset", "tiny", "--num-hidden-layers", "4", "--out", "/no/run"},
                 "there it is --encoder-layers and --decoder-layers");
}

TEST(Train, without_data_and_limits_says_that_data_are_missing) {
  const TempDir folder;
  const CliResult result =
      run_heddle({"train", "--task", "causal_lm", "--out", (folder / "run").string()});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find("--data"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("no end"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("5,000 updates"), std::string::npos) << result.err;
}

TEST(Train, file_of_text_without_a_task_is_told_which_tasks_take_one_and_nothing_else) {
  const TempDir folder;
  const std::string text = (folder / "my.txt").string();
  write_file(text, "the old man reads a book\n");
  const CliResult result =
      run_heddle({"train", "--data", text, "--out", (folder / "run").string()});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.err.find("heddle: train: " + text + " is a file"), 0u) << result.err;
  for (const char* word : {"train.en, train.de", "--task causal_lm", "--recipe"}) {
    EXPECT_NE(result.err.find(word), std::string::npos) << result.err;
  }
}

TEST(Train, task_of_the_model_to_begin_with_is_that_of_its_head) {
  const TempDir folder;
  write_file(folder / "my.txt", std::string(200, 'a') + "b\n");
  const auto train = [&](const std::string& from) {
    return run_heddle({"train", "--from", from, "--data", (folder / "my.txt").string(), "--out",
                       (folder / "run").string(), "--max-updates", "1"});
  };
  const std::string gpt2 = (folder / "gpt2").string();
  write_gpt2(gpt2);
  const CliResult result = train(gpt2);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find(gpt2 + " is a GPT2LMHeadModel: task causal_lm"), std::string::npos)
      << result.err;
  EXPECT_EQ(Json::load((folder / "run/train.json").string()).get_string("task"), "causal_lm");
  std::string config = read_file(folder / "gpt2/config.json");
  config.replace(config.find("GPT2LMHeadModel"), 15, "GPT2Model");
  write_file(folder / "gpt2/config.json", config);
  std::filesystem::remove_all(folder / "run");
  const CliResult bare = train(gpt2);
  EXPECT_EQ(bare.exit_code, 2) << bare.err;
  EXPECT_NE(bare.err.find("is a GPT2Model"), std::string::npos) << bare.err;
  EXPECT_NE(bare.err.find("--task: causal_lm, masked_lm"), std::string::npos) << bare.err;
  EXPECT_EQ(bare.err.find("translation"), std::string::npos) << bare.err;
  write_small_model((folder / "translator").string());
  const CliResult translator = train((folder / "translator").string());
  EXPECT_EQ(translator.exit_code, 2) << translator.err;
  EXPECT_NE(translator.err.find("is a HeddleTransformer: task translation"), std::string::npos)
      << translator.err;
  EXPECT_NE(translator.err.find("my.txt is a file, and translation needs a folder"),
            std::string::npos)
      << translator.err;
}

}  // namespace
}  // namespace heddle::testing
