// The folder that a model is written to: whole, or as it was before.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace heddle {

/// What is done with a folder that a model is written to.
struct ExportFolder {
  std::string path;
  bool overwrite = false;          ///< the model that is there may be replaced
  std::vector<std::string> names;  ///< of the files that a model may have
};

/// Errors: usage if something is there that is not to be replaced, or is no file of a model.
void check_export_folder(const ExportFolder& folder);

/// Makes the folder and lets `writer` fill a temporary one in it; then the files change places with
/// those of the model that was there, config.json, without which there is no model, being the first
/// to go and the last to come. The old files are put back if that fails.
void write_export_folder(const ExportFolder& folder,
                         const std::function<void(const std::string& folder)>& writer);

}  // namespace heddle
