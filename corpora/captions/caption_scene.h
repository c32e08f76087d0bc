// What a picture shows that captions speak of, and whether what a caption says of it is true.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "corpora/canvas.h"
#include "corpora/captions/caption.h"
#include "heddle/base/json/json.h"
#include "heddle/vision/boxes.h"

namespace heddle {

struct SceneObject {
  Sort sort;
  Box box;                 ///< in multiples of kBoxStep: files hold them exactly
  std::string photo = {};  ///< which one a collage shows: "train.jpack: image 7"
  bool operator==(const SceneObject&) const = default;
};

struct CaptionScene {
  ImageSize size;
  std::vector<SceneObject> objects = {};
  bool operator==(const CaptionScene&) const = default;
};

inline constexpr double kBoxStep = 1.0 / 16;  ///< pixels

/// A relation holds where the middle of a's box lies farther than that of b's in its direction by
/// at least this share of the image: of its height above and below, of its width left and right.
inline constexpr double kRelationMargin = 1.0 / 8;
bool stands(Relation relation, const Box& a, const Box& b, ImageSize image);

/// The ninth of the image in which a box has its middle.
Ninth place_of(const Box& box, ImageSize image);

/// What a caption says against a scene.
struct CaptionTruth {
  /// Existence: at least one object is of the sort. Count: so many are, no more. Relation: some
  /// object of the first sort and another one of the second stand so. Place: one of the sort
  /// is there.
  bool is_true = false;
  /// Of each word of the caption the objects that it names, rising; none of words that are for
  /// nothing else than grammar or relation. Colours, nouns and numbers name the objects of their
  /// sort; in a relation that holds those alone between which it does, at a place those there.
  std::vector<std::vector<size_t>> named;
};
CaptionTruth judge_caption(const Caption& caption, const CaptionScene& scene);
/// What is so in place of what an untrue caption says: "there is no red circle", "there are three
/// red circles", "no red circle is above a blue square" (where there are both), "the top left photo
/// is labelled ship", "there is no top left photo". Empty for a true one.
std::string correction_of(const Caption& caption, const CaptionScene& scene);

/// Which captions a picture gets.
struct CaptionChoice {
  int64_t count = 5;       ///< different ones, fewer where no more are true
  bool is_unseen = false;  ///< all mention something held out; else none does
};
/// True captions of a scene: relations as often as the other kinds together, places twice as often
/// as existence or count; each kind where it has one that is left. Existence is said of things that
/// stand alone, a place of photos that are alone there.
std::vector<std::string> true_captions(const CaptionScene& scene, const CaptionChoice& choice,
                                       drawing::Chance& chance);

/// {"height": 64, "width": 64, "objects": [{"color": "red", "noun": "circle", "bbox": [x, y, width,
/// height]}, ..]}; photos have no colour, and "photo".
Json to_json(const CaptionScene& scene);
/// Reads that; other members do not matter. `where` ("FILE: line 7") opens messages.
/// Errors: data for a member that is missing or of another kind, a word that captions do not have,
/// a shape without a colour, a box that does not lie in the image.
CaptionScene caption_scene_of(const Json& json, std::string_view where);

}  // namespace heddle
