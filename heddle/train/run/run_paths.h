// The files that a training run reads.
#pragma once

#include <string>

namespace heddle::train {

struct RunPaths {
  std::string data = {};      ///< file or folder of the text; empty for the phrasebook
  std::string val_data = {};  ///< file of the held-out text; empty: beside or out of `data`
  std::string from = {};      ///< model whose weights are begun with; empty: none
};

}  // namespace heddle::train
