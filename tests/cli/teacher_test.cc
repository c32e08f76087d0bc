// Image classifiers that learn from another one: with and without a cache, images without labels,
// a share of the labels; what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "heddle/base/json/json.h"
#include "tests/cli/image_runs.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

class Teacher : public ImageRuns {
 protected:
  static void SetUpTestSuite() {
    ImageRuns::SetUpTestSuite();
    ASSERT_EQ(train("teacher", {"--max-updates", "160"}).exit_code, 0);
  }
  static CliResult taught(const std::string& run, const std::vector<std::string>& more) {
    return train(run, with({"--teacher", path("teacher"), "--max-updates", "40"}, more));
  }
  static double accuracy(const std::string& run) {
    const CliResult judged = run_heddle({"eval", path(run), "--data", path("data"), "--json"});
    EXPECT_EQ(judged.exit_code, 0) << judged.err;
    return Json::parse(judged.out).at("accuracy").as_double();
  }
  static std::vector<std::string> kept(const std::string& run) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path(run) + "/cache")) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("teacher-")) names.push_back(entry.path().string());
    }
    return names;
  }
};

// 3 views of 400 images in 4 epochs of 13 updates: the last epoch reads what the first one kept.
const std::vector<std::string> kKept = {"--teacher-views", "3", "--mixup-alpha", "0"};

TEST_F(Teacher, kept_answers_are_the_computed_ones_whatever_became_of_their_file) {
  const auto words = with(kKept, {"--max-updates", "52", "--model-type", "deit"});
  const CliResult whole = taught("whole", with(words, {"--threads", "1"}));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  ASSERT_EQ(kept("whole").size(), 1U);
  EXPECT_EQ(fs::file_size(kept("whole")[0]), 3U * 400 * (8 + 4 * 4));
  // On other threads, stopped twice: once its file is gone, once it is damaged and cut short.
  ASSERT_EQ(taught("stopped", with(words, {"--max-updates", "15", "--threads", "2"})).exit_code, 0);
  fs::remove(kept("stopped").at(0));
  ASSERT_EQ(taught("stopped", with(words, {"--max-updates", "45"})).exit_code, 0);
  std::string bytes = read_file(kept("stopped").at(0));
  for (size_t i = 0; i < bytes.size(); i += 7) bytes[i] = static_cast<char>(bytes[i] + 1);
  write_file(kept("stopped").at(0), bytes.substr(0, bytes.size() / 2 + 5));
  ASSERT_EQ(taught("stopped", words).exit_code, 0);
  EXPECT_EQ(weights("stopped"), weights("whole"));
}

TEST_F(Teacher, distilled_model_has_two_heads_and_answers_by_both) {
  const CliResult learned =
      taught("deit", {"--model-type", "deit", "--max-updates", "160", "--mixup-alpha", "0"});
  ASSERT_EQ(learned.exit_code, 0) << learned.err;
  EXPECT_EQ(Json::load(path("deit/best/config.json")).at("architectures").as_strings()[0],
            "DeiTForImageClassificationWithTeacher");
  EXPECT_GT(accuracy("deit"), 0.95);
  // It goes on from there with both, without a teacher too.
  const CliResult tuned =
      run_heddle({"train", "--from", path("deit"), "--data", path("data"), "--out", path("deit2"),
                  "--max-updates", "3", "--precision", "f32"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_EQ(Json::load(path("deit2/best/config.json")).at("architectures").as_strings()[0],
            "DeiTForImageClassificationWithTeacher");
  EXPECT_EQ(tuned.err.find("begun by the seed"), tuned.err.npos) << tuned.err;
  EXPECT_NE(read_file(path("deit2/last/model.safetensors")),
            read_file(path("deit/best/model.safetensors")));
}

TEST_F(Teacher, another_size_and_mixed_images_are_taught_and_resumed_exactly) {
  const std::vector<std::string> words = {"--image-edge",      "16",   "--cutmix-alpha",        "1",
                                          "--teaching",        "soft", "--teacher-temperature", "2",
                                          "--mix-probability", "0.5"};
  const CliResult whole = taught("soft", words);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  ASSERT_EQ(taught("soft2", with(words, {"--max-updates", "17", "--threads", "2"})).exit_code, 0);
  ASSERT_EQ(taught("soft2", words).exit_code, 0);
  EXPECT_EQ(weights("soft2"), weights("soft"));
}

TEST_F(Teacher, features_are_imitated_and_resumed_exactly_and_no_part_of_the_model) {
  const std::vector<std::string> words = {"--teacher-feature-weight", "1",
                                          "--teacher-feature-layers", "1,2"};
  const CliResult whole = taught("features", words);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  ASSERT_EQ(taught("features2", with(words, {"--max-updates", "17", "--threads", "2"})).exit_code,
            0);
  ASSERT_EQ(taught("features2", words).exit_code, 0);
  EXPECT_EQ(weights("features2"), weights("features"));
  EXPECT_EQ(weights("features").find("imitation"), std::string::npos);
  EXPECT_TRUE(kept("features").empty());
  ASSERT_EQ(taught("plain", {}).exit_code, 0);
  EXPECT_NE(weights("plain"), weights("features"));
  accuracy("features");  // it can be used
  expect_refused(train("none", with(words, {"--max-updates", "2"})), 2, "nobody teaches");
  expect_refused(taught("none", with(words, {"--freeze", "embeddings"})), 2, "trained whole");
  expect_refused(taught("none", with(words, {"--teacher-feature-layers", "3"})), 2,
                 "no hidden state 3");
}

// Layers that are computed once more in the backward pass are watched there too.
TEST_F(Teacher, last_states_are_imitated_to_the_same_bits_with_recompute) {
  const std::vector<std::string> words = {"--teacher-feature-weight", "1", "--max-updates", "12"};
  ASSERT_EQ(taught("states", words).exit_code, 0);
  ASSERT_EQ(taught("states2", with(words, {"--recompute", "true"})).exit_code, 0);
  EXPECT_EQ(weights("states2"), weights("states"));
}

TEST_F(Teacher, few_labels_and_a_teacher_go_further_than_few_labels) {
  const std::vector<std::string> few = {"--label-share", "0.02", "--max-updates", "160",
                                        "--mixup-alpha", "0",    "--random-crop", "0"};
  const CliResult alone = train("alone", few);
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_NE(alone.err.find("8 of 400 labels count; the other images are left out"), alone.err.npos)
      << alone.err;
  const CliResult helped = taught("helped", few);
  ASSERT_EQ(helped.exit_code, 0) << helped.err;
  EXPECT_NE(helped.err.find("400 images to train on (392 without label)"), helped.err.npos)
      << helped.err;
  EXPECT_GT(accuracy("helped"), accuracy("alone"));
  EXPECT_GT(accuracy("helped"), 0.95);
}

TEST_F(Teacher, images_without_labels_come_beside_labelled_ones_and_resume_exactly) {
  fs::create_directories(path("loose/deep"));
  const std::string fixtures = std::string(kFixtures) + "/images/";
  fs::copy(fixtures + "rgb.png", path("loose/a.png"));
  fs::copy(fixtures + "grey.jpg", path("loose/deep/b.jpg"));
  write_file(path("loose/deep/notes.txt"), "no image");
  const std::vector<std::string> words = {
      "--unlabelled",  path("loose"), "--labelled-in-batch", "24",
      "--label-share", "0.5",         "--image-edge",        "12"};
  const CliResult whole = taught("mixed", words);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_NE(whole.err.find("402 images to train on (202 without label)"), whole.err.npos)
      << whole.err;
  EXPECT_NE(whole.err.find("passed over: 1 file"), whole.err.npos) << whole.err;
  ASSERT_EQ(taught("mixed2", with(words, {"--max-updates", "27", "--threads", "2"})).exit_code, 0);
  ASSERT_EQ(taught("mixed2", words).exit_code, 0);
  EXPECT_EQ(weights("mixed2"), weights("mixed"));
  // Those with labels say what size all are trained at.
  const CliResult sized = taught("sized", {"--unlabelled", path("loose"), "--max-updates", "2"});
  EXPECT_EQ(sized.exit_code, 0) << sized.err;
}

TEST_F(Teacher, few_views_are_those_of_kept_answers_alone) {
  // 3 epochs; of views that come again the second would be the first.
  const auto with_views = [](const std::string& run, const std::string& views,
                             const std::string& probability) {
    const CliResult result = taught(
        run, {"--teacher-views", views, "--mix-probability", probability, "--max-updates", "39"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  };
  with_views("all-mixed", "1", "1");
  with_views("any-view", "0", "1");
  EXPECT_EQ(weights("all-mixed"), weights("any-view"));
  EXPECT_TRUE(kept("all-mixed").empty());
  with_views("one-view", "1", "0.5");
  with_views("other-views", "0", "0.5");
  EXPECT_NE(weights("one-view"), weights("other-views"));
  EXPECT_EQ(kept("one-view").size(), 1U);
}

TEST_F(Teacher, mixing_that_ends_at_once_is_none) {
  ASSERT_EQ(train("unmixed", {"--max-updates", "10", "--mixup-alpha", "0"}).exit_code, 0);
  ASSERT_EQ(train("ended", {"--max-updates", "10", "--mix-until", "0"}).exit_code, 0);
  ASSERT_EQ(train("later", {"--max-updates", "10", "--mix-until", "0.5"}).exit_code, 0);
  EXPECT_EQ(weights("ended"), weights("unmixed"));
  EXPECT_NE(weights("later"), weights("unmixed"));
}

TEST_F(Teacher, what_cannot_be_taught_is_refused) {
  expect_refused(train("none", {"--unlabelled", path("data"), "--max-updates", "2"}), 2,
                 "--teacher");
  for (const auto& [flag, value] :
       {std::pair("--teaching", "soft"), std::pair("--teacher-weight", "0.3"),
        std::pair("--teacher-temperature", "2"), std::pair("--teacher-views", "4")}) {
    expect_refused(train("none", {flag, value, "--max-updates", "2"}), 2,
                   std::string(flag) + " says how to follow a teacher");
  }
  expect_refused(taught("none", {"--teacher-feature-layers", "1"}), 2, "imitate nothing");
  expect_refused(taught("none", {"--labelled-in-batch", "8"}), 2, "all images have labels");
  expect_refused(taught("none", {"--labelled-in-batch", "8", "--label-share", "0.9999"}), 2,
                 "each of the 400 images has a label");
  expect_refused(train("none", {"--lora-targets", "query", "--max-updates", "2"}), 2,
                 "--lora-targets is of adapters, and there are none");
  expect_refused(taught("none", {"--labelled-in-batch", "32"}), 2, "leaves no place");
  expect_refused(taught("none", {"--unlabelled", path("gone")}), 3, "gone");
  expect_refused(train("none", {"--teacher", path("gone"), "--max-updates", "2"}), 3, "gone");
  expect_refused(
      train("none", {"--max-minutes", "1", "--schedule", "constant", "--mix-until", "0.5"}), 2,
      "max_updates");
  fs::create_directories(path("empty"));
  expect_refused(taught("none", {"--unlabelled", path("empty")}), 3, "empty");
  const CliResult text =
      run_heddle({"train", "--task", "causal_lm", "--model-type", "gpt2", "--data", path("data"),
                  "--out", path("none"), "--teacher", path("teacher"), "--max-updates", "2"});
  expect_refused(text, 2, "causal_lm");
  EXPECT_FALSE(fs::exists(path("none")));
  // A teacher of other classes.
  for (const char* name : {"cat", "dog"}) {
    fs::create_directories(path(std::string("pets/") + name));
    fs::copy(std::string(kFixtures) + "/images/rgb.png",
             path(std::string("pets/") + name + "/a.png"));
    fs::copy(std::string(kFixtures) + "/images/rgb.png",
             path(std::string("pets/") + name + "/b.png"));
  }
  const CliResult pets =
      run_heddle({"train", "--task", "image_classification", "--data", path("pets"), "--out",
                  path("none"), "--teacher", path("teacher"), "--image-edge", "12", "--patch-size",
                  "4", "--val-share", "0.5", "--max-updates", "2"});
  expect_refused(pets, 3, "does not know the class 'cat'");
  // A run goes on with its own teacher.
  ASSERT_EQ(taught("steady", {"--max-updates", "5"}).exit_code, 0);
  ASSERT_EQ(train("other", {"--max-updates", "5"}).exit_code, 0);
  expect_refused(train("steady", {"--teacher", path("other"), "--max-updates", "9"}), 3,
                 "the teacher");
}

}  // namespace
}  // namespace heddle::testing
