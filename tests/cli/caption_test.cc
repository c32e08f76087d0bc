// Captioners at the command line: training on drawn shapes, exact resume, captions, their page, how
// they are judged, what a pass gives and costs, and models or files that do not fit.
#include <algorithm>
#include <filesystem>
#include <set>

#include "corpora/captions/caption.h"
#include "heddle/base/json/json.h"
#include "heddle/data/captioning/sources.h"
#include "heddle/infer/decoding/caption.h"
#include "heddle/vision/image.h"
#include "tests/cli/run_folder.h"
#include "tests/cli/vision_model.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBackbone =
    R"({"model_type": "resnet", "norm": "group", "norm_groups": 2, "layer_type": "plain",
        "stem": "cifar", "downsample": "pool", "embedding_size": 4, "hidden_sizes": [8, 8],
        "depths": [0, 0]})";

class CaptionCommand : public RunFolder {
 protected:
  static void SetUpTestSuite() {
    RunFolder::SetUpTestSuite();
    const CliResult drawn =
        run_heddle({"shapes", "--task", "captioning", "--out", path("set"), "--count", "24",
                    "--held-out", "6", "--size", "32", "--most-objects", "3"});
    ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
    for (const auto& [run, trained] :
         {std::pair{"run", train("run", {"--max-updates", "20"})},
          {"blocks", train_blocks("blocks", {"--max-updates", "20"})}}) {
      ASSERT_EQ(trained.exit_code, 0) << run << trained.err;
      EXPECT_EQ(trained.err.find("warning"), trained.err.npos) << trained.err;
    }
  }
  static CliResult train(const std::string& run, const std::vector<std::string>& more) {
    return train_any(run, with({"--embedding-size", "8"}, more));
  }
  static CliResult train_blocks(const std::string& run, const std::vector<std::string>& more) {
    return train_any(run, with(words_of("--decoder-type transformer --decoder-layers 2 "
                                        "--decoder-attention-heads 2 --decoder-ffn-dim 24"),
                               more));
  }
  static CliResult train_any(const std::string& run, const std::vector<std::string>& more) {
    const std::vector<std::string> words = words_of(
        "train --task captioning --memory-size 8 --hidden-size 16 "
        "--batch-size 8 --warmup-updates 5 --validate-every 10 --checkpoint-every 4 "
        "--schedule constant --precision f32 --judged-images 3");
    return run_heddle(with(
        with(words, {"--backbone-config", kBackbone, "--data", path("set"), "--out", path(run)}),
        more));
  }
  static std::string image(int number) { return path(fmt::format("set/test/00000{}.png", number)); }
};

TEST_F(CaptionCommand, threads_and_stops_change_no_bit) {
  expect_same_for_threads_and_stops(train, "bits", 14, 7);
  expect_same_for_threads_and_stops(train_blocks, "bits-blocks", 14, 7);
}

TEST_F(CaptionCommand, a_transformer_serves_all_that_an_lstm_does) {
  const std::vector<std::string> ask = {"caption", path("blocks"), image(1), image(2), "--beam",
                                        "3",       "--n-best",     "2"};
  std::vector<std::string> on_three = ask;
  on_three.insert(on_three.end(), {"--threads", "3"});
  const CliResult found = run_heddle(ask);
  ASSERT_EQ(found.exit_code, 0) << found.err;
  EXPECT_EQ(run_heddle(on_three).out, found.out);
  const CliResult alone =
      run_heddle({"caption", path("blocks"), image(2), "--beam", "3", "--n-best", "2"});
  EXPECT_TRUE(found.out.ends_with(alone.out)) << found.out << alone.out;
  const CliResult maps = run_heddle({"caption", path("blocks"), image(1), "--json", "--maps"});
  ASSERT_EQ(maps.exit_code, 0) << maps.err;
  const Json line = Json::parse(maps.out);
  for (const Json& word : line.at("words").as_array()) {
    EXPECT_EQ(word.at("weights").size(), 64u);
    EXPECT_EQ(word.find("gate"), nullptr);
  }
  const CliResult judged = run_heddle({"eval", path("blocks"), "--data", path("set"), "--json"});
  ASSERT_EQ(judged.exit_code, 0) << judged.err;
  expect_refused(train_blocks("gru", {"--cell", "gru"}), 3, "cell is gru");
}

// What forward gives of a caption is what was written: its tokens are the likeliest ones, its maps
// the means that --maps shows.
TEST_F(CaptionCommand, a_pass_over_tensors_gives_logits_and_maps) {
  for (const char* run : {"run", "blocks"}) {
    const CliResult written =
        run_heddle({"caption", path(run), image(1), "--json", "--maps", "--precision", "f32"});
    ASSERT_EQ(written.exit_code, 0) << written.err;
    const Json line = Json::parse(written.out);
    const CaptionReader reader = load_captioner(path(run));
    std::vector<int64_t> ids = {reader.model().facts().decoder_start_token_id};
    for (const int32_t id : reader.loaded.target().encode(line.get_string("text"))) {
      ids.push_back(id);
    }
    const auto n = std::ssize(ids);
    std::vector<float> rows(32 * 32 * 3), pixels;
    reader.processor.normalize(reader.processor.fit(read_image(image(1))), rows.data());
    for (size_t c = 0; c < 3; ++c) {
      for (size_t p = 0; p < 32 * 32; ++p) pixels.push_back(rows[p * 3 + c]);
    }
    const std::string in = path("in.safetensors"), out = path("out.safetensors");
    write_safetensors(
        in, {{"pixel_values", DType::f32, {1, 3, 32, 32}, std::as_bytes(std::span(pixels))},
             {"decoder_input_ids", DType::i64, {1, n}, std::as_bytes(std::span(ids))}});
    const CliResult forward =
        run_heddle({"forward", path(run), "--input", in, "--output", out, "--all"});
    ASSERT_EQ(forward.exit_code, 0) << forward.err;
    EXPECT_EQ(forward.err, "");
    const auto file = SafetensorsFile::open(out);
    EXPECT_EQ(file.info("encoder_last_hidden_state").shape, (std::vector<int64_t>{1, 64, 8}));
    const int64_t vocab = file.info("logits").shape[2];
    std::vector<float> logits = floats(file, "logits");
    for (int64_t t = 0; t + 1 < n; ++t) {
      float* const row = logits.data() + t * vocab;
      for (const int special : {0, 1, 2}) row[special] = -1e9f;  // never written
      EXPECT_EQ(std::max_element(row, row + vocab) - row, ids[static_cast<size_t>(t + 1)]);
    }
    const int64_t last = std::string(run) == "blocks" ? 1 : 0, heads = last + 1;
    const std::string name = fmt::format("cross_attentions.{}", last);
    EXPECT_EQ(file.info(name).shape, (std::vector<int64_t>{1, heads, n, 64}));
    const std::vector<float> maps = floats(file, name);
    std::vector<float> means(static_cast<size_t>(n * 64));
    for (size_t i = 0; i < maps.size(); ++i) {
      means[i % means.size()] += maps[i] / static_cast<float>(heads);
    }
    const Json::Array& words = line.at("words").as_array();
    ASSERT_EQ(std::ssize(words), n - 1);  // a token a word
    for (size_t w = 0; w < words.size(); ++w) {
      for (size_t c = 0; c < 64; ++c) {
        EXPECT_NEAR(words[w].at("weights").as_array()[c].as_double(),
                    static_cast<double>(means[w * 64 + c]), 1e-5);
      }
    }
    expect_refused(run_heddle({"forward", path(run), image(1), "--output", out}), 3,
                   "decoder_input_ids");
  }
}

TEST_F(CaptionCommand, costs_are_counted_of_image_and_caption) {
  for (const char* run : {"run", "blocks"}) {
    const auto analysis = [&](const std::vector<std::string>& more) {
      std::vector<std::string> words = {"analyze", path(run), "--json"};
      words.insert(words.end(), more.begin(), more.end());
      const CliResult result = run_heddle(words);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      return Json::parse(result.out);
    };
    const Json one = analysis({});
    const Json info = Json::parse(run_heddle({"info", path(run), "--json"}).out);
    EXPECT_EQ(one.get_int("parameters"), info.at("parameters").get_int("total"));
    EXPECT_EQ(one.get_int("length"), 64);
    EXPECT_EQ(one.get_int("target_length"), 16);
    EXPECT_EQ(one.at("image").dump(), "[32, 32]");
    const int64_t forward = one.at("flops").get_int("forward");
    EXPECT_EQ(analysis({"--batch", "3"}).at("flops").get_int("forward"), 3 * forward);
    EXPECT_LT(analysis({"--target-length", "5"}).at("flops").get_int("forward"), forward);
    expect_refused(run_heddle({"analyze", path(run), "--length", "5"}), 2, "reads images");
    const CliResult text = run_heddle({"analyze", path(run), "--image", "32,64"});
    EXPECT_NE(text.out.find("64 states each, 16 tokens of a caption"), text.out.npos) << text.out;
  }
  EXPECT_EQ(run_heddle({"positions", path("blocks")}).exit_code, 0);
}

TEST_F(CaptionCommand, images_get_captions_and_words_their_maps) {
  EXPECT_TRUE(fs::exists(path("run/best/preprocessor_config.json")));
  EXPECT_TRUE(fs::exists(path("run/best/tokenizer.model")));
  const CliResult plain = run_heddle({"caption", path("run"), image(1), image(2)});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  std::istringstream lines(plain.out);
  std::string first;
  std::getline(lines, first);
  ASSERT_TRUE(first.starts_with(image(1) + "\t")) << first;
  const CliResult json = run_heddle({"caption", path("run"), image(1), "--json", "--maps"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const Json line = Json::parse(json.out);
  EXPECT_EQ(line.get_string("text"), first.substr(image(1).size() + 1));
  EXPECT_EQ(line.at("grid").dump(), "[8, 8]");
  std::string joined;
  for (const Json& word : line.at("words").as_array()) {
    EXPECT_EQ(word.at("weights").size(), 64u);
    EXPECT_GT(word.get_double("gate"), 0);
    EXPECT_LT(word.get_double("gate"), 1);
    joined += (joined.empty() ? "" : " ") + word.get_string("text");
  }
  EXPECT_EQ(joined, line.get_string("text"));
}

TEST_F(CaptionCommand, several_captions_come_best_first_and_draws_differ) {
  const CliResult best = run_heddle({"caption", path("run"), image(1), "--n-best", "3", "--json"});
  ASSERT_EQ(best.exit_code, 0) << best.err;
  const Json line = Json::parse(best.out);
  const Json::Array& all = line.at("n_best").as_array();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_GE(all[0].get_double("score"), all[1].get_double("score"));
  const std::vector<std::string> draw = {"caption", path("run"), image(1), image(1), "--sample"};
  const CliResult drawn = run_heddle(draw), again = run_heddle(draw);
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_EQ(drawn.out, again.out);
  const size_t middle = drawn.out.find('\n') + 1;
  EXPECT_NE(drawn.out.substr(0, middle), drawn.out.substr(middle));  // of one image, two draws
}

// Of the judged images those of which most was wrong, each text once, beside what is so.
TEST_F(CaptionCommand, report_shows_captions_and_the_worst_mistakes) {
  ASSERT_EQ(train("shown", {"--max-updates", "20", "--threads", "3"}).exit_code, 0);
  const std::string name = "/cache/shown_images.json";
  EXPECT_EQ(read_file(path("shown") + name), read_file(path("run") + name));
  const Json shown = Json::load(path("run") + name);
  EXPECT_FALSE(shown.contains("written"));
  ASSERT_EQ(shown.at("augmented").size(), 6u);
  const Json& first = shown.at("augmented").as_array()[0];
  EXPECT_TRUE(first.get_string("name").ends_with("train/000001.png")) << first.get_string("name");
  const CaptionSource known = read_caption_lines(path("set/train.jsonl"));
  EXPECT_EQ(first.at("captions").as_strings(), known.captions[0]);
  ASSERT_GE(shown.at("mistakes").size(), 1u);
  ASSERT_LE(shown.at("mistakes").size(), 3u);  // as many as are judged
  size_t before = 100;
  for (const Json& one : shown.at("mistakes").as_array()) {
    const Json::Array& written = one.at("written").as_array();
    EXPECT_LE(written.size(), before);
    before = written.size();
    std::set<std::string> texts;
    for (const Json& each : written) {
      const std::string& text = each.get_string("text");
      EXPECT_TRUE(texts.insert(text).second) << text;
      EXPECT_EQ(each.contains("truth"), parse_caption(text).has_value()) << text;
      if (each.contains("truth")) {
        EXPECT_NE(each.get_string("truth"), "") << text;
      }
      EXPECT_FALSE(std::ranges::count(one.at("captions").as_strings(), text)) << text;
    }
  }
  const std::string page = read_file(path("run/report.html"));
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_NE(page.find("data:image/png;base64,"), page.npos);
}

// Without scenes nothing is said to be a mistake: what was written stands beside the captions.
TEST_F(CaptionCommand, report_of_images_whose_scenes_are_unknown_shows_what_is_written) {
  fs::create_directories(path("unjudged"));
  std::string lines;
  for (int i = 1; i <= 4; ++i) {
    fs::copy(image(i), path(fmt::format("unjudged/{}.png", i)));
    lines += fmt::format("{{\"file_name\": \"{0}.png\", \"captions\": [\"a shape {0}\"]}}\n", i);
  }
  write_file(path("unjudged/train.jsonl"), lines);
  write_file(path("unjudged/val.jsonl"), lines);
  const CliResult trained =
      train("unjudged-run", {"--max-updates", "2", "--data", path("unjudged")});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Json shown = Json::load(path("unjudged-run/cache/shown_images.json"));
  EXPECT_EQ(shown.at("mistakes").size(), 0u);
  ASSERT_EQ(shown.at("written").size(), 4u);
  double before = 0;
  for (const Json& one : shown.at("written").as_array()) {
    const double chrf = one.at("written").as_array()[0].get_double("chrf");
    EXPECT_GE(chrf, before);
    before = chrf;
  }
}

TEST_F(CaptionCommand, page_holds_images_and_weights) {
  const CliResult made =
      run_heddle({"caption", path("run"), image(1), "--page", path("page.html")});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.err.find("1 image in"), made.err.npos) << made.err;
  EXPECT_NE(read_file(path("page.html")).find("\"weights\""), std::string::npos);
}

TEST_F(CaptionCommand, evaluation_judges_what_the_images_show) {
  const CliResult result = run_heddle({"eval", path("run"), "--data", path("set"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json sets = Json::parse(result.out).at("sets");
  for (const char* name : {"test", "unseen"}) {
    const Json& set = sets.at(name);
    EXPECT_EQ(set.get_int("images"), 6);
    EXPECT_GT(set.get_double("ppl"), 1);
    EXPECT_EQ(set.at("written").get_int("captions"), 6);
    EXPECT_GE(set.at("kinds").at("relation").get_double("grammatical"), 0);
    EXPECT_GE(set.get_double("bleu"), 0);
    EXPECT_EQ(set.at("precisions").size(), 4u);
    EXPECT_EQ(set.get_string("signature").substr(0, 6), "nrefs:");
  }
  const CliResult text =
      run_heddle({"eval", path("run"), "--data", path("set/val.jsonl"), "--beam", "2"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_TRUE(text.out.starts_with("all: ")) << text.out;  // it holds nothing out
  EXPECT_NE(text.out.find("asked for by kind"), text.out.npos) << text.out;
  EXPECT_NE(text.out.find("\n  BLEU  "), text.out.npos) << text.out;
}

// Other programs' "objects" are no scene: the line is named, and no more follows.
TEST_F(CaptionCommand, evaluation_passes_over_what_is_no_scene) {
  write_file(path("set/foreign.jsonl"),
             R"({"file_name": "test/000001.png", "captions": ["a dog"], "objects": [{"id": 3}]})");
  const CliResult result = run_heddle({"eval", path("run"), "--data", path("set/foreign.jsonl")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("foreign.jsonl: line 1"), result.err.npos) << result.err;
  EXPECT_NE(result.out.find("truth is not judged"), result.out.npos) << result.out;
}

// The captions that are written anyway, scored by heddle score over the same references.
TEST_F(CaptionCommand, bleu_of_images_whose_scenes_are_unknown_is_that_of_their_captions) {
  fs::create_directories(path("plain"));
  std::string lines, written, references[2];
  for (int i = 1; i <= 4; ++i) {
    fs::copy(image(i), path(fmt::format("plain/{}.png", i)));
    lines += fmt::format(
        "{{\"file_name\": \"{0}.png\", \"captions\": [\"there is a red circle\", \"a shape "
        "{0}\"]}}\n",
        i);
    references[0] += "there is a red circle\n", references[1] += fmt::format("a shape {}\n", i);
    const CliResult one = run_heddle({"caption", path("run"), image(i)});
    written += one.out.substr(one.out.find('\t') + 1);
  }
  write_file(path("plain/test.jsonl"), lines);
  write_file(path("plain/train.jsonl"), lines);
  write_file(path("written"), written);
  write_file(path("ref1"), references[0]);
  write_file(path("ref2"), references[1]);
  const CliResult judged = run_heddle({"eval", path("run"), "--data", path("plain"), "--json"});
  ASSERT_EQ(judged.exit_code, 0) << judged.err;
  const CliResult scored = run_heddle(
      {"score", "--hyp", path("written"), "--ref", path("ref1"), "--ref", path("ref2"), "--json"});
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const Json set = Json::parse(judged.out).at("sets").at("test"), score = Json::parse(scored.out);
  EXPECT_NEAR(set.get_double("bleu"), score.get_double("bleu"), 1e-9);
  EXPECT_EQ(set.get_string("signature"), score.get_string("signature"));
  EXPECT_EQ(set.find("judged"), nullptr);
}

// How many tensors of a captioner's backbone are in a checkpoint, to the bit, and how many not.
std::pair<int64_t, int64_t> compare_backbone(const std::string& checkpoint,
                                             const std::string& own) {
  const auto theirs = SafetensorsFile::open(checkpoint + "/model.safetensors");
  const auto ours = SafetensorsFile::open(own + "/last/model.safetensors");
  const std::string inner = "model.backbone.";
  std::pair<int64_t, int64_t> counts;
  for (const std::string& name : ours.names()) {
    if (!name.starts_with(inner)) continue;
    const std::string bare = name.substr(inner.size());
    const auto there = std::ranges::find_if(
        theirs.names(), [&](const std::string& n) { return n == bare || n.ends_with("." + bare); });
    const bool is_same =
        there != theirs.names().end() && theirs.info(*there).floats() == ours.info(name).floats();
    (is_same ? counts.first : counts.second) += 1;
  }
  return counts;
}

// A network of transformers is the grid; frozen its weights stay, else they are trained.
// Its folder says how images are prepared.
TEST_F(CaptionCommand, a_checkpoint_is_what_a_captioner_looks_by) {
  struct Case {
    std::string name, fixture, type, grid;
    int64_t tensors;
  };
  for (const Case& c :
       {Case{"vit", "vit", "vit", "[3, 3]", 10}, Case{"deit", "deit", "deit", "[3, 3]", 10},
        Case{"resnet", "../resnet/basic", "resnet", "[2, 2]", 30}}) {
    SCOPED_TRACE(c.name);
    const std::string looks = path(c.name);
    write_vision_model(looks, c.fixture);
    const int side = c.name == "resnet" ? 32 : 12;
    write_file(looks + "/preprocessor_config.json",
               fmt::format(R"({{"do_resize": true, "size": {{"height": {0}, "width": {0}}},
                   "resample": 2, "do_rescale": true, "rescale_factor": 0.00392156862745098,
                   "do_normalize": true, "image_mean": [0.5, 0.5, 0.5],
                   "image_std": [0.5, 0.5, 0.5]}})",
                           side));
    for (const bool is_frozen : {true, false}) {
      const std::string run = c.name + (is_frozen ? "-frozen" : "-tuned");
      std::vector<std::string> more = {"--backbone", looks, "--max-updates", "3"};
      if (is_frozen) more.insert(more.end(), {"--freeze", "backbone"});
      const CliResult trained = is_frozen ? train(run, more) : train_blocks(run, more);
      ASSERT_EQ(trained.exit_code, 0) << trained.err;
      const Json config = Json::load(path(run + "/last/config.json"));
      EXPECT_EQ(config.at("backbone_config").get_string("model_type"), c.type);
      const auto size = Json::load(path(run + "/last/preprocessor_config.json")).at("size");
      EXPECT_EQ(size.get_int("height"), side);
      const auto [same, changed] = compare_backbone(looks, path(run));
      EXPECT_GE(is_frozen ? same : changed, is_frozen ? c.tensors : 10);  // norms stay
      EXPECT_TRUE(!is_frozen || changed == 0) << changed;
      const CliResult found = run_heddle({"caption", path(run), image(1), "--json", "--maps"});
      ASSERT_EQ(found.exit_code, 0) << found.err;
      EXPECT_EQ(Json::parse(found.out).at("grid").dump(), c.grid);
    }
  }
  expect_refused(train("both", {"--backbone", path("vit"), "--from", path("run")}), 2,
                 "give one of them");
  expect_refused(train("none", {"--backbone", path("run")}), 3, "writes captions");
}

// Swin's classifiers have no norm of the last stage's map: it begins as any norm does.
TEST_F(CaptionCommand, a_swin_checkpoint_lacks_the_norm_of_its_map_alone) {
  const std::string looks = path("swin");
  write_vision_model(looks, "swin");
  const CliResult trained =
      train("swin-run", {"--backbone", looks, "--max-updates", "2", "--freeze", "backbone"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto [same, changed] = compare_backbone(looks, path("swin-run"));
  EXPECT_GT(same, 40);
  EXPECT_EQ(changed, 2);
  const auto made = SafetensorsFile::open(path("swin-run/last/model.safetensors"));
  const std::string norm = "model.backbone.hidden_states_norms.stage2.";
  EXPECT_EQ(made.info(norm + "weight").floats(), std::vector<float>(24, 1.0f));
  EXPECT_EQ(made.info(norm + "bias").floats(), std::vector<float>(24, 0.0f));
  const CliResult found = run_heddle({"caption", path("swin-run"), image(1)});
  EXPECT_EQ(found.exit_code, 0) << found.err;
}

// How its images are prepared comes along.
TEST_F(CaptionCommand, a_quantized_captioner_writes_captions) {
  for (const char* run : {"run", "blocks"}) {
    const std::string made = path(std::string(run) + "-int8");
    const CliResult quantized = run_heddle({"quantize", path(run), "--to", "int8", "-o", made});
    ASSERT_EQ(quantized.exit_code, 0) << quantized.err;
    EXPECT_EQ(Json::load(made + "/preprocessor_config.json"),
              Json::load(path(std::string(run) + "/last/preprocessor_config.json")));
    const CliResult found = run_heddle({"caption", made, image(1)});
    EXPECT_EQ(found.exit_code, 0) << found.err;
    const CliResult judged = run_heddle({"eval", made, "--data", path("set")});
    EXPECT_EQ(judged.exit_code, 0) << judged.err;
  }
}

TEST_F(CaptionCommand, models_and_files_that_do_not_fit_are_refused) {
  expect_refused(
      run_heddle({"translate", path("run"), image(1)}), 3,
      "reads images, and a model that reads texts is needed here; heddle caption, serve, eval "
      "--data, forward, positions and analyze take it");
  expect_refused(run_heddle({"generate", path("run"), "--prompt", "a"}), 3, "reads images");
  expect_refused(run_heddle({"classify", path("run"), image(1)}), 3, "writes captions");
  for (const char* command : {"attention", "explain"}) {
    expect_refused(run_heddle({command, path("run"), image(1)}), 3, "heddle caption IMAGE --page");
    expect_refused(run_heddle({command, path("run"), "--text", "a"}), 2, "reads images");
  }
  expect_refused(run_heddle({"caption", path("run"), path("set/val.jsonl")}), 3, "val.jsonl");
  expect_refused(run_heddle({"caption", path("run"), image(1), "--maps"}), 2, "--json");
  for (const char* length : {"0", "1", "1000001"}) {
    expect_refused(run_heddle({"caption", path("run"), image(1), "--max-length", length}), 2,
                   "--max-length is");
    expect_refused(run_heddle({"eval", path("run"), "--data", path("set"), "--max-length", length}),
                   2, "--max-length is");
  }
  write_vit(path("vit"));
  expect_refused(run_heddle({"caption", path("vit"), image(1)}), 3, "writes captions of images");
  expect_refused(run_heddle({"eval", path("run")}), 2, "--data");
  expect_refused(run_heddle({"eval", path("run"), "--data", path("set"), "--views", "2"}), 2,
                 "--views");
  const CliResult blind = train("blind", {"--max-updates", "1", "--attention-scoring", "none"});
  ASSERT_EQ(blind.exit_code, 0) << blind.err;
  expect_refused(run_heddle({"caption", path("blind"), image(1), "--json", "--maps"}), 3,
                 "mean of an image");
  EXPECT_EQ(run_heddle({"caption", path("blind"), image(1)}).exit_code, 0);
}

}  // namespace
}  // namespace heddle::testing
