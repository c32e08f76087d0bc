// Routes over real sockets: what they answer is what the library says, alone and in a crowd; what
// is wrong is refused in the words of each dialect.
#include "heddle/serve/service.h"

#include <sys/stat.h>

#include <array>
#include <map>
#include <thread>

#include "heddle/infer/decoding/generate.h"
#include "heddle/infer/decoding/text_stream.h"
#include "tests/base/temporary.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"

namespace heddle::serve {
namespace {

using testing::TempDir;

const std::vector<std::string> kTexts = {"a dog runs", "", "two men and a cat", "the bird sings."};

std::vector<std::string> translated(const ServedModel& model, int64_t beam = 1) {
  TranslateOptions options = model.translating;
  options.search.beam = beam;
  std::vector<std::string> texts;
  for (const Translation& t : translate_lines(model.loaded(), kTexts, options)) {
    texts.push_back(t.text);
  }
  return texts;
}

Json body_of_texts(const char* key) { return Json::object({{key, kTexts}}); }

TEST(Service, translations_are_those_of_the_library_in_every_dialect) {
  Running running;
  const std::vector<std::string> wanted = translated(running.model(0)),
                                 beams = translated(running.model(0), 3);
  Json body = body_of_texts("text");
  body["beam"] = 3;
  const Answer answer = post(running.port(), "/v1/translations", body.dump());
  ASSERT_EQ(answer.status, 200) << answer.body;
  for (size_t i = 0; i < kTexts.size(); ++i) {
    EXPECT_EQ(answer.json().at("translations").as_array()[i].get_string("text"), beams[i]);
  }
  body = Json::object({{"q", kTexts}, {"source", "en"}, {"target", "de"}});
  EXPECT_EQ(post(running.port(), "/translate", body.dump()).json().at("translatedText"),
            Json(wanted));
  EXPECT_EQ(post(running.port(), "/translate", "q=a+dog%20runs&source=auto&target=de",
                 "Content-Type: application/x-www-form-urlencoded\r\n")
                .json()
                .get_string("translatedText"),
            wanted[0]);
  body = body_of_texts("text");
  body["target_lang"] = "DE";
  const Answer deepl = post(running.port(), "/v2/translate", body.dump());
  ASSERT_EQ(deepl.status, 200) << deepl.body;
  const Json last = deepl.json().at("translations").as_array()[3];
  EXPECT_EQ(last.get_string("text"), wanted[3]);
  EXPECT_EQ(last.get_int("billed_characters"), 15);
  EXPECT_EQ(last.get_string("detected_source_language"), "EN");
}

TEST(Service, a_crowd_gets_the_bits_of_each_alone) {
  Running running;
  const std::vector<std::string> greedy = translated(running.model(0)),
                                 beams = translated(running.model(0), 4);
  std::vector<std::thread> clients;
  std::atomic<int> right = 0;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      Json body = body_of_texts("text");
      if (c % 2 == 1) body["beam"] = 4;
      for (int k = 0; k < 5; ++k) {
        const Answer answer = post(running.port(), "/v1/translations", body.dump());
        std::vector<std::string> texts;
        const Json json = answer.json();
        for (const Json& t : json.at("translations").as_array()) {
          texts.push_back(t.get_string("text"));
        }
        right += texts == (c % 2 == 1 ? beams : greedy) ? 1 : 0;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, 40);
  EXPECT_EQ(running.taken_at_rest(), 0);
}

TEST(Service, n_best_scores_alignments_and_prefixes) {
  Running running;
  const Json body = Json::parse(
      R"({"text": "a dog runs", "n_best": 3, "scores": true, "alignment": "hard",
          "prefix": "a", "max_tokens": 12})");
  const Answer answer = post(running.port(), "/v1/translations", body.dump());
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json one = answer.json().at("translations").as_array().at(0);
  const auto& best = one.at("n_best").as_array();
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].get_string("text"), one.get_string("text"));
  EXPECT_GE(best[0].get_double("score"), best[1].get_double("score"));
  EXPECT_LE(one.at("tokens").size(), 12u);
  EXPECT_TRUE(one.contains("alignment"));
  EXPECT_TRUE(one.get_string("text").starts_with("a")) << one.dump();
}

TEST(Service, events_of_a_stream_say_what_one_response_says) {
  Running running;
  const std::vector<std::string> wanted = translated(running.model(0));
  Json body = body_of_texts("text");
  body["stream"] = true;
  Client client(running.port());
  client.send(request_text("POST", "/v1/translations", body.dump()));
  const std::string bytes = client.receive_until("[DONE]");
  EXPECT_NE(bytes.find("text/event-stream"), std::string::npos);
  for (size_t i = 0; i < kTexts.size(); ++i) {
    EXPECT_NE(bytes.find("data: {\"text\": " + Json(wanted[i]).dump() + ", "), std::string::npos)
        << wanted[i];
    EXPECT_NE(bytes.find(fmt::format("\"index\": {}, \"final\": true}}", i)), std::string::npos);
  }
}

TEST(Service, completions_are_those_of_the_library_whole_and_streamed) {
  Running running;
  const LoadedModel& model = running.model(1).loaded();
  int64_t cut = 0;
  const std::vector<std::vector<int32_t>> prompts = {
      prompt_ids(model, "the dog", "prompt", {}, cut)};
  GenerateOptions options{.search = *model.generation, .slides = false};
  options.search.max_new_tokens = 12;
  const auto ids = generate_ids(model.tokens(), prompts, options)[0][0].ids;
  TextStream text(*model.tokenizer, prompts[0]);
  text.read(ids);
  Json body = Json::object({{"prompt", "the dog"}, {"max_tokens", 12}, {"temperature", 0}});
  const Answer answer = post(running.port(), "/v1/completions", body.dump());
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json choice = answer.json().at("choices").as_array().at(0);
  EXPECT_EQ(choice.get_string("text"), text.text());
  EXPECT_EQ(answer.json().at("usage").get_int("completion_tokens"), std::ssize(ids));
  body["stream"] = true;
  body["stream_options"] = Json::object({{"include_usage", true}});
  Client client(running.port());
  client.send(request_text("POST", "/v1/completions", body.dump()));
  const std::string bytes = client.receive_until("[DONE]");
  std::string streamed;
  int usages = 0, reasons = 0;
  for (size_t at = 0; (at = bytes.find("data: {", at)) != std::string::npos; ++at) {
    const Json event = Json::parse(bytes.substr(at + 6, bytes.find("\n\n", at) - at - 6));
    usages += event.at("usage").is_null() ? 0 : 1;
    for (const Json& part : event.at("choices").as_array()) {
      streamed += part.get_string("text");
      reasons += part.at("finish_reason").is_null() ? 0 : 1;
    }
  }
  EXPECT_EQ(streamed, text.text());
  EXPECT_EQ(usages, 1);
  EXPECT_EQ(reasons, 1);
}

TEST(Service, draws_are_those_of_their_seed_and_stops_end_them) {
  Running running;
  const Json body =
      Json::parse(R"({"prompt": ["the dog", "a cat"], "max_tokens": 8, "n": 2, "seed": 5})");
  const Answer first = post(running.port(), "/v1/completions", body.dump());
  ASSERT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(first.json().at("choices").size(), 4u);
  EXPECT_EQ(first.json().at("choices"),
            post(running.port(), "/v1/completions", body.dump()).json().at("choices"));
  Json greedy = Json::parse(R"({"prompt": "the dog", "max_tokens": 12, "temperature": 0})");
  const std::string whole = post(running.port(), "/v1/completions", greedy.dump())
                                .json()
                                .at("choices")
                                .as_array()[0]
                                .get_string("text");
  ASSERT_GT(whole.size(), 4u);
  greedy["stop"] = whole.substr(2, 2);
  const Json stopped =
      post(running.port(), "/v1/completions", greedy.dump()).json().at("choices").as_array()[0];
  EXPECT_EQ(stopped.get_string("text"), whole.substr(0, whole.find(whole.substr(2, 2))));
  EXPECT_EQ(stopped.get_string("finish_reason"), "stop");
}

TEST(Service, bodies_that_are_wrong_are_refused_with_reasons) {
  Running running;
  const std::string deep = R"({"text": )" + std::string(40, '[') + std::string(40, ']') + "}";
  const std::vector<std::tuple<const char*, std::string, int, const char*>> cases = {
      {"/v1/translations", "", 400, "JSON"},
      {"/v1/translations", "[1]", 400, "object"},
      {"/v1/translations", R"({"text": "a", "text": "b"})", 400, "text"},
      {"/v1/translations", deep, 400, "levels"},
      {"/v1/translations", "{\"text\": \"\xff\"}", 400, "UTF-8"},
      {"/v1/translations", "{}", 400, "missing"},
      {"/v1/translations", R"({"text": 7})", 400, "string"},
      {"/v1/translations", R"({"text": []})", 400, "text"},
      {"/v1/completions", R"({"prompt": []})", 400, "prompt"},
      {"/v1/completions", R"({"prompt": "a", "frequency_penalty": 1})", 400, "frequency_penalty"},
      {"/v1/completions", R"({"prompt": "a", "n": 2, "best_of": 3})", 400, "best_of"},
      {"/v1/completions", R"({"prompt": "a", "logprobs": 21})", 400, "logprobs"},
      {"/v1/completions", R"({"prompt": "a", "logprobs": 2, "echo": true})", 400, "echo"},
      {"/v1/chat/completions", R"({"messages": []})", 400, "messages"},
      {"/v1/chat/completions", R"({"messages": "a"})", 400, "messages"},
      {"/v1/chat/completions", R"({"messages": [{"role": "user", "content": 5}]})", 400, "content"},
      {"/v1/chat/completions",
       R"({"messages": [{"role": "user", "content": "a"}], "top_logprobs": 2})", 400, "logprobs"},
      {"/v1/chat/completions",
       R"({"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function"}]})", 400,
       "tools"},
      {"/v1/completions", R"({"prompt": "a", "stop": ")" + std::string(300, 'x') + R"("})", 400,
       "stop"},
      {"/v1/translations", R"({"text": ["a", 7]})", 400, "strings"},
      {"/v1/translations", R"({"text": "a", "beam": 0})", 400, "beam"},
      {"/v1/translations", R"({"text": "a", "beam": -1})", 400, "beam"},
      {"/v1/translations", R"({"text": "a", "beam": 9223372036854775808})", 400, "beam"},
      {"/v1/translations", R"({"text": "a", "n_best": 10000})", 400, "n_best"},
      {"/v1/translations", R"({"text": "a", "max_tokens": NaN})", 400, ""},
      {"/v1/translations", R"({"text": "a", "model": "none"})", 404, "none"},
      {"/v1/translations", R"({"text": "a", "model": "small"})", 404, "generation"},
      {"/v1/translations", R"({"text": "a", "target_lang": "fr"})", 400, "fr"},
      {"/v1/translations", R"({"text": ["a", "b"], "prefix": ["a", "b", "c"]})", 400, "3"},
      {"/v1/completions", R"({"prompt": "a", "n": 0})", 400, "`n`"},
      {"/v1/completions", R"({"prompt": "a", "n": 1000000})", 400, "`n`"},
      {"/v1/completions", R"({"prompt": "a", "max_tokens": -1})", 400, "max_tokens"},
      {"/v1/completions", R"({"prompt": "a", "temperature": -0.5})", 400, "temperature"},
      {"/v1/completions", R"({"prompt": [99999999]})", 400, "312"},
      {"/v1/completions", R"({"max_tokens": 3})", 400, "prompt"},
      {"/v1/embeddings", R"({"input": "a"})", 404, "embedding"},
  };
  for (const auto& [path, body, status, word] : cases) {
    const Answer answer = post(running.port(), path, body);
    EXPECT_EQ(answer.status, status) << path << " " << body << answer.body;
    EXPECT_NE(answer.body.find(word), std::string::npos) << body << answer.body;
    EXPECT_TRUE(answer.json().at("error").contains("code"));
  }
  EXPECT_EQ(post(running.port(), "/translate", R"({"q": "a", "target": "fr"})")
                .json()
                .at("error")
                .is_string(),
            true);
  const Answer without = post(running.port(), "/translate", R"({"q": "a", "source": "en"})");
  EXPECT_EQ(without.status, 400);
  EXPECT_NE(without.body.find("`target`"), std::string::npos) << without.body;
  EXPECT_TRUE(post(running.port(), "/v2/translate", "{}").json().contains("message"));
  EXPECT_EQ(get(running.port(), "/v1/translations").status, 405);
  EXPECT_EQ(get(running.port(), "/nothing").status, 404);
  EXPECT_EQ(get(running.port(), "/health/live").status, 200);
  EXPECT_EQ(running.taken_at_rest(), 0);
}

TEST(Service, a_text_that_is_too_long_is_refused_whole) {
  Running running;
  std::string text;
  for (int i = 0; i < 100; ++i) text += "dog ";
  const Answer answer = post(running.port(), "/v1/translations",
                             Json::object({{"text", std::vector<std::string>{"a", text}}}).dump());
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("text 2"), std::string::npos) << answer.body;
}

TEST(Service, a_full_queue_is_said_at_once_with_when_to_come_again) {
  ServiceOptions options = default_service();
  options.queue_tokens = 100;
  Running running(options);
  ASSERT_TRUE(running.service().budget().take(90));
  const Answer answer = post(running.port(), "/v1/translations", R"({"text": "a dog"})");
  EXPECT_EQ(answer.status, 429);
  EXPECT_NE(answer.head.find("retry-after: "), std::string::npos) << answer.head;
  EXPECT_EQ(answer.json().at("error").get_string("code"), "queue_full");
  running.service().budget().give_back(90);
  EXPECT_EQ(post(running.port(), "/v1/translations", R"({"text": "a dog"})").status, 200);
  // What could never run is at fault itself.
  std::string many = R"({"text": ["a")";
  for (int i = 0; i < 40; ++i) many += R"(, "a dog runs")";
  EXPECT_EQ(post(running.port(), "/v1/translations", many + "]}").status, 400);
  EXPECT_EQ(running.taken_at_rest(), 0);
}

TEST(Service, work_of_clients_that_left_is_dropped) {
  ServiceOptions options = default_service();
  Running running(options);
  for (int i = 0; i < 20; ++i) {
    Client client(running.port());
    client.send(request_text("POST", "/v1/completions",
                             R"({"prompt": "the dog", "max_tokens": 30, "n": 16})"));
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(running.taken_at_rest(), 0);
  // Of 20 * 16 * 30 tokens.
  const std::string metrics = get(running.port(), "/metrics").body, name = R"({kind="written"} )";
  ASSERT_NE(metrics.find(name), std::string::npos) << metrics;
  EXPECT_LT(std::stod(metrics.substr(metrics.find(name) + name.size())), 4800);
  EXPECT_EQ(post(running.port(), "/v1/translations", R"({"text": "a dog"})").status, 200);
  const std::string text = get(running.port(), "/metrics").body;
  EXPECT_NE(text.find(R"(heddle_ended_jobs_total{outcome="done"})"), std::string::npos) << text;
  EXPECT_EQ(text.find("heddle_ended_jobs_total{outcome=\"cancelled\"} 0\n"), std::string::npos)
      << text;
  std::map<std::string, int> phases = phases_of(text);
  EXPECT_GT(phases["cancelled"], 0);
  EXPECT_EQ(phases["done"] + phases["cancelled"], phases["received"] - 1);  // but this one
}

TEST(Service, responses_say_how_long_they_waited_and_how_long_their_work_took) {
  Running running;
  for (const auto& [path, body] : std::vector<std::pair<const char*, const char*>>{
           {"/v1/translations", R"({"text": "a dog"})"},
           {"/v1/completions", R"({"prompt": "a dog", "max_tokens": 3})"},
           {"/v1/attention", R"({"text": "a dog", "model": "small"})"}}) {
    const Answer answer = post(running.port(), path, body);
    double total = 0, queue = 0, work = 0;
    const size_t at = answer.head.find("server-timing: ");
    ASSERT_NE(at, std::string::npos) << path << answer.head;
    ASSERT_EQ(std::sscanf(answer.head.c_str() + at,
                          "server-timing: total;dur=%lf, queue;dur=%lf, work;dur=%lf", &total,
                          &queue, &work),
              3)
        << path << answer.head;
    EXPECT_GE(queue, 0) << path;
    EXPECT_GE(work, 0) << path;
    EXPECT_NEAR(queue + work, total, 0.2) << path;  // each is rounded
  }
  // What waits for nothing says nothing of it.
  EXPECT_EQ(get(running.port(), "/v1/models").head.find("queue;"), std::string::npos);
}

TEST(Service, a_model_that_goes_takes_what_the_allocator_kept_with_it) {
  SharedModel model = load_served_model(model_folder() + "/en-de", {.cache_rows = 64});
  Tensor::empty({1000}, DType::f32);
  EXPECT_GE(allocator_stats().cached, 4000);
  model = nullptr;
  EXPECT_EQ(allocator_stats().cached, 0);
}

TEST(Service, models_are_swapped_under_load_and_no_request_fails) {
  const TempDir folder;
  const std::string path = (folder / "en-de").string();
  std::array<std::string, 2> wanted;
  for (const uint64_t seed : {8, 7}) {
    testing::write_small_model_of_seed(path, seed);
    const LoadedModel model = load_translation_model(path);
    const std::vector<std::string> text = {kTexts[2]};
    wanted[seed - 7] = translate_lines(model, text, default_options(model))[0].text;
  }
  ASSERT_NE(wanted[0], wanted[1]);
  ServiceOptions options;
  options.models = {path};
  Running running(options);
  std::atomic<bool> is_over = false;
  std::atomic<int> answered = 0, others = 0;
  std::vector<std::thread> clients;
  const std::string body = Json::object({{"text", kTexts[2]}}).dump();
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      while (!is_over) {
        const Answer answer = post(running.port(), "/v1/translations", body);
        const bool is_known = answer.status == 200 && [&](const Json& json) {
          const std::string& text = json.at("translations").as_array()[0].get_string("text");
          return text == wanted[0] || text == wanted[1];
        }(answer.json());
        ++(is_known ? answered : others);
      }
    });
  }
  ::testing::internal::CaptureStderr();
  for (int swap = 1; swap <= 4; ++swap) {
    testing::write_small_model_of_seed(path, swap % 2 == 1 ? 8 : 7);
    running.reload();
    EXPECT_TRUE(testing::comes_true([&] { return running.swaps() >= swap; }));
    EXPECT_EQ(post(running.port(), "/v1/translations", body)
                  .json()
                  .at("translations")
                  .as_array()[0]
                  .get_string("text"),
              wanted[swap % 2]);
  }
  std::filesystem::remove(path + "/model.safetensors");  // a folder that cannot be loaded
  running.reload();
  EXPECT_TRUE(testing::comes_true([&] { return !running.is_reloading(); }));
  is_over = true;
  for (std::thread& client : clients) client.join();
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("stay as they were"), std::string::npos);
  EXPECT_EQ(running.swaps(), 4);
  EXPECT_GT(answered, 20);
  EXPECT_EQ(others, 0);
}

TEST(Service, keys_are_asked_for_on_all_but_health_and_read_again) {
  const TempDir folder;
  const std::string path = (folder / "keys").string();
  testing::write_file(path, "# ours\nfirst-key\nsecond-key\n");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ServiceOptions options = default_service();
  options.keys_path = path;
  Running running(options);
  const std::string body = R"({"text": "a dog", "target_lang": "DE"})";
  EXPECT_EQ(get(running.port(), "/health/ready").status, 200);
  EXPECT_EQ(get(running.port(), "/metrics").status, 401);
  EXPECT_EQ(get(running.port(), "/v1/models", "Authorization: Bearer first-kez\r\n").status, 401);
  EXPECT_EQ(get(running.port(), "/v1/models", "Authorization: Bearer first-key\r\n").status, 200);
  EXPECT_EQ(post(running.port(), "/v2/translate", body).status, 403);
  EXPECT_EQ(
      post(running.port(), "/v2/translate", body, "Authorization: DeepL-Auth-Key second-key\r\n")
          .status,
      200);
  EXPECT_EQ(post(running.port(), "/translate",
                 R"({"q": "a dog", "target": "de", "api_key": "first-key"})")
                .status,
            200);
  testing::write_file(path, "third-key\n");
  running.service().refresh_keys();
  EXPECT_EQ(get(running.port(), "/v1/models", "Authorization: Bearer first-key\r\n").status, 401);
  EXPECT_EQ(get(running.port(), "/v1/models", "Authorization: Bearer third-key\r\n").status, 200);
  // What others may read is not taken, and is once they may no more, without being written again.
  testing::write_file(path, "fourth-key\n");
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  expect_error(ErrorKind::usage, {"chmod 600"}, [&] { Keys{path}; });
  running.service().refresh_keys();
  EXPECT_EQ(get(running.port(), "/v1/models", "Authorization: Bearer third-key\r\n").status, 200);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  running.service().refresh_keys();
  EXPECT_EQ(get(running.port(), "/v1/models", "Authorization: Bearer third-key\r\n").status, 401);
  EXPECT_EQ(get(running.port(), "/v1/models", "Authorization: Bearer fourth-key\r\n").status, 200);
}

// systemd gives a unit's own user the right to read them by a list, whose mask is the group's part
// of the mode.
TEST(Service, keys_among_the_credentials_of_a_unit_may_have_rights_of_a_group) {
  const TempDir folder;
  const std::string path = (folder / "keys").string();
  testing::write_file(path, "first-key\n");
  ASSERT_EQ(::chmod(path.c_str(), 0440), 0);
  const auto refused = [&] { expect_error(ErrorKind::usage, {"chmod 600"}, [&] { Keys{path}; }); };
  refused();
  ::setenv("CREDENTIALS_DIRECTORY", folder.path().c_str(), 1);
  EXPECT_TRUE(Keys{path}.holds("first-key"));
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  refused();
  ::unsetenv("CREDENTIALS_DIRECTORY");
}

TEST(Service, other_names_of_the_server_are_refused_and_ids_come_back) {
  ServiceOptions options = default_service();
  options.hosts = {"localhost"};
  Running running(options);
  EXPECT_EQ(ask(running.port(),
                "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n"
                "Connection: close\r\n\r\n")
                .status,
            403);
  EXPECT_EQ(ask(running.port(),
                "GET /v1/models HTTP/1.1\r\nHost: localhost:80\r\n"
                "Connection: close\r\n\r\n")
                .status,
            200);
  EXPECT_NE(
      get(running.port(), "/v1/models", "X-Request-Id: abc-1\r\n").head.find("x-request-id: abc-1"),
      std::string::npos);
  EXPECT_EQ(get(running.port(), "/v1/models", "X-Request-Id: a b\r\n").head.find("a b"),
            std::string::npos);
}

TEST(Service, metrics_count_what_was_asked_and_name_nobody) {
  Running running;
  post(running.port(), "/v1/translations", R"({"text": "a very secret dog"})");
  get(running.port(), "/secret-path");
  const std::string text = get(running.port(), "/metrics").body;
  EXPECT_NE(text.find(R"(heddle_requests_total{route="/v1/translations",status="200"} 1)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(heddle_requests_total{route="other",status="404"} 1)"), std::string::npos);
  EXPECT_NE(text.find(R"(heddle_tokens_total{kind="written"})"), std::string::npos);
  EXPECT_NE(text.find("heddle_ended_jobs_total{outcome=\"done\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(heddle_model_info{name="en-de")"), std::string::npos);
  EXPECT_EQ(text.find("secret"), std::string::npos);
}

TEST(Service, each_phase_of_a_request_is_counted_once) {
  ServiceOptions options = default_service();
  Running running(options);
  const auto ask = [&](const char* path, const char* body, int status) {
    EXPECT_EQ(post(running.port(), path, body).status, status) << path << body;
  };
  ask("/v1/translations", R"({"text": ["a dog", "two men and a cat"], "beam": 3})", 200);
  ask("/translate", R"({"q": "a dog", "source": "en", "target": "de"})", 200);
  ask("/v1/completions", R"({"prompt": "a dog", "max_tokens": 3, "n": 2, "stream": true})", 200);
  ask("/v1/completions", R"({"prompt": "a dog", "max_tokens": 100000000})", 400);
  ask("/v1/translations", "{", 400);
  get(running.port(), "/v1/models");
  const std::map<std::string, int> wanted = {
      {"received", 7}, {"parsed", 4},    {"admitted", 3},  {"queued", 3},
      {"encoding", 3}, {"decoding", 3},  {"writing", 6},   {"done", 4},  // all but this one
      {"refused", 2},  {"cancelled", 0}, {"timed_out", 0}, {"failed", 0}};
  EXPECT_EQ(phases_of(get(running.port(), "/metrics").body), wanted);
}

}  // namespace
}  // namespace heddle::serve
