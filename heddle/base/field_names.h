// What messages call the fields of configs and options.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

/// Its key, or what name_fields_by() was given for it.
std::string field_name(std::string_view key);
/// The program calls fields by their flags; null: by their keys. To be called before any thread is
/// made.
void name_fields_by(std::string (*name)(std::string_view key));
/// The text with field_name() in place of each key between backquotes, as in the formats of fail()
/// and check().
std::string name_fields(std::string_view text);

}  // namespace heddle
