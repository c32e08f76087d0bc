// Images over HTTP: as the commands print them, in every form that a body may have; and what is
// refused.
#include "heddle/base/files/files.h"
#include "heddle/text/strings/strings.h"
#include "tests/cli/equal_names.h"
#include "tests/cli/page_data.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"

namespace heddle::serve {
namespace {

using testing::fixture_image;

// What the command prints of an image, without its path.
std::string printed(const std::string& command, const std::string& model,
                    const std::string& image) {
  std::vector<std::string> words = {command, model_folder() + "/" + model, image, "--json"};
  if (command == "detect") words.insert(words.end(), {"--threshold", "0.1"});
  const testing::CliResult result = testing::run_heddle(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  Json line = Json::parse(result.out);
  line.erase("image");
  return line.dump();
}

TEST(Images, classes_are_those_that_classify_prints_in_every_form_of_a_body) {
  Running running(image_service());
  const std::string jpeg = printed("classify", "vit", fixture_image("420.jpg")),
                    png = printed("classify", "vit", fixture_image("rgba.png"));
  Json body = Json::object();
  body["image"] = Json(Json::Array{Json(base64_of("420.jpg")),
                                   Json("data:image/png;base64," + base64_of("rgba.png"))});
  const Answer answer = post(running.port(), "/v1/images/classify", body.dump());
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body, R"({"model": "vit", "classes": [)" + jpeg + ", " + png + "]}");
  const Answer raw = post(running.port(), "/v1/images/classify?model=vit",
                          read_file(fixture_image("420.jpg")), "Content-Type: image/jpeg\r\n");
  EXPECT_EQ(raw.body, R"({"model": "vit", "classes": [)" + jpeg + "]}");
  EXPECT_EQ(running.taken_at_rest(), 0);
}

TEST(Images, objects_are_those_that_detect_prints) {
  Running running(image_service());
  const std::string wanted = printed("detect", "detr", fixture_image("444.jpg"));
  EXPECT_NE(wanted.find("score"), std::string::npos) << wanted;
  const Answer answer =
      post(running.port(), "/v1/images/detect",
           Json::object({{"image", base64_of("444.jpg")}, {"threshold", 0.1}}).dump());
  EXPECT_EQ(answer.body, R"({"model": "detr", "images": [)" + wanted + "]}");
  const Answer raw =
      post(running.port(), "/v1/images/detect?threshold=0.1", read_file(fixture_image("444.jpg")),
           "Content-Type: application/octet-stream\r\n");
  EXPECT_EQ(raw.body, answer.body);
}

TEST(Images, classes_of_equal_names_are_all_there) {
  const testing::TempDir folder;
  const std::string vit = folder / "vit", reader = folder / "reader";
  testing::write_vit(vit);
  std::filesystem::copy(testing::text_model("classify"), reader);
  for (const std::string& model : {vit, reader}) testing::call_all_classes_crane(model);
  ServiceOptions options;
  options.models = {vit, reader};
  Running running(options);
  const auto names = [&](const char* path, const Json& body) {
    const Answer answer = post(running.port(), path, body.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return testing::keys(answer.json().at("classes").as_array()[0].at("probabilities"));
  };
  EXPECT_EQ(names("/v1/images/classify", Json::object({{"image", base64_of("420.jpg")}})),
            testing::cranes(5));
  EXPECT_EQ(names("/v1/classify", Json::object({{"text", "the fox"}})), testing::cranes(3));
}

TEST(Images, what_is_no_image_or_too_large_is_refused_before_it_is_decoded) {
  ServiceOptions options = image_service();
  options.most_pixels = 1'000'000;
  Running running(options);
  const auto refused = [&](const std::string& image) {
    const Answer answer =
        post(running.port(), "/v1/images/classify", Json::object({{"image", image}}).dump());
    EXPECT_EQ(answer.status, 400) << answer.body;
    return answer.json().at("error").get_string("message");
  };
  const std::string gif = refused(base64_text("GIF89a and so on"));
  EXPECT_NE(gif.find("image 1 is a GIF file"), std::string::npos) << gif;
  EXPECT_NE(refused("").find("empty"), std::string::npos);
  EXPECT_NE(refused("abc").find("multiple of 4"), std::string::npos);
  EXPECT_NE(refused("!!!!").find("not base 64"), std::string::npos);
  EXPECT_NE(refused("data:image/png,xyz").find("base64"), std::string::npos);
  EXPECT_NE(refused(base64_of("vast.png.bad")).find("at most 1000000"), std::string::npos);
  const std::string file = read_file(fixture_image("rgb.png"));
  EXPECT_NE(refused(base64_text(file.substr(0, file.size() / 2))).find("cut short"),
            std::string::npos);
  EXPECT_NE(refused(base64_text(file.substr(0, 20))).find("cut short"), std::string::npos);
  EXPECT_EQ(
      post(running.port(), "/v1/images/detect?threshold=x", file, "Content-Type: image/png\r\n")
          .status,
      400);
  EXPECT_EQ(post(running.port(), "/v1/images/detect?model=vit", file, "Content-Type: image/png\r\n")
                .status,
            404);
  EXPECT_EQ(running.taken_at_rest(), 0);
}

TEST(Images, models_of_images_stand_beside_those_of_texts) {
  ServiceOptions options = default_service();
  for (const std::string& model : image_service().models) options.models.push_back(model);
  Running running(options);
  const Json models = get(running.port(), "/v1/models").json();
  std::vector<std::string> uses;
  for (const Json& model : models.at("data").as_array()) uses.push_back(model.get_string("use"));
  EXPECT_EQ(uses, (std::vector<std::string>{"translation", "generation", "image-classification",
                                            "object-detection", "image-captioning"}));
  EXPECT_EQ(post(running.port(), "/v1/translations", R"({"text": "a dog"})").status, 200);
  EXPECT_EQ(post(running.port(), "/v1/classify", R"({"text": "a", "model": "vit"})").status, 404);
}

}  // namespace
}  // namespace heddle::serve
