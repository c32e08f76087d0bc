// Models whose vocabulary is padded: they may choose ids that their tokenizer has no token for.
#include <algorithm>

#include "tests/cli/language_model.h"

namespace heddle::testing {
namespace {

constexpr int64_t kTokens = 312;

void write_padded(const std::string& folder) {
  write_language_model(folder, R"({"eos_token_id": 3})", true, 40, 2 * kTokens);
}

class PaddedVocabulary : public FolderFixture<write_padded> {
 protected:
  CliResult done(std::vector<std::string> words) {
    words.insert(words.begin() + 1, model());
    CliResult result = run_heddle(words);
    EXPECT_EQ(result.exit_code, 0) << words[0] << ": " << result.err;
    return result;
  }
};

TEST_F(PaddedVocabulary, ids_without_a_token_add_nothing_to_a_text) {
  const Json drawn = json_lines(done({"generate", "-p", "the old", "--sample", "--temperature", "5",
                                      "--max-new-tokens", "30", "--json"})
                                    .out)
                         .at(0);
  std::vector<int32_t> ids;
  for (const Json& id : drawn.at("ids").as_array())
    ids.push_back(static_cast<int32_t>(id.as_int()));
  EXPECT_TRUE(std::ranges::any_of(ids, [](int32_t id) { return id >= kTokens; }));
  EXPECT_EQ(drawn.get_string("text"), shared_tokenizer().decode(ids));
}

TEST_F(PaddedVocabulary, likely_tokens_and_pages_name_them_by_number) {
  const Json top =
      json_lines(done({"generate", "-p", "the old", "--top", "624", "--json"}).out).at(0).at("top");
  EXPECT_EQ(top.size(), static_cast<size_t>(2 * kTokens));
  for (const Json& token : top.as_array()) {
    EXPECT_EQ(token.get_string("token").empty(), token.at("id").as_int() >= kTokens)
        << token.dump();
  }
  const TempDir folder;
  const auto page = [&](std::vector<std::string> words) {
    const std::string path = (folder / (words[0] + ".html")).string();
    words.insert(words.end(), {"--page", path});
    done(words);
    return read_file(path);
  };
  EXPECT_NE(page({"attention", "--ids", "5", "600", "7"}).find("#600"), std::string::npos);
  EXPECT_NE(page({"explain", "--ids", "5", "600", "7"}).find("#600"), std::string::npos);
  page({"generate", "-p", "the old", "--beam", "8", "--max-new-tokens", "9"});
}

}  // namespace
}  // namespace heddle::testing
