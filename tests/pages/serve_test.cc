// The page of heddle serve, driven: its requests get what a real server answered to the same ones.
#include "tests/pages/browser.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"

namespace heddle::testing {
namespace {

class ServePage : public PageTest {
 protected:
  // Writes the page, and gives what puts recorded answers in the place of the network.
  std::string write() {
    serve::Running running;
    write_file(path_, serve::get(running.port(), "/").body);
    const std::string asked =
        R"({"model":"en-de","text":"a dog runs","beam":4,"n_best":4,"alignment":"hard"})";
    const std::string answer = serve::post(running.port(), "/v1/translations", asked).body;
    wanted_ = Json::parse(answer).at("translations").as_array().at(0);
    return "const answer = " + answer + ", asked = [];" + R"js(
      const stream = ["the", " end"].map((text) => `data: ${JSON.stringify({choices: [{text}]})}\n\n`).join("");
      window.fetch = async (path, options) => {
        asked.push([path, JSON.parse(options.body)]);
        const text = JSON.parse(options.body).text;
        if (text === "wrong") {
          return new Response(JSON.stringify({error: {message: "no such thing"}}), {status: 400});
        }
        return new Response(path === "/v1/translations" ? JSON.stringify(answer) : stream + "data: [DONE]\n\n");
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

TEST_F(ServePage, its_layout_holds) {
  const std::string answers = write();
  check_layout(path_, answers + R"js(
    await type("a dog runs");
    await reader.layout("translated");
    await reader.click(reader.button("small", reader.picker("model")));
    await reader.layout("completion");
  )js",
               2);
}

}  // namespace
}  // namespace heddle::testing
