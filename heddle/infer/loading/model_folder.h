// The folder of a model that a command writes: whole, or as it was before.
#pragma once

#include <functional>
#include <string>

#include "heddle/base/files/folder_claim.h"

namespace heddle {

/// Whether it is the name of a file that folders of models have, but for weights of PyTorch.
bool is_model_file(const std::string& name);

/// Of one process at a time, which makes it if need be.
class NewModelFolder {
 public:
  /// source: the model that it is made of.
  /// Errors: usage if the folder is that of `source`, or not empty, without `overwrite` or with
  /// other files than a model's; those of FolderClaim.
  NewModelFolder(const std::string& path, const std::string& source, bool overwrite);

  /// Lets `writer` fill a temporary folder in it; then the files change places with those of the
  /// model that was there, config.json, without which there is no model, being the first to go and
  /// the last to come. The old files are put back if that fails. What killed processes have left
  /// goes. Errors: system; those of the writer.
  void write(const std::function<void(const std::string& made)>& writer);

 private:
  std::string path_;
  FolderClaim claim_;
};

}  // namespace heddle
