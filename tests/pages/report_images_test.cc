// The images in the report of a training run: of classifiers, detectors and captioners.
#include <gtest/gtest.h>

#include "heddle/train/tasks/images/shown_images.h"
#include "tests/pages/browser.h"
#include "tests/pages/logged_run.h"

namespace heddle::testing {
namespace {

class ReportImages : public ::testing::Test {
 protected:
  // The report of a run that shows these images.
  std::string report_of(const Json& shown) const {
    write_run(run_, 1e-3);
    train::write_shown_images(run_, shown);
    inspect::write_run_report(run_, false);
    return run_ + "/report.html";
  }
  // Grey, rising from left to right.
  static Image slope(int64_t height, int64_t width) {
    Image image(height, width);
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < image.row_bytes(); ++x) {
        image.row(y)[x] = static_cast<uint8_t>(60 + 120 * x / image.row_bytes());
      }
    }
    return image;
  }

  TempDir folder_;
  const std::string run_ = (folder_ / "run").string();
};

TEST_F(ReportImages, of_a_classifier_have_their_labels_and_answers) {
  Image image(2, 4);
  image.pixels[0] = 255;
  const Json shown = train::shown_image(image);
  const Json views = Json::Array{shown, shown};
  const std::string page = report_of(Json::object(
      {{"augmented",
        Json::Array{
            Json::object(
                {{"image", shown}, {"name", "a.png"}, {"label", "<cat>"}, {"views", views}}),
            Json::object({{"image", shown}, {"name", "b.png"}, {"views", views}})}},
       {"mistakes", Json::Array{Json::object({{"image", shown},
                                              {"name", "c.png"},
                                              {"label", "<cat>"},
                                              {"answer", "dog"},
                                              {"probability", 0.75},
                                              {"loss", 2.5}})}}}));
  drive(page, R"js(
    const images = [...document.querySelectorAll("figure img")];
    reader.equal(images.length, 7, "one mistake, two images with two views each");
    reader.check(images.every((i) => i.naturalWidth === 4 && i.naturalHeight === 2), "they are decoded");
    reader.equal([images[0].width, images[0].height], [96, 48], "and shown larger");
    reader.equal(reader.find("#mistakes figcaption").textContent, "dog 75.0 %is <cat>, loss 2.5", "a mistake");
    reader.equal([...document.querySelectorAll(".augmented figure:first-child figcaption")].map((c) => c.textContent),
      ["<cat>", "no label"], "labels");
    reader.check(reader.tooWide() <= 0, "no sideways scrolling");
  )js",
        6, {.width = 390, .height = 800});
  check_layout(page);
}

// A missed cat, a dog that is found, a bird where none is; and more objects than have room for
// names.
Json shown_objects_and_mistakes(const Image& image) {
  const LabelledBox cat{.box = {10, 10, 40, 50}, .label = 0};
  const LabelledBox dog{.box = {60, 10, 100, 50}, .label = 1};
  const Json plain = train::shown_objects({image, {cat, dog, dog}});
  const train::DetectionMistakes one{
      .truths = {cat, dog},
      .sure = {{.box = {62, 12, 100, 50}, .label = 1, .score = 0.93},
               {.box = {90, 30, 126, 62}, .label = 2, .score = 0.61}},
      .is_missed = {true, false},
      .is_wrong = {false, true}};
  train::DetectionMistakes many;
  for (int i = 0; i < 40; ++i) {
    many.truths.push_back(dog);
    many.is_missed.push_back(true);
  }
  const auto mistake = [&](const char* name, const train::DetectionMistakes& of) {
    return Json::object({{"image", train::shown_detections(image, of)},
                         {"name", name},
                         {"objects", of.truths.size()},
                         {"missed", of.missed()},
                         {"wrong", of.wrong()}});
  };
  return Json::object(
      {{"labels", std::vector<std::string>{"<cat>", "dog", "bird"}},
       {"score", 0.5},
       {"overlap", 0.5},
       {"augmented", Json::Array{Json::object(
                         {{"image", plain},
                          {"name", "a.png"},
                          {"views", Json::Array{train::shown_objects({image, {}}), plain}}})}},
       {"mistakes", Json::Array{mistake("b.png", many), mistake("c.png", one)}}});
}

TEST_F(ReportImages, of_a_detector_have_boxes_and_what_is_wrong_with_them) {
  const std::string page = report_of(shown_objects_and_mistakes(slope(64, 128)));
  drive(page, R"js(
    const pictures = [...document.querySelectorAll("svg.detections")];
    reader.equal(pictures.length, 5, "two mistakes, an image with two views");
    const [many, one, plain, none] = pictures;
    const boxes = (svg, isDashed) => [...svg.querySelectorAll("rect[data-label]")].filter((r) => r.hasAttribute("stroke-dasharray") === isDashed).map((r) => r.dataset.label).sort();
    const tags = (svg) => [...svg.querySelectorAll(".tag text")].map((t) => t.textContent);
    const rect = (svg, label) => svg.querySelector(`rect[data-label="${label}"]`), width = (r) => Number(r.getAttribute("stroke-width"));
    reader.equal([boxes(one, true), boxes(one, false)], [["<cat>", "dog"], ["bird", "dog"]], "what is there is dashed, what was seen is not");
    reader.equal(tags(one), ["bird 0.61", "<cat>", "dog 0.93"], "names, mistakes first; of what was found that of the box");
    reader.check(width(rect(one, "bird")) > width([...one.querySelectorAll('rect[data-label="dog"]')].pop()), "mistakes are heavier");
    reader.equal([one.getAttribute("viewBox"), Number(rect(one, "<cat>").getAttribute("x"))], ["0 0 256 128", 20], "twice as large, boxes with it");
    reader.equal(one.getAttribute("aria-label"), "c.png: there: <cat>, dog; seen: bird 0.61, dog 0.93", "read aloud");
    reader.equal(one.closest("figure").querySelector("figcaption").textContent, "1 of 2 objects missed, 1 wrongmissed: <cat>wrong: bird 0.61", "a mistake");
    reader.equal(many.closest("figure").querySelector("figcaption").textContent, "40 of 40 objects missed, 0 wrongmissed: dog × 40", "many");
    reader.check(tags(many).length > 0 && tags(many).length < 20, "names where there is room: " + tags(many).length);
    rect(one, "bird").dispatchEvent(new MouseEvent("mousemove", {clientX: 10, clientY: 10, bubbles: true}));
    reader.equal(reader.tip(), "bird 0.61", "pointed at");
    reader.equal([boxes(plain, true), boxes(plain, false)], [[], ["<cat>", "dog", "dog"]], "of training none is dashed");
    reader.equal([plain, none].map((svg) => svg.closest("figure").querySelector("figcaption").textContent), ["<cat>, dog × 2", "no object"], "what there is");
    reader.check(pictures.every((p) => p.querySelector("image").getAttribute("href").startsWith("data:image/png;base64,")), "in the page itself");
    reader.check(reader.tooWide() <= 0, "no sideways scrolling");
  )js",
        14, {.width = 390, .height = 800});
  check_layout(page);
}

TEST_F(ReportImages, of_a_captioner_have_captions_and_what_is_so) {
  const Json image = train::shown_image(slope(48, 64), train::kShownLargeEdge);
  const auto captioned = [&](const std::vector<std::string>& captions, Json written) {
    Json one = Json::object({{"image", image}, {"name", "a.png"}, {"captions", captions}});
    if (!written.is_null()) one["written"] = Json::Array{std::move(written)};
    return one;
  };
  Json mistake = captioned(
      {"there is a red circle", "<b>"},
      Json::object({{"text", "there are two red circles"}, {"truth", "there is one red circle"}}));
  mistake["written"].push_back(Json::object({{"text", "a red circle is a"}}));
  Json shown = Json::object({{"augmented", Json::Array{captioned({"one", "two"}, {})}},
                             {"mistakes", Json::Array{mistake}}});
  drive(report_of(shown), R"js(
    const texts = (id) => [...document.querySelectorAll(`${id} figcaption`)].map((c) => [...c.children].map((e) => e.textContent));
    reader.equal(texts("#mistakes"), [["there are two red circlesnot so: there is one red circle",
      "a red circle is ano sentence of the grammar", "What is true", "there is a red circle", "<b>"]], "what was written, and what is so");
    reader.equal(texts(".augmented"), [["one", "two"]], "captions");
    reader.equal([...document.querySelectorAll("figure img")].map((i) => [i.naturalWidth, i.width]), [[64, 192], [64, 192]], "shown larger");
    reader.check(!document.querySelector("#written"), "all are judged");
    reader.check(reader.tooWide() <= 0, "no sideways scrolling");
  )js",
        5, {.width = 390, .height = 800, .is_dark = true});
  check_layout(run_ + "/report.html");
  shown["mistakes"] = Json::array();
  shown["written"] =
      Json::Array{captioned({"a dog"}, Json::object({{"text", "a cat"}, {"chrf", 12.5}})),
                  captioned({"a dog"}, Json::object({{"text", ""}, {"chrf", 30.0}}))};
  drive(report_of(shown), R"js(
    reader.equal([...document.querySelectorAll("#written figcaption")].map((c) => c.textContent), ["a catchrF 12.5Its captionsa dog", "(nothing)chrF 30.0Its captionsa dog"], "in order");
    reader.check(!document.querySelector("#mistakes"), "nothing is called a mistake");
  )js",
        2);
  check_layout(run_ + "/report.html");
}

}  // namespace
}  // namespace heddle::testing
