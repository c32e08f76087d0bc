// Images that heddle draws or composes, with captions: to train and to judge captioners on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "corpora/captions/caption_scene.h"
#include "heddle/vision/image.h"

namespace heddle {

/// An image with what it shows and true captions. A pure function of options, seed and index.
struct CaptionedScene {
  Image image = {};
  CaptionScene scene;
  std::vector<std::string> captions = {};
};

struct CaptionedSceneOptions {
  ImageSize size;
  int64_t most_objects = 0;
  CaptionChoice captions = {};
};

/// Least counts of objects, and the sizes of images where nothing else is asked for.
inline constexpr int64_t kLeastCaptionedShapes = 3, kLeastCollagePhotos = 4, kMostCollagePhotos = 9;
inline constexpr CaptionedSceneOptions kCaptionedShapes{.size = {64, 64}, .most_objects = 6},
    kCollages{.size = {96, 96}, .most_objects = kMostCollagePhotos};

/// Circles, squares, triangles and crosses on a grey slope, each in one of seven colours (up to 20
/// levels off), with noise of 6 levels. Their boxes do not overlap, and are 9/64 to 20/64 of the
/// image's shorter edge long; shapes are turned by up to 25 degrees. A third of the objects are of
/// the sort of an earlier one, so that there is something to count. Held-out sorts are in no image,
/// unless is_unseen: then in each, beside any others.
/// Errors: usage for images below 32 pixels, or not 3 to 8 objects at most.
CaptionedScene draw_captioned_shapes(const CaptionedSceneOptions& options, uint64_t seed,
                                     uint64_t index);

/// Photos that collages are made of. The functions may be called from any thread.
struct PhotoPool {
  std::vector<std::string> classes;                ///< nouns of captions, caption_classes()
  std::vector<std::vector<size_t>> by_class = {};  ///< numbers of the photos of each
  std::function<Image(size_t)> photo = {};
  std::function<std::string(size_t)> name = {};  ///< which one it is, for SceneObject::photo
};

/// Errors: data, naming `path`, for a class that captions have no noun for, or that no photo is of;
/// or fewer than two classes.
void check_photos(const PhotoPool& pool, const std::string& path);

/// Four to nine photos, each in a cell of its own of three rows of three, and three quarters to all
/// of its edge long, anywhere in it, on a grey slope; half of them mirrored. A photo that is not
/// square is cut to its middle; photos of the cell's size keep their pixels. Classes are drawn
/// alike, a third of the photos are of the class of an earlier one. No caption relates a held-out
/// pair, unless is_unseen: then each image shows one, and all captions relate it.
/// Errors: usage for images below 48 pixels, or not 4 to 9 photos at most; those of pool.photo().
CaptionedScene draw_collage(const CaptionedSceneOptions& options, const PhotoPool& pool,
                            uint64_t seed, uint64_t index);

}  // namespace heddle
