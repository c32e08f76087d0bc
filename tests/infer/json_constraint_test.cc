// JSON that is asked for comes, whatever the model: texts of random tokens parse and fit the
// schema.
#include "heddle/infer/search/json_constraint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "heddle/infer/decoding/generate.h"
#include "heddle/infer/decoding/text_stream.h"
#include "heddle/infer/search/json_matcher.h"
#include "heddle/infer/search/json_tokens.h"
#include "heddle/infer/words.h"
#include "tests/base/temporary.h"
#include "tests/cli/language_model.h"
#include "tests/serve/schema.h"
#include "tests/text/small_tokenizers.h"

namespace heddle {
namespace {

using testing::SchemaCheck;
using testing::shared_tokenizer;

// Schemas that are asked for, the first of any object.
const std::vector<std::string>& schemas() {
  static const std::vector<std::string> all = {
      R"({"type": "object"})",
      R"({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
          "required": ["name", "age"], "additionalProperties": false})",
      R"({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "boolean"},
          "c": {"type": "null"}, "d\"\u00e9": {"type": "string", "maxLength": 5}},
          "additionalProperties": false})",
      R"({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 4})",
      R"({"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}})",
      R"({"enum": ["red", "green", 3, null, {"a": [1]}]})",
      R"({"const": "exactly this"})",
      R"({"anyOf": [{"type": "integer"}, {"type": "string", "minLength": 3, "maxLength": 4}]})",
      R"({"type": ["string", "null"]})",
      R"({"type": "number"})",
      R"({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "null"}}})",
      R"({"type": "object", "properties": {"kind": {"enum": ["leaf", "tree"]},
          "of": {"anyOf": [{"type": "object", "properties": {"x": {"type": "integer"}},
                            "required": ["x"], "additionalProperties": false},
                           {"type": "array", "items": {"const": 0}, "maxItems": 3}]}},
          "required": ["of"], "additionalProperties": false})",
      R"(true)"};
  return all;
}

// A text of tokens that are drawn evenly of those that may come: hostile, as it never means to end.
std::string random_text(TokenConstraint& constraint, int64_t most, uint32_t seed,
                        std::vector<int32_t>& ids) {
  std::mt19937 random(seed);
  const Tokenizer& tokenizer = shared_tokenizer();
  std::string text;
  while (std::ssize(ids) < most && !constraint.is_over(ids)) {
    const TokenSet set = constraint.allowed(ids, most - std::ssize(ids));
    std::vector<int32_t> some;
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      if (set.contains(id)) some.push_back(id);
    }
    if (some.empty()) {
      ADD_FAILURE() << "nothing may come behind " << text;
      return text;
    }
    const int32_t id = some[random() % some.size()];
    if (id == tokenizer.eos_id()) break;
    ids.push_back(id);
    text += token_bytes(tokenizer, id);
  }
  return text;
}

TEST(JsonConstraint, texts_of_random_tokens_parse_and_fit_however_short_they_must_be) {
  const Tokenizer& tokenizer = shared_tokenizer();
  int64_t texts = 0;
  for (const std::string& schema : schemas()) {
    const Json wanted = Json::parse(schema);
    const auto constraint =
        make_json_constraint(wanted, tokenizer, tokenizer.vocab_size(), {tokenizer.eos_id()});
    for (const int64_t more : {0, 1, 2, 5, 20, 100}) {
      for (uint32_t seed = 0; seed < 20; ++seed, ++texts) {
        std::vector<int32_t> ids;
        const std::string text =
            random_text(*constraint, constraint->least_tokens() + more, seed, ids);
        try {
          EXPECT_EQ(SchemaCheck(wanted).fault(wanted, Json::parse(text)), "") << text;
        } catch (const Error& error) {
          ADD_FAILURE() << schema << "\n" << text << "\n" << error.what();
        }
      }
    }
  }
  EXPECT_EQ(texts, 1560);
}

// Reads a text as a model would have written it. returns: the most that the constraint took
// meanwhile
int64_t most_bytes(TokenConstraint& constraint, const std::string& text) {
  const std::vector<int32_t> ids = shared_tokenizer().encode(text);
  int64_t most = 0;
  for (size_t n = 0; n <= ids.size(); ++n) {
    const std::span<const int32_t> so_far(ids.data(), n);
    if (constraint.is_over(so_far)) break;
    const TokenSet set = constraint.allowed(so_far, 2000);
    EXPECT_TRUE(n == ids.size() || set.contains(ids[n])) << text << " token " << n;
    most = std::max(most, constraint.size());
  }
  return most;
}

// Of a vocabulary of 151,643 tokens, the places of which are told apart by few of them.
TEST(JsonConstraint, what_is_known_of_places_takes_little_memory_however_large_the_vocabulary) {
  const Tokenizer& tokenizer = shared_tokenizer();
  const Json schema = Json::parse(
      R"({"type": "object", "properties": {"events": {"type": "array", "items": {"type": "object",
          "properties": {"title": {"type": "string"}, "date": {"type": "string", "maxLength": 20},
                         "kind": {"enum": ["meeting", "holiday"]}, "seats": {"type": "integer"}},
          "required": ["title", "kind"], "additionalProperties": false}}},
          "required": ["events"], "additionalProperties": false})");
  std::string text = R"({"events": [)";
  for (int i = 0; i < 8; ++i) {
    text += std::string(i > 0 ? ", " : "") + R"({"title": "dogs and birds", "date": "2026-11-)" +
            std::to_string(10 + i) + R"(", "kind": "holiday", "seats": )" + std::to_string(i * 37) +
            "}";
  }
  const auto constraint = make_json_constraint(schema, tokenizer, 151'643, {tokenizer.eos_id()});
  const int64_t of_nothing = constraint->size();
  EXPECT_LT(most_bytes(*constraint, text + "]}"), 500'000);
  // Another one of the same schema has it from the first.
  const auto again = make_json_constraint(schema, tokenizer, 151'643, {tokenizer.eos_id()});
  EXPECT_GT(again->size(), 4 * of_nothing);
}

TEST(JsonConstraint, memory_is_bounded_where_every_character_is_a_place_of_its_own) {
  const Tokenizer& tokenizer = shared_tokenizer();
  const Json schema = Json::parse(
      R"({"type": "object", "additionalProperties": {"anyOf": [{"type": "string", "maxLength": 900},
          {"enum": ["aaaaaaaa", "bbbbbbbb"]}, {"type": "array", "items": {"type": "string"}}]}})");
  std::string text = "{";
  for (int i = 0; i < 30; ++i) {
    text += (i > 0 ? ", \"key number " : "\"key number ") + std::to_string(i) + "\": \"" +
            std::string(static_cast<size_t>(20 + 10 * i), 'a') + "\"";
  }
  const auto constraint =
      make_json_constraint(schema, tokenizer, tokenizer.vocab_size(), {tokenizer.eos_id()});
  EXPECT_LT(most_bytes(*constraint, text + "}"), 2 << 20);
}

// The texts of an enumeration are the longest tokens, so that of no shorter length most may come.
TEST(JsonConstraint, what_may_not_come_may_not_however_much_is_left) {
  const Tokenizer& tokenizer = shared_tokenizer();
  size_t longest = 0;
  Json schema;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string bytes = tokenizer.is_special(id) ? "" : token_bytes(tokenizer, id);
    const bool is_word =
        std::ranges::all_of(bytes, [](char c) { return c == ' ' || (c >= 'a' && c <= 'z'); });
    if (bytes.empty() || !is_word || bytes.size() < longest) continue;
    if (bytes.size() > longest) schema = Json::object({{"enum", Json::array()}});
    longest = bytes.size();
    schema["enum"].push_back(bytes);
  }
  ASSERT_GT(longest, 3);
  const auto constraint =
      make_json_constraint(schema, tokenizer, tokenizer.vocab_size(), {tokenizer.eos_id()});
  const JsonGrammar grammar = json_grammar(schema);
  const std::string quote = "\"";
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.is_special(id) && token_bytes(tokenizer, id) == quote) ids = {id};
  }
  ASSERT_EQ(ids.size(), 1);
  for (const int64_t left : {int64_t{100}, int64_t{65535}, int64_t{65536}, int64_t{1} << 20}) {
    const TokenSet set = constraint->allowed(ids, left);
    int64_t count = 0;
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      JsonMatcher matcher(grammar);
      const bool is_text = !tokenizer.is_special(id) && id != tokenizer.unk_id();
      const std::string bytes = is_text ? token_bytes(tokenizer, id) : "";
      const bool may_come = !bytes.empty() && matcher.read(quote + bytes);
      EXPECT_EQ(set.contains(id), may_come) << left << " " << bytes;
      count += may_come ? 1 : 0;
    }
    EXPECT_GT(count, 1);
    EXPECT_LT(count, tokenizer.vocab_size() / 4);
  }
}

TEST(JsonConstraint, requests_of_a_schema_have_one_grammar_while_anybody_has_it) {
  const Tokenizer& tokenizer = shared_tokenizer();
  const std::vector<int32_t> ends = {tokenizer.eos_id()};
  const auto tokens_of = [&](int i) {
    const Json schema = Json::parse(fmt::format(R"({{"const": "one of many, number {}"}})", i));
    return JsonTokens::of(schema, tokenizer, tokenizer.vocab_size(), ends);
  };
  // All at once.
  std::vector<std::shared_ptr<JsonTokens>> found(8);
  std::vector<std::thread> threads;
  for (auto& one : found) threads.emplace_back([&] { one = tokens_of(0); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : found) EXPECT_EQ(one, found[0]);
  // Far more have been asked for since.
  const std::weak_ptr<JsonTokens> dropped = tokens_of(1);
  for (int i = 2; i < 50; ++i) tokens_of(i);
  EXPECT_TRUE(dropped.expired());
  EXPECT_EQ(tokens_of(0), found[0]);
}

TEST(JsonConstraint, threads_that_look_for_the_same_places_find_what_one_alone_finds) {
  const Tokenizer& tokenizer = shared_tokenizer();
  const std::vector<int32_t> ends = {tokenizer.eos_id()};
  const Json schema = Json::parse(
      R"({"type": "object", "additionalProperties": {"type": "string", "maxLength": 60}})");
  const auto tokens = JsonTokens::of(schema, tokenizer, tokenizer.vocab_size(), ends);
  const auto alone = JsonTokens::of(schema, tokenizer, tokenizer.vocab_size() + 1, ends);
  ASSERT_NE(tokens, alone);
  const std::string_view text = R"({"a dog": "and a bird", "a cat": "alone"})";
  std::vector<TokenSet> expected;
  JsonMatcher matcher(alone->grammar());
  for (const char c : text) {
    expected.push_back(alone->allowed(matcher, 200));
    ASSERT_TRUE(matcher.read(static_cast<uint8_t>(c)));
  }
  std::atomic<int> differ = 0;
  const auto read = [&] {
    JsonMatcher own(tokens->grammar());
    for (size_t i = 0; i < text.size(); ++i) {
      const TokenSet set = tokens->allowed(own, 200);
      for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
        if (set.contains(id) != expected[i].contains(id)) ++differ;
      }
      own.read(static_cast<uint8_t>(text[i]));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(read);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(differ, 0);
  EXPECT_EQ(tokens->size(), alone->size());  // nothing was counted twice
}

TEST(JsonConstraint, a_model_of_random_weights_writes_what_fits_for_any_seed) {
  const testing::TempDir folder;
  testing::write_language_model((folder / "gpt").string());
  const LoadedModel model = load_prompt_model((folder / "gpt").string());
  int64_t cut = 0;
  const std::vector<std::vector<int32_t>> prompts = {prompt_ids(model, "the", "prompt", {}, cut),
                                                     prompt_ids(model, "a dog", "prompt", {}, cut)};
  for (const std::string& schema : schemas()) {
    const Json wanted = Json::parse(schema);
    for (int64_t seed = 0; seed < 4; ++seed) {
      GenerateOptions options{.search = *model.generation, .slides = false};
      options.search.max_new_tokens = 36;
      options.search.samples = seed > 0;
      options.search.n_best = seed > 0 ? 3 : 1;
      options.search.seed = seed;
      options.constraint =
          make_json_constraint(wanted, *model.tokenizer, model.tokens().vocab_size(), {3, 9});
      if (options.constraint->least_tokens() > 30) continue;
      for (const auto& found : generate_ids(model.tokens(), prompts, options)) {
        ASSERT_FALSE(found.empty());
        for (const Continuation& one : found) {
          TextStream text(*model.tokenizer, prompts[0]);
          text.read(one.ids);
          try {
            EXPECT_EQ(SchemaCheck(wanted).fault(wanted, Json::parse(text.text())), "")
                << text.text();
          } catch (const Error& error) {
            ADD_FAILURE() << schema << "\n" << text.text() << "\n" << error.what();
          }
        }
      }
    }
  }
}

TEST(JsonConstraint, what_is_not_read_of_schemas_is_refused_by_its_name) {
  const auto refuses = [](const char* schema, const std::vector<std::string>& words) {
    expect_error(ErrorKind::usage, words, [&] { json_grammar(Json::parse(schema)); });
  };
  refuses(R"({"type": "string", "pattern": "a+"})", {"pattern"});
  refuses(R"({"type": "object", "properties": {"a": {"type": "integer", "minimum": 2}}})",
          {"properties.a", "minimum"});
  refuses(R"({"oneOf": [{"type": "null"}]})", {"oneOf"});
  refuses(R"({"$ref": "#/$defs/none"})", {"none"});
  refuses(R"({"$ref": "https://example.com"})", {"$ref"});
  refuses(R"({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"})", {"itself"});
  std::string chain = R"({"$ref": "#/$defs/d0", "$defs": {)";  // each of ninety levels
  for (int i = 0; i < 8; ++i) {
    std::string one = fmt::format(R"({{"$ref": "#/$defs/d{}"}})", i + 1);
    for (int level = 0; level < 90; ++level) one = R"({"anyOf": [)" + one + "]}";
    chain += fmt::format(R"("d{}": {}, )", i, one);
  }
  refuses((chain + R"("d8": true}})").c_str(), {"too many others"});
  refuses(R"({"type": "thing"})", {"thing"});
  refuses(R"({"type": "object", "required": ["b"], "properties": {"a": {}}})",
          {"'required' names 'b', which 'properties' has not"});
  refuses(R"({"type": "array", "minItems": 3, "maxItems": 2})", {"no JSON text"});
  refuses(R"({"type": "string", "minLength": 3, "maxLength": 2})", {"no JSON text"});
  refuses(R"({"const": "abc", "enum": ["d"]})", {"no JSON text"});
  refuses(R"({"type": ["string", "null"], "enum": [3, true]})", {"no JSON text"});
  refuses(R"({"$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a", "maxLength": 2})",
          {"'maxLength'"});
  refuses(R"({"$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1}},
              "$ref": "#/$defs/a"})",
          {"no JSON text"});
  refuses(R"(false)", {"no JSON text"});
  refuses(R"(7)", {"object"});
  std::string words = R"({"enum": ["w)";
  for (int i = 0; i < 70'000; ++i) words += "\", \"w" + std::to_string(i);
  refuses((words + "\"]}").c_str(), {"too large", "65536 rules"});
}

TEST(JsonConstraint, values_of_an_enumeration_are_those_that_all_its_keywords_allow) {
  const auto expect_only = [](const char* schema, const std::vector<std::string>& wanted) {
    const JsonGrammar grammar = json_grammar(Json::parse(schema));
    for (const std::string text : {R"("a")", R"("b")", "null", "3", "[3]"}) {
      JsonMatcher matcher(grammar);
      const bool is_wanted = std::ranges::find(wanted, text) != wanted.end();
      EXPECT_EQ(matcher.read(text) && matcher.is_whole(), is_wanted) << schema << " " << text;
    }
  };
  expect_only(R"({"type": ["string", "null"], "enum": ["a", null, 3]})", {R"("a")", "null"});
  expect_only(R"({"type": ["array", "integer"], "enum": ["a", [3], 3]})", {"[3]", "3"});
  expect_only(R"({"const": "a", "enum": ["b", "a"], "title": "one"})", {R"("a")"});
  expect_only(R"({"$ref": "#/$defs/x", "description": "x", "$defs": {"x": {"const": 3}}})", {"3"});
}

TEST(JsonConstraint, an_array_without_an_end_stands_at_one_place_behind_each_element) {
  const JsonGrammar grammar =
      json_grammar(Json::parse(R"({"type": "array", "items": {"type": "null"}, "minItems": 2})"));
  JsonMatcher matcher(grammar);
  ASSERT_TRUE(matcher.read("[null, null"));
  const std::string first = matcher.identity();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(matcher.read(", null"));
    EXPECT_EQ(matcher.identity(), first);
  }
}

TEST(JsonConstraint, schemas_may_name_themselves) {
  const Json schema = Json::parse(
      R"({"$defs": {"node": {"type": "object", "properties": {"next": {"anyOf":
          [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["next"],
          "additionalProperties": false}}, "$ref": "#/$defs/node"})");
  const JsonGrammar grammar = json_grammar(schema);
  JsonMatcher matcher(grammar);
  EXPECT_TRUE(matcher.read(R"({"next": {"next":{"next": null)"));
  EXPECT_EQ(matcher.rest(), 3);
  EXPECT_FALSE(matcher.is_whole());
  EXPECT_TRUE(matcher.read("}}}"));
  EXPECT_TRUE(matcher.is_over());
  JsonMatcher other(grammar);
  EXPECT_FALSE(other.read(R"({"next": 7)"));
}

TEST(JsonConstraint, an_object_of_thousands_of_members_that_may_be_left_out_can_be_closed) {
  std::string schema = R"({"type": "object", "additionalProperties": false, "properties": {)";
  for (int i = 0; i < 3000; ++i) {
    schema += (i > 0 ? ", \"k" : "\"k") + std::to_string(i) + R"(": {"type": "null"})";
  }
  const JsonGrammar grammar = json_grammar(Json::parse(schema + "}}"));
  JsonMatcher matcher(grammar);
  EXPECT_TRUE(matcher.read("{"));
  EXPECT_EQ(matcher.rest(), 1);
  EXPECT_TRUE(matcher.read("}"));
  EXPECT_TRUE(matcher.is_over());
}

TEST(JsonConstraint, a_key_that_is_to_come_is_as_long_as_it_takes_to_differ) {
  const JsonGrammar grammar = json_grammar({});
  std::string text = R"({"": 1)";
  const auto expect_rest = [&](int64_t key) {
    JsonMatcher matcher(grammar);
    EXPECT_TRUE(matcher.read(text + ","));
    const int64_t behind = 3;  // a colon, a digit, a brace
    EXPECT_EQ(matcher.rest(), 1 + key + 1 + behind) << text;
    EXPECT_TRUE(matcher.read("\""));
    EXPECT_EQ(matcher.rest(), key + 1 + behind) << text;
  };
  expect_rest(1);
  for (char c = 0x20; c < 0x7F; ++c) {
    if (c != '"' && c != '\\') text += std::string(",\"") + c + "\": 1";
  }
  expect_rest(2);
}

TEST(JsonConstraint, keys_of_an_object_differ_and_strings_are_characters) {
  const JsonGrammar grammar = json_grammar({});
  const auto reads = [&](const std::string& text) {
    JsonMatcher matcher(grammar);
    return matcher.read(text) && matcher.is_whole();
  };
  EXPECT_TRUE(reads(R"({"a": 1, "b": {"a": [true, -0.5e-7, "é\n\u00e9"]}, "": {}})"));
  EXPECT_FALSE(reads(R"({"a": 1, "a": 2})"));
  EXPECT_FALSE(reads(R"({"a": "\ud800"})"));
  EXPECT_FALSE(reads("{\"a\": \"\xC3\"}"));
  EXPECT_FALSE(reads("{\"a\": \"\xED\xA0\x80\"}"));
  EXPECT_FALSE(reads(R"({"a": 01})"));
  EXPECT_FALSE(reads(R"([])"));
  EXPECT_FALSE(reads(R"({"a":  1})"));
}

}  // namespace
}  // namespace heddle
