// Opening sets of images with captions, and holding some images out.
#include "heddle/data/captions.h"

#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/base/progress.h"
#include "heddle/base/rng.h"

namespace heddle {
namespace {

std::string described(const CaptionSet& set) {
  int64_t captions = 0;
  for (int64_t i = 0; i < set.size(); ++i) captions += std::ssize(set.captions(i));
  return fmt::format("{} with {}", counted(set.size(), "image"), counted(captions, "caption"));
}

std::string key_of(const std::vector<std::vector<std::string>>& captions) {
  std::string text;
  for (const std::vector<std::string>& of_image : captions) {
    text += Json(of_image).dump() + '\n';
  }
  return checksum(text);
}

CaptionSplit hold_out(const CaptionSet& all, const CaptionSetOptions& o) {
  const RngKey key = make_key(o.seed, 0, hash_name("data/held-out images with captions"));
  const HeldOutImages parts = hold_out_share(all.size(), o.val_share, key, o.path);
  return {all.select(parts.others), all.select(parts.held_out)};
}

}  // namespace

CaptionSet::CaptionSet(ImageCache cache, std::string root, Shared shared)
    : CachedImages(std::move(cache), std::move(root)),
      shared_(std::make_shared<const Shared>(std::move(shared))) {}

std::span<const std::string> CaptionSet::captions(int64_t i) const {
  return shared_->captions[static_cast<size_t>(chosen_[i])];
}

const WrittenScene& CaptionSet::scene(int64_t i) const {
  return shared_->scenes[static_cast<size_t>(chosen_[i])];
}

std::string CaptionSet::key() const {
  return checksum(fmt::format("{} {} {}", cache_.key(), shared_->key, chosen_.key()));
}

CaptionSet CaptionSet::select(const std::vector<int64_t>& images) const {
  return selected(*this, images);
}

CaptionSet cached_captions(const CaptionSource& source, const std::string& name,
                           const CaptionSetOptions& options, const CacheLog& log) {
  ImageCache cache = ImageCache::open_or_build(
      source.images, {.folder = options.cache_dir, .name = name, .edge = options.cache_edge}, log);
  CaptionSet::Shared shared;
  for (const size_t entry : cached_entries(source.images, cache, source.file)) {
    shared.captions.push_back(source.captions[entry]);
    shared.scenes.push_back(source.scenes[entry]);
  }
  shared.key = key_of(shared.captions);
  return CaptionSet(std::move(cache), source.images.root, std::move(shared));
}

CaptionSplit open_caption_split(const CaptionSetOptions& options, const CacheLog& log) {
  CaptionSources found = find_captions(options.path);
  check(found.train != nullptr, ErrorKind::data,
        "{}: there are held-out images alone, and none to train on", options.path);
  UnreadPart<CaptionSource> held_out = found.val ? found.val : found.test;
  if (!options.val_path.empty()) {
    CaptionSources others = find_captions(options.val_path);
    held_out = others.val ? others.val : others.test ? others.test : others.train;
  }
  const CaptionSource to_train = found.train();
  std::optional<CaptionSource> held;  // looked at before the long work
  if (held_out) held = held_out();
  const CaptionSet train = cached_captions(to_train, "train", options, log);
  CaptionSplit split = held ? CaptionSplit{train, cached_captions(*held, "val", options, log)}
                            : hold_out(train, options);
  if (log) {
    log("train: " + described(split.train));
    log("val: " + described(split.val));
  }
  return split;
}

}  // namespace heddle
