// JSON: what is refused and where, typed access, writing that reads back.
#include "heddle/base/json/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "heddle/base/error.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

TEST(Json, members_keep_their_order_and_types) {
  const Json json = Json::parse(R"({"b": 1, "a": [true, null, -2.5, "x"], "c": {"d": 1e3}})");
  ASSERT_EQ(json.as_object().size(), 3u);
  EXPECT_EQ(json.as_object()[0].first, "b");
  EXPECT_EQ(json.as_object()[1].first, "a");
  EXPECT_TRUE(json.at("b").is_int());
  const Json::Array& a = json.at("a").as_array();
  EXPECT_TRUE(a[0].as_bool());
  EXPECT_TRUE(a[1].is_null());
  EXPECT_EQ(a[2].as_double(), -2.5);
  EXPECT_EQ(a[3].as_string(), "x");
  EXPECT_FALSE(json.at("c").at("d").is_int());
  EXPECT_EQ(json.at("c").get_int("d"), 1000);
}

TEST(Json, broken_text_is_a_data_error_with_file_line_and_column) {
  expect_error(ErrorKind::data, {"c.json: not valid JSON at line 3, column 6"},
               [] { Json::parse("{\n \"a\": 1,\n \"b\" 2}", "c.json"); });
  expect_error(ErrorKind::data, {"c.json", "empty"}, [] { Json::parse("", "c.json"); });
  for (const char* text : {"{", "[1,]", "{} x", "NaN", "[Infinity]", "1e999", "'a'", "\"\xff\"",
                           "// c\n1", "01", "\"\n\"", "nul", "[1 2]", "{1:2}", "\"\\ud800\""}) {
    expect_error(ErrorKind::data, {"c.json: not valid JSON at line "},
                 [&] { Json::parse(text, "c.json"); });
  }
}

TEST(Json, number_beyond_doubles_is_said_in_plain_words) {
  try {
    Json::parse("[1e999]", "c.json");
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "c.json: not valid JSON at line 1, column 6: number overflow parsing '1e999'");
  }
}

TEST(Json, repeated_key_is_a_data_error_that_names_it) {
  expect_error(ErrorKind::data, {"c.json", "'k' appears twice", "in 'a[1].b'"},
               [] { Json::parse(R"({"a": [0, {"b": {"k": 1, "k": 2}}]})", "c.json"); });
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += fmt::format("\"k{}\": 1, ", i);
  expect_error(ErrorKind::data, {"'k7' appears twice"}, [&] { Json::parse(many + "\"k7\": 1}"); });
}

TEST(Json, two_hundred_levels_are_read_and_more_refused) {
  const auto nested = [](size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_EQ(Json::parse(nested(200)).size(), 1u);
  expect_error(ErrorKind::data, {"200 levels"}, [&] { Json::parse(nested(201)); });
  expect_error(ErrorKind::data, {"200 levels"}, [&] { Json::parse(std::string(1'000'000, '[')); });
}

TEST(Json, values_that_take_many_times_the_text_are_a_data_error) {
  std::string zeros = "[0";
  for (int i = 0; i < 800'000; ++i) zeros += ",0";
  expect_error(ErrorKind::data, {"c.json", "bytes of memory", "hostile"},
               [&] { Json::parse(zeros + "]", "c.json"); });
  std::string merges = "[[\"a\",\"b\"]";
  for (int i = 0; i < 260'000; ++i) merges += ",[\"\u0120the\",\"re\"]";
  EXPECT_EQ(Json::parse(merges + "]").size(), 260'001u);
}

TEST(Json, a_file_of_more_than_256_mebibytes_is_refused_before_it_is_read) {
  TemporaryFolder folder;
  const std::string path = folder.write("c.json", "{}");
  std::filesystem::resize_file(path, (uint64_t{256} << 20) + 1);  // a hole, which takes no room
  expect_error(ErrorKind::data, {path, "too many"}, [&] { Json::load(path); });
}

TEST(Json, wrong_type_names_file_key_and_what_was_seen) {
  const Json json = Json::parse(R"({"n": "12", "x": 1.5, "big": 9223372036854775808})");
  expect_error(ErrorKind::data, {"c.json: key 'n' is the string \"12\"; an integer"},
               [&] { json.get_int("n", "c.json"); });
  expect_error(ErrorKind::data, {"key 'x' is the number 1.5; an integer"},
               [&] { json.get_int("x"); });
  expect_error(ErrorKind::data, {"an integer"}, [&] { json.get_int("big"); });
  expect_error(ErrorKind::data, {"key 'y' is missing"}, [&] { json.get_bool("y"); });
  expect_error(ErrorKind::data, {"c.json is an array of 1 element; an object is needed"},
               [&] { Json::parse("[1]").at("a", "c.json"); });
}

TEST(Json, doubles_of_any_bits_read_back_equal) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const Json back = Json::parse(Json(value).dump());
    ASSERT_EQ(std::bit_cast<uint64_t>(back.as_double()), std::bit_cast<uint64_t>(value));
    ASSERT_FALSE(back.is_int());
  }
  EXPECT_EQ(Json(1.0).dump(), "1.0");
  EXPECT_EQ(Json(0.1).dump(), "0.1");
  EXPECT_EQ(Json(-0.0).dump(), "-0.0");
  EXPECT_EQ(Json(std::numeric_limits<int64_t>::min()).dump(), "-9223372036854775808");
}

TEST(Json, nan_cannot_be_written) {
  expect_error(ErrorKind::data, {"nan"}, [] { (void)Json(std::nan("")).dump(); });
}

TEST(Json, strings_of_any_bytes_are_written_as_valid_json) {
  for (const char* text : {"a\"b\\c\n\t\r\x01", "gr\xC3\xBC\xC3\x9F", "\xF0\x9F\x98\x80", ""}) {
    EXPECT_EQ(Json::parse(Json(text).dump()).as_string(), text);
  }
  EXPECT_EQ(Json::parse(Json("a\xFFz").dump()).as_string(), "a\xEF\xBF\xBDz");
  std::mt19937_64 random(2);
  for (int i = 0; i < 5'000; ++i) {
    std::string bytes(random() % 9, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 3 ? 0x80 + random() % 128 : random());
    EXPECT_NO_THROW(Json::parse(Json(bytes).dump())) << Json(bytes).dump();
  }
}

TEST(Json, dump_is_compact_or_indented) {
  Json json = Json::object();
  json["a"] = Json(std::vector<int64_t>{1, 2});
  json["b"]["c"] = "x";
  json["d"] = Json::array();
  EXPECT_EQ(json.dump(), R"({"a": [1, 2], "b": {"c": "x"}, "d": []})");
  EXPECT_EQ(json.dump(2),
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {\n    \"c\": \"x\"\n  },\n  \"d\": "
            "[]\n}");
  EXPECT_EQ(Json::parse(json.dump(2)), json);
}

TEST(Json, large_objects_find_change_and_erase_members) {
  Json json = Json::object();
  for (int i = 0; i < 50'000; ++i) json[fmt::format("token{}", i)] = i;
  EXPECT_EQ(json.get_int("token49999"), 49'999);
  json["token7"] = "seven";
  EXPECT_EQ(json.size(), 50'000u);
  EXPECT_TRUE(json.erase("token6"));
  EXPECT_FALSE(json.contains("token6"));
  EXPECT_EQ(json.get_string("token7"), "seven");
  EXPECT_EQ(json.as_object()[6].first, "token7");
}

TEST(Json, comparison_ignores_order_but_not_types) {
  EXPECT_EQ(Json::parse(R"({"a": 1, "b": [2]})"), Json::parse(R"({"b": [2], "a": 1})"));
  EXPECT_FALSE(Json::parse("1") == Json::parse("1.0"));
  EXPECT_FALSE(Json::parse("[1]") == Json::parse("[1, 2]"));
}

}  // namespace
}  // namespace heddle
