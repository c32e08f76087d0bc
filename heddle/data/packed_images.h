// Sets of images in one file, or a few: IDX, CIFAR's binaries, packed JPEG.
#pragma once

#include <string>
#include <vector>

#include "heddle/data/image_sources.h"

namespace heddle {

enum class PackKind : uint8_t { none, jpeg, idx, cifar };

/// By the name of a file in a folder.
PackKind pack_kind(const std::string& name);

/// The images of files of a kind in a folder, one after the other.
/// Errors: data, naming the file, for one that is cut short or holds a label without a name.
ImageSource read_packs(PackKind kind, const std::string& folder,
                       const std::vector<std::string>& names);

}  // namespace heddle
