// What the doctor of detectors says of sums of losses, and when.
#include "heddle/train/tasks/images/detector_doctor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heddle::train {
namespace {

// Two images with three objects each, of one class, and five queries.
const ObjectCounts kCounts = {.of_class = {6}, .images = 2, .objects = 6, .most = 3, .beyond = 0};
DetectorFacts with_queries(int64_t queries) {
  DetectorFacts facts;
  facts.queries = queries;
  return facts;
}

// A detector that does well: a class loss of 0.01.
SetLossSums good() {
  return {.classes = 0.04,
          .class_weight = 4,
          .distance = 0.6,
          .giou = 1.2,
          .objects = 6,
          .matched = 6,
          .images = 2,
          .wrong = 3,
          .overlap = 0.5};
}

std::vector<std::string> warnings(const DetectorDoctor& doctor, const SetLossSums& sums,
                                  bool is_warming_up = false) {
  return doctor.examine(sums, is_warming_up).at("warnings").as_strings();
}

TEST(DetectorDoctor, figures_are_means_of_the_sums) {
  const Json found = DetectorDoctor(kCounts, with_queries(5), false).examine(good(), false);
  EXPECT_DOUBLE_EQ(found.get_double("class_loss"), 0.01);
  EXPECT_DOUBLE_EQ(found.get_double("distance_loss"), 0.1);
  EXPECT_DOUBLE_EQ(found.get_double("giou_loss"), 0.2);
  EXPECT_DOUBLE_EQ(found.get_double("class_error"), 0.5);
  EXPECT_DOUBLE_EQ(found.get_double("query_overlap"), 0.25);
  EXPECT_EQ(found.get_int("most_objects"), 3);
  EXPECT_EQ(found.get_int("queries"), 5);
  // Of the ten queries' weight six objects have 6 and four without 0.4: entropy of that, weighted.
  const double p = 6 / 6.4;
  EXPECT_NEAR(found.get_double("blind_class_loss"), -p * std::log(p) - (1 - p) * std::log(1 - p),
              1e-9);
  EXPECT_EQ(found.at("warnings").size(), 0u);
}

TEST(DetectorDoctor, loss_of_a_blind_model_is_warned_of_behind_the_warm_up) {
  const DetectorDoctor doctor(kCounts, with_queries(5), false);
  SetLossSums blind = good();
  blind.classes = 4 * doctor.examine(good(), false).get_double("blind_class_loss") + 1e-9;
  ASSERT_EQ(warnings(doctor, blind).size(), 1u);
  EXPECT_NE(warnings(doctor, blind)[0].find("does not look at its images"), std::string::npos);
  EXPECT_TRUE(warnings(doctor, blind, true).empty());
  blind.objects = 0;  // where nothing is to be seen, nothing can be said
  EXPECT_TRUE(warnings(doctor, blind).empty());
}

TEST(DetectorDoctor, queries_that_see_one_box_are_warned_of_behind_the_warm_up) {
  SetLossSums one_box = good();
  one_box.overlap = 2 * 0.81;
  const DetectorDoctor near(kCounts, with_queries(5), true), apart(kCounts, with_queries(5), false);
  ASSERT_EQ(warnings(near, one_box).size(), 1u);
  EXPECT_NE(warnings(near, one_box)[0].find("one and the same box"), std::string::npos);
  EXPECT_NE(warnings(near, one_box)[0].find("further apart"), std::string::npos);
  EXPECT_EQ(warnings(apart, one_box)[0].find("further apart"), std::string::npos);
  EXPECT_TRUE(warnings(near, one_box, true).empty());
  one_box.overlap = 2 * 0.79;
  EXPECT_TRUE(warnings(near, one_box).empty());
}

TEST(DetectorDoctor, more_objects_than_queries_are_warned_of_at_every_validation) {
  ObjectCounts counts = kCounts;
  counts.beyond = 2;
  const DetectorDoctor doctor(counts, with_queries(2), false);
  for (const bool is_warming_up : {true, false}) {
    const auto said = warnings(doctor, good(), is_warming_up);
    ASSERT_EQ(said.size(), 1u);
    EXPECT_NE(said[0].find("3 objects, and the model 2 queries"), std::string::npos) << said[0];
    EXPECT_NE(said[0].find("33.3 %"), std::string::npos) << said[0];
  }
}

}  // namespace
}  // namespace heddle::train
