// Reads the fences of Markdown pages and compares outputs.
#include "tests/support/fences.h"

#include <regex>
#include <sstream>
#include <stdexcept>

namespace heddle::testing {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

namespace {

// The comment's words: "same", "NAME=VALUE", "NAME="several words"".
void read_annotation(const std::string& text, Fence& fence) {
  fence.is_annotated = true;
  if (text == "no" || text.starts_with("no,")) {
    fence.reason = text.size() > 4 ? text.substr(4) : "";
    return;
  }
  fence.is_run = true;
  const std::regex word(R"re(([^\s="]+)(?:=(?:"([^"]*)"|(\S*)))?)re");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), word); at != std::sregex_iterator();
       ++at) {
    const std::smatch& found = *at;
    if (found[1] == "same") {
      fence.goes_on = true;
    } else if (found[1] != "run") {
      fence.settings[found[1]] = found[2].matched ? found[2].str() : found[3].str();
    }
  }
}

// A line in which what may differ is alike.
std::string normalised(std::string line, Comparison comparison) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
  if (comparison == Comparison::exact) return line;
  static const std::regex time(R"(\d+ (min \d+ s|h \d+ min|d \d+ h)|[\d.]+ s\b)");
  static const std::regex number(R"([-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?)");
  static const std::regex blanks(R"([ \t]+)");
  line = std::regex_replace(line, time, "N s");
  line = std::regex_replace(line, number, "N");
  line = std::regex_replace(line, blanks, " ");
  if (comparison != Comparison::form) return line;
  static const std::regex word(R"([^ ]+)");
  return std::regex_replace(line, word, "w");
}

}  // namespace

bool Fence::is_shell() const {
  return language.empty() || language == "bash" || language == "sh" || language == "console";
}

std::vector<ShownCommand> Fence::commands() const {
  std::vector<ShownCommand> commands;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("$ ")) {
      std::string text = lines[i].substr(2);
      while (text.ends_with("\\") && i + 1 < lines.size()) text += "\n" + lines[++i];
      commands.push_back({text, {}});
    } else if (!commands.empty()) {
      commands.back().output.push_back(lines[i]);
    }
  }
  if (!commands.empty()) return commands;
  std::string script;
  for (const std::string& line : lines) script += line + "\n";
  return {{script, {}}};
}

std::vector<Fence> fences_of(const std::string& page, const std::string& name) {
  std::vector<Fence> fences;
  const std::vector<std::string> lines = lines_of(page);
  const std::regex comment(R"(<!-- test: (.*) -->)");
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with("```")) continue;
    Fence fence{.where = name + ":" + std::to_string(i + 1), .language = lines[i].substr(3)};
    std::smatch found;
    if (i > 0 && std::regex_match(lines[i - 1], found, comment)) read_annotation(found[1], fence);
    while (++i < lines.size() && !lines[i].starts_with("```")) fence.lines.push_back(lines[i]);
    fences.push_back(std::move(fence));
  }
  return fences;
}

std::string annotation_fault(const Fence& fence) {
  if (!fence.is_shell()) return "";
  if (!fence.is_annotated) {
    return fence.where + ": no line <!-- test: .. --> above it says how its commands are run";
  }
  if (!fence.is_run && fence.reason.size() < 5) {
    return fence.where + ": give the reason: <!-- test: no, REASON -->";
  }
  return "";
}

Comparison comparison_of(const Fence& fence) {
  const auto found = fence.settings.find("compare");
  if (found == fence.settings.end() || found->second == "exact") return Comparison::exact;
  if (found->second == "numbers") return Comparison::numbers;
  if (found->second == "form") return Comparison::form;
  if (found->second == "none") return Comparison::none;
  throw std::runtime_error(fence.where + ": compare is exact, numbers, form or none");
}

std::string missing_line(const std::vector<std::string>& shown, const std::string& printed,
                         Comparison comparison) {
  if (comparison == Comparison::none) return "";
  const std::vector<std::string> lines = lines_of(printed);
  size_t at = 0;
  for (const std::string& line : shown) {
    const std::string wanted = normalised(line, comparison);
    if (wanted.empty()) continue;
    while (at < lines.size() && normalised(lines[at], comparison) != wanted) ++at;
    if (at++ == lines.size()) return line;
  }
  return "";
}

}  // namespace heddle::testing
