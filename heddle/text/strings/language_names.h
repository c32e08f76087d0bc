// Languages as readers of English call them.
#pragma once

#include <string>

namespace heddle {

/// Of "de" "German", with the script where the code has one ("zho_Hans": "Chinese (Simplified
/// Han)"); a country in it is passed over. The code where it is of no language. Source: CLDR; ICU.
std::string language_name(const std::string& code);

}  // namespace heddle
