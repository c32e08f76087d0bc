// Average precision against pycocotools (tools/make_detection_fixtures.py).
#include "heddle/train/metrics/average_precision.h"

#include <gtest/gtest.h>

#include <limits>

#include "heddle/base/json/json.h"
#include "heddle/base/parallel.h"
#include "tests/base/temporary.h"
#include "tests/support/places.h"

namespace heddle::train {
namespace {

const Json::Array& cases() {
  static const Json json = Json::load(std::string(testing::kFixtures) + "/average_precision.json");
  return json.as_array();
}

Box box_of(const Json::Array& row) {
  return Box::of_corner(row[1].as_double(), row[2].as_double(), row[3].as_double(),
                        row[4].as_double());
}

// In falling order of ids: they are to be sorted.
std::vector<DetectedImage> images_of(const Json& c) {
  const int64_t count = c.get_int("images");
  std::vector<DetectedImage> images(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) images[i].id = count - i;
  for (const Json& truth : c.at("truths").as_array()) {
    const Json::Array& row = truth.as_array();
    images[count - row[0].as_int()].truths.push_back({.box = box_of(row),
                                                      .label = int32_t(row[5].as_int()),
                                                      .is_crowd = row[6].as_int() == 1,
                                                      .area = row[7].as_double()});
  }
  for (const Json& found : c.at("found").as_array()) {
    const Json::Array& row = found.as_array();
    images[count - row[0].as_int()].found.push_back(
        {box_of(row), int32_t(row[5].as_int()), row[6].as_double()});
  }
  return images;
}

void expect_near(const std::vector<double>& got, const Json& want, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want.as_array()[i].as_double(), 1e-9) << what << " " << i;
  }
}

TEST(AveragePrecision, equals_pycocotools) {
  ASSERT_EQ(cases().size(), 5U);
  for (const Json& c : cases()) {
    const DetectionScores scores = score_detections(images_of(c), c.get_int("classes"));
    std::vector<double> stats;
    for (const Metric& metric : scores.metrics()) stats.push_back(metric.value);
    const Json& want = c.at("want");
    expect_near(stats, want.at("stats"), "stats");
    expect_near(scores.class_ap, want.at("class_ap"), "class_ap");
    expect_near(scores.class_ap50, want.at("class_ap50"), "class_ap50");
    expect_near(scores.class_curve50[0], want.at("curve50"), "curve50");
  }
}

TEST(AveragePrecision, is_the_same_for_any_threads) {
  const int before = num_threads();
  std::vector<std::vector<Metric>> all;
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    all.push_back(score_detections(images_of(cases()[0]), 4).metrics());
  }
  set_num_threads(before);
  EXPECT_EQ(all[0], all[1]);
}

TEST(AveragePrecision, is_one_where_all_is_found_and_less_with_a_double_before_the_second) {
  const LabelledBox a{.box = {0, 0, 50, 40}}, b{.box = {60, 60, 90, 99}};
  DetectedImage image{.truths = {a, b}, .found = {{a.box, 0, 0.9}, {b.box, 0, 0.8}}};
  EXPECT_DOUBLE_EQ(score_detections({&image, 1}, 1).ap, 1);
  image.found.push_back({a.box, 0, 0.85});
  // Precision 1 up to a recall of 0.5, at 51 of 101 places; behind it 2/3.
  EXPECT_NEAR(score_detections({&image, 1}, 1).ap, (51 + 50 * 2.0 / 3) / 101, 1e-12);
  image.found.clear();
  EXPECT_EQ(score_detections({&image, 1}, 1).ap, 0);
  EXPECT_EQ(score_detections({}, 2).ap, -1);
}

TEST(AveragePrecision, boxes_that_are_none_are_refused) {
  DetectedImage image{.id = 7, .found = {{{0, 0, 1, 1}, 2, 0.5}}};
  expect_error(ErrorKind::data, {"image 7", "class 2"}, [&] { score_detections({&image, 1}, 2); });
  image.found[0].label = 0;
  image.found[0].score = std::numeric_limits<double>::quiet_NaN();
  expect_error(ErrorKind::data, {"image 7", "nan"}, [&] { score_detections({&image, 1}, 2); });
}

}  // namespace
}  // namespace heddle::train
