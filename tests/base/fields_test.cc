// Config structs: JSON in and out, flags, rules, messages, comparison.
#include "heddle/base/json/fields.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

struct Inner {
  double rate = 0.5;
  template <class V>
  void fields(V& v) {
    v("learning_rate", rate, "step size", above(0));
  }
};

struct Config {
  int64_t layers = 12;
  double dropout = 0.1;
  bool is_tied = true;
  std::string activation = "gelu";
  std::optional<int64_t> inner_width;
  std::vector<int64_t> depths = {2, 2};
  Inner inner;
  template <class V>
  void fields(V& v) {
    v("n_layer", layers, "number of blocks", at_least(1));
    v("resid_pdrop", dropout, "dropout", from_below(0, 1));
    v("tie_word_embeddings", is_tied, "share the embedding");
    v("activation_function", activation, "of the MLP", one_of({"relu", "gelu"}));
    v("n_inner", inner_width, "width of the MLP");
    v("depths", depths, "blocks a stage", at_least(1));
    inner.fields(v);
  }
};

TEST(Fields, written_json_reads_back_equal) {
  Config config;
  config.layers = 3;
  config.dropout = 1.0 / 3.0;
  config.is_tied = false;
  config.inner_width = 7;
  config.depths = {1, 18, 1};
  config.inner.rate = 3e-4;
  Config back;
  EXPECT_TRUE(from_json(back, Json::parse(to_json(config).dump()), "c.json").empty());
  EXPECT_TRUE(diff_fields(config, back).empty());
  EXPECT_EQ(back.depths, config.depths);
}

TEST(Fields, missing_keys_keep_defaults_and_unknown_keys_are_returned) {
  Config config;
  const Json json = Json::parse(R"({"n_layer": 2, "n_innr": 4, "n_inner": null, "x": 1})");
  EXPECT_EQ(from_json(config, json, "c.json"), (std::vector<std::string>{"n_innr", "x"}));
  EXPECT_EQ(config.layers, 2);
  EXPECT_EQ(config.activation, "gelu");
  EXPECT_FALSE(config.inner_width.has_value());
}

TEST(Fields, wrong_json_names_file_key_value_and_need) {
  const auto read = [](const char* text) {
    Config config;
    (void)from_json(config, Json::parse(text), "c.json");
  };
  expect_error(ErrorKind::data, {"c.json: key 'n_layer' is the string \"2\"; an integer"},
               [&] { read(R"({"n_layer": "2"})"); });
  expect_error(ErrorKind::data, {"c.json: key 'n_layer' is the number 0; it must be at least 1"},
               [&] { read(R"({"n_layer": 0})"); });
  expect_error(ErrorKind::data, {"'resid_pdrop'", "at least 0 and below 1"},
               [&] { read(R"({"resid_pdrop": 1})"); });
  expect_error(ErrorKind::data, {"\"glu\"", "one of relu, gelu", "did you mean 'gelu'"},
               [&] { read(R"({"activation_function": "glu"})"); });
  expect_error(ErrorKind::data, {"'depths'[1] is true"}, [&] { read(R"({"depths": [1, true]})"); });
  expect_error(ErrorKind::data, {"'depths'", "each must be at least 1"},
               [&] { read(R"({"depths": [1, 0]})"); });
  expect_error(ErrorKind::data, {"c.json is an array"}, [&] { read("[]"); });
  expect_error(ErrorKind::data, {"'n_inner' is false"}, [&] { read(R"({"n_inner": false})"); });
}

TEST(Fields, flags_set_every_type) {
  Config config;
  set_from_string(config, "--n-layer", "6");
  set_from_string(config, "resid_pdrop", "2.5e-1");
  set_from_string(config, "tie-word-embeddings", "no");
  set_from_string(config, "n_inner", "64");
  set_from_string(config, "--depths", "3,4,5");
  set_from_string(config, "--learning-rate", "3e-4");
  EXPECT_EQ(config.layers, 6);
  EXPECT_EQ(config.dropout, 0.25);
  EXPECT_FALSE(config.is_tied);
  EXPECT_EQ(config.inner_width, 64);
  EXPECT_EQ(config.depths, (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(config.inner.rate, 3e-4);
  set_from_string(config, "n_inner", "none");
  EXPECT_FALSE(config.inner_width.has_value());
}

TEST(Fields, wrong_flags_are_usage_errors) {
  Config config;
  const auto expect_usage = [&](const char* key, const char* text, const char* word) {
    expect_error(ErrorKind::usage, {word}, [&] { set_from_string(config, key, text); });
  };
  expect_usage("--n-layr", "3", "unknown field --n-layr; did you mean '--n-layer'?");
  // Named as they were given: a flag, or the field; where none is near all are named.
  expect_usage("n_layr", "3", "unknown field n_layr; did you mean 'n_layer'?");
  expect_usage("zzzzzzzzz", "3", "unknown field zzzzzzzzz; there are n_layer, ");
  expect_usage("n_layer", "-1", "n_layer is -1; it must be at least 1");
  for (const char* text : {"", "3x", "1.5", "99999999999999999999", " 3", "+3"}) {
    expect_usage("--n-layer", text, "an integer of 64 bits is needed");
  }
  for (const char* text : {"", "nan", "inf", "0,5", "1e999"}) {
    expect_usage("--resid-pdrop", text, "a number is needed");
  }
  expect_usage("--n-layer", "-1", "--n-layer is -1; it must be at least 1");
  expect_usage("--learning-rate", "0", "must be above 0");
  expect_usage("--tie-word-embeddings", "maybe", "true or false");
  expect_usage("--depths", "1,,2", "a list");
  expect_usage("--activation-function", "tanh", "one of relu, gelu");
}

TEST(Fields, list_shows_type_default_and_help) {
  const std::vector<FieldInfo> infos = list_fields(Config());
  ASSERT_EQ(infos.size(), 7u);
  EXPECT_EQ(infos[0].key, "n_layer");
  EXPECT_EQ(infos[0].type, "integer");
  EXPECT_EQ(infos[0].default_value, "12");
  EXPECT_EQ(infos[0].help, "number of blocks");
  EXPECT_EQ(infos[3].type, "relu|gelu");
  EXPECT_EQ(infos[4].type, "integer|none");
  EXPECT_EQ(infos[4].default_value, "none");
  EXPECT_EQ(infos[5].default_value, "2,2");
}

TEST(Fields, difference_names_fields_and_both_values) {
  Config a, b;
  b.depths = {2, 3};
  b.inner.rate = 1;
  const std::vector<FieldDifference> differences = diff_fields(a, b);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].key, "depths");
  EXPECT_EQ(differences[0].first, "2,2");
  EXPECT_EQ(differences[0].second, "2,3");
  EXPECT_EQ(differences[1].key, "learning_rate");
}

}  // namespace
}  // namespace heddle
