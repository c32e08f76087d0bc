// Detectors at the command line: training on drawn shapes, exact resume, what
// they are asked afterwards, and bad input.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "heddle/base/json/json.h"
#include "tests/cli/run_folder.h"
#include "tests/cli/vision_model.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBackbone =
    R"({"model_type": "resnet", "norm": "group", "norm_groups": 4, "layer_type": "basic",
        "embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]})";

class Detect : public RunFolder {
 protected:
  static CliResult train(const std::string& run, const std::vector<std::string>& more) {
    const std::vector<std::string> words = words_of(
        "train --task object_detection --drawn shapes --drawn-images 40 --drawn-held-out 6 "
        "--drawn-height 64 --drawn-width 80 --d-model 16 --num-queries 10 --encoder-layers 1 "
        "--decoder-layers 2 --encoder-ffn-dim 24 --decoder-ffn-dim 24 "
        "--encoder-attention-heads 2 --decoder-attention-heads 2 --batch-size 8 "
        "--warmup-updates 5 --schedule constant --learning-rate 0.001 --validate-every 10 "
        "--checkpoint-every 4 --precision f32 --dropout 0.1");
    const std::vector<std::string> own = {"--backbone-config", kBackbone, "--out", path(run)};
    return run_heddle(with(with(words, own), more));
  }
  // What the validations of a run have found, line by line of its log.
  static std::vector<Json> findings(const std::string& run) {
    std::vector<Json> found;
    std::istringstream log(read_file(path(run) + "/log.jsonl"));
    for (std::string line; std::getline(log, line);) {
      const Json parsed = Json::parse(line);
      if (const Json* one = parsed.find("findings")) found.push_back(*one);
    }
    return found;
  }
  static CliResult tune(const std::string& from, const std::string& run,
                        const std::vector<std::string>& more) {
    const std::vector<std::string> words = words_of(
        "train --task object_detection --drawn shapes --drawn-images 4 --drawn-held-out 2 "
        "--drawn-height 64 --drawn-width 64 --max-updates 1 --precision f32");
    return run_heddle(with(with(words, {"--from", path(from), "--out", path(run)}), more));
  }
};

TEST_F(Detect, detector_is_trained_judged_and_asked) {
  const CliResult trained = train("run", {"--max-updates", "20"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("does not look at its images"), trained.err.npos) << trained.err;
  const std::vector<Json> doctor = findings("run");
  ASSERT_EQ(doctor.size(), 4u);  // two validations of the weights and of their moving average
  for (const Json& one : doctor) {
    EXPECT_GT(one.get_double("class_loss"), 0);
    EXPECT_GT(one.get_double("blind_class_loss"), 0);
    EXPECT_GE(one.get_double("class_error"), 0);
    EXPECT_LE(one.get_double("query_overlap"), 1);
    EXPECT_EQ(one.get_int("queries"), 10);
    EXPECT_LE(one.get_int("most_objects"), 8);
  }
  EXPECT_NE(read_file(path("run/report.html")).find("\"blind_class_loss\": "), std::string::npos);
  EXPECT_TRUE(fs::exists(path("run/best/preprocessor_config.json")));
  EXPECT_EQ(Json::load(path("run/best/config.json")).at("architectures").as_strings(),
            std::vector<std::string>{"DetrForObjectDetection"});
  const std::string image = fixture_image("rgb.png");
  const CliResult found = run_heddle(
      {"detect", path("run"), image, "--json", "--threshold", "0", "--page", path("page.html")});
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const Json line = Json::parse(found.out);
  EXPECT_EQ(line.get_string("image"), image);
  ASSERT_GT(line.at("objects").size(), 0u);
  const double width = line.get_double("width"), height = line.get_double("height");
  // What looks where: the same objects, in the order of the queries.
  const CliResult looked = run_heddle({"attention", path("run"), image, "--json"});
  ASSERT_EQ(looked.exit_code, 0) << looked.err;
  std::vector<double> scores, of_queries;
  for (const Json& one : line.at("objects").as_array()) scores.push_back(one.get_double("score"));
  const Json of_looked = Json::parse(looked.out);
  for (const Json& one : of_looked.at("objects").as_array()) {
    of_queries.push_back(one.get_double("score"));
    EXPECT_EQ(one.at("box").size(), 4u);
  }
  std::ranges::sort(of_queries, std::greater());
  ASSERT_EQ(of_queries.size(), scores.size());
  for (size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(of_queries[i], scores[i], 1e-4);
  double last = 1;
  for (const Json& one : line.at("objects").as_array()) {
    EXPECT_LE(one.get_double("score"), last);
    last = one.get_double("score");
    const Json::Array& box = one.at("box").as_array();
    EXPECT_GE(box[0].as_double(), 0);
    EXPECT_LT(box[0].as_double(), box[2].as_double());
    EXPECT_LE(box[2].as_double(), width);
    EXPECT_LT(box[1].as_double(), box[3].as_double());
    EXPECT_LE(box[3].as_double(), height);
  }
  EXPECT_TRUE(fs::exists(path("page.html")));
  const CliResult none = run_heddle({"detect", path("run"), image, "--threshold", "1"});
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_EQ(none.out, "");
  EXPECT_NE(none.err.find(image + ": no object of at least 1; the likeliest: "), std::string::npos)
      << none.err;
}

// The same for any number of threads; what was wrong at the last validation, most of it first.
TEST_F(Detect, report_shows_boxes_of_images_and_the_worst_mistakes) {
  const std::vector<std::string> more = {"--max-updates", "20", "--turns", "all"};
  for (const char* threads : {"1", "3"}) {
    const CliResult trained =
        train(std::string("shown") + threads, with(more, {"--threads", threads}));
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
  const std::string name = "/cache/shown_images.json";
  EXPECT_EQ(read_file(path("shown1") + name), read_file(path("shown3") + name));
  const Json shown = Json::load(path("shown1") + name);
  const size_t labels = shown.at("labels").size();
  EXPECT_GE(labels, 3u);
  ASSERT_EQ(shown.at("augmented").size(), 4u);
  int differing = 0;
  for (const Json& one : shown.at("augmented").as_array()) {
    EXPECT_EQ(one.at("image").get_int("width"), 80);
    ASSERT_EQ(one.at("views").size(), 2u);
    differing += one.at("views").as_array()[0] == one.at("views").as_array()[1] ? 0 : 1;
    ASSERT_GE(one.at("image").at("boxes").size(), 1u);
    for (const Json& box : one.at("image").at("boxes").as_array()) {
      EXPECT_LT(static_cast<size_t>(box.get_int("label")), labels);
      EXPECT_LE(box.at("box").as_array()[2].as_double(), 80);
      EXPECT_LE(box.at("box").as_array()[3].as_double(), 64);
    }
  }
  EXPECT_GE(differing, 2);                     // of two epochs the same turn by one chance in eight
  ASSERT_EQ(shown.at("mistakes").size(), 6u);  // so little training finds not all of any image
  int64_t before = 1000;
  for (const Json& one : shown.at("mistakes").as_array()) {
    const auto marked = [&](const char* list, const char* mark) {
      const Json::Array& boxes = one.at("image").at(list).as_array();
      return std::ranges::count_if(boxes, [&](const Json& box) { return box.contains(mark); });
    };
    EXPECT_EQ(std::ssize(one.at("image").at("boxes").as_array()), one.get_int("objects"));
    EXPECT_EQ(marked("boxes", "missed"), one.get_int("missed"));
    EXPECT_EQ(marked("found", "wrong"), one.get_int("wrong"));
    const int64_t wrong = one.get_int("missed") + one.get_int("wrong");
    EXPECT_GT(wrong, 0);
    EXPECT_LE(wrong, before);
    before = wrong;
  }
  const std::string page = read_file(path("shown1/report.html"));
  EXPECT_LT(page.size(), 1'500'000u);
  EXPECT_NE(page.find(shown.at("mistakes").as_array()[0].get_string("name")), page.npos);
}

TEST_F(Detect, swin_stands_below_a_detector) {
  const std::string swin =
      R"({"model_type": "swin", "image_size": 64, "patch_size": 4, "embed_dim": 8,
          "depths": [1, 2], "num_heads": [2, 2], "window_size": 4})";
  const std::vector<std::string> words = {"--backbone-config", swin, "--max-updates", "4"};
  ASSERT_EQ(train("swin", words).exit_code, 0);
  ASSERT_EQ(train("swin3", with(words, {"--threads", "3"})).exit_code, 0);
  EXPECT_EQ(weights("swin3"), weights("swin"));
  const std::string image = fixture_image("rgb.png");
  const CliResult found = run_heddle({"detect", path("swin"), image, "--threshold", "0"});
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_EQ(std::ranges::count(found.out, '\n'), 10);  // as many as there are queries
}

TEST_F(Detect, explained_call_is_the_last_of_its_kind_and_queries_are_of_no_cell) {
  ASSERT_EQ(train("explained", {"--max-updates", "1"}).exit_code, 0);
  const std::string image = fixture_image("rgb.png");
  const auto explain = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"explain", path("explained"), image});
    return run_heddle(flags);
  };
  const CliResult heads =
      run_heddle({"attention", path("explained"), image, "--no-importance", "--json"});
  ASSERT_EQ(heads.exit_code, 0) << heads.err;
  const Json looked = Json::parse(heads.out);
  for (const Json& head : looked.at("heads").as_array()) {
    const bool is_encoder = head.get_string("title").starts_with("encoder");
    EXPECT_EQ(head.at("distance").is_null(), !is_encoder) << head.get_string("title");
  }
  const CliResult last = explain({});
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_NE(last.out.find("cross layer 1, head 0"), last.out.npos) << last.out;
  EXPECT_EQ(last.out.find("query query"), last.out.npos) << last.out;
  const CliResult encoder = explain({"--kind", "encoder", "--cell", "0,0"});
  ASSERT_EQ(encoder.exit_code, 0) << encoder.err;
  EXPECT_NE(encoder.out.find("encoder layer 0, head 0 (of layers 0 to 0"), encoder.out.npos)
      << encoder.out;
  EXPECT_NE(encoder.out.find("query row 0, column 0"), encoder.out.npos) << encoder.out;
  const CliResult decoder = explain({"--kind", "decoder", "--layer", "0"});
  ASSERT_EQ(decoder.exit_code, 0) << decoder.err;
  EXPECT_NE(decoder.out.find("decoder layer 0"), decoder.out.npos) << decoder.out;
  expect_refused(explain({"--cell", "0,0"}), 2,
                 "are of no cell; leave --cell out, and give --query");
  expect_refused(explain({"--kind", "self"}), 2, "of the kinds encoder, decoder, cross");
}

TEST_F(Detect, scores_of_sigmoids_have_a_report_without_a_blind_model) {
  const CliResult trained = train("sigmoids", {"--max-updates", "2", "--class-loss", "mal"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(trained.err.find("no report"), trained.err.npos) << trained.err;
  ASSERT_FALSE(findings("sigmoids").empty());
  EXPECT_FALSE(findings("sigmoids")[0].contains("blind_class_loss"));
  EXPECT_NE(read_file(path("sigmoids/report.html")).find("\"query_overlap\": "), std::string::npos);
}

TEST_F(Detect, explained_query_is_the_surest_or_the_one_that_is_asked_for) {
  ASSERT_EQ(train("queries", {"--max-updates", "2"}).exit_code, 0);
  const std::string image = std::string(kFixtures) + "/images/rgb.png";
  const auto explain = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"explain", path("queries"), image});
    return run_heddle(flags);
  };
  const CliResult looked =
      run_heddle({"attention", path("queries"), image, "--no-importance", "--json"});
  ASSERT_EQ(looked.exit_code, 0) << looked.err;
  std::vector<double> scores;
  const Json of_looked = Json::parse(looked.out);
  for (const Json& one : of_looked.at("objects").as_array()) {
    scores.push_back(one.get_double("score"));
  }
  ASSERT_EQ(scores.size(), 10u);
  const auto surest = std::ranges::max_element(scores) - scores.begin();
  for (const char* kind : {"cross", "decoder"}) {
    const CliResult best = explain({"--kind", kind});
    ASSERT_EQ(best.exit_code, 0) << best.err;
    EXPECT_NE(best.out.find(", query " + std::to_string(surest) + ": "), best.out.npos) << best.out;
    EXPECT_EQ(explain({"--kind", kind, "--query", std::to_string(surest)}).out, best.out);
    const auto other = surest == 7 ? 3 : 7;
    const CliResult asked = explain({"--kind", kind, "--query", std::to_string(other)});
    ASSERT_EQ(asked.exit_code, 0) << asked.err;
    EXPECT_NE(asked.out.find(", query " + std::to_string(other) + ": "), asked.out.npos)
        << asked.out;
    EXPECT_NE(asked.out, best.out);
  }
  const auto refused = [](const CliResult& result, const std::string& part) {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find(part), result.err.npos) << result.err;
  };
  refused(explain({"--query", "10"}), "has queries 0 to 9");
  refused(explain({"--query=-1"}), "has queries 0 to 9");
  refused(explain({"--kind", "encoder", "--query", "0"}), "are cells of the image");
  refused(run_heddle({"explain", path("queries"), "--query", "0"}), "give the image behind");
}

TEST_F(Detect, noised_queries_are_trained_in_the_formats_of_the_machine) {
  for (const char* precision : {"f32", "auto"}) {
    const CliResult trained = train(std::string("noised-") + precision,
                                    {"--max-updates", "3", "--denoising-groups", "2", "--precision",
                                     precision, "--recompute", "true"});
    EXPECT_EQ(trained.exit_code, 0) << precision << ": " << trained.err;
  }
}

TEST_F(Detect, additions_are_trained_together_and_read_back) {
  const std::vector<std::string> additions = {
      "--conditional-queries", "true", "--class-loss",  "mal", "--dense-targets", "3",
      "--denoising-groups",    "2",    "--max-updates", "6"};
  const auto with = [&](const std::string& flag, const std::string& value) {
    std::vector<std::string> words = additions;
    words.insert(words.end(), {flag, value});
    return words;
  };
  const CliResult trained = train("additions", with("--threads", "1"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(trained.err.find("does not look at its images"), trained.err.npos) << trained.err;
  ASSERT_EQ(train("additions3", with("--threads", "3")).exit_code, 0);
  EXPECT_EQ(weights("additions3"), weights("additions"));
  const Json config = Json::load(path("additions/last/config.json"));
  EXPECT_EQ(config.get_string("class_loss"), "mal");
  EXPECT_TRUE(config.at("conditional_queries").as_bool());
  const std::string image = std::string(kFixtures) + "/images/rgb.png";
  const CliResult looked = run_heddle({"attention", path("additions"), image, "--json"});
  ASSERT_EQ(looked.exit_code, 0) << looked.err;
  const CliResult explained = run_heddle({"explain", path("additions"), image, "--head", "1"});
  ASSERT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_NE(explained.out.find("cross layer 1, head 1"), explained.out.npos) << explained.out;
  const CliResult found =
      run_heddle({"detect", path("additions"), image, "--json", "--threshold", "0"});
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const Json line = Json::parse(found.out);
  for (const Json& one : line.at("objects").as_array()) {
    EXPECT_GT(one.get_double("score"), 0);
    EXPECT_LT(one.get_double("score"), 1);
  }
  const CliResult exported =
      run_heddle({"export", path("additions"), "--out", path("additions-exported")});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const std::string said = exported.out + exported.err;
  EXPECT_NE(said.find("conditional_queries true"), said.npos) << said;
  EXPECT_NE(said.find("class_loss mal"), said.npos) << said;
}

TEST_F(Detect, threads_and_stops_change_no_bit) {
  expect_same_for_threads_and_stops(train, "whole", 12, 7);
}

TEST_F(Detect, threads_and_stops_change_no_bit_of_what_restores_noise) {
  const auto train_noised = [](const std::string& run, const std::vector<std::string>& more) {
    return train(run, with(more, {"--denoising-groups", "2"}));
  };
  expect_same_for_threads_and_stops(train_noised, "restored", 8, 5);
}

TEST_F(Detect, model_goes_on_with_other_classes_at_another_size) {
  ASSERT_EQ(train("first", {"--max-updates", "4"}).exit_code, 0);
  const CliResult tuned =
      tune("first", "tuned",
           words_of("--drawn cells --drawn-images 8 --drawn-height 96 --drawn-width 128 "
                    "--shortest-edge 64 --max-updates 2 --backbone-learning-rate-factor 0.1"));
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_NE(tuned.err.find("class_labels_classifier"), tuned.err.npos) << tuned.err;
  EXPECT_EQ(
      Json::load(path("tuned/best/preprocessor_config.json")).at("size").get_int("shortest_edge"),
      64);
  EXPECT_EQ(Json::load(path("tuned/best/config.json")).at("id2label").size(), 3u);
}

TEST_F(Detect, more_objects_than_queries_are_warned_of) {
  const CliResult few = train("few", {"--max-updates", "1", "--num-queries", "2"});
  ASSERT_EQ(few.exit_code, 0) << few.err;
  EXPECT_NE(few.err.find("it can never find more"), few.err.npos) << few.err;
  EXPECT_NE(few.err.find("give --num-queries "), few.err.npos) << few.err;
  ASSERT_FALSE(findings("few").empty());
  const std::vector<std::string> warnings = findings("few")[0].at("warnings").as_strings();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("it can never find more"), std::string::npos) << warnings[0];
}

TEST_F(Detect, table_is_judged_by_the_names_of_its_classes) {
  ASSERT_EQ(train("judge", {"--max-updates", "1"}).exit_code, 0);
  fs::create_directories(path("table/images"));
  fs::copy_file(fixture_image("rgb.png"), path("table/images/a.png"));
  write_file(path("table/images.tsv"), "split\timage\nval\tgone\ntest\ta\n");
  const std::string header = "split\timage\tclass\txmin\tymin\txmax\tymax\n";
  write_file(path("table/boxes.tsv"), header + "test\ta\t0\t2\t2\t9999\t9\n");
  const auto classes_with_objects = [&] {
    const CliResult judged = run_heddle({"eval", path("judge"), "--data", path("table"), "--json"});
    EXPECT_EQ(judged.exit_code, 0) << judged.err;
    std::vector<std::string> names;
    const Json line = Json::parse(judged.out);
    EXPECT_EQ(line.get_string("part"), "test");
    EXPECT_EQ(line.get_int("images"), 1);
    for (const auto& [name, scores] : line.at("classes").as_object()) {
      if (scores.get_double("map") >= 0) names.push_back(name);
    }
    return names;
  };
  EXPECT_EQ(classes_with_objects(), std::vector<std::string>{"circle"});
  write_file(path("table/classes.txt"), "ring\ncircle\n");
  EXPECT_EQ(classes_with_objects(), std::vector<std::string>{"ring"});
  write_file(path("table/boxes.tsv"), header);
  const CliResult empty = run_heddle({"eval", path("judge"), "--data", path("table")});
  EXPECT_EQ(empty.exit_code, 0) << empty.err;
  EXPECT_NE(empty.err.find("nothing to find"), empty.err.npos) << empty.err;
  EXPECT_TRUE(empty.out.starts_with("test: mAP none, mAP50 none")) << empty.out;
  EXPECT_EQ(empty.out.find('-'), empty.out.npos) << empty.out;
  fs::remove(path("table/classes.txt"));
  write_file(path("table/boxes.tsv"), header + "test\ta\t6\t2\t2\t9\t9\n");
  const CliResult many = run_heddle({"eval", path("judge"), "--data", path("table")});
  EXPECT_EQ(many.exit_code, 3);
  EXPECT_NE(many.err.find("the model has 6"), many.err.npos) << many.err;
  EXPECT_EQ(many.err.find("class_names"), many.err.npos) << many.err;
}

TEST_F(Detect, settings_that_fit_no_model_are_refused_before_images_are_read) {
  write_file(path("junk.json"), "no JSON");
  const CliResult refused =
      run_heddle({"train", "--task", "object_detection", "--data", path("junk.json"), "--d-model",
                  "18", "--max-updates", "1", "--out", path("none")});
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_NE(refused.err.find("d_model is 18"), refused.err.npos) << refused.err;
  expect_refused(train("none", {"--cache-edge", "20"}), 2, "is for images in files");
  EXPECT_FALSE(fs::exists(path("none")));
}

TEST_F(Detect, objects_are_judged_as_their_file_has_them) {
  ASSERT_EQ(train("odd", {"--max-updates", "1"}).exit_code, 0);
  fs::create_directories(path("uncleaned"));
  fs::copy_file(std::string(kFixtures) + "/images/rgb.png", path("uncleaned/a.png"));
  write_file(path("uncleaned/test.json"), R"({
    "images": [{"id": 1, "file_name": "a.png", "height": 3, "width": 5}],
    "categories": [{"id": 1, "name": "circle"}],
    "annotations": [
      {"id": 1, "image_id": 1, "category_id": 1, "bbox": [2, 2, 0, 9], "area": 0},
      {"id": 2, "image_id": 1, "category_id": 1, "bbox": [9000, 2, 200, 200], "area": 40000},
      {"id": 3, "image_id": 1, "category_id": 1, "bbox": [-2, 2, 9, 9], "area": 81}]})");
  const CliResult judged = run_heddle({"eval", path("odd"), "--data", path("uncleaned"), "--json"});
  ASSERT_EQ(judged.exit_code, 0) << judged.err;
  const Json line = Json::parse(judged.out);
  EXPECT_EQ(line.get_int("objects"), 3);
  EXPECT_GE(line.get_double("map_large"), 0);  // the one outside is to be found
  EXPECT_EQ(line.get_double("map_medium"), -1);
  EXPECT_EQ(judged.err.find("dropped"), judged.err.npos) << judged.err;
  EXPECT_EQ(judged.err.find("clipped"), judged.err.npos) << judged.err;
  EXPECT_NE(judged.err.find("1 image of another size than the file says"), judged.err.npos)
      << judged.err;
}

TEST_F(Detect, processor_that_crops_is_refused) {
  ASSERT_EQ(train("crops", {"--max-updates", "1"}).exit_code, 0);
  const std::string file = path("crops/best/preprocessor_config.json");
  Json prepared = Json::load(file);
  prepared["do_center_crop"] = true;
  prepared["crop_size"] = Json::object({{"height", 32}, {"width", 32}});
  write_file(file, prepared.dump());
  const std::string image = fixture_image("rgb.png");
  const auto tuned = [](const std::vector<std::string>& more) {
    return tune("crops/best", "crops-on", more);
  };
  for (const CliResult& result : {run_heddle({"detect", path("crops"), image}), tuned({})}) {
    expect_refused(result, 3, "crops images; boxes would lie elsewhere");
  }
  const CliResult resized = tuned({"--shortest-edge", "64"});  // which crops nothing
  EXPECT_EQ(resized.exit_code, 0) << resized.err;
}

// Its weights are a checkpoint's, frozen or not, and pixels become numbers as its folder says;
// images keep the size that a detector's have.
TEST_F(Detect, a_checkpoint_is_what_a_detector_begins_with) {
  for (const auto& [name, fixture] : {std::pair<std::string, std::string>{"vit", "vit"},
                                      {"swin", "swin"},
                                      {"resnet", "../resnet/basic"}}) {
    SCOPED_TRACE(name);
    write_vision_model(path(name), fixture);
    const auto theirs = SafetensorsFile::open(path(name + "/model.safetensors"));
    const CliResult trained = train(
        name + "-run", {"--backbone", path(name), "--freeze", "backbone", "--max-updates", "2"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const auto ours = SafetensorsFile::open(path(name + "-run/last/model.safetensors"));
    const std::string inner = "model.backbone.conv_encoder.model.";
    int64_t same = 0;
    for (const std::string& tensor : ours.names()) {
      if (!tensor.starts_with(inner)) continue;
      const std::string bare = tensor.substr(inner.size());
      const auto there = std::ranges::find_if(theirs.names(), [&](const std::string& n) {
        return n == bare || n.ends_with("." + bare);
      });
      if (there == theirs.names().end()) {
        EXPECT_TRUE(bare.starts_with("hidden_states_norms.")) << bare;
        continue;
      }
      EXPECT_EQ(theirs.info(*there).floats(), ours.info(tensor).floats()) << bare;
      ++same;
    }
    EXPECT_GE(same, 20);
    const Json processor = Json::load(path(name + "-run/last/preprocessor_config.json"));
    EXPECT_EQ(processor.at("image_mean").dump(), "[0.5, 0.5, 0.5]");
    EXPECT_FALSE(processor.at("do_resize").as_bool());
    const CliResult found = run_heddle({"detect", path(name + "-run"), fixture_image("rgb.png")});
    EXPECT_EQ(found.exit_code, 0) << found.err;
  }
  const CliResult tuned = train("begun", {"--backbone", path("resnet"), "--max-updates", "2"});
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  expect_refused(tune("begun", "both", {"--backbone", path("resnet")}), 2, "give one of them");
  expect_refused(train("gone", {"--backbone", path("gone-model")}), 3, "gone-model");
}

TEST_F(Detect, settings_without_effect_are_refused) {
  expect_refused(train("none", {"--val-data", path("none.json")}), 2, "--drawn-held-out");
  expect_refused(train("none", {"--longest-edge", "100"}), 2, "--shortest-edge");
  EXPECT_FALSE(fs::exists(path("none")));
}

TEST_F(Detect, bad_input_is_refused_by_name) {
  ASSERT_EQ(train("model", {"--max-updates", "1"}).exit_code, 0);
  write_file(path("text.jpg"), "not an image");
  const std::string image = fixture_image("rgb.png");
  expect_refused(run_heddle({"detect", path("model"), path("text.jpg")}), 3, "text.jpg");
  EXPECT_EQ(run_heddle({"detect", path("model"), path("text.jpg"), image, "--skip-bad"}).exit_code,
            0);
  EXPECT_EQ(run_heddle({"detect", path("model"), path("text.jpg"), "--skip-bad"}).exit_code, 3);
  expect_refused(run_heddle({"detect", path("model"), path("gone.png")}), 3, "gone.png");
  expect_refused(run_heddle({"embed", path("model"), image, "--pooling", "cls"}), 2,
                 "has no class token; take --pooling mean");
  expect_refused(run_heddle({"eval", path("model"), "--data", path("gone"), "--views", "2"}), 2,
                 "--views is of models that classify images");
  expect_refused(run_heddle({"detect", path("model"), image, "--threshold", "2"}), 2,
                 "--threshold is 2");
  expect_refused(run_heddle({"detect", std::string(kFixtures) + "/texts/fill", image}), 3,
                 "a model is needed that reads images; this bert does not");
  expect_refused(train("grey", {"--max-updates", "1", "--num-channels", "1"}), 2,
                 "give --num-channels 3");
  EXPECT_FALSE(fs::exists(path("grey")));
  expect_refused(run_heddle({"train", "--task", "object_detection", "--out", path("none")}), 2,
                 "needs --data");
  expect_refused(
      train("refused", {"--max-updates", "1", "--backbone-config", R"({"model_type": "bert"})"}), 3,
      "a model is needed that reads images; this bert does not");
  expect_refused(train("refused", {"--backbone-config", "{"}), 2, "--backbone-config is '{'");
  EXPECT_FALSE(fs::exists(path("refused")));
}

}  // namespace
}  // namespace heddle::testing
