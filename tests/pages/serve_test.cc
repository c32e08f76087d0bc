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
    const std::string image = serve::base64_of("rgb.png");
    const auto of_image = [&](const std::string& path) {
      Json body = Json::object({{"image", image}});
      if (path.ends_with("detect")) body["threshold"] = 0.05;
      if (path.ends_with("caption")) body["beam"] = 4, body["n_best"] = 4, body["maps"] = true;
      return serve::post(running.port(), path, body.dump()).body;
    };
    const Json known =
        Json::object({{"/v1/attention", page},
                      {"/v1/images/classify", of_image("/v1/images/classify")},
                      {"/v1/images/detect", of_image("/v1/images/detect")},
                      {"/v1/images/caption", of_image("/v1/images/caption")},
                      {"/v1/classify",
                       serve::post(running.port(), "/v1/classify", R"({"text": "the fox"})").body},
                      {"image", image}});
    std::string text = known.dump();  // "</script>" would end the one that drives the page
    for (size_t at = 0; (at = text.find("</", at)) != std::string::npos;)
      text.replace(at, 2, "<\\/");
    return "const answer = " + answer + ", known = " + text + ", asked = [];" + R"js(
      const likely = [["the", 0.5], ["a", 0.25]];
      const completion = (text) => ({choices: [{index: 0, text, finish_reason: null, logprobs: {tokens: [text], text_offset: [0],
        token_logprobs: [Math.log(0.5)], top_logprobs: [Object.fromEntries(likely.map(([t, p]) => [t, Math.log(p)]))]}}]});
      const chat = (content) => ({choices: [{index: 0, delta: {content}, finish_reason: null, logprobs: {content: [{token: content,
        logprob: Math.log(0.5), bytes: [], top_logprobs: likely.map(([token, p]) => ({token, logprob: Math.log(p), bytes: []}))}]}}]});
      const event = (json) => `data: ${JSON.stringify(json)}\n\n`;
      const parts = ["the", " end"];
      window.fetch = async (path, options) => {
        asked.push([path, JSON.parse(options.body)]);
        const {text: given, messages} = JSON.parse(options.body);
        const text = messages ? messages.at(-1).content : given;
        if (text === "wait") {  // a stream that goes on until it is stopped
          return new Response(new ReadableStream({start(controller) {
            controller.enqueue(new TextEncoder().encode(event(chat("so f"))));
            options.signal.addEventListener("abort", () => controller.error(new DOMException("stopped", "AbortError")));
          }}));
        }
        if (text === "hang") {  // nothing comes until it is stopped
          return new Promise((_, fail) => options.signal.addEventListener("abort", () => fail(new DOMException("stopped", "AbortError"))));
        }
        if (text === "wrong") {
          return new Response(JSON.stringify({error: {message: "no such thing"}}), {status: 400});
        }
        if (path === "/v1/attention" && text.startsWith("long") && !JSON.parse(options.body).heads) {
          return new Response(JSON.stringify({error: {message: "too many weights"}}), {status: 400});
        }
        if (known[path]) return new Response(known[path]);
        const first = messages ? event({choices: [{index: 0, delta: {role: "assistant", content: ""}, finish_reason: null, logprobs: null}]}) : "";
        const last = event({choices: [messages ? {index: 0, delta: {}, finish_reason: "stop", logprobs: null}
          : {index: 0, text: "", finish_reason: "stop", logprobs: null}]});
        return new Response(path === "/v1/translations" ? JSON.stringify(answer)
          : first + parts.map(messages ? chat : completion).map(event).join("") + last + "data: [DONE]\n\n");
      };
      const choose = async (name) => reader.click(reader.button(name, reader.picker("model")));
      // What a reader does with the chooser of files.
      const give = async () => {
        const bytes = Uint8Array.from(atob(known.image), (c) => c.charCodeAt(0)), files = new DataTransfer();
        files.items.add(new File([bytes], "rgb.png", {type: "image/png"}));
        reader.find("#image").files = files.files;
        reader.find("#image").dispatchEvent(new Event("change", {bubbles: true}));
        await reader.until(() => reader.find(".detected-parts").children.length, "what the model says of the image");
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
    const paths = reader.find("#paths").textContent, uses = heddle.data.models.map((model) => model.use);
    reader.equal(["/v1/translations", "/v1/completions", "/v1/embeddings", "/v1/images/detect"].map((path) => paths.includes(path)),
      ["translation", "generation", "embedding", "object-detection"].map((use) => uses.includes(use)), "where programs ask: " + paths);
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
             8);
}

TEST_F(ServePage, text_grows_as_it_comes) {
  const std::string answers = write();
  drive_both(answers + R"js(
    await choose("small");
    await reader.click(reader.button("completion", reader.picker("as")));
    reader.find("textarea").value = "Once";
    await reader.click("#generate");
    await reader.wait(200);
    reader.equal(reader.find("#completion").textContent, "Oncethe end", "prompt and text");
    reader.equal(reader.find("#generate").textContent, "Generate", "done");
    reader.equal([asked[0][0], asked[0][1].stream, asked[0][1].logprobs], ["/v1/completions", true, 5], "the request");
    await reader.hover(".token");
    reader.check(reader.find("#tooltip").textContent.includes("25.0 % \"a\""), "what else was likely");
    await reader.leave(".token");
    reader.check(reader.tooWide() <= 0, "no wider than the window");
  )js",
             5);
}

// A language model is chosen; say() types a turn and sends it.
constexpr const char* kSay = R"js(
    await choose("small");
    const say = async (text) => {
      reader.find("textarea").value = text;
      reader.find("textarea").dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true}));
      await reader.wait(200);
    };
)js";

TEST_F(ServePage, a_conversation_grows_and_what_is_refused_can_be_sent_again) {
  const std::string answers = write();
  drive_both(answers + kSay + R"js(
    const turns = () => [...document.querySelectorAll(".turn")].map((turn) =>
      turn.dataset.role + ": " + turn.querySelector(".text").textContent);
    reader.find("#system").value = "be good";
    await say("Once");
    reader.equal(turns(), ["user: Once", "assistant: the end"], "both turns");
    await say("wrong");
    reader.equal(turns().length, 2, "what was refused is no turn");
    reader.equal(reader.find("textarea").value, "wrong", "it can be sent again");
    reader.equal(reader.find('[role="status"].faint').textContent, "no such thing", "the server's words");
    await say("more");
    reader.equal(asked.at(-1)[0], "/v1/chat/completions", "the interface");
    reader.equal(asked.at(-1)[1].messages, [{role: "system", content: "be good"}, {role: "user", content: "Once"},
      {role: "assistant", content: "the end"}, {role: "user", content: "more"}], "all that was said is sent");
    await reader.hover(".token");
    reader.check(reader.find("#tooltip").textContent.includes("25.0 % \"a\""), "what else was likely");
    await reader.leave(".token");
    await say("wait");
    reader.equal(reader.find("#send").textContent, "Stop", "it goes on");
    await reader.click("#send");
    await reader.wait(50);
    reader.equal([reader.find("#send").textContent, turns().at(-1)], ["Send", "assistant: so f"], "stopped, and kept");
    reader.check(reader.tooWide() <= 0, "no wider than the window");
  )js",
             10);
}

TEST_F(ServePage, a_conversation_begun_anew_sends_nothing_of_the_one_before) {
  const std::string answers = write();
  drive_both(answers + kSay + R"js(
    // At rest, while an answer comes, and before any of it has come.
    for (const before of ["Once", "wait", "hang"]) {
      await say(before);
      reader.equal(reader.find("#send").textContent, before === "Once" ? "Send" : "Stop", before);
      await reader.click("#anew");
      reader.equal(reader.find("#send").textContent, "Send", `${before}: stopped`);
      reader.equal([document.querySelectorAll(".turn").length, reader.find("textarea").value], [0, ""], `${before}: begun anew`);
      reader.equal(reader.find('[role="status"].faint').textContent, "", `${before}: nothing is said of it`);
      await say("more");
      reader.equal(asked.at(-1)[1].messages, [{role: "user", content: "more"}], `${before}: what is sent`);
      await reader.click("#anew");
    }
  )js",
             15);
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

TEST_F(ServePage, of_a_long_text_one_head_is_shown) {
  drive_both(write() + R"js(
    await type("long");
    await reader.click("#attention");
    await reader.until(() => !reader.find("iframe").hidden, "a head");
    reader.equal(asked.slice(-3).map(([_, body]) => [body.layers, body.heads]), [[undefined, undefined], [[0], undefined], [[0], [0]]],
      "what is asked for");
    reader.equal(reader.find("#attention").nextSibling.textContent, "of so long a text layer 0, head 0 alone", "which it is");
  )js",
             2);
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

TEST_F(ServePage, languages_of_a_model_of_many_are_chosen) {
  serve::ServiceOptions options;
  options.models = {std::string(kFixtures) + "/seq2seq/mbart"};
  serve::Running running(options);
  write_file(path_, serve::get(running.port(), "/").body);
  drive_both(R"js(
    const asked = [];
    window.fetch = async (path, options) => {
      asked.push([path, JSON.parse(options.body)]);
      return new Response(JSON.stringify({translations: [{text: "ein Hund", alignment: "0-0"}]}));
    };
    reader.check(reader.find("#card").textContent.includes("into 25 languages"), "how many there are");
    const [from, into] = document.querySelectorAll("section select");
    reader.equal([from.value, into.value, from.options.length], ["en_XX", "ar_AR", 25], "which at first");
    into.value = "de_DE";
    reader.find("textarea").value = "a dog";
    into.dispatchEvent(new Event("change", {bubbles: true}));
    await reader.wait(400);
    reader.equal(asked.at(-1), ["/v1/translations", {model: "mbart", text: "a dog", source_lang: "en_XX", target_lang: "de_DE",
      beam: 4, n_best: 4, alignment: "hard"}], "the request");
    await reader.click("#attention");
    reader.equal(asked.at(-1), ["/v1/attention", {model: "mbart", text: "a dog", target: "ein Hund", source_lang: "en_XX",
      target_lang: "de_DE", format: "html"}], "what is looked at");
    reader.check(reader.tooWide() <= 0, "no wider than the window");
  )js",
             5);
}

TEST_F(ServePage, models_are_shown_once_a_key_is_there) {
  const std::string keys = (folder_ / "keys").string();
  write_file(keys, "first-key\n");
  std::filesystem::permissions(keys, std::filesystem::perms(0600));
  serve::ServiceOptions options = serve::default_service();
  options.keys_path = keys;
  serve::Running running(options);
  write_file(path_, serve::get(running.port(), "/").body);
  const auto models = [&](const char* key) {
    return serve::get(running.port(), "/v1/models",
                      fmt::format("Authorization: Bearer {}\r\n", key))
        .body;
  };
  drive_both("const wrong = " + models("x") + ", all = " + models("first-key") + ";" + R"js(
    const asked = [];
    window.fetch = async (path, {headers}) => {
      asked.push([path, headers.authorization]);
      const isRight = headers.authorization === "Bearer first-key";
      return new Response(JSON.stringify(isRight ? all : wrong), {status: isRight ? 200 : 401});
    };
    const give = async (key) => {
      reader.find("#key").value = key;
      reader.find("#key").dispatchEvent(new Event("change", {bubbles: true}));
      await reader.wait(100);
    };
    reader.equal(document.querySelectorAll("#card, textarea").length, 0, "nothing at first");
    await give("second-key");
    reader.equal(reader.find('[role="status"]').textContent, "the key is missing or wrong", "the server's words");
    await give("first-key");
    reader.equal(asked.at(-1), ["/v1/models", "Bearer first-key"], "what is asked");
    reader.check(reader.find("#card").textContent.startsWith("en-de: "), "the first model");
    reader.equal(reader.picker("model").querySelectorAll("button").length, 2, "all of them");
    reader.equal(reader.find('[role="status"]').textContent, "", "no fault is said any more");
  )js",
             6);
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

TEST_F(ServePage, images_get_captions_and_words_show_where_the_model_looked) {
  const std::string answers = write();
  drive_both(answers + R"js(
    await choose("captioner");
    await give();
    reader.equal(asked.at(-1), ["/v1/images/caption", {model: "captioner", image: "data:image/png;base64," + known.image,
      beam: 4, n_best: 4, maps: true}], "the request");
    const all = JSON.parse(known["/v1/images/caption"]).captions[0];
    const sentences = [...document.querySelectorAll("#captioned .sentence")];
    reader.equal(sentences.map((one) => one.dataset.caption), all.n_best.map((one) => one.text), "captions, best first");
    const words = [...document.querySelectorAll("#captioned button.word")], canvas = reader.find("#captioned canvas");
    reader.equal(words.map((word) => word.textContent), all.n_best.flatMap((one) => one.words.map((word) => word.text)), "a button a word");
    const before = canvas.toDataURL();
    words[0].focus();
    const first = canvas.toDataURL();
    reader.check(first !== before, "the map lies over the image");
    words[1].dispatchEvent(new PointerEvent("pointerenter"));
    reader.check(canvas.toDataURL() !== first, "another word, another map");
    const {text, weights, gate} = all.words[1], [rows, columns] = all.grid, high = Math.max(...weights), peak = weights.indexOf(high);
    reader.equal(weights.length, rows * columns, "a weight a cell");
    reader.check(reader.find("#captioned").textContent.includes(`“${text}” looked most at row ${Math.floor(peak / columns) + 1}, column ${peak % columns + 1}: ${heddle.percent(high)}`), "said in words");
    reader.check(reader.find("#captioned").textContent.includes(`By its gate ${heddle.percent(gate)} of that counted`), "with its gate");
    const beam = reader.find("section select");
    beam.value = "1";
    beam.dispatchEvent(new Event("change", {bubbles: true}));
    await reader.wait(300);
    reader.equal([asked.at(-1)[1].beam, asked.at(-1)[1].n_best], [1, 1], "asked again by another beam");
    reader.check(reader.tooWide() <= 0, "no wider than the window");
  )js",
             10);
}

TEST_F(ServePage, its_layout_holds) {
  const std::string answers = write();
  check_layout(path_, answers + R"js(
    await type("a dog runs");
    await reader.layout("translated");
    await choose("small");
    reader.find("textarea").value = "Once";
    await reader.click("#send");
    await reader.wait(200);
    await reader.layout("conversation");
    await reader.click(reader.button("completion", reader.picker("as")));
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
    await choose("captioner");
    await give();
    document.querySelector("#captioned button.word").focus();
    await reader.layout("captions");
  )js",
               7);
}

}  // namespace
}  // namespace heddle::testing
