// Captions over HTTP: as the command prints them, in every form of a body, beside others and for
// those that leave; and what is refused.
#include <thread>

#include "heddle/base/files/files.h"
#include "heddle/text/strings/strings.h"
#include "tests/cli/run_folder.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"

namespace heddle::serve {
namespace {

using testing::fixture_image;

constexpr const char* kPath = "/v1/images/caption";

// An LSTM with a gate, a Transformer, and one that sees an image's mean.
class Captions : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<testing::TempDir>();
    testing::write_captioner(model("lstm"));
    testing::write_captioner(model("blocks"), testing::kTransformer);
    testing::write_captioner(model("blind"), R"(, "attention_scoring": "none")");
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string model(const std::string& name) { return (*folder_ / name).string(); }
  static ServiceOptions service() {
    ServiceOptions options;
    for (const char* name : {"lstm", "blocks", "blind"}) options.models.push_back(model(name));
    return options;
  }

  // What the command prints of images, without their paths.
  static std::string printed(const std::string& name, const std::vector<std::string>& images,
                             const std::string& flags = "") {
    std::vector<std::string> words = {"caption", model(name), "--json", "--precision", "f32"};
    for (const std::string& image : images) words.push_back(fixture_image(image));
    for (const std::string& flag : testing::words_of(flags)) words.push_back(flag);
    const testing::CliResult result = testing::run_heddle(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::string all;
    std::istringstream lines(result.out);
    for (std::string text; std::getline(lines, text);) {
      Json line = Json::parse(text);
      line.erase("image");
      all += (all.empty() ? "" : ", ") + line.dump();
    }
    return all;
  }
  static std::string answer_of_model(const std::string& name, const std::string& captions) {
    return R"({"model": ")" + name + R"(", "captions": [)" + captions + "]}";
  }
  // What a request is refused with.
  static std::string refused(const Running& running, const Json& body, int status = 400) {
    const Answer answer = post(running.port(), kPath, body.dump());
    EXPECT_EQ(answer.status, status) << answer.body;
    return answer.json().at("error").get_string("message");
  }
  static void expect_refused(const Running& running, const Json& body, const std::string& word,
                             int status = 400) {
    const std::string message = refused(running, body, status);
    EXPECT_NE(message.find(word), std::string::npos) << body.dump() << message;
  }
  static Json request(const std::string& more, const std::string& image = "420.jpg") {
    Json body = Json::parse("{" + more + "}");
    body["image"] = base64_of(image);
    return body;
  }

 private:
  static inline std::unique_ptr<testing::TempDir> folder_;
};

TEST_F(Captions, are_those_that_the_command_prints_in_every_form_of_a_body) {
  Running running(service());
  Json body = Json::object();
  body["image"] = Json(Json::Array{Json(base64_of("420.jpg")),
                                   Json("data:image/png;base64," + base64_of("rgba.png"))});
  const Answer answer = post(running.port(), kPath, body.dump());
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body, answer_of_model("lstm", printed("lstm", {"420.jpg", "rgba.png"})));
  const Answer raw =
      post(running.port(), std::string(kPath) + "?model=blocks&beam=3&n_best=2&maps=true",
           read_file(fixture_image("420.jpg")), "Content-Type: image/jpeg\r\n");
  EXPECT_EQ(raw.body, answer_of_model(
                          "blocks", printed("blocks", {"420.jpg"}, "--beam 3 --n-best 2 --maps")));
  EXPECT_EQ(running.taken_at_rest(), 0);
}

TEST_F(Captions, members_do_what_flags_of_the_command_do) {
  Running running(service());
  const std::pair<const char*, const char*> cases[] = {
      {R"("maps": true)", "--maps"},
      {R"("beam": 4, "n_best": 3, "maps": true)", "--beam 4 --n-best 3 --maps"},
      {R"("n_best": 3, "length_penalty": 2.5)", "--n-best 3 --length-penalty 2.5"},
      {R"("max_tokens": 3, "beam": 2)", "--max-length 3 --beam 2"},
      {R"("sample": true)", "--sample"},
      {R"("sample": true, "n_best": 4, "seed": 9, "temperature": 1.5, "maps": true)",
       "--sample --n-best 4 --seed 9 --temperature 1.5 --maps"},
      {R"("sample": true, "n_best": 2, "top_k": 9, "top_p": 0.8, "min_p": 0.02, "max_tokens": 6)",
       "--sample --n-best 2 --top-k 9 --top-p 0.8 --min-p 0.02 --max-length 6"}};
  for (const char* name : {"lstm", "blocks"}) {
    for (const auto& [members, flags] : cases) {
      Json body = Json::parse("{" + std::string(members) + "}");
      body["model"] = name;
      body["image"] = Json(Json::Array{Json(base64_of("420.jpg")), Json(base64_of("grey.png"))});
      EXPECT_EQ(post(running.port(), kPath, body.dump()).body,
                answer_of_model(name, printed(name, {"420.jpg", "grey.png"}, flags)))
          << members;
    }
  }
  EXPECT_EQ(post(running.port(), kPath, request(R"("model": "blind", "beam": 2)").dump()).body,
            answer_of_model("blind", printed("blind", {"420.jpg"}, "--beam 2")));
}

// Whatever else is asked of the models at the same time.
TEST_F(Captions, of_many_clients_are_those_of_each_alone) {
  Running running(service());
  std::vector<std::string> bodies;
  const char* images[] = {"420.jpg", "rgb.png", "grey.png", "progressive.jpg"};
  for (size_t i = 0; i < 24; ++i) {
    bodies.push_back(
        request(fmt::format(R"("model": "{}", "beam": {}, "maps": true, "max_tokens": {})",
                            i % 3 == 2 ? "blocks" : "lstm", 1 + i % 4, 4 + i % 5),
                images[i % 4])
            .dump());
  }
  std::vector<std::string> alone, together(bodies.size());
  for (const std::string& body : bodies) alone.push_back(post(running.port(), kPath, body).body);
  std::vector<std::thread> clients;
  for (size_t i = 0; i < bodies.size(); ++i) {
    clients.emplace_back([&, i] { together[i] = post(running.port(), kPath, bodies[i]).body; });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(together, alone);
  EXPECT_NE(alone[0].find("weights"), std::string::npos) << alone[0];
  EXPECT_EQ(running.taken_at_rest(), 0);
}

TEST_F(Captions, of_clients_that_left_are_dropped) {
  Running running(service());
  const Json body = Json::object({{"image", std::vector<std::string>(40, base64_of("420.jpg"))},
                                  {"max_tokens", 400},
                                  {"n_best", 8}});
  for (int i = 0; i < 3; ++i) {
    Client client(running.port());
    client.send(request_text("POST", kPath, body.dump()));
    EXPECT_TRUE(testing::comes_true([&] { return running.service().now().running > 1; }));
    client.close();
    EXPECT_TRUE(testing::comes_true([&] {
      const ServerMetrics::Now now = running.service().now();
      return now.running == 0 && now.waiting == 0 && now.cache_rows == 0;
    }));
    EXPECT_EQ(running.taken_at_rest(), 0);
  }
  const std::string metrics = get(running.port(), "/metrics").body;
  EXPECT_EQ(metrics.find("heddle_ended_jobs_total{outcome=\"cancelled\"} 0\n"), std::string::npos);
  EXPECT_NE(metrics.find(R"(status="499")"), std::string::npos) << metrics;
  EXPECT_EQ(post(running.port(), kPath, request("").dump()).status, 200);
}

TEST_F(Captions, that_wait_too_long_are_refused) {
  ServiceOptions options = service();
  options.queue_seconds = 0;
  Running running(options);
  const Answer answer = post(running.port(), kPath, request("").dump());
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.json().at("error").get_string("code"), "timeout") << answer.body;
  EXPECT_EQ(running.taken_at_rest(), 0);
  std::map<std::string, int> phases = phases_of(get(running.port(), "/metrics").body);
  EXPECT_EQ(phases["timed_out"], 1);
  EXPECT_EQ(phases["queued"], 1);
  EXPECT_EQ(phases["encoding"] + phases["failed"] + phases["refused"], 0);
}

// What is not the whole image is said beside the grid.
TEST_F(Captions, of_what_a_crop_keeps_say_where_their_grid_lies) {
  const testing::TempDir folder;
  const std::string path = (folder / "crops").string();
  testing::write_captioner(path);
  Json processor = Json::load(path + "/preprocessor_config.json");
  processor["do_center_crop"] = true;
  processor["crop_size"] = Json::object({{"height", 24}, {"width", 24}});
  testing::write_file(path + "/preprocessor_config.json", processor.dump());
  Image image(20, 50);  // is resized to 24 x 60
  const std::string file = encode_png(image);
  testing::write_file(path + "/long.png", file);
  ServiceOptions options;
  options.models = {path};
  Running running(options);
  Json body = Json::object({{"image", base64_text(file)}, {"maps", true}});
  const Json answer = post(running.port(), kPath, body.dump()).json();
  const Json& caption = answer.at("captions").as_array()[0];
  EXPECT_EQ(caption.at("kept"), (Json::Array{0.3, 0.0, 0.7, 1.0})) << answer.dump();
  const testing::CliResult printed = testing::run_heddle(
      {"caption", path, path + "/long.png", "--json", "--maps", "--precision", "f32"});
  EXPECT_EQ(Json::parse(printed.out).at("kept"), caption.at("kept")) << printed.out << printed.err;
  body["image"] = base64_text(encode_png(Image(24, 24)));
  EXPECT_EQ(post(running.port(), kPath, body.dump()).body.find("kept"), std::string::npos);
}

// A damaged image shows only once its turn has come.
TEST_F(Captions, of_what_is_no_image_or_too_large_are_refused) {
  ServiceOptions options = service();
  options.most_pixels = 1'000'000;
  Running running(options);
  const auto body = [](const std::vector<std::string>& images) {
    return Json::object({{"image", images}});
  };
  const std::string good = base64_of("rgb.png"), file = read_file(fixture_image("rgb.png"));
  const std::string damaged = base64_text(file.substr(0, file.size() / 2));
  expect_refused(running, body({good, damaged, good}), "image 2: the PNG file is cut short");
  expect_refused(running, body({good, base64_text("GIF89a and so on")}), "image 2 is a GIF file");
  expect_refused(running, body({base64_of("vast.png.bad")}), "at most 1000000");
  expect_refused(running, body({"!!!!"}), "not base 64");
  expect_refused(running, Json::object(), "`image` is missing");
  // A line that its processor makes 24 pixels wide.
  expect_refused(running, body({base64_text(encode_png(Image(1, 60'000)))}),
                 "image 1 of 60000 x 1 pixels would be resized to 1440000 x 24");
  std::string none = file;
  none.replace(16, 4, 4, '\0');  // its width
  expect_refused(running, body({good, base64_text(none)}), "image 2");
  EXPECT_EQ(running.taken_at_rest(), 0);
  const std::string metrics = get(running.port(), "/metrics").body;
  EXPECT_NE(metrics.find("heddle_ended_jobs_total{outcome=\"failed\"} 1\n"), std::string::npos)
      << metrics;
  EXPECT_EQ(post(running.port(), kPath, body({good}).dump()).status, 200);
}

TEST_F(Captions, members_that_are_none_or_do_not_go_together_are_refused) {
  ServiceOptions options = service();
  options.most_beams = 8;
  Running running(options);
  expect_refused(running, request(R"("threshold": 0.5)"), "`threshold` is no member");
  expect_refused(running, request(R"("n_bets": 2)"), "n_best");
  expect_refused(running, request(R"("beam": 9)"), "from 1 to 8");
  expect_refused(running, request(R"("max_tokens": 0)"), "from 1 to");
  expect_refused(running, request(R"("temperature": 0.5)"), "`sample`, which is not asked for");
  expect_refused(running, request(R"("sample": true, "beam": 2)"), "leave one of them out");
  expect_refused(running, request(R"("model": "blind", "maps": true)"), "leave `maps` out");
  expect_refused(running, request(R"("maps": 1)"), "true or false");
  expect_refused(running, request(R"("max_tokens": 65536, "beam": 8)"), "the server has room for");
  for (const auto& [query, word] : std::initializer_list<std::pair<const char*, const char*>>{
           {"maps=yes", "true or false"},
           {"beam=two", "a number"},
           {"beam=2&beam=3", "`beam` stands in the query 2 times"},
           {"image=abc", "the body is an image"}}) {
    const Answer answer = post(running.port(), std::string(kPath) + "?" + query,
                               read_file(fixture_image("rgb.png")), "Content-Type: image/png\r\n");
    EXPECT_EQ(answer.status, 400) << query;
    EXPECT_NE(answer.body.find(word), std::string::npos) << query << answer.body;
  }
  EXPECT_EQ(
      post(running.port(), std::string(kPath) + "?beam=4", request(R"("beam": 2)").dump()).status,
      400);
  Json many = request(R"("sample": true, "n_best": 8, "max_tokens": 400, "temperature": 10,
                         "maps": true)");
  many["image"] = std::vector<std::string>(16, base64_of("420.jpg"));
  expect_refused(running, many, "weights together");
  EXPECT_EQ(running.taken_at_rest(), 0);
}

TEST_F(Captions, are_no_classes_and_classifiers_write_none) {
  ServiceOptions options = image_service();
  Running running(options);
  for (const char* path : {"/v1/images/classify", "/v1/images/detect"}) {
    const Answer answer = post(running.port(), path, request(R"("model": "captioner")").dump());
    EXPECT_EQ(answer.status, 404) << answer.body;
    EXPECT_NE(answer.body.find("is for image-captioning, not"), std::string::npos) << answer.body;
  }
  expect_refused(running, request(R"("model": "vit")"),
                 "'vit' is for image-classification, not image-captioning", 404);
  EXPECT_EQ(
      post(running.port(), "/v1/translations", R"({"text": "a", "model": "captioner"})").status,
      404);
  EXPECT_EQ(post(running.port(), "/v1/attention", R"({"text": "a", "model": "captioner"})").status,
            404);
  options.models.pop_back();
  const Running without(options);
  expect_refused(without, request(""), "no model here is for image-captioning", 404);
}

TEST_F(Captions, models_that_write_them_are_listed_and_their_requests_counted) {
  Running running(service());
  const auto listed = [&](const std::string& name) {
    return get(running.port(), "/v1/models/" + name).json();
  };
  for (const char* name : {"lstm", "blocks", "blind"}) {
    EXPECT_EQ(listed(name).get_string("use"), "image-captioning");
    EXPECT_EQ(listed(name).at("maps"), Json(std::string(name) != "blind"));
    EXPECT_FALSE(listed(name).contains("num_labels"));
  }
  const Answer answer = post(running.port(), kPath, request("").dump());
  double total = 0, queue = 0, work = 0;
  const size_t at = answer.head.find("server-timing: ");
  ASSERT_NE(at, std::string::npos) << answer.head;
  ASSERT_EQ(std::sscanf(answer.head.c_str() + at,
                        "server-timing: total;dur=%lf, queue;dur=%lf, work;dur=%lf", &total, &queue,
                        &work),
            3)
      << answer.head;
  const std::string metrics = get(running.port(), "/metrics").body;
  EXPECT_NE(metrics.find(R"(route="/v1/images/caption")"), std::string::npos) << metrics;
  EXPECT_EQ(metrics.find(R"(kind="written"} 0)"), std::string::npos) << metrics;
}

}  // namespace
}  // namespace heddle::serve
