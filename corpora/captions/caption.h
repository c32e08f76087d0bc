// The sentences that caption drawn scenes: a small English grammar, read and written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace heddle {

/// What a caption says.
enum class CaptionKind : uint8_t {
  existence,  ///< "there is a red circle": at least one
  count,      ///< "there are two red circles": as many and no more
  relation,   ///< "a red circle is above a blue square", "a frog is to the left of a truck"
  place       ///< "the top left photo is labelled frog", of photos alone
};
inline constexpr size_t kCaptionKinds = 4;
/// "existence", "count", "relation", "place".
const char* caption_kind_name(CaptionKind kind);

/// Where one object lies from another, see stands().
enum class Relation : uint8_t { above, below, left_of, right_of };
inline constexpr size_t kRelations = 4;

/// A ninth of an image: a row from above, a column from the left, each 0 to 2.
struct Ninth {
  size_t row = 0, column = 0;
  bool operator==(const Ninth&) const = default;
};
inline constexpr size_t kPlaceRows = 3, kPlaceColumns = 3;

/// Things of one sort: a shape in a colour, or a class of photos, which have none.
struct Sort {
  std::string color = {};  ///< "red"; empty of photos
  std::string noun = {};   ///< in the singular: "circle", "frog"
  auto operator<=>(const Sort&) const = default;
};

/// What a word of a caption is for.
enum class WordRole : uint8_t { function, number, color, noun, relation, place };

struct CaptionWord {
  std::string text;
  WordRole role = WordRole::function;
  bool is_of_object = false;  ///< of what a relation leads to, rather than of the subject
};

/// A sentence of the grammar:
///
///   there is THING | there are NUMBER THINGS | THING is RELATION THING
///   the PLACE photo is labelled CLASS
///   THING     a red circle, an orange cross, a frog, an airplane
///   THINGS    red circles, frogs
///   NUMBER    two .. nine
///   RELATION  above, below, to the left of, to the right of
///   PLACE     top left, top center .. bottom right
///   CLASS     frog: a noun of photos, with no article, which would tell of it one word before
///
/// in small letters, with one space between words and none at the ends. The article is "an" before
/// a vowel; shapes have a colour, photos have none. Words are those of lexicons/captions.json.
struct Caption {
  CaptionKind kind = CaptionKind::existence;
  Sort subject = {};
  int64_t count = 1;                    ///< of the subject
  Ninth place = {};                     ///< where the subject is, of places alone
  Relation relation = Relation::above;  ///< and
  Sort object = {};                     ///< what it leads to, of relations alone
  std::vector<CaptionWord> words = {};  ///< of a caption that was parsed
};

/// The sentence that a text is; nothing if it is none of the grammar.
std::optional<Caption> parse_caption(const std::string& text);
/// The text of a caption, whose `words` do not count. Errors: internal for a word that the lexicon
/// does not have.
std::string caption_text(const Caption& caption);

const std::vector<std::string>& caption_colors();
/// Nouns in the singular.
const std::vector<std::string>& caption_shapes();
const std::vector<std::string>& caption_classes();
/// The highest count that has a word; the least is 2.
int64_t most_counted();

/// Combinations of a colour and a shape that no training image shows, and pairs of classes that no
/// training caption relates.
const std::vector<Sort>& held_out_sorts();
const std::vector<std::pair<std::string, std::string>>& held_out_pairs();
bool is_held_out(const Sort& sort);
/// Either way round.
bool are_held_out(const Sort& a, const Sort& b);
/// Whether a caption names a held-out combination, or relates a held-out pair.
bool mentions_held_out(const Caption& caption);

}  // namespace heddle
