// Classes of equal names at the command line: results name each of them.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tests/cli/equal_names.h"
#include "tests/cli/page_data.h"
#include "tests/cli/vision_model.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

// The classes that are right of what a page of eval counts.
std::set<int64_t> truths_of(const Json& page) {
  std::set<int64_t> truths;
  for (const Json& cell : page.at("cells").as_array()) truths.insert(cell.as_array()[0].as_int(""));
  return truths;
}

class EqualNames : public ::testing::Test {
 protected:
  std::string vision_model(const std::string& name) const {
    write_vision_model(path(name), name);
    call_all_classes_crane(path(name));
    return path(name);
  }
  std::string reader() const {
    fs::copy(text_model("classify"), path("reader"));
    call_all_classes_crane(path("reader"));
    return path("reader");
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static std::string output(const std::vector<std::string>& words) {
    const CliResult result = run_heddle(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }

  TempDir folder_;
};

TEST_F(EqualNames, classes_of_a_text_are_all_there) {
  const std::string model = reader();
  const Json line = Json::parse(
      output({"classify", model, "--text", "the fox", "--json", "--page", path("page.html")}));
  EXPECT_EQ(keys(line.at("probabilities")), cranes(3));
  double sum = 0, most = 0;
  for (const auto& [name, p] : line.at("probabilities").as_object()) {
    sum += p.as_double();
    most = std::max(most, p.as_double());
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_EQ(line.at("probabilities").get_double(line.get_string("label")), most);
  EXPECT_EQ(page_data(path("page.html")).at("labels").as_strings(), cranes(3));
  const std::string text = output({"classify", model, "--text", "the fox"});
  for (const std::string& name : cranes(3)) {
    EXPECT_NE(text.find(name + "\t"), text.npos) << text;
  }
}

TEST_F(EqualNames, data_may_name_a_class_as_results_do) {
  const std::string model = reader();
  write_file(path("test.tsv"), "text\tlabel\nthe fox\tcrane\nthe fox\tcrane (class 2)\n");
  output({"eval", model, "--data", path("test.tsv"), "--page", path("page.html")});
  const Json page = page_data(path("page.html"));
  EXPECT_EQ(page.at("labels").as_strings(), cranes(3));
  EXPECT_EQ(truths_of(page), (std::set<int64_t>{0, 2}));
}

TEST_F(EqualNames, classes_of_an_image_are_all_there) {
  const std::string model = vision_model("vit"), image = fixture_image("rgb.png");
  const Json line = Json::parse(output({"classify", model, image, "--json"}));
  EXPECT_EQ(keys(line.at("probabilities")), cranes(5));
  fs::create_directories(path("set/crane"));
  fs::create_directories(path("set/crane (class 3)"));
  fs::copy_file(image, path("set/crane/a.png"));
  fs::copy_file(image, path("set/crane (class 3)/a.png"));
  output({"eval", model, "--data", path("set"), "--page", path("page.html")});
  const Json page = page_data(path("page.html"));
  EXPECT_EQ(page.at("labels").as_strings(), cranes(5));
  EXPECT_EQ(truths_of(page), (std::set<int64_t>{0, 3}));
}

TEST_F(EqualNames, scores_of_classes_of_objects_are_all_there) {
  const std::string model = vision_model("detr");
  fs::create_directories(path("set/val"));
  fs::copy_file(fixture_image("rgb.png"), path("set/val/a.png"));
  write_file(path("set/val.json"),
             R"js({"images": [{"id": 1, "file_name": "a.png"}], "categories": [{"id": 3, "name":
                 "crane (class 2)"}], "annotations": [{"id": 1, "image_id": 1, "category_id": 3,
                 "bbox": [1, 1, 9, 9]}]})js");
  const Json scores = Json::parse(output({"eval", model, "--data", path("set"), "--json"}));
  EXPECT_EQ(keys(scores.at("classes")), cranes(3));
  EXPECT_LT(scores.at("classes").at("crane").get_double("map"), 0);
  EXPECT_GE(scores.at("classes").at("crane (class 2)").get_double("map"), 0);
  const Json found = Json::parse(
      output({"detect", model, fixture_image("rgb.png"), "--threshold", "0", "--json"}));
  const std::vector<std::string> known = cranes(3);
  ASSERT_GT(found.at("objects").size(), 0u);
  for (const Json& one : found.at("objects").as_array()) {
    EXPECT_NE(std::ranges::find(known, one.get_string("label")), known.end());
  }
}

}  // namespace
}  // namespace heddle::testing
