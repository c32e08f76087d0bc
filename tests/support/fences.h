// The commands that a Markdown page shows, and what it says that they print.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace heddle::testing {

/// The lines of a text, without their ends.
std::vector<std::string> lines_of(const std::string& text);

/// A command of a fence, with the output that is shown below it.
struct ShownCommand {
  std::string text;
  std::vector<std::string> output;
};

/// A fenced block of a page, and the comment `<!-- test: .. -->` right above it:
///   <!-- test: no, REASON -->                      is not run
///   <!-- test: NAME=STOCK .. cut="FLAGS" compare=exact|numbers|form|none -->
///   <!-- test: same .. -->                         goes on in the folder of the fence before
struct Fence {
  std::string where = {};     ///< "docs/tour.md:12"
  std::string language = {};  ///< "" of shell commands
  std::vector<std::string> lines = {};
  bool is_annotated = false, is_run = false, goes_on = false;
  std::string reason = {};  ///< why it is not run
  std::map<std::string, std::string> settings = {};

  bool is_shell() const;
  /// With "$ " before commands: each with its output. Else all lines are one script.
  std::vector<ShownCommand> commands() const;
};

/// The fences of a page. `name` is for messages.
std::vector<Fence> fences_of(const std::string& page, const std::string& name);

/// What is wrong with how a fence is annotated; "" if nothing is.
std::string annotation_fault(const Fence& fence);

/// How shown output is compared: exactly; with all numbers and times alike; by its form, with all
/// words and numbers alike; or not.
enum class Comparison { exact, numbers, form, none };
Comparison comparison_of(const Fence& fence);

/// The first shown line that is not among those that were printed, in order; "" if all are. Lines
/// may be left out of what is shown, never added.
std::string missing_line(const std::vector<std::string>& shown, const std::string& printed,
                         Comparison comparison);

}  // namespace heddle::testing
