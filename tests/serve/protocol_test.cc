// Forms that HTTP allows, as clients, proxies and browsers send them; bounds on what one request
// may cost the thread that all share.
#include <filesystem>

#include "heddle/base/names.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/serve/http/api_client.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"

namespace heddle::serve {
namespace {

using testing::TempDir;

TEST(Protocol, schemes_names_and_types_are_read_in_any_case) {
  const TempDir folder;
  const std::string path = (folder / "keys").string();
  testing::write_file(path, "first-key\n");
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  ServiceOptions options = default_service();
  options.keys_path = path;
  options.hosts = {"localhost", "[::1]"};
  const Running running(options);
  const auto asked = [&](const std::string& host, const std::string& key) {
    return ask(running.port(), "GET /v1/models HTTP/1.1\r\nHost: " + host +
                                   "\r\nConnection: close\r\nAuthorization: " + key + "\r\n\r\n")
        .status;
  };
  EXPECT_EQ(asked("LocalHost:80", "bearer first-key"), 200);
  EXPECT_EQ(asked("[::1]:8080", "BEARER first-key"), 200);
  EXPECT_EQ(asked("localhost", "Bearer First-Key"), 401);  // keys are not
  EXPECT_EQ(asked("localhos", "Bearer first-key"), 403);
  const std::string form = "q=a+dog&target=de&api_key=first-key";
  EXPECT_EQ(post(running.port(), "/translate", form,
                 "Content-Type: Application/X-WWW-Form-URLEncoded; charset=utf-8\r\n")
                .status,
            200);
}

TEST(Protocol, json_that_is_called_a_form_is_json) {
  const Running running;
  const Answer answer = post(running.port(), "/translate", R"({"q": "a dog", "target": "de"})",
                             "Content-Type: application/x-www-form-urlencoded\r\n");  // curl -d
  EXPECT_EQ(answer.status, 200) << answer.body;
}

TEST(Protocol, models_that_have_classes_say_so) {
  ServiceOptions options;
  options.models = {language_folder()};
  const Running running(options);
  const Json models = get(running.port(), "/v1/models").json();
  EXPECT_EQ(models.at("data").as_array()[0].get_string("use"), "classification");
}

TEST(Protocol, a_target_with_its_server_is_that_of_its_host) {
  ServiceOptions options = default_service();
  options.hosts = {"localhost"};
  const Running running(options);
  const auto asked = [&](const std::string& target, const std::string& host) {
    return ask(running.port(),
               "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n")
        .status;
  };
  EXPECT_EQ(asked("http://localhost:8080/v1/models", "localhost"), 200);
  EXPECT_EQ(asked("HTTP://localhost/health/live?a=b", "other.example"), 200);
  EXPECT_EQ(asked("http://localhost?a=b", "localhost"), 200);
  EXPECT_EQ(asked("http://other.example/v1/models", "localhost"), 403);
  EXPECT_EQ(asked("http://localhost/v2/models", "localhost"), 404);
}

TEST(Protocol, a_method_that_is_not_taken_is_told_which_is) {
  const Running running;
  EXPECT_NE(get(running.port(), "/v1/translations").head.find("\r\nallow: POST\r\n"),
            std::string::npos);
  EXPECT_NE(post(running.port(), "/v1/models", "{}").head.find("\r\nallow: GET\r\n"),
            std::string::npos);
}

TEST(Protocol, a_link_on_another_site_leads_here_and_its_scripts_do_not) {
  const Running running;
  const std::string from = "Sec-Fetch-Site: cross-site\r\n";
  EXPECT_EQ(get(running.port(), "/", from + "Sec-Fetch-Mode: navigate\r\n").status, 200);
  EXPECT_EQ(get(running.port(), "/", from + "Sec-Fetch-Mode: no-cors\r\n").status, 403);
  EXPECT_EQ(get(running.port(), "/v1/models", from).status, 403);
  // A form there is a navigation too.
  EXPECT_EQ(post(running.port(), "/v1/translations", R"({"text": "a dog"})",
                 from + "Sec-Fetch-Mode: navigate\r\n")
                .status,
            403);
}

// On another port of the same machine too; where browsers say no more, by the name of the page's.
TEST(Protocol, pages_of_other_servers_are_refused_and_its_own_is_not) {
  const Running running;
  const std::string own = "localhost:" + std::to_string(running.port());
  const auto status = [&](const std::string& fields) {
    const std::string body = R"({"text": "a dog"})";
    return ask(running.port(),
               fmt::format("POST /v1/translations HTTP/1.1\r\nHost: {}\r\n{}Connection: close\r\n"
                           "Content-Length: {}\r\n\r\n{}",
                           own, fields, body.size(), body))
        .status;
  };
  EXPECT_EQ(status(""), 200);
  EXPECT_EQ(status("Origin: http://" + own + "\r\n"), 200);
  EXPECT_EQ(status("Sec-Fetch-Site: same-origin\r\nOrigin: https://behind.a.proxy\r\n"), 200);
  EXPECT_EQ(status("Sec-Fetch-Site: same-site\r\n"), 403);
  EXPECT_EQ(status("Origin: http://localhost:1\r\n"), 403);
  EXPECT_EQ(status("Origin: http://evil.example\r\n"), 403);
  EXPECT_EQ(status("Origin: null\r\n"), 403);
}

TEST(Protocol, old_clients_hear_that_their_connection_is_kept) {
  const Running running;
  Client client(running.port());
  for (int i = 0; i < 2; ++i) {
    client.send("GET /health/live HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
    const std::string answer = client.receive();
    EXPECT_NE(answer.find("\r\nConnection: keep-alive\r\n"), std::string::npos) << answer;
  }
  const Answer alone = ask(running.port(), "GET /health/live HTTP/1.0\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(alone.head.find("\r\nConnection: close\r\n"), std::string::npos);
}

TEST(Protocol, codings_before_chunked_are_refused) {
  const Running running;
  const std::string chunks = "16\r\n{\"text\": \"a dog runs\"}\r\n0\r\n\r\n";
  const auto asked = [&](const std::string& fields) {
    return ask(running.port(), "POST /v1/translations HTTP/1.1\r\nHost: localhost\r\n" + fields +
                                   "Connection: close\r\n\r\n" + chunks)
        .status;
  };
  EXPECT_EQ(asked("Transfer-Encoding: Chunked\r\n"), 200);
  EXPECT_EQ(asked("Transfer-Encoding: gzip, chunked\r\n"), 400);
  EXPECT_EQ(asked("Transfer-Encoding: chunked, chunked\r\n"), 400);
  EXPECT_EQ(asked("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"), 400);
  EXPECT_EQ(asked("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), 400);
}

TEST(Protocol, addresses_of_ipv6_stand_in_brackets) {
  EXPECT_EQ(host_field("::1", 8080), "[::1]:8080");
  EXPECT_EQ(host_field("localhost", 80), "localhost:80");
  EXPECT_EQ(server_url("http://[::1]:8080/x").host, "::1");
}

TEST(Protocol, messages_call_members_by_their_names) {
  name_fields_by([](std::string_view key) { return "--" + std::string(key); });  // as the program
  const std::string refused = [] {
    const Running running;
    return post(running.port(), "/v1/chat/completions", R"({"messages": []})").body;
  }();
  name_fields_by(nullptr);
  EXPECT_NE(refused.find("`messages`"), std::string::npos) << refused;
  EXPECT_EQ(refused.find("--messages"), std::string::npos) << refused;
}

// --- what one request may cost -------------------------------------------------------------------

TEST(Bounds, texts_of_more_parts_than_a_request_may_have_are_refused_uncounted) {
  ServiceOptions options = default_service();
  options.most_texts = 4;
  Running running(options);
  std::string sentences, blocks;
  for (int i = 0; i < 9; ++i) sentences += "A dog runs. ", blocks += "<p>a dog</p>";
  for (const Json& body : {Json::object({{"text", sentences}, {"split_sentences", true}}),
                           Json::object({{"text", blocks}, {"format", "html"}}),
                           Json::object({{"text", "<p>" + sentences + "</p>"},
                                         {"format", "html"},
                                         {"split_sentences", true}})}) {
    const Answer answer = post(running.port(), "/v1/translations", body.dump());
    EXPECT_EQ(answer.status, 400);
    EXPECT_NE(answer.body.find("more than 8 parts"), std::string::npos) << answer.body;
  }
  EXPECT_EQ(
      post(running.port(), "/translate", Json::object({{"q", sentences}, {"target", "de"}}).dump())
          .status,
      400);
  const Json fewer = Json::object({{"text", blocks.substr(12)}, {"format", "html"}});
  EXPECT_EQ(post(running.port(), "/v1/translations", fewer.dump()).status, 200);
}

TEST(Bounds, a_text_of_too_many_bytes_is_refused_by_them_or_cut) {
  const Running running;
  const std::string spaces = std::string(1 << 19, ' ') + "a dog";
  const Answer refused =
      post(running.port(), "/v1/translations", Json::object({{"text", spaces}}).dump());
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("bytes; at most"), std::string::npos) << refused.body;
  const Json cut = Json::object({{"text", "a dog" + spaces}, {"truncate", true}});
  const Json one =
      post(running.port(), "/v1/translations", cut.dump()).json().at("translations").as_array()[0];
  EXPECT_TRUE(one.at("truncated").as_bool());
  EXPECT_EQ(post(running.port(), "/v1/translations",
                 Json::object({{"text", "a"}, {"keep", std::string(1025, 'k')}}).dump())
                .status,
            400);
}

// Of 64 bytes for each token that may be taken, wherever a text comes in.
TEST(Bounds, texts_of_too_many_bytes_are_tokenized_nowhere) {
  ServiceOptions options = default_service();
  options.models.push_back(std::string(testing::kFixtures) + "/seq2seq/t5");
  const Running running(options);
  const std::string much(1 << 18, 'x');
  const Json messages = Json::parse(R"([{"role": "user", "content": "hi"}])");
  const Json function =
      Json::object({{"name", "look"}, {"description", much}, {"parameters", Json::object()}});
  const auto refused = [&](const char* path, const Json& body, const char* what) {
    const Answer answer = post(running.port(), path, body.dump());
    EXPECT_EQ(answer.status, 400) << what;
    EXPECT_NE(answer.body.find(what), std::string::npos) << answer.body.substr(0, 300);
  };
  refused("/v1/translations", Json::object({{"text", "a dog"}, {"prefix", much}}),
          "the prefix has 262144 bytes; at most");
  refused("/v1/translations", Json::object({{"text", much}, {"model", "t5"}}),
          "text 1 has 262144 bytes; at most 2048 tokens");
  refused("/v1/attention", Json::object({{"text", much}}), "`text` has 262144 bytes");
  refused("/v1/attention", Json::object({{"text", "a dog"}, {"target", much}}),
          "`target` has 262144 bytes");
  refused("/v1/completions", Json::object({{"prompt", much}}), "prompt 1 has 262144 bytes");
  refused("/v1/chat/completions",
          Json::object(
              {{"messages", Json::parse("[{\"role\": \"user\", \"content\": \"" + much + "\"}]")}}),
          "the conversation has 2621");
  Json schema = Json::object({{"enum", Json::array()}});
  for (int i = 0; i < 1 << 15; ++i) schema["enum"].push_back(std::to_string(100'000 + i));
  Json format = Json::object({{"type", "json_schema"}});
  format["json_schema"] = Json::object({{"name", "one"}, {"schema", schema}});
  refused("/v1/completions", Json::object({{"prompt", "a"}, {"response_format", format}}),
          "the schema has 327690 bytes; at most 262144");
}

TEST(Bounds, maps_of_a_long_text_are_refused_before_its_pass) {
  const TempDir folder;
  const std::string path = (folder / "long").string();
  testing::write_language_model(path, "{}", true, 1024);
  ServiceOptions options;
  options.models = {path};
  const Running running(options);
  std::string text;
  for (int i = 0; i < 160; ++i) text += "a dog ";
  Json body = Json::object({{"text", text}, {"layers", Json::array()}});
  body["layers"].push_back(0);
  const Answer refused = post(running.port(), "/v1/attention", body.dump());
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("at least"), std::string::npos) << refused.body;
}

TEST(Bounds, models_are_loaded_once_more_if_they_were_asked_for_meanwhile) {
  const TempDir folder;
  const std::string link = (folder / "model").string();
  std::vector<std::string> wanted;
  const std::vector<std::string> text = {"a dog runs"};
  for (const uint64_t seed : {7, 8, 9}) {
    const std::string path = fmt::format("{}/{}", folder.path().string(), seed);
    testing::write_small_model_of_seed(path, seed);
    const LoadedModel model = load_translation_model(path);
    wanted.push_back(translate_lines(model, text, default_options(model))[0].text);
  }
  ASSERT_NE(wanted[1], wanted[2]);
  const auto lead_to = [&](int seed) {  // at once: a load may be under way
    std::filesystem::create_directory_symlink(fmt::format("{}/{}", folder.path().string(), seed),
                                              link + ".new");
    std::filesystem::rename(link + ".new", link);
  };
  lead_to(7);
  ServiceOptions options;
  options.models = {link};
  Service service(options);
  service.load();
  lead_to(8);
  service.reload();
  lead_to(9);
  service.reload();
  int swaps = 0;
  ASSERT_TRUE(testing::comes_true([&] {
    swaps += service.take_reloaded() ? 1 : 0;
    return !service.is_reloading();
  }));
  EXPECT_EQ(swaps, 2);
  const LoadedModel& now = service.models()[0]->loaded();
  EXPECT_EQ(translate_lines(now, text, default_options(now))[0].text, wanted[2]);
}

// As in configs that transformers writes for a small GPT-2: its beginning and end are the large
// one's.
TEST(Bounds, ends_that_a_vocabulary_lacks_never_come_and_refuse_nobody) {
  const TempDir folder;
  const std::string path = (folder / "small").string();
  testing::write_language_model(path, R"({"bos_token_id": 50256, "eos_token_id": [3, 50256]})");
  ServiceOptions options;
  options.models = {path};
  Running running(options);
  const Answer answer =
      post(running.port(), "/v1/completions", R"({"prompt": "a dog", "max_tokens": 4})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(running.service().models()[0]->loaded().generation->eos, std::vector<int64_t>{3});
}

TEST(DeepL, options_that_would_change_the_translation_are_refused_and_hints_are_not) {
  Running running;
  const auto status = [&](const char* more) {
    return post(running.port(), "/v2/translate",
                fmt::format(R"({{"text": ["a dog"], "target_lang": "DE"{}}})", more))
        .status;
  };
  EXPECT_EQ(status(R"(, "formality": "default", "context": "pets", "glossary_id": null)"), 200);
  EXPECT_EQ(status(R"(, "formality": "prefer_less", "ignore_tags": [])"), 200);
  EXPECT_EQ(status(R"(, "formality": "less")"), 400);
  EXPECT_EQ(status(R"(, "glossary_id": "abc")"), 400);
  EXPECT_EQ(status(R"(, "ignore_tags": ["x"])"), 400);
  EXPECT_EQ(status(R"(, "split_sentences": "bogus")"), 400);
  EXPECT_EQ(status(R"(, "tag_handling": "sgml")"), 400);
}

}  // namespace
}  // namespace heddle::serve
