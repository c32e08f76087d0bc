// The page of heddle serve, driven: its requests get what a real server answered to the same ones.
#include "heddle/text/strings/strings.h"
#include "tests/cli/page_data.h"
#include "tests/cli/vision_model.h"
#include "tests/pages/browser.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"

namespace heddle::testing {
namespace {

class ServePage : public PageTest {
 protected:
  // Writes the page, and gives what puts recorded answers in the place of the network.
  std::string write() {
    serve::ServiceOptions options = serve::default_service();
    options.models.push_back("de-en=" + serve::model_folder() + "/en-de");
    options.models.push_back("reader=" + text_model("classify"));
    for (const std::string& model : serve::image_service().models) options.models.push_back(model);
    serve::Running running(options);
    write_file(path_, serve::get(running.port(), "/").body);
    const std::string asked =
        R"({"model":"en-de","text":"a dog runs","beam":4,"n_best":4,"alignment":"hard"})";
    const std::string answer = serve::post(running.port(), "/v1/translations", asked).body;
    wanted_ = Json::parse(answer).at("translations").as_array().at(0);
    const Json attention = Json::object({{"model", "en-de"},
                                         {"text", "a dog runs"},
                                         {"target", wanted_.get_string("text")},
                                         {"format", "html"}});
    const std::string page = serve::post(running.port(), "/v1/attention", attention.dump()).body;
    const std::string image = base64_text(read_file(fixture_image("rgb.png")));
    const auto of_image = [&](const char* path) {
      return serve::post(running.port(), path,
                         Json::object({{"image", image}, {"threshold", 0.05}}).dump())
          .body;
    };
    const Json known =
        Json::object({{"/v1/attention", page},
                      {"/v1/images/classify", of_image("/v1/images/classify")},
                      {"/v1/images/detect", of_image("/v1/images/detect")},
                      {"/v1/classify",
                       serve::post(running.port(), "/v1/classify", R"({"text": "the fox"})").body},
                      {"image", image}});
    std::string text = known.dump();  // "</script>" would end the one that drives the page
    for (size_t at = 0; (at = text.find("</", at)) != std::string::npos;)
      text.replace(at, 2, "<\\/");
    return "const answer = " + answer + ", known = " + text + ", asked = [];" + R"js(
      const stream = ["the", " end"].map((text) => `data: ${JSON.stringify({choices: [{text}]})}\n\n`).join("");
      window.fetch = async (path, options) => {
        asked.push([path, JSON.parse(options.body)]);
        const text = JSON.parse(options.body).text;
        if (text === "wrong") {
          return new Response(JSON.stringify({error: {message: "no such thing"}}), {status: 400});
        }
        if (known[path]) return new Response(known[path]);
        return new Response(path === "/v1/translations" ? JSON.stringify(answer) : stream + "data: [DONE]\n\n");
      };
      const choose = async (name) => reader.click(reader.button(name, reader.picker("model")));
      // What a reader does with the chooser of files.
      const give = async () => {
        const bytes = Uint8Array.from(atob(known.image), (c) => c.charCodeAt(0)), files = new DataTransfer();
        files.items.add(new File([bytes], "rgb.png", {type: "image/png"}));
        reader.find("#image").files = files.files;
        const before = asked.length;
        reader.find("#image").dispatchEvent(new Event("change", {bubbles: true}));
        for (let i = 0; i < 50 && asked.length === before; ++i) await reader.wait(100);
        await reader.wait(300);
      };
      const type = async (text) => {
        reader.find("textarea").value = text;
        reader.find("textarea").dispatchEvent(new Event("input", {bubbles: true}));
        await reader.wait(400);
      };
    )js";
  }
  Json wanted_;
};

TEST_F(ServePage, translates_while_one_writes_and_shows_which_words_go_together) {
  const std::string answers = write();
  drive_both(answers + "const wanted = " + wanted_.dump() + ";" + R"js(
    await type("a dog");
    await type("a dog  runs ");
    reader.equal(asked.at(-1), ["/v1/translations", {model: "en-de", text: "a dog runs", beam: 4, n_best: 4, alignment: "hard"}], "the request");
    reader.equal(reader.find("#translation strong").textContent, wanted.text, "the translation");
    reader.equal(document.querySelectorAll("#alternatives li").length, wanted.n_best.length - 1, "alternatives");
    const links = wanted.alignment.split(" ").filter(Boolean).map((link) => link.split("-").map(Number));
    const [from, to] = links[0];
    await reader.hover(`[data-side="0"][data-number="${from}"]`);
    reader.check(reader.find(`[data-side="1"][data-number="${to}"]`).classList.contains("marked"), "its word is marked");
    await reader.leave(`[data-side="0"][data-number="${from}"]`);
    reader.equal(document.querySelectorAll(".marked").length, 0, "no longer");
    await type("wrong");
    reader.equal(reader.find('[role="status"].faint').textContent, "no such thing", "the server's words");
    await type(" ");
    reader.equal(reader.find("#translation").textContent, "", "nothing of nothing");
  )js",
             7);
}

TEST_F(ServePage, text_grows_as_it_comes) {
  const std::string answers = write();
  drive_both(answers + R"js(
    await reader.click(reader.button("small", reader.picker("model")));
    reader.find("textarea").value = "Once";
    await reader.click("#generate");
    await reader.wait(200);
    reader.equal(reader.find("#completion").textContent, "Oncethe end", "prompt and text");
    reader.equal(reader.find("#generate").textContent, "Generate", "done");
    reader.equal(asked[0][1].stream, true, "it asks for a stream");
    reader.check(reader.tooWide() <= 0, "no wider than the window");
  )js",
             4);
}

TEST_F(ServePage, attention_of_any_head_is_shown_inside_the_page) {
  const std::string answers = write();
  drive_both(answers + "const wanted = " + wanted_.dump() + ";" + R"js(
    await reader.click("#attention");
    reader.equal(reader.find("#attention").nextSibling.textContent, "write something first", "nothing to look at");
    await type("a dog runs");
    await reader.click("#attention");
    await reader.wait(600);
    reader.equal(asked.at(-1), ["/v1/attention", {model: "en-de", text: "a dog runs", target: wanted.text, format: "html"}], "the request");
    const frame = reader.find("iframe"), page = frame.contentDocument;
    reader.check(page.querySelectorAll('[data-pick^="head"]').length === 4, "its heads");
    page.querySelector('[data-pick="head2"]').click();
    reader.check(page.querySelector("h2").textContent.endsWith("head 2"), "another head");
    reader.check(frame.clientHeight >= page.body.offsetHeight, "all of it is seen");
    reader.find("#theme").click();
    await reader.wait(100);
    reader.equal(page.documentElement.dataset.theme, document.documentElement.dataset.theme, "one theme");
    reader.check(reader.tooWide() <= 0, "no wider than the window");
  )js",
             7);
}

TEST_F(ServePage, languages_are_swapped_with_the_text) {
  const std::string answers = write();
  drive_both(answers + "const wanted = " + wanted_.dump() + ";" + R"js(
    await type("a dog runs");
    await reader.click("#swap");
    await reader.wait(400);
    reader.check(reader.find("#card").textContent.startsWith("de-en: heddle_transformer, for translation, de → en; "), "the other translator's card");
    reader.equal(reader.find("textarea").value, wanted.text, "what was written is to be translated back");
    reader.equal(asked.at(-1)[1].model, "de-en", "and is");
  )js",
             3);
}

TEST_F(ServePage, images_are_classified_and_their_objects_boxed) {
  const std::string answers = write();
  drive_both(answers + R"js(
    await choose("vit");
    await give();
    reader.equal(asked.at(-1)[0], "/v1/images/classify", "the route");
    reader.equal(asked.at(-1)[1].image, "data:image/png;base64," + known.image, "the file as it is");
    reader.equal(document.querySelectorAll("#classified tbody tr").length, 5, "its classes");
    await choose("detr");
    await give();
    const all = JSON.parse(known["/v1/images/detect"]).images[0].objects, slider = reader.find("#threshold");
    slider.value = slider.min;
    slider.dispatchEvent(new Event("input", {bubbles: true}));
    reader.equal(document.querySelectorAll("#detected rect[data-label]").length, all.length, "all boxes");
    slider.value = "1";
    slider.dispatchEvent(new Event("input", {bubbles: true}));
    reader.equal(document.querySelectorAll("#detected rect[data-label]").length, 0, "none");
    reader.check(reader.tooWide() <= 0, "no wider than the window");
  )js",
             6);
}

TEST_F(ServePage, its_layout_holds) {
  const std::string answers = write();
  check_layout(path_, answers + R"js(
    await type("a dog runs");
    await reader.layout("translated");
    await reader.click(reader.button("small", reader.picker("model")));
    await reader.layout("completion");
    await choose("reader");
    await type("the fox");
    await reader.layout("classes");
    await choose("vit");
    await give();
    await reader.layout("an image's classes");
    await choose("detr");
    await give();
    reader.find("#threshold").value = "0.05";
    reader.find("#threshold").dispatchEvent(new Event("input", {bubbles: true}));
    await reader.layout("objects");
  )js",
               5);
}

}  // namespace
}  // namespace heddle::testing
