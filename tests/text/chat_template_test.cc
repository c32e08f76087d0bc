// Chat templates: what transformers renders, bounds, and names of special tokens in messages.
#include "heddle/text/chat/chat_template.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "heddle/base/error.h"
#include "heddle/text/chat/jinja_interpreter.h"
#include "tests/base/temporary.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

const std::vector<std::pair<std::string, std::string>> kSpecial = {
    {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}};
constexpr std::time_t kNow = 1773057600;  // 9 March 2026, noon in UTC

Json fixture(const std::string& name) {
  return Json::load(std::string(testing::kFixtures) + "/chat/" + name + ".json");
}

// What a rendering gives, or why not.
std::pair<std::string, std::string> rendered(const std::function<std::string()>& render) {
  try {
    return {render(), ""};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    return {"", error.what()};
  }
}

void expect_case(const Json& wanted, const std::function<std::string()>& render,
                 const std::string& where) {
  const auto [text, reason] = rendered(render);
  if (const Json* refused = wanted.find("refused")) {
    EXPECT_NE(reason, "") << where << ": " << refused->as_string() << ", but: " << text;
  } else {
    EXPECT_EQ(reason, "") << where;
    EXPECT_EQ(text, wanted.get_string("text")) << where;
  }
}

TEST(ChatTemplate, conversations_read_as_transformers_renders_them) {
  const Json templates = fixture("templates");
  int64_t cases = 0, refused = 0;
  for (const Json& one : templates.as_array()) {
    const ChatTemplate chat(one.get_string("template"), kSpecial, one.get_string("name"));
    for (const Json& wanted : one.at("cases").as_array()) {
      const ChatInput input{.messages = wanted.at("messages"),
                            .add_generation_prompt = wanted.get_bool("add_generation_prompt"),
                            .variables = wanted.at("variables"),
                            .now = kNow};
      expect_case(
          wanted, [&] { return chat.render(input); },
          one.get_string("name") + ": " + wanted.dump());
      ++cases;
      refused += wanted.contains("refused");
    }
  }
  EXPECT_EQ(cases, 330);
  EXPECT_GT(refused, 20);
}

TEST(ChatTemplate, each_part_of_the_language_does_what_jinja_does) {
  const Json language = fixture("language");
  std::vector<std::pair<std::string, JinjaValue>> values;
  for (const auto& [name, text] : kSpecial) values.emplace_back(name, text);
  for (const auto& [name, value] : language.at("values").as_object()) {
    values.emplace_back(name, JinjaValue::of_json(value));
  }
  for (const Json& wanted : language.at("cases").as_array()) {
    const std::string& source = wanted.get_string("template");
    expect_case(
        wanted, [&] { return render_jinja(*parse_jinja(source), {.variables = values}); }, source);
  }
}

std::string of_source(const std::string& source) {
  return ChatTemplate(source, kSpecial, "here")
      .render({.messages = Json::parse(R"([{"role": "user", "content": "a"}])")});
}

TEST(ChatTemplate, what_it_must_not_do_is_refused_with_its_line) {
  const auto refuses = [](const std::string& source, const std::vector<std::string>& parts) {
    expect_error(ErrorKind::data, parts, [&] { of_source(source); });
  };
  refuses("a\n{{ raise_exception('alternate!') }}", {"here", "line 2", "alternate!"});
  refuses("\n\n{% include 'x' %}", {"line 3", "'include'"});
  refuses("{{ ''.__class__.__mro__ }}", {"undefined"});
  refuses("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
          {"too many steps"});
  refuses("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", {"nests too deep"});
  refuses("{% set a = ['x' * 999999] * 1 %}", {"*"});
  refuses("{% set q = namespace(v=[]) %}{% for i in range(500) %}{% set q.v = [q.v] %}{% endfor %}",
          {"100 levels"});
  refuses("{% set q = namespace() %}{% set q.v = [q] %}", {"namespace"});
  refuses("{{ " + std::string(100'000, '[') + std::string(100'000, ']') + "}}", {"levels"});
  refuses("{{ 1" +
              [] {
                std::string all;
                for (int i = 0; i < 10'000; ++i) all += " + 1";
                return all;
              }() +
              " }}",
          {"levels"});
  refuses("{{ 9223372036854775807 + 1 }}", {"64 bits"});
  refuses(
      "{% set q = namespace() %}{% for i in [1] %}{% macro m() %}{{ i }}{% endmacro %}"
      "{% set q.m = m %}{% endfor %}{{ q.m() }}",
      {"macro m", "over"});
  refuses("{{ \"\xFF a b\" | wordcount }}", {"here", "not UTF-8"});
}

// What transformers 5.24 with jinja2 3.1.6 renders, Python 3.11 beneath.
using Rendered = std::vector<std::pair<std::string, std::string>>;

void expect_rendered(const Rendered& all) {
  const std::vector<std::pair<std::string, JinjaValue>> values = {
      {"x", JinjaValue::of_json(Json::parse("[3, 1, 2]"))},
      {"d", JinjaValue::of_json(Json::parse(R"({"k": 1, "b": {"z": [], "y": {}}, "é": "ü😀"})"))}};
  for (const auto& [source, wanted] : all) {
    const auto [text, reason] =
        rendered([&] { return render_jinja(*parse_jinja(source), {.variables = values}); });
    EXPECT_EQ(reason, "") << source;
    EXPECT_EQ(text, wanted) << source;
  }
}

TEST(ChatTemplate, tojson_takes_what_json_dumps_does) {
  expect_rendered(
      {{"{{ d|tojson(ensure_ascii=true) }}",
        R"({"k": 1, "b": {"z": [], "y": {}}, "\u00e9": "\u00fc\ud83d\ude00"})"},
       {"{{ '\x7F\n\\x01'|tojson(true) }}", R"("\u007f\n\u0001")"},
       {"{{ d|tojson(2) }}",
        R"({"k": 1, "b": {"z": [], "y": {}}, "\u00e9": "\u00fc\ud83d\ude00"})"},
       {"{{ d.b|tojson(false, 1) }}", "{\n \"z\": [],\n \"y\": {}\n}"},
       {"{{ d.b|tojson(indent='\\t') }}", "{\n\t\"z\": [],\n\t\"y\": {}\n}"},
       {"{{ d.b|tojson(indent=-1) }}", "{\n\"z\": [],\n\"y\": {}\n}"},
       {"{{ d.b|tojson(indent=none) }}", R"({"z": [], "y": {}})"},
       {"{{ d|tojson(separators=(',', ':')) }}", R"({"k":1,"b":{"z":[],"y":{}},"é":"ü😀"})"},
       {"{{ x|tojson(indent=1, separators=[', ', ':']) }}", "[\n 3, \n 1, \n 2\n]"},
       {"{{ d|tojson(sort_keys=true) }}", R"({"b": {"y": {}, "z": []}, "k": 1, "é": "ü😀"})"},
       {"{{ {2: 1, 1.5: 2, true: 3}|tojson(false, none, none, true) }}",
        R"({"true": 3, "1.5": 2, "2": 1})"}});
}

TEST(ChatTemplate, methods_of_texts_look_between_a_start_and_an_end) {
  expect_rendered({{"{{ 'abcabc'.find('c', 3) }}", "5"},
                   {"{{ 'abcabc'.find('c', -3, -1) }}", "-1"},
                   {"{{ 'abc'.find('b', none, 2) }}", "1"},
                   {"{{ 'äöüä'.find('ä', 1) }}", "3"},
                   {"{{ 'abc'.find('', 3) }}{{ 'abc'.find('', 4) }}", "3-1"},
                   {"{{ 'abcabc'.rfind('a', 0, 3) }}{{ 'abc'.rfind('', 1, 2) }}", "02"},
                   {"{{ 'abcabc'.index('a', 1) }}{{ 'abcabc'.count('b', 2) }}", "31"},
                   {"{{ 'abc'.count('', 1) }}{{ 'abc'.count('', 5) }}", "30"},
                   {"{{ 'abc'.startswith('b', 1) }}{{ 'abc'.endswith('b', 0, -1) }}", "TrueTrue"},
                   {"{{ 'abc'.startswith('', 4) }}", "False"}});
}

TEST(ChatTemplate, splitlines_ends_lines_where_python_does) {
  const std::string text = "'a\\nb\\r\\n\\rc\xE2\x80\xA8'";
  expect_rendered({{"{{ " + text + ".splitlines() }}", "['a', 'b', '', 'c']"},
                   {"{{ " + text + ".splitlines(true)|tojson }}",
                    "[\"a\\n\", \"b\\r\\n\", \"\\r\", \"c\xE2\x80\xA8\"]"},
                   {"{{ 'a\\nb'.splitlines(keepends=true) }}", "['a\\n', 'b']"},
                   {"{{ '\\n'.splitlines() }}{{ ''.splitlines() }}", "[''][]"}});
}

TEST(ChatTemplate, break_and_continue_act_on_the_loop_around_them) {
  const std::string at_1 = "{% if i == 1 %}{% break %}{% endif %}",
                    not_1 = "{% if i == 1 %}{% continue %}{% endif %}", each = "{% for i in x %}",
                    end = "{{ i }}{% endfor %}";
  expect_rendered(
      {{each + "{% set a %}q" + at_1 + "{% endset %}{{ a }}" + end, "q3"},
       {each + "{% set a %}q" + not_1 + "{% endset %}{{ a }}" + end, "q3q2"},
       {each + "{% set a | upper %}q" + not_1 + "{% endset %}{{ a }}" + end, "Q3Q2"},
       {each + "{% filter upper %}q" + at_1 + "{% endfilter %}" + end, "Q3"},
       {each + "{% for j in [] %}{% else %}" + at_1 + "e{% endfor %}" + end, "e3"},
       {each + "{% for j in [] %}{% else %}" + not_1 + "e{% endfor %}" + end, "e3e2"},
       {each + "{% for j in x %}{% set a %}" + at_1 + "{% endset %}{{ j }}{% endfor %}" + end,
        "312313122"}});
}

TEST(ChatTemplate, macros_see_what_is_around_their_definition) {
  expect_rendered(
      {{"{% for i in x %}{% macro m(a) %}{{ i }}{{ loop.index }}{{ a }}{% endmacro %}{{ m(9) }} "
        "{% endfor %}",
        "319 129 239 "},
       {"{% for i in x %}{% set y = i * 2 %}{% macro m(a=i) %}{{ y }}{{ a }}{% endmacro %}"
        "{{ m() }} {% endfor %}",
        "63 21 42 "},
       {"{% macro o(p) %}{% macro n() %}{{ p }}{% endmacro %}{{ n() }}{{ n() }}{% endmacro %}"
        "{{ o(4) }}",
        "44"},
       {"{% macro m() %}{{ i }}{% endmacro %}{% for i in x %}{{ m() }}.{% endfor %}", "..."}});
}

TEST(ChatTemplate, attr_gives_attributes_and_no_items) {
  expect_rendered({{"{{ d|attr('k') is defined }}{{ d.k }}{{ d['k'] }}", "False11"},
                   {"{{ (d|attr('keys'))()|list }}", "['k', 'b', 'é']"},
                   {"{{ namespace(a=1)|attr('a') }}", "1"},
                   {"{% for i in x %}{{ loop|attr('index') }}{% endfor %}", "123"}});
}

TEST(ChatTemplate, arguments_that_nobody_reads_are_refused_by_the_name_of_what_they_are_given) {
  const auto refuses = [](const std::string& value, const std::vector<std::string>& parts) {
    expect_error(ErrorKind::data, parts, [&] { of_source("{{ " + value + " }}"); });
  };
  refuses("[1]|tojson(foo=1)", {"tojson", "'foo'"});
  refuses("[1]|tojson(true, none, none, true, 1)", {"tojson", "4", "5"});
  refuses("[1]|tojson(true, ensure_ascii=true)", {"tojson", "'ensure_ascii' twice"});
  refuses("[1]|tojson(separators=(',',))", {"tojson", "separators"});
  refuses("{(1, 2): 3}|tojson", {"tojson", "list"});
  refuses("[1]|sort(revers=true)", {"sort", "'revers'"});
  refuses("[1]|first(1)", {"first", "0", "1"});
  refuses("'12'|int(0, 16)", {"int", "1", "2"});
  refuses("'12'|int(base=16)", {"int", "'base'"});
  refuses("[1]|select(foo=1)", {"select", "'foo'"});
  refuses("[{}]|map(attribute='a', b=1)", {"map", "'b'"});
  refuses("[1]|map('round', foo=1)", {"round", "'foo'"});
  refuses("'%s'|format(a=1)", {"format", "'a'"});
  refuses("'a'.find('a', 0, 1, 2)", {"find", "3", "4"});
  refuses("'a'.find('a', start=1)", {"find", "'start'"});
  refuses("'a b'.split(' ', 1, 2)", {"split", "2", "3"});
  refuses("'a'.upper(1)", {"upper"});
  refuses("{}.get('k', default=1)", {"get", "'default'"});
  refuses("{}.items(1)", {"items"});
  refuses("[1].count(1, 2)", {"count", "1", "2"});
  refuses("none|e(1)", {"e takes"});
  refuses("messages.index(1, 2, a=3)", {"index"});
  refuses("[1]|map('upper', 1)", {"upper"});
  refuses("1 is number(2)", {"the test number", "0", "1"});
  refuses("1 is eq(1, 2)", {"the test eq", "1", "2"});
  refuses("1 is eq(other=1)", {"the test eq", "'other'"});
  refuses("4 is divisibleby(by=2)", {"the test divisibleby", "'by'"});
  refuses("4 is divisibleby", {"'divisibleby' needs a value"});
  refuses("[4]|select('even', 1)", {"the test even"});
  refuses("range(0, 4, step=2)", {"range", "'step'"});
  refuses("range(0, 4, 2, 1)", {"range", "3", "4"});
  refuses("dict({}, {})", {"dict", "1", "2"});
  refuses("strftime_now('%Y', 1)", {"strftime_now", "1", "2"});
  refuses("raise_exception(text='no')", {"raise_exception", "'text'"});
  refuses("raise_exception(message='never this')", {"never this"});
}

TEST(ChatTemplate, messages_must_be_messages) {
  const ChatTemplate chat("{{ messages[0].content }}", kSpecial, "here");
  const auto refuses = [&](const char* messages, const std::vector<std::string>& parts) {
    expect_error(ErrorKind::data, parts, [&] { chat.render({.messages = Json::parse(messages)}); });
  };
  refuses("[]", {"messages"});
  refuses("[1]", {"[0]", "object"});
  refuses(R"([{"content": "a"}])", {"role"});
  refuses(R"([{"role": "user", "content": 1}])", {"content"});
  refuses(R"([{"role": "user", "content": [{"type": "image_url"}]}])", {"image_url", "text"});
}

TEST(ChatTemplate, a_folder_has_it_in_a_file_or_in_the_tokenizers_config) {
  const TemporaryFolder folder;
  const auto found = [&]() -> std::string {
    const auto chat = ChatTemplate::find(folder.path());
    return chat ? chat->render({.messages = Json::parse(R"([{"role": "u", "content": "a"}])")})
                : "none";
  };
  EXPECT_EQ(found(), "none");
  const auto write = [&](const char* name, const std::string& text) { folder.write(name, text); };
  write("tokenizer_config.json", R"({"eos_token": "<e>", "chat_template": "{{ eos_token }}1"})");
  EXPECT_EQ(found(), "<e>1");
  write(
      "tokenizer_config.json",
      R"({"eos_token": {"content": "<e>"}, "chat_template": [{"name": "tool_use", "template": "x"},
            {"name": "default", "template": "{{ eos_token }}2"}]})");
  EXPECT_EQ(found(), "<e>2");
  write("chat_template.jinja", "{{ messages[0]['content'] }}3\n");
  EXPECT_EQ(found(), "a3");
  write("chat_template.jinja", "{{ oh");
  expect_error(ErrorKind::data, {"chat_template.jinja", "line 1"}, found);
}

// A tokenizer that takes small letters for capital ones, and looks for its special token behind
// that.
Tokenizer lower_case_tokenizer(const TemporaryFolder& folder) {
  folder.write("tokenizer.json", R"({"version": "1.0", "normalizer": {"type": "Lowercase"},
      "added_tokens": [{"id": 3, "content": "<|END|>", "special": true, "normalized": true,
                        "single_word": false, "lstrip": false, "rstrip": false},
                       {"id": 4, "content": "<Call>", "special": false, "normalized": true,
                        "single_word": false, "lstrip": false, "rstrip": false}],
      "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
      "model": {"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": {"?": 0, "a": 1, "b": 2}}})");
  return Tokenizer::load(folder.path() + "/tokenizer.json");
}

TEST(ChatTemplate, what_normalizing_makes_a_special_token_of_stays_text_in_a_message) {
  const TemporaryFolder folder;
  const Tokenizer tokenizer = lower_case_tokenizer(folder);
  EXPECT_EQ(tokenizer.encode("a<|EnD|>")[1], 3);
  const ChatTemplate chat("{{ messages[0].content }}<|END|>", kSpecial, "here");
  for (const std::string content :
       {"a", "<|END|>", "<|end|>", "a <|eNd|> b", "<|EN", "<|en<|END|>", "a <CALL> b<|End|>"}) {
    const Json messages = Json(Json::Array{Json::object({{"role", "user"}, {"content", content}})});
    const std::vector<int32_t> ids = chat.encode(tokenizer, {.messages = messages});
    EXPECT_EQ(std::ranges::count(ids, 3), 1) << content;
    EXPECT_EQ(ids.back(), 3) << content;
    EXPECT_EQ(std::ranges::count(ids, 4), content.find("CALL") == content.npos ? 0 : 1) << content;
  }
}

}  // namespace
}  // namespace heddle
