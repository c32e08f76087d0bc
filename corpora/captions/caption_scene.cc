// Truth of captions, and the choice of true ones.
#include "corpora/captions/caption_scene.h"

#include <algorithm>
#include <map>

#include "heddle/base/error.h"

namespace heddle {
namespace {

std::vector<size_t> objects_of(const CaptionScene& scene, const Sort& sort) {
  std::vector<size_t> found;
  for (size_t i = 0; i < scene.objects.size(); ++i) {
    if (scene.objects[i].sort == sort) found.push_back(i);
  }
  return found;
}

void add_once(std::vector<size_t>& numbers, size_t number) {
  if (std::ranges::find(numbers, number) == numbers.end()) numbers.push_back(number);
}

// The objects of a relation: those between which it holds.
struct RelatedObjects {
  std::vector<size_t> subjects, objects;
};

RelatedObjects related_objects(const Caption& caption, const CaptionScene& scene) {
  RelatedObjects related;
  for (const size_t a : objects_of(scene, caption.subject)) {
    for (const size_t b : objects_of(scene, caption.object)) {
      if (a == b ||
          !stands(caption.relation, scene.objects[a].box, scene.objects[b].box, scene.size))
        continue;
      add_once(related.subjects, a);
      add_once(related.objects, b);
    }
  }
  std::ranges::sort(related.objects);
  return related;
}

// Those of a sort at a place.
std::vector<size_t> objects_at(Ninth place, const Sort& sort, const CaptionScene& scene) {
  std::vector<size_t> found = objects_of(scene, sort);
  std::erase_if(found,
                [&](size_t i) { return place_of(scene.objects[i].box, scene.size) != place; });
  return found;
}

bool names_objects(WordRole role) {
  return role == WordRole::number || role == WordRole::color || role == WordRole::noun;
}

// --- choosing captions ---

using Candidates = std::array<std::vector<Caption>, kCaptionKinds>;

std::map<Sort, int64_t> sorts_in(const CaptionScene& scene) {
  std::map<Sort, int64_t> counts;
  for (const SceneObject& object : scene.objects) ++counts[object.sort];
  return counts;
}

// Of photos that no other is beside at their place.
std::vector<Caption> places_in(const CaptionScene& scene) {
  std::vector<Caption> captions;
  for (const SceneObject& object : scene.objects) {
    const Ninth place = place_of(object.box, scene.size);
    const auto is_there = [&](const SceneObject& o) {
      return place_of(o.box, scene.size) == place;
    };
    if (!object.sort.color.empty() || std::ranges::count_if(scene.objects, is_there) > 1) continue;
    Caption caption{.kind = CaptionKind::place, .subject = object.sort};
    caption.place = place;
    captions.push_back(std::move(caption));
  }
  return captions;
}

// All true captions of things of different sorts.
Candidates candidates_of(const CaptionScene& scene, bool is_unseen) {
  Candidates all;
  const auto add = [&](const Caption& caption) {
    if (mentions_held_out(caption) != is_unseen) return;
    all[static_cast<size_t>(caption.kind)].push_back(caption);
  };
  for (const Caption& caption : places_in(scene)) add(caption);
  const std::map<Sort, int64_t> sorts = sorts_in(scene);
  for (const auto& [sort, count] : sorts) {
    if (count == 1) add({.kind = CaptionKind::existence, .subject = sort});
    if (count >= 2 && count <= most_counted()) {
      add({.kind = CaptionKind::count, .subject = sort, .count = count});
    }
    for (const auto& [other, ignored] : sorts) {
      if (other == sort) continue;
      for (size_t r = 0; r < kRelations; ++r) {
        Caption caption{.kind = CaptionKind::relation, .subject = sort};
        caption.relation = static_cast<Relation>(r);
        caption.object = other;
        if (!related_objects(caption, scene).subjects.empty()) add(caption);
      }
    }
  }
  return all;
}

// A kind that has candidates: relations by one half, places twice as likely as each other.
size_t drawn_kind(const Candidates& all, drawing::Chance& chance) {
  constexpr auto kRelation = static_cast<size_t>(CaptionKind::relation),
                 kPlace = static_cast<size_t>(CaptionKind::place);
  std::vector<size_t> others;
  for (size_t kind = 0; kind < kCaptionKinds; ++kind) {
    if (kind == kRelation || all[kind].empty()) continue;
    others.insert(others.end(), kind == kPlace ? 2 : 1, kind);
  }
  const bool is_relation = chance.happens(0.5);
  if (others.empty() || (is_relation && !all[kRelation].empty())) return kRelation;
  return others[chance.one_of(others.size())];
}

// --- what is so ---

// "red circle" of "a red circle".
std::string without_word(const std::string& text) { return text.substr(text.find(' ') + 1); }

// "there is no red circle", "there is one red circle", "there are three red circles".
std::string count_text(const Sort& sort, int64_t count) {
  Caption there{.subject = sort};
  if (count < 2) {
    const std::string thing = without_word(without_word(without_word(caption_text(there))));
    return fmt::format("there is {} {}", count == 0 ? "no" : "one", thing);
  }
  there.kind = CaptionKind::count;
  there.count = std::min(count, most_counted());
  const std::string text = caption_text(there);
  return there.count == count ? text : "there are more than " + without_word(without_word(text));
}

// What is at the place that a caption tells of.
std::string place_text(const Caption& caption, const CaptionScene& scene) {
  for (const SceneObject& object : scene.objects) {
    const bool is_photo = object.sort.color.empty();
    if (!is_photo || place_of(object.box, scene.size) != caption.place) continue;
    Caption there = caption;
    there.subject = object.sort;
    return caption_text(there);
  }
  const std::string text = caption_text(caption);
  return "there is no " + without_word(text.substr(0, text.find(" is ")));
}

// --- files ---

Sort sort_of(const Json& json, std::string_view where) {
  Sort sort{.noun = json.get_string("noun", where)};
  if (json.contains("color")) sort.color = json.get_string("color", where);
  const auto is_known = [](const std::vector<std::string>& words, const std::string& word) {
    return std::ranges::find(words, word) != words.end();
  };
  const bool is_shape = is_known(caption_shapes(), sort.noun);
  check(is_shape || is_known(caption_classes(), sort.noun), ErrorKind::data,
        "{}: captions have no noun '{}'; they have {}, {}", where, sort.noun,
        fmt::join(caption_shapes(), ", "), fmt::join(caption_classes(), ", "));
  check(is_shape ? is_known(caption_colors(), sort.color) : sort.color.empty(), ErrorKind::data,
        "{}: the color of a {} is '{}'; shapes have one of {}, photos none", where, sort.noun,
        sort.color, fmt::join(caption_colors(), ", "));
  return sort;
}

Box box_of(const Json& json, ImageSize image, std::string_view where) {
  std::vector<double> numbers;
  for (const Json& number : json.as_array(where)) numbers.push_back(number.as_double(where));
  check(numbers.size() == 4, ErrorKind::data,
        "{}: bbox has {} numbers; x, y, width, height are needed", where, numbers.size());
  const Box box = Box::of_corner(numbers[0], numbers[1], numbers[2], numbers[3]);
  check(box.area() > 0 && clipped(box, image) == box, ErrorKind::data,
        "{}: the bbox {}, {}, {} wide, {} high does not lie in the image of {} x {} pixels", where,
        numbers[0], numbers[1], numbers[2], numbers[3], image.width, image.height);
  return box;
}

}  // namespace

bool stands(Relation relation, const Box& a, const Box& b, ImageSize image) {
  const double down = b.center_y() - a.center_y(), right = b.center_x() - a.center_x(),
               least_down = kRelationMargin * static_cast<double>(image.height),
               least_right = kRelationMargin * static_cast<double>(image.width);
  switch (relation) {
    case Relation::above: return down >= least_down;
    case Relation::below: return -down >= least_down;
    case Relation::left_of: return right >= least_right;
    default: return -right >= least_right;
  }
}

Ninth place_of(const Box& box, ImageSize image) {
  const auto third = [](double middle, int64_t length) {
    return static_cast<size_t>(
        std::clamp<int64_t>(static_cast<int64_t>(3 * middle / static_cast<double>(length)), 0, 2));
  };
  return {third(box.center_y(), image.height), third(box.center_x(), image.width)};
}

CaptionTruth judge_caption(const Caption& caption, const CaptionScene& scene) {
  CaptionTruth truth;
  RelatedObjects named{objects_of(scene, caption.subject), {}};
  const int64_t count = std::ssize(named.subjects);
  if (caption.kind == CaptionKind::relation) {
    RelatedObjects related = related_objects(caption, scene);
    truth.is_true = !related.subjects.empty();
    named.objects = objects_of(scene, caption.object);
    if (truth.is_true) named = std::move(related);
  } else if (caption.kind == CaptionKind::place) {
    std::vector<size_t> there = objects_at(caption.place, caption.subject, scene);
    truth.is_true = !there.empty();
    if (truth.is_true) named.subjects = std::move(there);
  } else {
    truth.is_true = caption.kind == CaptionKind::existence ? count > 0 : count == caption.count;
  }
  for (const CaptionWord& word : caption.words) {
    truth.named.emplace_back();
    if (names_objects(word.role)) {
      truth.named.back() = word.is_of_object ? named.objects : named.subjects;
    }
  }
  return truth;
}

std::string correction_of(const Caption& caption, const CaptionScene& scene) {
  if (judge_caption(caption, scene).is_true) return "";
  const int64_t subjects = std::ssize(objects_of(scene, caption.subject));
  switch (caption.kind) {
    case CaptionKind::existence:
    case CaptionKind::count: return count_text(caption.subject, subjects);
    case CaptionKind::relation: break;
    case CaptionKind::place: return place_text(caption, scene);
  }
  if (subjects == 0) return count_text(caption.subject, 0);
  if (objects_of(scene, caption.object).empty()) return count_text(caption.object, 0);
  return "no " + without_word(caption_text(caption));  // its article
}

std::vector<std::string> true_captions(const CaptionScene& scene, const CaptionChoice& choice,
                                       drawing::Chance& chance) {
  Candidates all = candidates_of(scene, choice.is_unseen);
  std::vector<std::string> captions;
  while (std::ssize(captions) < choice.count) {
    std::vector<Caption>& left = all[drawn_kind(all, chance)];
    if (left.empty()) break;
    const auto at = chance.one_of(left.size());
    captions.push_back(caption_text(left[at]));
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return captions;
}

Json to_json(const CaptionScene& scene) {
  Json json = Json::object({{"height", scene.size.height}, {"width", scene.size.width}});
  Json objects = Json::array();
  for (const SceneObject& one : scene.objects) {
    Json object = Json::object();
    if (!one.sort.color.empty()) object["color"] = one.sort.color;
    object["noun"] = one.sort.noun;
    const Box& b = one.box;
    object["bbox"] = std::vector<double>{b.x0, b.y0, b.width(), b.height()};
    if (!one.photo.empty()) object["photo"] = one.photo;
    objects.push_back(std::move(object));
  }
  json["objects"] = std::move(objects);
  return json;
}

CaptionScene caption_scene_of(const Json& json, std::string_view where) {
  CaptionScene scene{{json.get_int("height", where), json.get_int("width", where)}, {}};
  check(scene.size.height > 0 && scene.size.width > 0, ErrorKind::data,
        "{}: an image of {} x {} pixels", where, scene.size.width, scene.size.height);
  for (const Json& one : json.at("objects", where).as_array(where)) {
    SceneObject object{.sort = sort_of(one, where),
                       .box = box_of(one.at("bbox", where), scene.size, where)};
    if (one.contains("photo")) object.photo = one.get_string("photo", where);
    scene.objects.push_back(std::move(object));
  }
  return scene;
}

}  // namespace heddle
