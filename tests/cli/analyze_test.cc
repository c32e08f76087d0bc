// heddle analyze and heddle positions: what they print, and what they say of bad input.
#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "tests/cli/model_fixture.h"

namespace heddle::testing {
namespace {

class Analyze : public ModelFixture {};

void expect_refused(const std::vector<std::string>& arguments, int exit_code,
                    const std::string& part) {
  const CliResult result = run_heddle(arguments);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST(PositionsCommand, table_of_width_4_is_printed_as_in_the_literature) {
  const CliResult result = run_heddle({"positions", "--width", "4", "--positions", "3"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("    2    0.9093   -0.4161    0.0200    0.9998\n"), std::string::npos)
      << result.out;
}

TEST(PositionsCommand, json_holds_every_value) {
  const CliResult result =
      run_heddle({"positions", "--kind", "rotary", "--width", "6", "--positions", "2", "--json"});
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("values").size(), 2u);
  EXPECT_EQ(json.at("columns").size(), 3u);
  EXPECT_EQ(json.at("frequencies").as_array()[0].as_double(), 1);
}

TEST(PageFlag, pages_of_positions_and_costs_say_where_they_are) {
  const TempDir folder;
  const std::string page = (folder / "page.html").string();
  EXPECT_EQ(run_heddle({"positions", "--positions", "5", "--page", page}).err,
            "positions: 5 positions in " + page + "; open it in a browser\n");
  EXPECT_EQ(run_heddle({"analyze", "base", "--page", page}).err,
            "analyze: the costs in " + page + "; open it in a browser\n");
}

TEST(PositionsCommand, bad_input_is_said) {
  const TempDir folder;
  expect_refused({"positions", "--width", "5"}, 4, "even width, not 5");
  expect_refused({"positions", "--kind", "rotary", "--width", "3"}, 4, "must be even, not 3");
  expect_refused({"positions", "--kind", "learnt"}, 2, "learnt");
  expect_refused({"positions", "--positions", "-1"}, 2, "--positions is -1");
  expect_refused({"positions", "--positions", "100000000", "--width", "2"}, 2, "ask for fewer");
  expect_refused({"positions", "--kind", "rotary", "--base", "0"}, 2, "--base is 0");
  expect_refused({"positions", "no-such-model"}, 3, "no-such-model");
  expect_refused({"positions", "--base", "100"}, 2, "--base is of rotary positions");
  expect_refused({"positions", "--kind", "none", "--base", "100"}, 2, "--base is of rotary");
  expect_refused({"positions", "--kind", "rotary", "--layout", "halves"}, 2, "--layout is of sinu");
  expect_refused({"positions", "--kind", "rotary", "--frequencies", "paper"}, 2,
                 "--frequencies is of sinusoidal positions");
  expect_refused({"positions", "--stack", "decoder"}, 2, "--stack is of a model");
  expect_refused({"positions", "--page", (folder / "none" / "page.html").string()}, 3,
                 "does not exist");
  expect_refused({"positions", "--page", folder.path().string()}, 3, "it is a folder");
  expect_refused({"positions", "--page", (folder / "p.html").string(), "--positions", "100000"}, 2,
                 "too many for a page");
}

TEST_F(Analyze, base_is_printed_with_its_parameters) {
  const CliResult result = run_heddle({"analyze", "base"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("3,152,384 x 6 = 18,914,304\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("63,082,496\n"), std::string::npos) << result.out;
}

TEST_F(Analyze, images_are_cut_into_patches_and_windows) {
  const auto attention = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"analyze", "stack", "--json", "--set", "layers=48", "--set",
                               "heads=16", "--set", "d_model=1024"});
    return Json::parse(run_heddle(more).out).at("attention");
  };
  EXPECT_EQ(attention({"--image", "128"}).at("all").get_int("f32"), int64_t{768} << 30);
  EXPECT_EQ(attention({"--image", "224", "--patch", "16"}).get_int("entries"), 38'416);
  EXPECT_EQ(attention({"--image", "224", "--patch", "4", "--window", "7"}).get_int("entries"),
            153'664);
}

TEST_F(Analyze, model_directory_has_as_many_parameters_as_info_says) {
  const Json analysis = Json::parse(run_heddle({"analyze", model(), "--json"}).out);
  const Json info = Json::parse(run_heddle({"info", model(), "--json"}).out);
  EXPECT_EQ(analysis.get_int("parameters"), info.at("parameters").get_int("total"));
  EXPECT_EQ(analysis.at("bytes").at("weights").get_int("bf16"),
            info.at("bytes").get_int("weights_bf16"));
}

TEST_F(Analyze, page_of_a_run_is_titled_by_its_name) {
  const TempDir folder;
  std::filesystem::create_directory(folder / "m30k");
  std::filesystem::copy(model(), folder / "m30k" / "best",
                        std::filesystem::copy_options::recursive);
  const std::string page = (folder / "page.html").string();
  for (const auto& [name, called] :
       {std::pair{"m30k", "m30k"}, std::pair{"m30k/best", "m30k/best"}}) {
    const CliResult result = run_heddle({"analyze", (folder / name).string(), "--page", page});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(read_file(page).find(fmt::format("<title>What {} costs</title>", called)),
              std::string::npos)
        << called;
  }
}

TEST_F(Analyze, measured_curve_has_a_point_for_each_kind_of_layer) {
  const CliResult result = run_heddle({"analyze", "stack", "--json", "--measure", "--n", "70",
                                       "--d", "8", "--length", "4", "--seconds", "0.05"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json layers = Json::parse(result.out).at("layers");
  ASSERT_EQ(layers.at("kinds").size(), 4u);
  for (const Json& kind : layers.at("kinds").as_array()) {
    const auto& points = kind.at("measured").as_array();
    ASSERT_EQ(points.size(), 2u);  // 64 and 70 positions
    EXPECT_EQ(points[1].get_int("n"), 70);
    EXPECT_GT(points[1].get_double("milliseconds"), 0);
  }
  const auto& crossings = layers.at("crossings").as_array();
  ASSERT_EQ(crossings.size(), 2u);
  EXPECT_EQ(crossings[0].get_string("layer"), "recurrent");
  EXPECT_EQ(crossings[0].get_int("n"), 8);
  EXPECT_EQ(crossings[1].get_int("n"), 24);  // kernel 3
}

TEST_F(Analyze, folder_of_timm_is_read_as_the_family_it_is) {
  const TempDir folder;
  write_file(folder / "config.json",
             R"({"architecture": "vit_tiny_patch16_224", "num_classes": 1000,
                 "pretrained_cfg": {"input_size": [3, 224, 224]}})");
  for (const std::string& path : {folder.path().string(), (folder / "config.json").string()}) {
    const CliResult result = run_heddle({"analyze", path});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find(": 5,717,416 parameters"), result.out.npos)
        << result.out;  // timm's count
  }
}

TEST_F(Analyze, an_update_on_several_ranks_is_predicted_by_the_closed_form) {
  const auto of_8_ranks = [](std::vector<std::string> more) {
    std::vector<std::string> words = {
        "analyze", "tiny",     "--set", "vocab_size=10000", "--ranks",    "8", "--link",
        "125MB/s", "--update", "0.8",   "--json",           "--exchange", "2"};
    words.insert(words.end(), more.begin(), more.end());
    const CliResult result = run_heddle(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  };
  const Json all = of_8_ranks({"--latency", "0"});
  const double values = 7.0 / 8 * static_cast<double>(all.get_int("parameters"));
  const auto& ranks = all.at("ranks").as_array();
  ASSERT_EQ(ranks.size(), 4u);
  EXPECT_DOUBLE_EQ(ranks[0].get_double("seconds"), 0.8);
  EXPECT_DOUBLE_EQ(ranks[3].get_double("compute_seconds"), 0.1);
  const double wire = ranks[3].get_double("wire_seconds"),
               hidden = ranks[3].get_double("hidden_seconds");
  EXPECT_NEAR(wire, 2 * 4 * values / 125e6, 1e-4);
  // All sums are hidden but those of the last bucket, the embedding.
  EXPECT_NEAR(hidden, wire / 2 - 7.0 / 8 * 4 * 10000 * 128 / 125e6, 1e-6);
  const double exchange = ranks[3].get_double("exchange_seconds");
  EXPECT_NEAR(exchange, 2e-9 * ranks[3].get_double("bytes_sent"), 1e-12);
  EXPECT_DOUBLE_EQ(ranks[0].get_double("exchange_seconds"), 0);
  EXPECT_DOUBLE_EQ(ranks[3].get_double("seconds"), 0.1 + exchange + wire - hidden);
  EXPECT_NEAR(ranks[3].get_double("efficiency"), 0.1 / ranks[3].get_double("seconds"), 1e-12);
  // Gradients in half as many bytes; the latency of each bucket, log2(8) times on either way.
  const auto of = [](const Json& json, const char* key) {
    return json.at("ranks").as_array()[3].get_double(key);
  };
  EXPECT_NEAR(of(of_8_ranks({"--latency", "0", "--wire", "bf16"}), "wire_seconds"), 0.75 * wire,
              1e-6);
  const double late = of(of_8_ranks({"--latency", "100"}), "wire_seconds") - wire;
  EXPECT_NEAR(late / (2 * 3 * 100e-6), std::round(late / (2 * 3 * 100e-6)), 1e-6);
  EXPECT_GT(late, 2 * 3 * 100e-6);
  // Without a time given it is that of the FLOPs, of which twice the batch has twice as many. The
  // peak that they are divided by is measured each time: how long they take is no fact of a test.
  const auto gflops = [](const char* batch) {
    const std::string text = run_heddle({"analyze", "tiny", "--batch", batch, "--ranks", "1"}).out;
    const std::string before = "(one rank: ";
    const size_t at = text.find(before);
    EXPECT_NE(text.find(" GFLOPs at 60 % of this CPU's peak", at), text.npos) << text;
    return at == text.npos ? 0 : std::stod(text.substr(at + before.size()));
  };
  EXPECT_NEAR(gflops("64") / gflops("32"), 2, 2e-3);  // four digits are said
  EXPECT_NE(run_heddle({"analyze", "tiny", "--ranks", "2", "--update", "1"}).out.find("efficiency"),
            std::string::npos);
}

// Blocks of a stage are its layers; shapes are those of one.
TEST_F(Analyze, blocks_of_a_stage_are_layers_of_their_own_shapes) {
  const auto printed = [](const char* size) {
    return run_heddle({"analyze", size, "--image", "224"}).out;
  };
  const std::string swin = printed("swin-tiny"), resnet = printed("resnet50");
  for (const char* line : {"swin.encoder.layers.2.blocks\n", "196 x 384 -> 196 x 1152 ",
                           "swin.encoder.layers.0.blocks            112,347 x 2 = 224,694\n"}) {
    EXPECT_NE(swin.find(line), swin.npos) << line << swin;
  }
  EXPECT_EQ(swin.find("1176 x 384"), swin.npos);  // six blocks below each other
  for (const char* line : {"resnet.encoder.stages.0.layers\n", "3136 x 64 -> 3136 x 256 ",
                           "layer.0.convolution linear "}) {
    EXPECT_NE(resnet.find(line), resnet.npos) << line << resnet;
  }
  EXPECT_EQ(resnet.find("18816 x 64"), resnet.npos);
}

TEST_F(Analyze, bad_input_is_said) {
  const TempDir folder;
  write_file(folder / "config.json", "{\"model_type\": \"llama9\"}");
  write_file(folder / "broken.json", "{\"d_model\": ");
  expect_refused({"analyze"}, 2, "model is required");
  expect_refused({"analyze", "bas"}, 2, "did you mean 'base'?");
  expect_refused({"analyze", (folder / "config.json").string()}, 3, "model_type is 'llama9'");
  expect_refused({"analyze", (folder / "broken.json").string()}, 3, "broken.json");
  expect_refused({"analyze", "base", "--set", "encoder_layers=0"}, 2, "encoder_layers is 0");
  expect_refused({"analyze", "base", "--set", "d_modle=3"}, 2,
                 "unknown field d_modle; did you mean 'd_model'?");
  expect_refused({"analyze", "base", "--set", "foo=3"}, 2, "unknown field foo; there are ");
  expect_refused({"analyze", "base", "--length", "-3"}, 2, "--length is -3");
  expect_refused({"analyze", "stack", "--image", "224", "--patch", "15"}, 2, "patches of 15");
  expect_refused({"analyze", "stack", "--image", "28", "--length", "4"}, 2, "give one");
  expect_refused({"analyze", "gpt2", "--length", "2000"}, 3, "1024 learned positions");
  expect_refused({"analyze", "base", "--kernel", "1"}, 2, "--kernel is 1");
  expect_refused({"analyze", "tiny", "--ranks", "3"}, 2, "3 ranks: a power of two");
  expect_refused({"analyze", "tiny", "--ranks", "2", "--link", "fast"}, 2, "such as 10GbE");
  expect_refused({"analyze", "tiny", "--ranks", "0"}, 2, "0 ranks: a power of two");
  for (const char* seconds : {"-1", "0", "nan"}) {
    expect_refused({"analyze", "tiny", "--ranks", "2", "--update", seconds}, 2, "--update is ");
  }
  expect_refused({"analyze", "tiny", "--ranks", "2", "--exchange", "-1"}, 2, "--exchange is -1");
  expect_refused({"analyze", "tiny", "--ranks", "2", "--latency", "-1"}, 2, "--latency is -1");
  expect_refused({"analyze", "tiny", "--d", "0"}, 2, "--d is '0'");
  expect_refused({"analyze", "tiny", "--n", "0"}, 2, "--n is '0'");
  expect_refused({"analyze", "vit-base", "--length", "5"}, 2, "--length and --window are of texts");
  expect_refused({"analyze", "vit-base", "--target-length", "5"}, 2, "leave --target-length out");
}

}  // namespace
}  // namespace heddle::testing
