// Commands and flags by CLI11.
#include "heddle/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <type_traits>

namespace heddle::cli {
namespace {

// Checks of CLI11 by which flags are told apart.
constexpr const char* kText = "text";
constexpr const char* kOutput = "output";

// In place of `--`: a word that no command line holds.
const std::string kHiddenDashes(1, '\0');

CLI::Validator* find_check(CLI::Option* option, const char* name) {
  try {
    return option->get_validator(name);
  } catch (const CLI::OptionNotFound&) {
    return nullptr;
  }
}

// main.cc has words for what it finds.
void refuse_empty(CLI::Option* option) {
  const auto is_empty = [](const std::string& value) {
    return std::string(value.empty() ? "is empty" : "");
  };
  option->check(CLI::Validator(is_empty, "", kText), kText);
}

// CLI11 takes the greatest that there is for what is beyond it.
template <class Integer>
void refuse_overflow(CLI::Option* option) {
  const auto is_beyond = [](const std::string& text) {
    Integer number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_large = read.ec == std::errc::result_out_of_range;
    return is_large ? text + " is too large" : std::string();
  };
  option->check(CLI::Validator(is_beyond, "", "size"), "size");
}

// What one value of a flag is.
template <class T>
struct ValueOf {
  using type = T;
};
template <class T>
struct ValueOf<std::optional<T>> : ValueOf<T> {};
template <class T>
struct ValueOf<std::vector<T>> : ValueOf<T> {};

}  // namespace

const Option& Option::required(bool is_required) const {
  option_->required(is_required);
  return *this;
}

const Option& Option::with_default() const {
  option_->capture_default_str();
  return *this;
}

const Option& Option::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

const Option& Option::option_text(const std::string& text) const {
  option_->option_text(text);
  return *this;
}

const Option& Option::group(const std::string& name) const {
  option_->group(name);
  return *this;
}

const Option& Option::delimiter(char between) const {
  option_->delimiter(between);
  return *this;
}

const Option& Option::allow_extra_args(bool is_allowed) const {
  option_->allow_extra_args(is_allowed);
  return *this;
}

const Option& Option::needs(const Option& other) const {
  option_->needs(other.option_);
  return *this;
}

const Option& Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

const Option& Option::one_of(std::vector<std::string> values) const {
  option_->check(CLI::IsMember(std::move(values)));
  return *this;
}

const Option& Option::positive() const {
  option_->check(CLI::PositiveNumber);
  return *this;
}

const Option& Option::not_negative() const {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

const Option& Option::may_be_empty() const {
  find_check(option_, kText)->active(false);
  return *this;
}

const Option& Option::writes_file() const {
  option_->check(CLI::Validator([](const std::string&) { return std::string(); }, "", kOutput),
                 kOutput);
  return *this;
}

bool Option::is_output() const { return find_check(option_, kOutput) != nullptr; }
bool Option::is_text() const { return find_check(option_, kText) != nullptr; }

size_t Option::count() const { return option_->count(); }
std::vector<std::string> Option::values() const { return option_->results(); }
std::string Option::name() const { return option_->get_name(); }
std::string Option::group_name() const { return option_->get_group(); }

Subcommand Subcommand::add_subcommand(const std::string& name, const std::string& help) {
  return Subcommand(*app_->add_subcommand(name, help));
}

void Subcommand::require_subcommand() { app_->require_subcommand(1); }

void Subcommand::callback(std::function<void()> f) { app_->callback(std::move(f)); }

void Subcommand::before_parsing(std::function<void()> f) {
  app_->preparse_callback([f = std::move(f)](size_t) { f(); });
}

template <class T>
Option Subcommand::add_option(const std::string& name, T& value, const std::string& help) {
  CLI::Option* const option = app_->add_option(name, value, help);
  using Value = typename ValueOf<T>::type;
  if constexpr (std::is_same_v<Value, std::string>) refuse_empty(option);
  if constexpr (std::is_integral_v<Value>) refuse_overflow<Value>(option);
  return Option(option);
}

template Option Subcommand::add_option(const std::string&, std::string&, const std::string&);
template Option Subcommand::add_option(const std::string&, int&, const std::string&);
template Option Subcommand::add_option(const std::string&, int64_t&, const std::string&);
template Option Subcommand::add_option(const std::string&, uint64_t&, const std::string&);
template Option Subcommand::add_option(const std::string&, double&, const std::string&);
template Option Subcommand::add_option(const std::string&, std::vector<std::string>&,
                                       const std::string&);
template Option Subcommand::add_option(const std::string&, std::vector<int64_t>&,
                                       const std::string&);
template Option Subcommand::add_option(const std::string&, std::optional<int64_t>&,
                                       const std::string&);
template Option Subcommand::add_option(const std::string&, std::optional<uint64_t>&,
                                       const std::string&);
template Option Subcommand::add_option(const std::string&, std::optional<double>&,
                                       const std::string&);

Option Subcommand::add_option_function(const std::string& name,
                                       std::function<void(const std::string&)> f,
                                       const std::string& help) {
  return Option(app_->add_option_function<std::string>(name, std::move(f), help));
}

Option Subcommand::add_flag(const std::string& name, bool& is_given, const std::string& help) {
  return Option(app_->add_flag(name, is_given, help));
}

Option Subcommand::add_flag(const std::string& name, std::string& value, const std::string& help) {
  return Option(app_->add_flag(name, value, help));
}

Option Subcommand::add_flag(const std::string& name, const std::string& help) {
  return Option(app_->add_flag_function(
      name, [](int64_t) {}, help));
}

void Subcommand::take_rest(std::vector<std::string>& words) {
  app_->prefix_command();
  app_->parse_complete_callback([app = app_, &words] {
    words = app->remaining();
    std::ranges::replace(words, kHiddenDashes, std::string("--"));
  });
}

std::vector<std::string> Subcommand::hide_dashes(std::vector<std::string> words) {
  std::ranges::replace(words, std::string("--"), kHiddenDashes);
  return words;
}

void Subcommand::begin_group(const std::string& name) { app_->option_defaults()->group(name); }

Option Subcommand::get_option(const std::string& name) const {
  return Option(app_->get_option(name));
}

std::vector<Option> Subcommand::get_options() const {
  std::vector<Option> options;
  for (CLI::Option* option : app_->get_options([](CLI::Option*) { return true; })) {
    options.emplace_back(option);
  }
  return options;
}

Subcommand Subcommand::get_subcommand(const std::string& name) const {
  return Subcommand(*app_->get_subcommand(name));
}

std::vector<Subcommand> Subcommand::get_subcommands() const {
  std::vector<Subcommand> commands;
  for (CLI::App* app : app_->get_subcommands([](CLI::App*) { return true; })) {
    commands.emplace_back(*app);
  }
  return commands;
}

std::vector<Subcommand> Subcommand::given_subcommands() const {
  std::vector<Subcommand> commands;
  for (CLI::App* app : app_->get_subcommands()) commands.emplace_back(*app);
  return commands;
}

std::string Subcommand::version() const { return app_->version(); }

}  // namespace heddle::cli
