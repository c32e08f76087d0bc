// A line that is too long for a model is refused by its number, before a tokenizer chews on it.
#include <gtest/gtest.h>

#include "tests/cli/model_fixture.h"

namespace heddle::testing {
namespace {

// A model cuts it where it is let to: that it is refused nevertheless shows who looked first.
const std::string& long_line() {
  static const std::string line(size_t{1} << 20, 'a');
  return line;
}

class LongLines : public ModelFixture {
 protected:
  static void expect_refused(const std::vector<std::string>& arguments) {
    const CliResult result = run_heddle(arguments, with_input("a\n" + long_line() + "b\n"));
    EXPECT_EQ(result.exit_code, 3) << arguments[0] << ": " << result.err;
    EXPECT_NE(result.err.find("line 2: 1048577 bytes are too long"), std::string::npos)
        << arguments[0] << ": " << result.err;
  }
};

TEST_F(LongLines, of_translate_and_the_tokenizer_are_refused_by_number) {
  expect_refused({"translate", model(), "--truncate"});
  expect_refused({"tokenizer", "encode", model()});
}

TEST_F(LongLines, of_models_of_texts_are_refused_by_number) {
  const std::string texts = std::string(kFixtures) + "/texts/";
  expect_refused({"classify", texts + "classify"});
  expect_refused({"embed", texts + "dense"});
}

}  // namespace
}  // namespace heddle::testing
