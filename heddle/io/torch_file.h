// What torch.save makes of a state_dict: tensors of a .bin or .pt file, read without running any of
// the code that such a file may ask for.
// Source: PyTorch 2.15, torch/serialization.py and torch/_utils.py.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "heddle/io/tensor_file.h"
#include "heddle/io/zip.h"

namespace heddle {

/// The tensors of a dict. Entries that are no tensors are passed over. Tensors may share a storage;
/// one whose elements do not lie in order (a transposed one) is copied when the file is opened.
class TorchFile : public TensorFile {
 public:
  /// Opens a file of torch.save, the zip form (since PyTorch 1.6) or the one before it.
  /// Errors: data, naming the path and what was seen, for a file of another kind, anything cut
  /// short or out of range, a dtype that heddle lacks, and a pickle that asks for any class or
  /// function but those that a state_dict needs; system if the file cannot be read.
  static TorchFile open(const std::string& path, Mapping mapping = Mapping::read_only);

  /// The zip form has checksums; the older one has none.
  void verify() const override;

 private:
  class Builder;
  explicit TorchFile(const std::string& path) : TensorFile(path) {}

  std::vector<ZipEntry> entries_;              // of the zip form
  std::deque<std::vector<std::byte>> copies_;  // of what does not lie in order
};

}  // namespace heddle
