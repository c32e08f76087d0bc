// Whole folders: writing one so that a crash leaves all of it or nothing; what lies inside one.
#pragma once

#include <functional>
#include <string>

namespace heddle {

/// PATH.tmp-RANDOM: a name that no other process takes, on this machine or another that shares the
/// disk. is_temporary_name() knows it.
std::string temporary_name(const std::string& path);

/// Makes the folder `path`, which is missing or empty, so that at every moment it is not there or
/// complete: the writer fills a temporary folder beside it, which is then renamed.
/// Errors: system, naming the path; nothing is then left.
void write_folder_atomic(const std::string& path,
                         const std::function<void(const std::string& folder)>& writer);

/// True if the path is the folder or lies below it, by its name or behind links.
bool lies_inside(const std::string& path, const std::string& folder);

}  // namespace heddle
