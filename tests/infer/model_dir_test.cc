// Model directories: a round trip, and each way in which a folder is not a model.
#include "heddle/infer/loading/loaded_model.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/base/files/files.h"
#include "heddle/infer/decoding/translate.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"

namespace heddle::testing {
namespace {

class ModelDir : public ::testing::Test {
 protected:
  TemporaryFolder folder;
  std::string path = folder / "model";

  ModelDir() { write_small_model(path); }

  // Replaces the first `from` in config.json.
  void change_config(const std::string& from, const std::string& to) {
    std::string text = read_file(path + "/config.json");
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_file_atomic(path + "/config.json", text.replace(at, from.size(), to));
  }
  void expect_data_error(const std::vector<std::string>& words) {
    expect_error(ErrorKind::data, words, [&] { load_translation_model(path); });
  }
};

TEST_F(ModelDir, saved_and_loaded_gives_the_same_translations) {
  const SmallModel m(small_config(shared_tokenizer().vocab_size()));
  const LoadedModel loaded = load_translation_model(path);
  EXPECT_TRUE(diff_fields(config_of(loaded), m.config).empty());
  EXPECT_EQ(loaded.tokenizer->fingerprint(), shared_tokenizer().fingerprint());
  const auto sources = random_sentences(6, 6, m.config.vocab_size);
  const auto ours = translate_ids(loaded.translator(), sources, {.search = {.beam = 2}});
  const auto theirs = translate_ids(m.model, sources, {.search = {.beam = 2}});
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(ours[i].ids, theirs[i].ids);
    EXPECT_EQ(ours[i].score, theirs[i].score);
  }
}

TEST_F(ModelDir, is_saved_in_f32_bf16_or_f16_alone) {
  const LoadedModel loaded = load_model(path);
  const std::string other = folder / "other";
  expect_error(ErrorKind::usage, {"f32, bf16 or f16", "i64"},
               [&] { save_model(other, *loaded.model, loaded.parameters, {.dtype = DType::i64}); });
  EXPECT_FALSE(path_exists(other));
}

TEST_F(ModelDir, without_a_tokenizer_has_none_of_targets) {
  const LoadedModel loaded = load_model(path);
  expect_error(ErrorKind::data, {path, "no tokenizer"}, [&] { loaded.target(); });
}

TEST_F(ModelDir, holds_the_four_files_and_nothing_else) {
  EXPECT_EQ(list_directory(path),
            (std::vector<std::string>{"config.json", "generation_config.json", "model.safetensors",
                                      "tokenizer.model"}));
}

TEST_F(ModelDir, of_a_run_that_has_none_yet_says_how_it_gets_one) {
  const std::string run = folder / "run";
  std::filesystem::create_directory(run);
  expect_error(ErrorKind::data, {"neither config.json nor best/config.json"},
               [&] { find_model_dir(run); });
  write_file_atomic(run + "/train.json", "{}");
  expect_error(ErrorKind::data, {"not been validated yet", "heddle train out " + run},
               [&] { find_model_dir(run); });
}

TEST_F(ModelDir, of_a_run_is_its_best) {
  std::filesystem::create_directory(folder / "run");
  std::filesystem::rename(path, folder / "run/best");
  EXPECT_EQ(find_model_dir(folder / "run"), folder / "run/best");
  EXPECT_NO_THROW(load_translation_model(folder / "run"));
}

TEST_F(ModelDir, without_tokenizer_loads_where_none_is_needed) {
  remove_path(path + "/tokenizer.model");
  EXPECT_FALSE(load_model(path).tokenizer);
  expect_data_error({"tokenizer.model", "missing"});
}

TEST_F(ModelDir, saving_another_config_never_leaves_the_old_weights) {
  TransformerConfig other = small_config(shared_tokenizer().vocab_size());
  other.d_model = 16;
  const SmallModel m(other);
  save_model(path, *m.made, m.parameters, {.tokenizer = &shared_tokenizer()});
  EXPECT_EQ(load_model(path).model->width(), 16);
}

// A full disk, in other words: the weights that are there stay until the new ones are.
TEST_F(ModelDir, weights_that_cannot_be_saved_leave_the_old_model) {
  TransformerConfig other = small_config(shared_tokenizer().vocab_size());
  other.d_model = 16;
  SmallModel m(other);
  m.parameters.all()[0]->value().data<float>()[0] = 1e30f;  // beyond f16
  const std::string before = read_file(path + "/model.safetensors");
  const std::vector<std::string> files = list_directory(path);
  EXPECT_THROW(save_model(path, *m.made, m.parameters,
                          {.tokenizer = &shared_tokenizer(), .dtype = DType::f16}),
               Error);
  EXPECT_EQ(read_file(path + "/model.safetensors"), before);
  EXPECT_EQ(list_directory(path), files);
  EXPECT_EQ(load_model(path).model->width(), 32);
}

TEST_F(ModelDir, bookkeeping_keys_of_hugging_face_are_tolerated) {
  change_config("{", "{\"transformers_version\": \"4.40.0\", \"torch_dtype\": \"float32\",");
  EXPECT_NO_THROW(load_translation_model(path));
}

TEST_F(ModelDir, missing_folder_is_a_data_error) {
  path = folder / "none";
  expect_data_error({"none", "no such folder"});
}

TEST_F(ModelDir, folder_without_config_is_a_data_error) {
  path = folder.path();
  expect_data_error({"config.json", "best/config.json"});
}

TEST_F(ModelDir, file_in_place_of_a_folder_is_a_data_error) {
  path += "/config.json";
  expect_data_error({"config.json", "it is a file"});
}

TEST_F(ModelDir, broken_config_is_a_data_error_with_its_place) {
  write_file_atomic(path + "/config.json", "{\"d_model\": 32,");
  expect_data_error({"config.json", "line 1"});
}

TEST_F(ModelDir, unknown_key_is_a_data_error_with_the_nearest) {
  change_config("\"d_model\"", "\"d_modle\"");
  expect_data_error({"config.json", "unknown key 'd_modle'", "'d_model'"});
}

TEST_F(ModelDir, unknown_or_missing_model_type_is_a_data_error_with_the_known_one) {
  change_config("heddle_transformer", "t9");
  expect_data_error({"'t9'", "marian", "heddle_transformer"});
  change_config("\"model_type\": \"t9\",", "");
  expect_data_error({"model_type", "heddle_transformer"});
}

TEST_F(ModelDir, width_not_divisible_by_heads_is_a_data_error) {
  change_config("\"encoder_attention_heads\": 4", "\"encoder_attention_heads\": 5");
  expect_data_error({"config.json", "32", "5 heads"});
}

TEST_F(ModelDir, value_of_the_wrong_type_is_a_data_error) {
  change_config("\"d_model\": 32", "\"d_model\": \"32\"");
  expect_data_error({"config.json", "'d_model'", "\"32\""});
}

TEST_F(ModelDir, config_of_a_far_larger_model_is_refused_before_memory_is_taken) {
  change_config("\"d_model\": 32", "\"d_model\": 1000000");
  expect_data_error({"model.safetensors", "config.json asks for at least"});
  change_config("\"d_model\": 1000000", "\"d_model\": 32");
  change_config("\"encoder_layers\": 2", "\"encoder_layers\": 4000");
  expect_data_error({"model.safetensors", "config.json asks for at least"});
}

TEST_F(ModelDir, more_positions_than_possible_are_a_data_error) {
  change_config("\"max_position_embeddings\": 64", "\"max_position_embeddings\": 99999999999");
  expect_data_error({"max_position_embeddings"});
}

TEST_F(ModelDir, weights_of_another_config_are_a_data_error_with_both_shapes) {
  change_config("\"encoder_ffn_dim\": 48", "\"encoder_ffn_dim\": 40");
  expect_data_error({"fc1.weight", "[48, 32]", "[40, 32]"});
}

TEST_F(ModelDir, missing_truncated_empty_or_altered_weights_are_data_errors) {
  const std::string file = path + "/model.safetensors", whole = read_file(file);
  remove_path(file);
  expect_data_error({"model.safetensors", "missing"});
  write_file_atomic(file, "");
  expect_data_error({"model.safetensors"});
  for (const size_t size : {size_t{4}, size_t{100}, whole.size() / 2, whole.size() - 1}) {
    write_file_atomic(file, whole.substr(0, size));
    expect_data_error({"model.safetensors"});
  }
  std::string altered = whole;
  altered[whole.size() - 100] ^= 1;
  write_file_atomic(file, altered);
  expect_data_error({"model.safetensors", "altered"});
  altered = whole;
  altered.replace(0, 8, "\xff\xff\xff\xff\xff\xff\xff\x7f", 8);  // a header of 2^63 - 1 bytes
  write_file_atomic(file, altered);
  expect_data_error({"model.safetensors"});
}

TEST_F(ModelDir, tokenizer_of_another_vocabulary_is_a_data_error) {
  small_tokenizer(TokenizerType::bpe).save(path + "/tokenizer.model");  // as many tokens, others
  expect_data_error({"tokenizer.model", "fingerprint", "another vocabulary"});
  small_tokenizer(TokenizerType::unigram, "identity", false).save(path + "/tokenizer.model");
  expect_data_error({"tokenizer.model", "56 tokens", "vocab_size 312"});
  write_file_atomic(path + "/tokenizer.model", "no model");
  expect_data_error({"tokenizer.model"});
}

TEST_F(ModelDir, saving_with_a_tokenizer_of_another_size_is_a_data_error) {
  const SmallModel m(small_config(40));
  expect_error(ErrorKind::data, {"312 tokens", "vocab_size 40"}, [&] {
    save_model(folder / "other", *m.made, m.parameters, {.tokenizer = &shared_tokenizer()});
  });
}

}  // namespace
}  // namespace heddle::testing
