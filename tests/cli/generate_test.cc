// heddle generate at the command line: texts that grow, batches, stop strings, tables, bad input.
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>

#include "heddle/text/training/tokenizer_trainer.h"
#include "tests/cli/generate_command.h"

namespace heddle::testing {
namespace {

const std::vector<std::string> kPrompts = {"the old man",
                                           "my",
                                           "a small dog sees the newspaper.",
                                           "der alte Mann kauft",
                                           "two books! two",
                                           "nothing",
                                           "eine kleine Katze",
                                           "sieht",
                                           "the the the",
                                           "old"};

std::string lines_of(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) lines += text + "\n";
  return lines;
}

TEST_F(GenerateCommand, ten_prompts_at_once_give_the_texts_that_each_gives_alone) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{}, {"--beam", "3"}, {"--no-repeat-ngram", "2"}}) {
    const auto together = objects(flags, lines_of(kPrompts));
    ASSERT_EQ(together.size(), kPrompts.size());
    for (size_t i = 0; i < kPrompts.size(); ++i) {
      std::vector<std::string> alone = flags;
      alone.insert(alone.end(), {"--prompt", kPrompts[i]});
      Json expected = objects(alone)[0];
      EXPECT_EQ(expected.get_int("prompt"), 1);
      expected["prompt"] = static_cast<int64_t>(i) + 1;
      EXPECT_EQ(together[i], expected);
    }
  }
}

TEST_F(GenerateCommand, text_that_grows_is_that_of_json) {
  for (const std::string& prompt : kPrompts) {
    const Json object = objects({"--prompt", prompt, "--max-new-tokens", "30"})[0];
    const CliResult plain = generate({"--prompt", prompt, "--max-new-tokens", "30"});
    EXPECT_EQ(plain.out, object.get_string("text") + "\n");
    const CliResult echoed = generate({"--prompt", prompt, "--max-new-tokens", "30", "--echo"});
    EXPECT_EQ(echoed.out, prompt + object.get_string("text") + "\n");
  }
}

TEST_F(GenerateCommand, several_texts_are_parted_by_a_line) {
  const auto found = objects({}, lines_of(kPrompts));
  std::string expected;
  for (const Json& one : found) {
    if (!expected.empty()) expected += "----------\n";
    expected += one.get_string("text") + "\n";
  }
  EXPECT_EQ(generate({}, lines_of(kPrompts)).out, expected);
  const TempDir folder;
  write_file(folder / "prompts", lines_of(kPrompts));
  EXPECT_EQ(generate({"--prompts", (folder / "prompts").string()}).out, expected);
}

TEST_F(GenerateCommand, log_probs_and_reasons_are_told) {
  const Json length =
      objects({"--prompt", "the old", "--max-new-tokens", "3", "--min-new-tokens", "3"})[0];
  EXPECT_EQ(length.get_string("finish_reason"), "length");
  EXPECT_EQ(length.at("ids").size(), 3u);
  double sum = 0;
  for (const Json& log_p : length.at("log_probs").as_array()) sum += log_p.as_double();
  EXPECT_NEAR(length.get_double("log_prob"), sum, 1e-5);
  size_t ends = 0;
  for (const Json& one : objects({"--max-new-tokens", "36", "--samples", "8"}, "the old\n")) {
    const bool has_end = one.get_string("finish_reason") == "eos";
    ends += has_end;
    for (const Json& id : one.at("ids").as_array())
      EXPECT_TRUE(id.as_int() != 3 && id.as_int() != 9);
  }
  EXPECT_GT(ends, 0u);
}

// Two letters in a row, not at the front; empty if there are none.
std::string letters_of(const std::string& text) {
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(text[i])) &&
        std::isalpha(static_cast<unsigned char>(text[i + 1]))) {
      return text.substr(i, 2);
    }
  }
  return "";
}

TEST_F(GenerateCommand, stop_string_ends_the_text_before_it) {
  size_t stopped = 0;
  for (const std::string& prompt : kPrompts) {
    std::vector<std::string> flags = {"--prompt",         prompt, "--max-new-tokens", "30",
                                      "--min-new-tokens", "30"};
    const std::string whole = objects(flags)[0].get_string("text"), stop = letters_of(whole);
    if (stop.empty()) continue;
    flags.insert(flags.end(), {"--stop", "no such text", "--stop", stop});
    const Json found = objects(flags)[0];
    EXPECT_EQ(found.get_string("text"), whole.substr(0, whole.find(stop)));
    EXPECT_EQ(found.get_string("finish_reason"), "stop");
    EXPECT_EQ(generate(flags).out, found.get_string("text") + "\n");
    ++stopped;
  }
  EXPECT_GT(stopped, 3u);
}

TEST_F(GenerateCommand, seed_decides_the_samples) {
  const std::vector<std::string> flags = {"--prompt", "the old", "--samples", "3", "--seed"};
  const auto with = [&](const std::string& seed) {
    std::vector<std::string> all = flags;
    all.push_back(seed);
    return generate(all).out;
  };
  EXPECT_EQ(with("1"), with("1"));
  EXPECT_NE(with("1"), with("2"));
  // A temperature next to nothing leaves the likeliest token alone.
  EXPECT_EQ(generate({"--prompt", "the old", "--temperature", "0.001"}).out,
            generate({"--prompt", "the old"}).out);
  EXPECT_EQ(generate({"--prompt", "the old", "--top-k", "1"}).out,
            generate({"--prompt", "the old"}).out);
}

TEST_F(GenerateCommand, top_gives_the_likeliest_tokens_and_the_first_is_the_next_one) {
  const Json next = objects({"--prompt", kPrompts[2], "--max-new-tokens", "1"})[0];
  const Json found = objects({"--prompt", kPrompts[2], "--top", "5"})[0];
  ASSERT_EQ(next.at("ids").size(), 1u);  // no end
  const Json::Array& top = found.at("top").as_array();
  ASSERT_EQ(top.size(), 5u);
  EXPECT_EQ(top[0].get_int("id"), next.at("ids").as_ints()[0]);
  EXPECT_NEAR(top[0].get_double("log_prob"), next.get_double("log_prob"), 1e-6);
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_LE(top[i].get_double("probability"), top[i - 1].get_double("probability"));
  }
  EXPECT_EQ(top[0].get_string("token"),
            shared_tokenizer().token(static_cast<int32_t>(top[0].get_int("id"))));
  std::string text = top[0].get_string("token");
  if (text.starts_with("▁")) text.replace(0, 3, " ");
  EXPECT_EQ(top[0].get_string("text"), text);
  const std::string table = generate({"--prompt", kPrompts[2], "--top", "5"}).out;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 6);
  double sum = 0;
  const Json all = objects({"--prompt", "x", "--top", "312"})[0];
  for (const Json& row : all.at("top").as_array()) {
    sum += row.get_double("probability");
  }
  EXPECT_NEAR(sum, 1, 1e-4);
}

TEST_F(GenerateCommand, generation_config_gives_what_no_flag_does) {
  const TempDir folder;
  const std::string other = (folder / "model").string();
  write_language_model(other,
                       R"({"max_new_tokens": 5, "min_new_tokens": 5, "no_repeat_ngram_size": 1,
                                  "eos_token_id": 3})");
  const CliResult result = run_heddle({"generate", other, "--prompt", "the old", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<int64_t> ids = Json::parse(result.out).at("ids").as_ints();
  EXPECT_EQ(ids.size(), 5u);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  const Json flags = objects({"--prompt", "the old", "--max-new-tokens", "5", "--min-new-tokens",
                              "5", "--no-repeat-ngram", "1"})[0];
  EXPECT_EQ(flags.get_string("finish_reason"), "length");
}

// As transformers has it: lengths count the prompt, and only where no flag says more.
TEST_F(GenerateCommand, lengths_and_beam_of_generation_config_are_the_defaults_of_flags) {
  const TempDir folder;
  const std::string other = (folder / "model").string();
  const auto with = [&](const std::string& config, std::vector<std::string> flags) {
    write_language_model(other, config);
    flags.insert(flags.begin(), {"generate", other, "--ids", "20,30,40", "--json"});
    const CliResult result = run_heddle(flags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  };
  EXPECT_EQ(with(R"({"max_length": 12})", {}).at("ids").size(), 9u);
  EXPECT_EQ(with(R"({"max_length": 2})", {}).at("ids").size(), 1u);
  EXPECT_EQ(with(R"({"max_length": 12, "max_new_tokens": 4})", {}).at("ids").size(), 4u);
  const std::vector<int64_t> ids =
      with(R"({"max_length": 12})", {"--max-new-tokens", "11"}).at("ids").as_ints();
  EXPECT_EQ(ids.size(), 11u);
  // The first token ends the text, unless it must be longer.
  const std::string end = fmt::format(R"("max_new_tokens": 20, "eos_token_id": {})", ids[0]);
  EXPECT_EQ(with("{" + end + "}", {}).at("ids").size(), 0u);
  EXPECT_GE(with("{" + end + R"(, "min_length": 8})", {}).at("ids").size(), 5u);
  EXPECT_EQ(with("{" + end + R"(, "min_length": 8})", {"--min-new-tokens", "0"}).at("ids").size(),
            0u);
  const Json beam = with(R"({"num_beams": 3, "max_new_tokens": 6})", {});
  EXPECT_EQ(beam, with(R"({"max_new_tokens": 6})", {"--beam", "3"}));
  EXPECT_TRUE(beam.contains("score"));
  EXPECT_FALSE(with(R"({"num_beams": 3, "max_new_tokens": 6})", {"--beam", "1"}).contains("score"));
  EXPECT_EQ(with(R"({"num_beams": 3, "max_new_tokens": 6})", {"--seed", "4"}),
            with(R"({"max_new_tokens": 6})", {"--seed", "4"}));
}

TEST_F(GenerateCommand, empty_prompt_begins_with_bos_or_eos_or_is_an_error) {
  EXPECT_EQ(objects({"--prompt", ""})[0].at("ids"), objects({"--ids", "3"})[0].at("ids"));
  const TempDir folder;
  const std::string bos = (folder / "bos").string(), none = (folder / "none").string();
  write_language_model(bos, R"({"bos_token_id": 7, "eos_token_id": 3})");
  write_language_model(none, "{}");
  const auto ids = [](const CliResult& result) { return Json::parse(result.out).at("ids"); };
  EXPECT_EQ(ids(run_heddle({"generate", bos, "--prompt", "", "--json"})),
            ids(run_heddle({"generate", bos, "--ids", "7", "--json"})));
  const CliResult refused = run_heddle({"generate", none, "--prompt", ""});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_NE(refused.err.find("prompt 1 is empty"), std::string::npos) << refused.err;
}

TEST_F(GenerateCommand, temperature_of_nought_is_greedy) {
  for (const std::string& prompt : kPrompts) {
    const Json greedy = objects({"--prompt", prompt})[0];
    const Json cold = objects({"--prompt", prompt, "--temperature", "0", "--seed", "7"})[0];
    EXPECT_EQ(cold.at("ids"), greedy.at("ids"));
  }
  EXPECT_EQ(generate({"--prompt", "the", "--temperature", "0", "--repetition-penalty", "1.5"}).out,
            generate({"--prompt", "the", "--repetition-penalty", "1.5"}).out);
}

TEST_F(GenerateCommand, speculation_changes_no_text_and_counts_its_drafts) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{},
                                             {"--seed", "3"},
                                             {"--samples", "2"},
                                             {"--repetition-penalty", "1.2"},
                                             {"--min-new-tokens", "60"},
                                             {"--context", "12", "--truncate"},
                                             {"--no-slide"},
                                             {"--stop", "e"}}) {
    std::vector<std::string> drafting = flags;
    drafting.insert(drafting.end(), {"--speculate", "6"});
    const std::string prompts = lines_of(kPrompts);
    const CliResult plain = generate(flags, prompts), drafted = generate(drafting, prompts);
    EXPECT_EQ(drafted.out, plain.out);
    EXPECT_EQ(plain.err.find("drafted"), std::string::npos);
    EXPECT_NE(drafted.err.find("generate: "), std::string::npos);
    EXPECT_NE(drafted.err.find(" accepted ("), std::string::npos) << drafted.err;
  }
  const Json counted = objects({"--prompt", "the the the", "--speculate", "6"})[0];
  EXPECT_GT(counted.get_int("drafted_tokens"), 0);
  EXPECT_LE(counted.get_int("accepted_tokens"), counted.get_int("drafted_tokens"));
  EXPECT_EQ(objects({"--prompt", "the"})[0].find("drafted_tokens"), nullptr);
}

TEST_F(GenerateCommand, bare_stack_with_a_tied_output_generates_too) {
  const TempDir folder;
  const std::string bare = (folder / "bare").string();
  write_language_model(bare);
  Json config = Json::load(bare + "/config.json");
  config["architectures"] = std::vector<std::string>{"GPT2Model"};
  write_file(bare + "/config.json", config.dump());
  EXPECT_EQ(run_heddle({"generate", bare, "--prompt", "the old"}).out,
            generate({"--prompt", "the old"}).out);
}

TEST_F(GenerateCommand, model_without_tokenizer_goes_on_from_ids) {
  const TempDir folder;
  const std::string bare = (folder / "bare").string();
  write_language_model(bare, "{}", false);
  std::vector<std::string> flags = {"generate", bare, "--ids", "5,6", "--max-new-tokens", "4"};
  const CliResult result = run_heddle(flags);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), ' '), 3);
  flags.push_back("--echo");
  EXPECT_EQ(run_heddle(flags).out, "5 6 " + result.out);
  EXPECT_EQ(run_heddle({"generate", bare, "--prompt", "the"}).exit_code, 2);
  EXPECT_EQ(run_heddle({"generate", bare, "--ids", "5", "--stop", "x"}).exit_code, 2);
}

TEST_F(GenerateCommand, bad_flags_and_input_are_refused_with_their_names) {
  refused(2, "--beam is 0", {"--beam", "0", "--prompt", "x"});
  refused(2, "--max-new-tokens is 0", {"--max-new-tokens", "0", "--prompt", "x"});
  refused(2, "--temperature is -1", {"--temperature", "-1", "--prompt", "x"});
  refused(2, "--context is 41", {"--context", "41", "--prompt", "x"});
  refused(2, "--top-p is 2", {"--top-p", "2", "--prompt", "x"});
  refused(2, "--sample", {"--beam", "2", "--top-k", "3", "--prompt", "x"});
  refused(2, "--n-best and --samples", {"--n-best", "2", "--samples", "3", "--prompt", "x"});
  refused(2, "--samples 2 draws", {"--n-best", "2", "--sample", "--prompt", "x"});
  refused(2, "from 1 to 4096", {"--n-best", "0", "--prompt", "x"});
  refused(2, "from 1 to 4096", {"--samples", "-1", "--prompt", "x"});
  refused(2, "finite number", {"--length-penalty", "nan", "--beam", "2", "--prompt", "x"});
  refused(2, "exclude", {"--prompt", "x", "--ids", "3"});
  refused(2, "--ids: 312", {"--ids", "312"});
  refused(2, "--min-new-tokens is 9",
          {"--min-new-tokens", "9", "--max-new-tokens", "3", "--prompt", "x"});
  refused(2, "--no-repeat-ngram is -1", {"--no-repeat-ngram", "-1", "--prompt", "x"});
  refused(2, "--speculate is -1", {"--speculate", "-1", "--prompt", "x"});
  refused(2, "--speculate is 1025", {"--speculate", "1025", "--prompt", "x"});
  refused(2, "--speculate is 4 but --beam 2", {"--speculate", "4", "--beam", "2", "--prompt", "x"});
  refused(2, "--speculate", {"--speculate", "x", "--prompt", "x"});
  refused(2, "--top is -1", {"--top", "-1", "--prompt", "x"});
  refused(2, "--stop: not UTF-8", {"--stop", "\xc3", "--prompt", "x"});
  refused(3, "line 1: not UTF-8", {}, "\xff\n");
  refused(3, "No such file", {"--prompts", "/no/such/file"});
  EXPECT_EQ(generate({}, "").exit_code, 0);
  EXPECT_EQ(run_heddle({"generate", "/no/such/model", "--prompt", "x"}).exit_code, 3);
}

TEST_F(GenerateCommand, steps_are_a_page_beside_the_same_text) {
  const TempDir folder;
  const std::string page = (folder / "page.html").string();
  const std::vector<std::string> flags = {"--prompt", "the old", "--max-new-tokens",
                                          "6",        "--beam",  "3"};
  std::vector<std::string> with_page = flags;
  with_page.insert(with_page.end(), {"--page", page});
  const CliResult result = generate(with_page);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, generate(flags).out);
  EXPECT_NE(read_file(page).find("Decoding: the old"), std::string::npos);
  refused(2, "exactly one", {"--page", page}, "the\nold\n");
  refused(2, "--page excludes --json", {"--page", page, "--json", "--prompt", "x"});
  refused(3, "/no/such", {"--page", "/no/such/page.html", "--prompt", "x"});
}

// Sizes of the config are held against the file before anything of that size is made.
TEST_F(GenerateCommand, config_of_far_more_layers_is_refused_at_once) {
  const TempDir folder;
  const std::string model = (folder / "model").string(), config = model + "/config.json";
  write_language_model(model);
  Json json = Json::load(config);
  json["n_layer"] = 4'000;
  write_file(config, json.dump());
  const CliResult result = run_heddle({"generate", model, "--prompt", "the"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.err.find("config.json asks for"), std::string::npos) << result.err;
}

// A model of characters: a white space is named, and what comes after it continues nothing.
TEST_F(GenerateCommand, attention_of_characters_names_spaces_and_line_ends) {
  const TempDir folder;
  const std::string model = (folder / "model").string();
  write_language_model(model, "{}", false);
  character_tokenizer(std::vector<std::string>{"ab \n"}).save(model + "/tokenizer.json");
  const CliResult result = run_heddle({"attention", model, "--text", "ab a\nb", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const char* const tokens = R"x(["a", "+b", "(space)", "a", "(newline)", "b"])x";
  EXPECT_NE(result.out.find(tokens), std::string::npos) << result.out;
}

// é is C3 A9 and the zebra F0 9F A6 93, each byte a token: a word is what its tokens say together.
TEST_F(GenerateCommand, attention_of_bytes_has_the_words_of_the_text) {
  const TempDir folder;
  const std::string model = (folder / "model").string();
  write_language_model(model, "{}", false);
  write_file(model + "/tokenizer.json",
             R"({"model": {"type": "BPE", "merges": [], "vocab": {"a": 0, "b": 1, "Ġ": 2, "Ã": 3,
                 "©": 4, "ð": 5, "Ł": 6, "¦": 7, "ĵ": 8}},
                 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
                 "decoder": {"type": "ByteLevel"}})");
  const CliResult result = run_heddle(
      {"attention", model, "--text", "aé  🦓 b", "--from", "🦓", "--to", "aé", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json side = Json::parse(result.out).at("sides").as_array()[0];
  std::vector<std::string> words;
  for (const Json& word : side.at("words").as_array()) {
    words.push_back(word.as_array()[2].as_string());
  }
  EXPECT_EQ(words, (std::vector<std::string>{"aé", "(space)", "🦓", "b"}));
  EXPECT_EQ(
      side.at("tokens").dump(),
      R"x(["a", "+Ã", "+é", "(space)", "(space)", "ð", "+Ł", "+¦", "+🦓", "(space)", "b"])x");
}

// The tokenizer finds words; special tokens of others are words of their own.
TEST_F(GenerateCommand, attention_and_explanation_of_a_text_name_its_words) {
  const CliResult table =
      run_heddle({"attention", model(), "--text", "the old man reads two books!", "--from", "books",
                  "--to", "old"});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  const CliResult json =
      run_heddle({"attention", model(), "--text", "the old man reads two books!", "--json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  for (const char* word : {"books", "reads"}) {
    EXPECT_NE(json.out.find(word), std::string::npos) << word;
  }
  const CliResult explained = run_heddle({"explain", model(), "--text", "the old man"});
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_NE(explained.out.find("old"), std::string::npos);
  std::string text;
  for (int i = 0; i < 41; ++i) text += "the ";
  EXPECT_EQ(run_heddle({"attention", model(), "--text", text}).exit_code, 3);
  EXPECT_EQ(run_heddle({"attention", model(), "--text", text, "--truncate"}).exit_code, 0);
  EXPECT_EQ(run_heddle({"attention", model(), "--text", ""}).exit_code, 2);
}

TEST_F(GenerateCommand, rules_that_are_passed_over_are_named_and_those_that_do_nothing_are_not) {
  const TempDir folder;
  const std::string other = (folder / "model").string();
  write_language_model(other, R"({"guidance_scale": 1.5, "typical_p": 1.0, "sequence_bias": {},
                                  "stop_strings": null, "token_healing": false,
                                  "max_new_tokens": 3})");
  const CliResult result = run_heddle({"generate", other, "--prompt", "the old"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("'guidance_scale'"), std::string::npos) << result.err;
  for (const char* key : {"typical_p", "sequence_bias", "stop_strings", "token_healing"}) {
    EXPECT_EQ(result.err.find(key), std::string::npos) << result.err;
  }
  write_file(other + "/generation_config.json", R"({"token_healing": true, "max_new_tokens": 3})");
  const CliResult healed = run_heddle({"generate", other, "--prompt", "the old"});
  EXPECT_NE(healed.err.find("'token_healing'"), std::string::npos) << healed.err;
}

TEST_F(GenerateCommand, a_chat_goes_on_from_what_the_template_makes_of_its_messages) {
  const TempDir folder;
  const std::string chat = (folder / "model").string();
  write_language_model(chat);
  write_file(chat + "/chat_template.jinja",
             "{% for m in messages %}{{ bos_token }}{{ m.role[0] }}:{{ m.content }}{{ eos_token }}"
             "{% endfor %}{% if add_generation_prompt %}{{ bos_token }}a:{% endif %}");
  const Tokenizer& t = shared_tokenizer();
  std::string ids;
  const auto add = [&](const std::string& text) {
    ids += fmt::format("{},{},{},", t.bos_id(), fmt::join(t.encode(text), ","), t.eos_id());
  };
  add("s:be good"), add("u:the <s> dog");
  ids += fmt::format("{},{}", t.bos_id(), fmt::join(t.encode("a:"), ","));
  const CliResult wanted = run_heddle({"generate", chat, "--ids", ids});
  ASSERT_EQ(wanted.exit_code, 0) << wanted.err;
  const auto says = [&](const std::string& prompt, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"generate", chat, "--chat", "-p", prompt};
    all.insert(all.end(), more.begin(), more.end());
    const CliResult result = run_heddle(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(says("the <s> dog", {"--system", "be good"}), wanted.out);
  EXPECT_EQ(says(R"({"messages": [{"role": "system", "content": "be good"},
                     {"role": "user", "content": "the <s> dog"}]})"),
            wanted.out);
  EXPECT_EQ(says("the dog", {"--echo"}).find("<s>u:the dog</s><s>a:"), 0u);
  refused(3, "no chat template", {"--chat", "-p", "the dog"});
  refused(2, "--system", {"--system", "a", "-p", "the dog"});
  EXPECT_EQ(run_heddle({"generate", chat, "--chat", "-p", R"({"messages": [{}]})"}).exit_code, 3);
}

TEST_F(GenerateCommand, a_schema_is_kept_to_by_search_and_draws) {
  const TempDir folder;
  const std::string schema = (folder / "schema.json").string();
  write_file(schema, R"({"type": "array", "items": {"enum": [1, "a"]}, "minItems": 2})");
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {}, {"--beam", "3"}, {"--samples", "4", "--seed", "3"}, {"--temperature", "2"}}) {
    std::vector<std::string> all = flags;
    all.insert(all.end(), {"--prompt", "the", "--json-schema", schema, "--max-new-tokens", "12"});
    for (const Json& one : objects(all)) {
      const Json found = Json::parse(one.get_string("text"));
      EXPECT_GE(found.size(), 2u);
      for (const Json& item : found.as_array()) EXPECT_TRUE(item == Json(1) || item == Json("a"));
    }
  }
  write_file(schema, R"({"type": "string", "pattern": "a"})");
  refused(2, "pattern", {"--prompt", "the", "--json-schema", schema});
  write_file(schema, R"({"const": "far too long for so few tokens"})");
  refused(2, "--max-new-tokens",
          {"--prompt", "the", "--json-schema", schema, "--max-new-tokens", "5"});
}

TEST_F(GenerateCommand, translator_or_encoder_is_refused_by_its_kind) {
  const TempDir folder;
  const std::string translator = (folder / "translator").string();
  write_small_model(translator);
  const CliResult result = run_heddle({"generate", translator, "--prompt", "x"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("translator"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace heddle::testing
