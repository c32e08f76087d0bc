// The pass over a pair that translators with tokens of languages are looked at in.
#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/base/json/json.h"
#include "heddle/inspect/subject.h"
#include "tests/base/temporary.h"
#include "tests/support/places.h"

namespace heddle::inspect {
namespace {

// Against transformers, by tools/make_seq2seq_fixtures.py.
TEST(ToldLanguages, loss_of_the_pass_is_that_behind_what_stands_around_the_pair) {
  const TemporaryFolder folder;
  const std::string fixtures = std::string(testing::kFixtures) + "/seq2seq/";
  const Json all = Json::load(fixtures + "likelihoods.json");
  for (const Json& wanted : all.as_array()) {
    const std::string family = wanted.get_string("model");
    std::string path = fixtures + family;
    SubjectOptions options{.precision = resolve_precision("f32")};
    if (const Json& languages = wanted.at("languages"); !languages.is_null()) {
      options.source_language = languages.as_array()[0].as_string("source");
      options.target_language = languages.as_array()[1].as_string("target");
    } else {  // generate() begins with a token all the same
      std::filesystem::copy(path, folder / family, std::filesystem::copy_options::recursive);
      folder.write(family + "/generation_config.json", R"({"forced_bos_token_id": 0})");
      path = folder / family;
    }
    double nll = 0;
    const auto sources = wanted.at("sources").as_strings("sources"),
               targets = wanted.at("targets").as_strings("targets");
    for (size_t i = 0; i < sources.size(); ++i) {
      options.source = sources[i], options.target = targets[i];
      const Subject subject = Subject::open(path, options);
      const int64_t given = 1;
      nll += subject.loss() * static_cast<double>(subject.sides()[2].size() - given);
      EXPECT_EQ(subject.sides()[1].size(), subject.sides()[2].size());
    }
    EXPECT_NEAR(nll, wanted.get_double("nll"), 1e-5 * nll) << wanted.dump();
  }
}

}  // namespace
}  // namespace heddle::inspect
