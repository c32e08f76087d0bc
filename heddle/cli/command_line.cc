// Commands and flags by CLI11.
#include "heddle/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <optional>

namespace heddle::cli {

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
  return Option(app_->add_option(name, value, help));
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
  app_->parse_complete_callback([app = app_, &words] { words = app->remaining(); });
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

std::string Subcommand::version() const { return app_->version(); }

}  // namespace heddle::cli
