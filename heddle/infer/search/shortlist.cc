// Three lists of ids in a file, read where they are mapped.
#include "heddle/infer/search/shortlist.h"

#include <algorithm>

#include "heddle/base/error.h"

namespace heddle {
namespace {

constexpr const char* kFormat = "heddle_shortlist";

std::span<const int32_t> ids_of(const SafetensorsFile& file, const char* name) {
  const StoredTensor& tensor = file.info(name);
  check(tensor.dtype == DType::i32 && tensor.shape.size() == 1 &&
            reinterpret_cast<uintptr_t>(tensor.bytes.data()) % alignof(int32_t) == 0,
        ErrorKind::data, "{}: '{}' is no list of i32", file.path(), name);
  return {reinterpret_cast<const int32_t*>(tensor.bytes.data()),
          static_cast<size_t>(tensor.elements())};
}

bool is_rising(std::span<const int32_t> ids) {
  return std::ranges::adjacent_find(ids, std::ranges::greater_equal()) == ids.end() &&
         (ids.empty() || ids[0] >= 0);
}

std::string metadata_of(const SafetensorsFile& file, const char* key) {
  const auto at = file.metadata().find(key);
  return at == file.metadata().end() ? "" : at->second;
}

std::span<const std::byte> bytes_of(const std::vector<int32_t>& ids) {
  return std::as_bytes(std::span(ids));
}

std::vector<int32_t> sorted(std::vector<int32_t> ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

Shortlist::Shortlist(const std::string& path) : file_(SafetensorsFile::open(path)) {
  check(metadata_of(file_, "format") == kFormat, ErrorKind::data,
        "{}: this is no shortlist; `heddle shortlist` writes one", path);
  file_.verify();
  always_ = ids_of(file_, "always");
  begins_ = ids_of(file_, "begins");
  candidates_ = ids_of(file_, "candidates");
  bool is_whole = is_rising(always_) && !begins_.empty() && begins_.front() == 0 &&
                  begins_.back() == std::ssize(candidates_) && std::ranges::is_sorted(begins_);
  for (size_t s = 0; is_whole && s + 1 < begins_.size(); ++s) {
    is_whole = is_rising(candidates_.subspan(static_cast<size_t>(begins_[s]),
                                             static_cast<size_t>(begins_[s + 1] - begins_[s])));
  }
  check(is_whole, ErrorKind::data, "{}: its lists are damaged; make it again by `heddle shortlist`",
        path);
}

void Shortlist::check_fits(const Tokenizer& source, const Tokenizer& target, int64_t target_vocab,
                           const std::string& model) const {
  check(metadata_of(file_, "source_tokenizer") == source.fingerprint() &&
            metadata_of(file_, "target_tokenizer") == target.fingerprint(),
        ErrorKind::data,
        "{} was made for other tokenizers than those of {}; make one for it by `heddle shortlist`",
        file_.path(), model);
  const auto is_inside = [&](int32_t id) { return id < target_vocab; };
  check(std::ranges::all_of(always_, is_inside) && std::ranges::all_of(candidates_, is_inside),
        ErrorKind::data, "{}: it has ids beyond the {} target tokens of {}", file_.path(),
        target_vocab, model);
}

std::vector<int32_t> Shortlist::candidates(std::span<const int32_t> source) const {
  std::vector<int32_t> ids(always_.begin(), always_.end());
  for (const int32_t s : source) {
    if (s < 0 || s >= source_tokens()) continue;
    const auto row = candidates_.subspan(static_cast<size_t>(begins_[s]),
                                         static_cast<size_t>(begins_[s + 1] - begins_[s]));
    ids.insert(ids.end(), row.begin(), row.end());
  }
  return sorted(std::move(ids));
}

void write_shortlist(const std::string& path, const ShortlistTokens& tokens,
                     const Tokenizer& source, const Tokenizer& target) {
  const std::vector<int32_t> always = sorted(tokens.always);
  std::vector<int32_t> begins = {0}, candidates;
  for (const std::vector<int32_t>& row : tokens.of_source) {
    for (const int32_t id : sorted(row)) {
      if (!std::ranges::binary_search(always, id)) candidates.push_back(id);
    }
    begins.push_back(static_cast<int32_t>(candidates.size()));
  }
  const auto view = [](const char* name, const std::vector<int32_t>& ids) {
    return NamedTensorView{
        .name = name, .dtype = DType::i32, .shape = {std::ssize(ids)}, .bytes = bytes_of(ids)};
  };
  write_safetensors(
      path, {view("always", always), view("begins", begins), view("candidates", candidates)},
      {{"format", kFormat},
       {"source_tokenizer", source.fingerprint()},
       {"target_tokenizer", target.fingerprint()}});
}

}  // namespace heddle
