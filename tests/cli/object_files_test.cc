// Detectors at the command line on images of any sizes: those that the cache shrinks, and those
// that are too small for the model.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include "heddle/base/json/json.h"
#include "heddle/data/detections.h"
#include "heddle/vision/image_processor.h"
#include "tests/cli/run_folder.h"
#include "tests/cli/vision_model.h"

namespace heddle::testing {
namespace {

// COCO's, all in one part, each with a box.
void write_objects(const std::string& folder, const std::map<std::string, Image>& images) {
  std::filesystem::create_directories(folder);
  Json data = Json::parse(R"({"images": [], "annotations": [],
                              "categories": [{"id": 1, "name": "one"}]})");
  int64_t id = 0;
  for (const auto& [name, image] : images) {
    write_file(folder + "/" + name, encode_png(image));
    data["images"].push_back(Json::object({{"id", ++id}, {"file_name", name}}));
    data["annotations"].push_back(Json::object(
        {{"id", id}, {"image_id", id}, {"category_id", 1}, {"bbox", Json::Array{0, 0, 1, 1}}}));
  }
  write_file(folder + "/train.json", data.dump());
}

class ObjectFiles : public RunFolder {
 protected:
  static CliResult train(const std::string& run, const std::string& data,
                         const std::vector<std::string>& more) {
    const std::vector<std::string> words = words_of(
        "train --task object_detection --d-model 8 --num-queries 2 --encoder-layers 1 "
        "--decoder-layers 1 --encoder-ffn-dim 8 --decoder-ffn-dim 8 --encoder-attention-heads 2 "
        "--decoder-attention-heads 2 --max-updates 1 --precision f32");
    const std::vector<std::string> own = {
        "--backbone-config",
        R"({"model_type": "resnet", "stem": "cifar", "downsample": "pool", "layer_type": "plain",
            "norm": "group", "norm_groups": 2, "embedding_size": 4, "hidden_sizes": [4, 4],
            "depths": [0, 0]})",
        "--data",
        path(data),
        "--out",
        path(run)};
    return run_heddle(with(with(words, own), more));
  }
};

// What is prepared of a file is what is trained on: made of the image that the cache holds.
TEST_F(ObjectFiles, processor_of_shrunk_images_shrinks_files_alike) {
  const Image shown = read_image(fixture_image("rgb.png"));
  const std::vector<ImageSize> sizes = {{90, 61}, {31, 64}, {20, 33}, {12, 9}};
  std::map<std::string, Image> images;
  for (const ImageSize& size : sizes) {
    images[fmt::format("{}.png", size.height)] =
        resize(shown, size.height, size.width, Resample::bilinear);
  }
  write_objects(path("large"), images);
  const CliResult trained = train("shrunk", "large", {"--cache-edge", "20"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto processor = ImageProcessor::of_folder(path("shrunk/best"));
  const DetectionSource source = find_detections(path("large")).train();
  const DetectionSet cached =
      cached_detections(source, "train", {.cache_dir = path("shrunk/cache"), .cache_edge = 20});
  for (int64_t i = 0; i < cached.size(); ++i) {
    const Image file = processor.fit(read_image(cached.path(i)));
    EXPECT_EQ(file, processor.fit(cached.image(i).rgb())) << cached.path(i);
    EXPECT_EQ(std::min(file.height, file.width), 20) << cached.path(i);
    if (cached.original_size(i) != cached.image(i).size) {
      EXPECT_EQ(file, cached.image(i).rgb()) << cached.path(i);
    }
  }
  ASSERT_EQ(train("sized", "large", words_of("--cache-edge 20 --shortest-edge 16")).exit_code, 0);
  EXPECT_EQ(ImageProcessor::of_folder(path("sized/best")).shortest_edge, 16);
  ASSERT_EQ(train("whole", "large", {}).exit_code, 0);
  EXPECT_FALSE(ImageProcessor::of_folder(path("whole/best")).do_resize);
}

TEST_F(ObjectFiles, a_run_keeps_the_caches_of_its_own_images_alone) {
  std::map<std::string, Image> images;
  for (int64_t i = 0; i < 4; ++i) images[fmt::format("{}.png", i)] = Image(12, 12);
  write_objects(path("kept"), images);
  const auto caches = [] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path("kept-run/cache"))) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".images")) names.insert(name);
    }
    return names;
  };
  ASSERT_EQ(train("kept-run", "kept", {}).exit_code, 0);
  const auto first = caches();
  EXPECT_EQ(first.size(), 1U);
  write_file(path("kept-run/cache/train-mine.images"), "mine");
  write_file(path("kept-run/cache/train-0123456789abcdef.images"), "mine too");
  std::filesystem::last_write_time(
      path("kept/0.png"), std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  ASSERT_EQ(train("kept-run", "kept", {"--max-updates", "2"}).exit_code, 0);
  const auto second = caches();
  EXPECT_EQ(second.size(), 3U);
  EXPECT_FALSE(second.contains(*first.begin()));
  std::ranges::fill(images["0.png"].pixels, uint8_t{9});
  write_objects(path("kept"), images);
  const CliResult refused = train("kept-run", "kept", {"--max-updates", "3"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_EQ(caches(), second) << refused.err;
  // A folder that is a link may be others' too.
  write_objects(path("kept"), images);
  std::filesystem::rename(path("kept-run/cache"), path("shared-caches"));
  ASSERT_EQ(train("other-run", "kept", {}).exit_code, 0);
  std::filesystem::remove_all(path("other-run/cache"));
  std::filesystem::create_directory_symlink(path("shared-caches"), path("other-run/cache"));
  ASSERT_EQ(train("other-run", "kept", {"--max-updates", "2"}).exit_code, 0);
  for (const std::string& name : second) {
    EXPECT_TRUE(std::filesystem::exists(path("shared-caches/" + name))) << name;
  }
}

TEST_F(ObjectFiles, images_too_small_for_the_model_are_left_out_by_name) {
  std::map<std::string, Image> images;
  for (int64_t i = 0; i < 3; ++i) images[fmt::format("{}.png", i)] = Image(12, 12 + i);
  images["tiny.png"] = Image(2, 9);
  write_objects(path("tiny"), images);
  const CliResult trained = train("tiny-run", "tiny", {"--val-data", path("tiny")});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("left out: 1 image that the model does not take: " +
                             path("tiny/tiny.png") + ": an image of 2 x 9 pixels is too small"),
            trained.err.npos)
      << trained.err;
  EXPECT_NE(trained.err.find("3 images to train on, 3 held out"), trained.err.npos) << trained.err;
  const std::vector<std::string> detect = {"detect",           path("tiny-run"),
                                           path("tiny/0.png"), path("tiny/tiny.png"),
                                           path("tiny/1.png"), "--json"};
  const CliResult stopped = run_heddle(detect);
  EXPECT_EQ(stopped.exit_code, 3);
  EXPECT_NE(stopped.err.find("tiny/tiny.png: an image of 2 x 9"), stopped.err.npos) << stopped.err;
  std::vector<std::string> skipping = detect;
  skipping.emplace_back("--skip-bad");
  const CliResult skipped = run_heddle(skipping);
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_EQ(std::ranges::count(skipped.out, '\n'), 3) << skipped.out;
  EXPECT_NE(skipped.out.find("\"error\": \""), skipped.out.npos) << skipped.out;
  const CliResult judged = run_heddle({"eval", path("tiny-run"), "--data", path("tiny"), "--json"});
  ASSERT_EQ(judged.exit_code, 0) << judged.err;
  EXPECT_EQ(Json::parse(judged.out).get_int("left_out"), 1);
  EXPECT_EQ(Json::parse(judged.out).get_string("part"), "all");
}

}  // namespace
}  // namespace heddle::testing
