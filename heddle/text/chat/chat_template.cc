// Files of a folder, the messages as values, and the text as ids.
#include "heddle/text/chat/chat_template.h"

#include <functional>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/utf8.h"
#include "heddle/text/chat/jinja_interpreter.h"
#include "heddle/text/pipeline/special_tokens.h"

namespace heddle {
namespace {

constexpr size_t kLongestTemplate = 1 << 20;

// Each text of the messages, names of members among them, changed by f.
Json with_texts(const Json& json, const std::function<std::string(const std::string&)>& f) {
  if (json.is_string()) return f(json.as_string());
  if (json.is_array()) {
    Json list = Json::array();
    for (const Json& item : json.as_array()) list.push_back(with_texts(item, f));
    return list;
  }
  if (!json.is_object()) return json;
  Json object = Json::object();
  for (const auto& [key, value] : json.as_object()) object[f(key)] = with_texts(value, f);
  return object;
}

// Parts of type text as one text, a line end between them.
Json with_whole_contents(const Json& messages) {
  Json all = Json::array();
  for (Json message : messages.as_array()) {
    const Json* content = message.find("content");
    if (content != nullptr && content->is_array()) {
      std::vector<std::string> texts;
      for (const Json& part : content->as_array()) texts.push_back(part.get_string("text"));
      message["content"] = fmt::format("{}", fmt::join(texts, "\n"));
    }
    all.push_back(std::move(message));
  }
  return all;
}

// What a text is the JSON of, if it is an object: a model wrote it.
Json parsed_object(const Json& text) try {
  Json parsed = Json::parse(text.as_string(), "arguments");
  return parsed.is_object() ? parsed : text;
} catch (const Error&) {
  return text;
}

// "arguments" of calls as what they are the text of, where that is an object.
Json with_parsed_arguments(const Json& messages) {
  Json all = Json::array();
  for (Json message : messages.as_array()) {
    const Json* found = message.find("tool_calls");
    if (found != nullptr && found->is_array()) {
      Json calls = Json::array();
      for (Json call : found->as_array()) {
        Json& arguments = call["function"]["arguments"];
        if (arguments.is_string()) arguments = parsed_object(arguments);
        calls.push_back(std::move(call));
      }
      message["tool_calls"] = std::move(calls);
    }
    all.push_back(std::move(message));
  }
  return all;
}

void check_tool_calls(const Json& calls, const std::string& where) {
  if (calls.is_null()) return;
  for (const Json& call : calls.as_array(where + ": `tool_calls`")) {
    check(call.is_object(), ErrorKind::data, "{}: `tool_calls` holds {}; objects are needed", where,
          call.describe());
    const Json& function = call.at("function", where);
    check(function.is_object(), ErrorKind::data, "{}: `function` is {}; an object is needed", where,
          function.describe());
    function.get_string("name", where);
    const Json& arguments = function.at("arguments", where);
    check(arguments.is_string() || arguments.is_object(), ErrorKind::data,
          "{}: `arguments` is {}; a text or an object is needed", where, arguments.describe());
  }
}

struct TemplateSource {
  std::string text, where;
};

std::optional<TemplateSource> source_in_config(const HubFiles& files) {
  const std::string where = files.path("tokenizer_config.json") + ": chat_template";
  const Json* found = files.config.find("chat_template");
  if (found == nullptr || found->is_null()) return {};
  if (found->is_string()) return TemplateSource{found->as_string(), where};
  std::vector<std::string> names;
  for (const Json& one : found->as_array(where)) {
    if (one.get_string("name", where) == "default") {
      return TemplateSource{one.get_string("template", where), where};
    }
    names.push_back(one.get_string("name", where));
  }
  fail(ErrorKind::data, "{}: of its templates ({}) none is called default", where,
       fmt::join(names, ", "));
}

std::optional<TemplateSource> source_of(const HubFiles& files) {
  const std::string path = files.path("chat_template.jinja");
  if (path_exists(path)) return TemplateSource{read_file(path), path};
  // transformers 4.4x wrote {"chat_template": ".."} for processors.
  const std::string json = files.path("chat_template.json");
  if (path_exists(json))
    return TemplateSource{Json::load(json).get_string("chat_template", json), json};
  return source_in_config(files);
}

}  // namespace

void check_messages(const Json& messages) {
  check(messages.is_array() && messages.size() > 0, ErrorKind::data,
        "{} is {}; a list of messages is needed", "`messages`", messages.describe());
  size_t number = 0;
  for (const Json& message : messages.as_array()) {
    const std::string where = fmt::format("`messages`[{}]", number++);
    check(message.is_object(), ErrorKind::data, "{} is {}; an object is needed", where,
          message.describe());
    message.get_string("role", where);
    if (const Json* calls = message.find("tool_calls")) check_tool_calls(*calls, where);
    const Json* content = message.find("content");
    if (content == nullptr || content->is_null() || content->is_string()) continue;
    for (const Json& part : content->as_array(where + ": `content`")) {
      const std::string& type = part.get_string("type", where);
      check(type == "text", ErrorKind::data, "{} has a part of type {}; only text is read", where,
            type);
      part.get_string("text", where);
    }
  }
}

ChatTemplate::ChatTemplate(std::string_view source,
                           std::vector<std::pair<std::string, std::string>> special_tokens,
                           std::string where)
    : special_tokens_(std::move(special_tokens)), where_(std::move(where)) {
  check(source.size() <= kLongestTemplate, ErrorKind::data, "{}: {} bytes are too many", where_,
        source.size());
  check_utf8(source, where_);
  try {
    tree_ = parse_jinja(source);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", where_, error.what());
  }
  reads_parts_ = source.find("['type']") != std::string_view::npos ||
                 source.find("[\"type\"]") != std::string_view::npos ||
                 source.find(".type") != std::string_view::npos;
  takes_tools_ = source.find("tools") != std::string_view::npos;
  form_ = heddle::tool_call_form(source);
}

std::optional<ChatTemplate> ChatTemplate::find(const std::string& folder,
                                               const Tokenizer* tokenizer) {
  const HubFiles files = HubFiles::read(folder);
  const std::optional<TemplateSource> source = source_of(files);
  if (!source) return {};
  std::vector<std::pair<std::string, std::string>> special;
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                          "cls_token", "mask_token"}) {
    std::string usual;
    if (tokenizer != nullptr) {
      const std::string_view kind = key;
      const int32_t id = kind == "bos_token"   ? tokenizer->bos_id()
                         : kind == "eos_token" ? tokenizer->eos_id()
                         : kind == "unk_token" ? tokenizer->unk_id()
                                               : -1;
      if (id >= 0) usual = tokenizer->token(id);
    }
    std::string name = files.special_name(key, usual);
    if (!name.empty()) special.emplace_back(key, std::move(name));
  }
  return ChatTemplate(source->text, std::move(special), source->where);
}

std::string ChatTemplate::render(const ChatInput& input) const {
  check_messages(input.messages);
  const Json called = with_parsed_arguments(input.messages);
  const Json messages = reads_parts_ ? called : with_whole_contents(called);
  JinjaInput values{.now = input.now == 0 ? std::time(nullptr) : input.now};
  for (const auto& [name, text] : special_tokens_) values.variables.emplace_back(name, text);
  values.variables.emplace_back("messages", JinjaValue::of_json(messages));
  const bool has_tools = input.tools.size() > 0;
  values.variables.emplace_back("tools",
                                has_tools ? JinjaValue::of_json(input.tools) : JinjaValue());
  values.variables.emplace_back("documents", JinjaValue());
  values.variables.emplace_back("add_generation_prompt", JinjaValue(input.add_generation_prompt));
  for (const auto& [name, value] : input.variables.as_object()) {
    // The last of a name is found, as in transformers, but what is said above stays.
    const bool is_taken = name == "messages" || name == "add_generation_prompt";
    check(!is_taken, ErrorKind::data, "`chat_template_kwargs` has '{}', which is said elsewhere",
          name);
    std::erase_if(values.variables, [&](const auto& known) { return known.first == name; });
    values.variables.emplace_back(name, JinjaValue::of_json(value));
  }
  try {
    return render_jinja(*tree_, values);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", where_, error.what());
  }
}

std::string ChatTemplate::render_hidden(const Tokenizer& tokenizer, const ChatInput& input) const {
  ChatInput hidden = input;
  const auto hide = [&](const std::string& text) { return tokenizer.hide_special(text); };
  check_messages(input.messages);
  hidden.messages = with_texts(with_parsed_arguments(input.messages), hide);
  hidden.tools = with_texts(input.tools, hide);
  hidden.variables = with_texts(input.variables, hide);
  return render(hidden);
}

std::vector<int32_t> ChatTemplate::encode(const Tokenizer& tokenizer,
                                          const ChatInput& input) const {
  return tokenizer.encode_rendered(render_hidden(tokenizer, input));
}

}  // namespace heddle
