// The folder of a model that a command writes: whole, or as it was before.
#pragma once

#include <functional>
#include <string>

namespace heddle {

/// Errors: usage if the folder is that of `source`, the model it is made of, or not empty, without
/// `overwrite` or with other files than a model's.
void check_model_folder(const std::string& path, const std::string& source, bool overwrite);

/// Makes the folder and lets `writer` fill a temporary one in it; then the files change places with
/// those of the model that was there, config.json, without which there is no model, being the first
/// to go and the last to come. The old files are put back if that fails. Errors: system; those of
/// the writer.
void write_model_folder(const std::string& path,
                        const std::function<void(const std::string& made)>& writer);

}  // namespace heddle
