// What messages call things: fields, and the known name closest to one that was mistyped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// The known name with the fewest insertions, deletions, substitutions and swaps of neighbours away
/// from `name` (optimal string alignment), the first such on a tie; "" if even that one needs more
/// edits than a third of the longer name, or 2 for names of fewer than six characters.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// The version of heddle, as in "0.1.0".
const char* version();

/// A field: its key, or what name_fields_by() was given for it.
std::string field_name(std::string_view key);
/// The program calls fields by their flags; null: by their keys. To be called before any thread is
/// made.
void name_fields_by(std::string (*name)(std::string_view key));
/// While one lives, its thread calls fields by their keys, as `key`: those who send requests know
/// no flags.
class FieldsByKey {
 public:
  FieldsByKey();
  ~FieldsByKey();
  FieldsByKey(const FieldsByKey&) = delete;
  FieldsByKey& operator=(const FieldsByKey&) = delete;

 private:
  bool before_;
};
/// The text with field_name() in place of each key between backquotes, as in the formats of fail()
/// and check().
std::string name_fields(std::string_view text);

}  // namespace heddle
