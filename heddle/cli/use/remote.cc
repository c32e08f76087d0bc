// /v1/translations and /v1/completions, streamed: what comes is written in the order of the lines.
#include "heddle/cli/use/remote.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/cli/use/prompts.h"
#include "heddle/infer/decoding/generate.h"
#include "heddle/serve/http/api_client.h"
#include "heddle/text/strings/strings.h"

namespace heddle::cli {
namespace {

// Of a request: within what a server takes unless it is told to take less.
constexpr BlockSize kBlock = {.lines = 256, .bytes = 1 << 18};
std::string key_of(const ServerFlags& flags) {
  std::string key;
  if (!flags.key_file.empty()) {
    key = read_file(flags.key_file);
    key = key.substr(0, key.find_first_of("\r\n"));
    check(!key.empty(), ErrorKind::data, "{}: its first line is empty; it must be the key",
          flags.key_file);
  } else if (const char* const named = std::getenv("HEDDLE_KEY")) {
    key = named;
  }
  const bool is_plain = std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7f; });
  check(is_plain, ErrorKind::usage, "the key holds what no key may: a space, or no ASCII");
  return key;
}

class RemoteServer {
 public:
  RemoteServer(const char* command, const ServerFlags& flags)
      : url_(serve::server_url(flags.url)),
        client_({.server = url_,
                 .key = key_of(flags),
                 .longest_wait = flags.longest_wait,
                 .on_wait = [command](double seconds, const std::string& message) {
                   log_info("{}: waiting {:.1f} s: {}", command, seconds, message);
                 }}) {
    while (url_.path.ends_with('/')) url_.path.pop_back();
    if (url_.path.ends_with("/v1")) url_.path.resize(url_.path.size() - 3);
  }
  void post(const std::string& path, const Json& body,
            const std::function<void(const Json&)>& on_event) {
    client_.post(url_.path + path, body, on_event);
  }

 private:
  serve::ServerUrl url_;
  serve::ApiClient client_;
};

}  // namespace

void add_server_flags(Subcommand& command, ServerFlags& flags) {
  command.get_option("model").required(false);
  const Option server = command.add_option(
      "--server", flags.url,
      "http://HOST:PORT of a `heddle serve` that is asked in the place of a model "
      "here; model is then the name of one there, or is left out");
  command
      .add_option("--key-file", flags.key_file,
                  "with --server: a file with the key [the environment's HEDDLE_KEY]")
      .needs(server);
  command
      .add_setting("--wait", flags.longest_wait,
                   "with --server: seconds to wait in all while it has no room")
      .needs(server);
}

bool asks_server(const Subcommand& command, const ServerFlags& flags,
                 std::initializer_list<const char*> asked) {
  const bool has_server = !flags.url.empty();
  check(has_server || command.get_option("model").count() > 0, ErrorKind::usage,
        "model is required, or --server");
  if (!has_server) return false;
  check(flags.longest_wait >= 0 && flags.longest_wait <= 1e8, ErrorKind::usage,
        "--wait is {}; it must be from 0 to 1e8", flags.longest_wait);
  for (const Option& option : command.get_options()) {
    const std::string name = option.name();
    const bool is_ours = name == "--server" || name == "--key-file" || name == "--wait" ||
                         name == "model" || std::ranges::count(asked, name) > 0;
    check(is_ours || option.count() == 0, ErrorKind::usage,
          "{}: a server is not asked that; leave it out, or --server", name);
  }
  return true;
}

// --- translate -----------------------------------------------------------------------------------

namespace {

class TranslationWriter {
 public:
  explicit TranslationWriter(const RemoteTranslation& asked) : asked_(asked) {}

  // Of a line, by its number from 0: written once those before are.
  void take(int64_t line, Json translation) {
    waiting_[line] = std::move(translation);
    for (auto at = waiting_.find(next_); at != waiting_.end(); at = waiting_.find(next_)) {
      write(at->second);
      waiting_.erase(at);
      ++next_;
    }
  }
  void skip(const std::string& message) {
    print_result(asked_.json ? Json::object({{"text", ""}, {"error", message}}).dump() : "");
    ++next_;
  }
  int64_t next() const { return next_; }
  // Texts that were cut.
  int64_t cut() const { return cut_; }

 private:
  // As `translate` has it: an object, of several all of them under "n_best".
  Json object_of(const Json& t) const {
    Json json = Json::object(
        {{"text", t.at("text")}, {"score", t.at("score")}, {"tokens", t.at("tokens")}});
    if (const Json* alignment = t.find("alignment")) json["alignment"] = *alignment;
    return json;
  }
  void write(const Json& t) {
    if (const Json* is_cut = t.find("truncated"); is_cut && is_cut->as_bool()) ++cut_;
    if (asked_.json) {
      Json json = object_of(t);
      if (asked_.shows_several) {
        json["n_best"] = Json::array();
        for (const Json& one : t.at("n_best").as_array()) json["n_best"].push_back(object_of(one));
      }
      return print_result(json.dump());
    }
    if (asked_.shows_several) {
      for (const Json& one : t.at("n_best").as_array()) {
        print_result(fmt::format("{} ||| {} ||| {:.6f}", next_, one.get_string("text"),
                                 one.get_double("score")));
      }
      return;
    }
    const Json* alignment = t.find("alignment");
    print_result(t.get_string("text") +
                 (alignment == nullptr ? "" : " ||| " + alignment->as_string()));
  }

  const RemoteTranslation& asked_;
  std::map<int64_t, Json> waiting_;
  int64_t next_ = 0, cut_ = 0;
};

}  // namespace

void translate_remotely(const RemoteTranslation& asked) {
  RemoteServer server("translate", asked.server);
  TranslationWriter writer(asked);
  const PrefixLines prefixes(asked.prefix_file);
  const auto answer = [&](std::span<const std::string> lines, int64_t first, Results) {
    Json body = asked.body;
    body["text"] = std::vector<std::string>(lines.begin(), lines.end());
    if (!asked.prefix.empty()) body["prefix"] = asked.prefix;
    if (prefixes.are_given()) {
      const auto some = prefixes.of(first, lines.size());
      body["prefix"] = std::vector<std::string>(some.begin(), some.end());
    }
    body["stream"] = true;
    const int64_t before = writer.next();
    server.post("/v1/translations", body, [&](const Json& event) {
      writer.take(first - 1 + event.get_int("index"), event);
      flush_results();
    });
    check(writer.next() - before == std::ssize(lines), ErrorKind::system,
          "the server sent {} translations of {} lines", writer.next() - before, lines.size());
  };
  const int64_t lines = answer_lines(
      "translate", asked.lines, kBlock,
      {.answer = answer, .skip = [&](const std::string& m, Results) { writer.skip(m); }});
  if (writer.cut() > 0) {
    log_warning("translate: {} of {} longer than the model takes and cut",
                format_count(writer.cut()), counted(lines, "text was", "texts were"));
  }
  prefixes.check_all_used(lines);
}

// --- generate ------------------------------------------------------------------------------------

namespace {

// Texts of some prompts: the first that is not whole is written as it grows, if it is alone.
class CompletionWriter {
 public:
  explicit CompletionWriter(const RemoteGeneration& asked) : asked_(asked) {}

  void begin(std::span<const std::string> prompts) {
    prompts_ = prompts;
    texts_.assign(prompts.size() * static_cast<size_t>(asked_.samples), "");
    is_whole_.assign(texts_.size(), false);
    next_ = 0;
    is_live_ = texts_.size() == 1;
    if (is_live_) open(0);
  }
  void take(const Json& choice) {
    const auto i = static_cast<size_t>(choice.get_int("index"));
    check(i < texts_.size(), ErrorKind::system, "the server sent text {} of {}", i, texts_.size());
    const std::string text = text_of(choice);
    if (is_live_) {
      write_results(text);
      flush_results();
    } else {
      texts_[i] += text;
    }
    if (!choice.at("finish_reason").is_null()) is_whole_[i] = true;
    while (next_ < texts_.size() && is_whole_[next_]) close(next_++);
  }
  void end() const {
    check(next_ == texts_.size(), ErrorKind::system, "the server ended {} of {} texts", next_,
          texts_.size());
  }
  void skip() {
    begin_text();
    write_results("\n");
  }

 private:
  std::string text_of(const Json& choice) const {
    if (!asked_.is_chat) return choice.get_string("text");
    const Json* content = choice.at("delta").find("content");
    return content == nullptr || content->is_null() ? "" : content->as_string();
  }
  void begin_text() {
    if (!std::exchange(is_first_, false)) write_results(kBetweenTexts);
  }
  void open(size_t i) {
    begin_text();
    if (asked_.echo) write_results(prompts_[i / static_cast<size_t>(asked_.samples)]);
  }
  void close(size_t i) {
    if (!is_live_) open(i);
    write_results(texts_[i] + "\n");
    flush_results();
  }

  const RemoteGeneration& asked_;
  std::span<const std::string> prompts_;
  std::vector<std::string> texts_;
  std::vector<bool> is_whole_;
  size_t next_ = 0;
  bool is_live_ = false, is_first_ = true;
};

Json completion_body(const RemoteGeneration& asked) {
  const SearchConfig& s = asked.search;
  Json body = Json::object({{"max_tokens", wanted_tokens(s)}});
  const auto add = [&](const char* key, const auto& value) {
    if (value) body[key] = *value;
  };
  if (!asked.model.empty()) body["model"] = asked.model;
  if (!asked.stops.empty()) body["stop"] = asked.stops;
  if (asked.samples > 1) body["n"] = asked.samples;
  if (asked.draws) {
    add("temperature", s.temperature);
    body["seed"] = s.seed.value_or(1);
  } else {
    body["temperature"] = 0.0;
  }
  add("top_p", s.top_p);
  add("top_k", s.top_k);
  add("min_p", s.min_p);
  add("repetition_penalty", s.repetition_penalty);
  if (!asked.schema.is_null()) {
    body["response_format"] = Json::object(
        {{"type", "json_schema"},
         {"json_schema", Json::object({{"name", "answer"}, {"schema", asked.schema}})}});
  }
  body["stream"] = true;
  return body;
}

}  // namespace

void generate_remotely(const RemoteGeneration& asked) {
  check(!asked.is_chat || !asked.echo, ErrorKind::usage,
        "--echo: what the chat template makes of a prompt is the server's to know; leave it out");
  RemoteServer server("generate", asked.server);
  CompletionWriter writer(asked);
  const BlockSize block = asked.is_chat ? BlockSize{.lines = 1, .bytes = kBlock.bytes} : kBlock;
  const auto check_draws = [&](size_t prompts, int64_t first) {
    check(!asked.draws || (first == 1 && prompts <= block.lines), ErrorKind::usage,
          "a server draws for {} at a time, each time from the seed anew; give fewer, none of them "
          "bad, or several seeds",
          asked.is_chat ? "one conversation" : fmt::format("{} prompts", block.lines));
  };
  const auto answer = [&](std::span<const std::string> prompts, int64_t first, Results) {
    check_draws(prompts.size(), first);
    Json body = completion_body(asked);
    if (asked.is_chat) {
      body["messages"] =
          conversation_messages(asked.system, prompts[0], fmt::format("prompt {}", first));
    } else {
      body["prompt"] = std::vector<std::string>(prompts.begin(), prompts.end());
    }
    bool has_begun = false;
    server.post(asked.is_chat ? "/v1/chat/completions" : "/v1/completions", body,
                [&](const Json& event) {
                  if (!std::exchange(has_begun, true)) writer.begin(prompts);
                  for (const Json& choice : event.at("choices").as_array()) writer.take(choice);
                });
    writer.end();
  };
  for (const std::string& prompt : asked.prompts) check_text(prompt, "--prompt");
  if (!asked.prompts.empty()) {
    check_draws(asked.prompts.size(), 1);
    const size_t size = asked.is_chat ? 1 : asked.prompts.size();
    for (size_t i = 0; i < asked.prompts.size(); i += size) {
      answer(std::span(asked.prompts).subspan(i, size), static_cast<int64_t>(i) + 1, {});
    }
    return;
  }
  LineFlags lines = asked.lines;
  if (lines.path.empty()) lines.path = "-";
  const LineAnswers answers{.answer = answer,
                            .skip = [&](const std::string&, Results) { writer.skip(); }};
  if (!asked.draws) return void(answer_lines("generate", lines, block, answers));
  // All at once, however slowly they come.
  answer_all("generate", lines, read_lines(lines.path, "generate"), answers);
}

}  // namespace heddle::cli
