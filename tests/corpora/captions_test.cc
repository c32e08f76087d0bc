// Captions of scenes against a second opinion: all sentences of the grammar are put together here
// by hand, with what each says of a scene.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "corpora/captions/caption_scene.h"
#include "corpora/captions/captioned_scenes.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

const std::vector<std::string> kColorWords = {"red",    "green", "blue",  "yellow",
                                              "purple", "cyan",  "orange"};
const std::vector<std::string> kShapeWords = {"circle", "square", "triangle", "cross"};
const std::vector<std::string> kClassWords = {"airplane", "automobile", "bird",  "cat",  "deer",
                                              "dog",      "frog",       "horse", "ship", "truck"};
const std::vector<std::string> kNumberWords = {"two", "three", "four",  "five",
                                               "six", "seven", "eight", "nine"};

const std::vector<std::string> kPlaces = {"top left",    "top center",    "top right",
                                          "middle left", "middle center", "middle right",
                                          "bottom left", "bottom center", "bottom right"};

std::string plural(const std::string& thing) {
  if (thing == "deer") return thing;
  return thing.ends_with("cross") ? thing + "es" : thing + "s";
}

std::string with_article(const std::string& thing) {
  return (std::string("aeiou").find(thing[0]) != std::string::npos ? "an " : "a ") + thing;
}

// "red circle" of shapes, "frog" of photos.
std::string thing_of(const SceneObject& object) {
  return object.sort.color.empty() ? object.sort.noun : object.sort.color + " " + object.sort.noun;
}

std::vector<std::string> all_things(bool are_photos) {
  if (are_photos) return kClassWords;
  std::vector<std::string> things;
  for (const std::string& color : kColorWords) {
    for (const std::string& shape : kShapeWords) things.push_back(color + " " + shape);
  }
  return things;
}

std::vector<std::string> all_sentences(bool are_photos) {
  std::vector<std::string> all;
  const std::vector<std::string> things = all_things(are_photos);
  for (const std::string& a : things) {
    all.push_back("there is " + with_article(a));
    for (const std::string& n : kNumberWords) all.push_back("there are " + n + " " + plural(a));
    for (const std::string& b : things) {
      for (const char* r : {"above", "below", "to the left of", "to the right of"}) {
        all.push_back(with_article(a) + " is " + r + " " + with_article(b));
      }
    }
    for (const std::string& place : kPlaces) {
      if (are_photos) all.push_back("the " + place + " photo is labelled " + a);
    }
  }
  return all;
}

// What can truly be said of a scene, object by object.
std::set<std::string> said_of(const CaptionScene& scene) {
  std::set<std::string> said;
  for (size_t i = 0; i < scene.objects.size(); ++i) {
    const SceneObject& a = scene.objects[i];
    said.insert("there is " + with_article(thing_of(a)));
    const double down_thirds = 1.5 * (a.box.y0 + a.box.y1) / static_cast<double>(scene.size.height),
                 right_thirds = 1.5 * (a.box.x0 + a.box.x1) / static_cast<double>(scene.size.width);
    if (a.sort.color.empty()) {
      const auto ninth = 3 * static_cast<size_t>(down_thirds) + static_cast<size_t>(right_thirds);
      said.insert("the " + kPlaces.at(ninth) + " photo is labelled " + a.sort.noun);
    }
    size_t count = 0;
    for (const SceneObject& other : scene.objects) count += thing_of(other) == thing_of(a);
    if (count > 1) said.insert("there are " + kNumberWords[count - 2] + " " + plural(thing_of(a)));
    for (size_t j = 0; j < scene.objects.size(); ++j) {
      const SceneObject& b = scene.objects[j];
      const double right = (b.box.x0 + b.box.x1 - a.box.x0 - a.box.x1) / 2,
                   down = (b.box.y0 + b.box.y1 - a.box.y0 - a.box.y1) / 2;
      const auto say = [&](bool is_true, const char* words) {
        if (is_true && i != j)
          said.insert(with_article(thing_of(a)) + " is " + words + " " + with_article(thing_of(b)));
      };
      const double eighth_down = static_cast<double>(scene.size.height) / 8,
                   eighth_right = static_cast<double>(scene.size.width) / 8;
      say(down >= eighth_down, "above");
      say(down <= -eighth_down, "below");
      say(right >= eighth_right, "to the left of");
      say(right <= -eighth_right, "to the right of");
    }
  }
  return said;
}

// Ten classes of four photos, each of its own colour; the number of a photo is 4 class + 0 .. 3.
PhotoPool plain_photos(int first = 0) {
  PhotoPool pool{.classes = caption_classes()};
  for (size_t label = 0; label < 10; ++label) {
    pool.by_class.push_back({4 * label, 4 * label + 1, 4 * label + 2, 4 * label + 3});
  }
  pool.photo = [](size_t i) {
    Image photo(20, 24);
    for (size_t p = 0; p < photo.pixels.size(); p += 3) {
      photo.pixels[p] = static_cast<uint8_t>(100 + i);
      photo.pixels[p + 1] = 255;
    }
    return photo;
  };
  pool.name = [first](size_t i) { return fmt::format("photo {}", first + static_cast<int>(i)); };
  return pool;
}

CaptionedScene drawn(bool is_collage, bool is_unseen, uint64_t index) {
  CaptionedSceneOptions options = is_collage ? kCollages : kCaptionedShapes;
  options.captions.is_unseen = is_unseen;
  return is_collage ? draw_collage(options, plain_photos(), 1, index)
                    : draw_captioned_shapes(options, 1, index);
}

TEST(Captions, every_sentence_of_the_grammar_is_read_and_written_back) {
  for (const bool are_photos : {false, true}) {
    for (const std::string& text : all_sentences(are_photos)) {
      const std::optional<Caption> caption = parse_caption(text);
      ASSERT_TRUE(caption) << text;
      EXPECT_EQ(caption_text(*caption), text);
      std::string words;
      for (const CaptionWord& word : caption->words) words += word.text + " ";
      EXPECT_EQ(words, text + " ");
    }
  }
}

TEST(Captions, other_sentences_are_not_grammatical) {
  for (const char* text : {"",
                           " ",
                           "a",
                           "an",
                           "there",
                           "there is",
                           "there is a",
                           "there is a red",
                           "there is a circle",
                           "there is red circle",
                           "there is a red circle ",
                           " there is a red circle",
                           "there is  a red circle",
                           "there is a red circle .",
                           "There is a red circle",
                           "there is a red circles",
                           "there is a orange cross",
                           "there is an red circle",
                           "there is a red frog",
                           "there is a airplane",
                           "there is a pink circle",
                           "there is a red star",
                           "there are a red circle",
                           "there are two red circle",
                           "there are one red circles",
                           "there are ten red circles",
                           "there are two circles",
                           "there are two deers",
                           "there are two red frogs",
                           "a red circle",
                           "a red circle is above",
                           "a red circle is above blue square",
                           "a red circle is left of a blue square",
                           "a red circle is to the left a blue square",
                           "a red circle is to the above a blue square",
                           "a red circle above a blue square",
                           "a red circle is above a blue square above",
                           "a red circle is above a blue square is below a frog",
                           "a frog is above an horse",
                           "the",
                           "the top photo is labelled frog",
                           "the left photo is labelled frog",
                           "the left top photo is labelled frog",
                           "the top left photo is labelled",
                           "the top left photo is labelled a frog",
                           "the top left photo is labelled frogs",
                           "the top left photo is labelled circle",
                           "the top left photo is labelled red circle",
                           "the top left photo is a frog",
                           "a top left photo is labelled frog"}) {
    EXPECT_FALSE(parse_caption(text)) << text;
  }
}

TEST(Captions, words_have_their_roles) {
  const Caption caption = parse_caption("a red circle is to the left of an orange cross").value();
  EXPECT_EQ(caption.kind, CaptionKind::relation);
  EXPECT_EQ(caption.relation, Relation::left_of);
  EXPECT_EQ(caption.subject, (Sort{"red", "circle"}));
  EXPECT_EQ(caption.object, (Sort{"orange", "cross"}));
  std::string roles, objects;
  for (const CaptionWord& word : caption.words) {
    roles += "fnckrp"[static_cast<size_t>(word.role)];
    objects += word.is_of_object ? '1' : '0';
  }
  EXPECT_EQ(roles, "fckfrrrrfck");  // function, number, colour, noun (k), relation
  EXPECT_EQ(objects, "00000000111");
  EXPECT_EQ(parse_caption("there are three frogs")->count, 3);
  const Caption place = parse_caption("the middle right photo is labelled frog").value();
  EXPECT_EQ(place.kind, CaptionKind::place);
  EXPECT_EQ(place.place, (Ninth{.row = 1, .column = 2}));
  EXPECT_EQ(place.words[1].role, WordRole::place);
  EXPECT_EQ(place.words[2].role, WordRole::place);
  EXPECT_EQ(place.words[6].role, WordRole::noun);
}

TEST(Captions, all_that_are_generated_are_true_and_those_that_are_true_are_judged_so) {
  for (const bool is_collage : {false, true}) {
    const std::vector<std::string> sentences = all_sentences(is_collage);
    for (uint64_t index = 0; index < 60; ++index) {
      const CaptionedScene one = drawn(is_collage, index % 3 == 2, index);
      const std::set<std::string> said = said_of(one.scene);
      ASSERT_FALSE(one.captions.empty());
      for (const std::string& caption : one.captions)
        EXPECT_TRUE(said.contains(caption)) << caption;
      for (const std::string& text : sentences) {
        ASSERT_EQ(judge_caption(*parse_caption(text), one.scene).is_true, said.contains(text))
            << text << "; image " << index;
      }
    }
  }
}

// A scene of 64 x 64 pixels whose boxes are 8 pixels wide and high about these middles.
CaptionScene scene_of(
    const std::vector<std::tuple<std::string, std::string, double, double>>& all) {
  CaptionScene scene{.size = {64, 64}};
  for (const auto& [color, noun, x, y] : all) {
    scene.objects.push_back({.sort = {color, noun}, .box = Box::of_center(x, y, 8, 8)});
  }
  return scene;
}

CaptionTruth judged(const char* text, const CaptionScene& scene) {
  return judge_caption(parse_caption(text).value(), scene);
}

TEST(Captions, changed_words_make_true_captions_false) {
  const CaptionScene scene = scene_of({{"red", "circle", 10, 10},
                                       {"blue", "square", 10, 40},
                                       {"red", "circle", 50, 44},
                                       {"green", "cross", 55, 10}});
  for (const char* text :
       {"there is a red circle", "there is a blue square", "there are two red circles",
        "a red circle is above a blue square", "a red circle is to the right of a blue square",
        "a blue square is below a red circle", "a red circle is above a red circle",
        "a red circle is below a green cross"}) {
    EXPECT_TRUE(judged(text, scene).is_true) << text;
  }
  for (const char* text :
       {"there is a red square", "there is a green circle", "there are three red circles",
        "there are two blue squares", "a blue square is above a red circle",
        "a red circle is below a blue square",  // by half an eighth of the height alone
        "a blue square is to the right of a red circle", "a green cross is below a red circle",
        "a green cross is above a green cross", "a frog is above a red circle"}) {
    EXPECT_FALSE(judged(text, scene).is_true) << text;
  }
}

TEST(Captions, untrue_ones_are_corrected_by_what_is_so) {
  const CaptionScene shapes = scene_of({{"red", "circle", 10, 10},
                                        {"blue", "square", 10, 40},
                                        {"red", "circle", 50, 44},
                                        {"orange", "cross", 55, 10}});
  const CaptionScene photos = scene_of({{"", "frog", 10, 10}, {"", "ship", 55, 55}});
  const auto correction = [](const char* text, const CaptionScene& scene) {
    return correction_of(parse_caption(text).value(), scene);
  };
  for (const auto& [text, so] : std::initializer_list<std::pair<const char*, const char*>>{
           {"there is a red circle", ""},
           {"there is an orange square", "there is no orange square"},
           {"there are three red circles", "there are two red circles"},
           {"there are two orange crosses", "there is one orange cross"},
           {"there are two green crosses", "there is no green cross"},
           {"a blue square is above a red circle", "no blue square is above a red circle"},
           {"an orange cross is below a red circle", "no orange cross is below a red circle"},
           {"a green cross is above a blue cross", "there is no green cross"},
           {"a red circle is above a blue cross", "there is no blue cross"},
           {"an orange cross is above an orange cross",
            "no orange cross is above an orange cross"}}) {
    EXPECT_EQ(correction(text, shapes), so) << text;
  }
  EXPECT_EQ(correction("the top left photo is labelled ship", photos),
            "the top left photo is labelled frog");
  EXPECT_EQ(correction("the middle left photo is labelled ship", photos),
            "there is no middle left photo");
  const CaptionScene both = scene_of({{"red", "circle", 10, 10}, {"", "ship", 55, 55}});
  EXPECT_EQ(correction("the top left photo is labelled ship", both), "there is no top left photo");
  // More than there are words for.
  CaptionScene many{.size = {64, 64}};
  many.objects.resize(12, {.sort = {"red", "circle"}, .box = {0, 0, 8, 8}});
  EXPECT_EQ(correction("there are two red circles", many), "there are more than nine red circles");
}

TEST(Captions, a_relation_needs_an_eighth_of_the_image) {
  for (const auto& [gap, holds] : {std::pair(7.9375, false), std::pair(8.0, true)}) {
    const CaptionScene scene =
        scene_of({{"red", "circle", 20, 20}, {"blue", "square", 20 + gap, 20 + gap}});
    EXPECT_EQ(judged("a red circle is above a blue square", scene).is_true, holds);
    EXPECT_EQ(judged("a blue square is below a red circle", scene).is_true, holds);
    EXPECT_EQ(judged("a red circle is to the left of a blue square", scene).is_true, holds);
    EXPECT_EQ(judged("a blue square is to the right of a red circle", scene).is_true, holds);
  }
}

TEST(Captions, words_name_the_objects_of_the_pairs_that_stand_so) {
  const CaptionScene scene = scene_of({{"red", "circle", 10, 10},
                                       {"red", "circle", 30, 60},
                                       {"blue", "square", 10, 40},
                                       {"blue", "square", 40, 20},
                                       {"blue", "square", 50, 2}});
  using Named = std::vector<std::vector<size_t>>;
  EXPECT_EQ(judged("a red circle is above a blue square", scene).named,
            (Named{{}, {0}, {0}, {}, {}, {}, {2, 3}, {2, 3}}));
  EXPECT_EQ(judged("a blue square is above a red circle", scene).named,
            (Named{{}, {2, 3, 4}, {2, 3, 4}, {}, {}, {}, {0, 1}, {0, 1}}));
  // Of one that is false all objects of the sorts.
  EXPECT_EQ(judged("a red circle is to the right of a blue square", scene).named[2],
            (std::vector<size_t>{1}));
  EXPECT_EQ(judged("a blue square is to the left of a frog", scene).named,
            (Named{{}, {2, 3, 4}, {2, 3, 4}, {}, {}, {}, {}, {}, {}, {}}));
  EXPECT_EQ(judged("there are two red circles", scene).named,
            (Named{{}, {}, {0, 1}, {0, 1}, {0, 1}}));
  EXPECT_EQ(judged("there is a green cross", scene).named, (Named{{}, {}, {}, {}, {}}));
}

TEST(Captions, places_are_ninths_and_name_the_photos_there) {
  const CaptionScene scene = scene_of({{"", "frog", 21.25, 10},
                                       {"", "frog", 21.5, 42.75},
                                       {"", "deer", 60, 42.5},
                                       {"", "frog", 59, 60},
                                       {"", "deer", 58, 50}});
  using Named = std::vector<std::vector<size_t>>;
  EXPECT_EQ(judged("the top left photo is labelled frog", scene).named,
            (Named{{}, {}, {}, {}, {}, {}, {0}}));
  EXPECT_TRUE(judged("the bottom center photo is labelled frog", scene).is_true);
  EXPECT_TRUE(judged("the middle right photo is labelled deer", scene).is_true);
  // Two are in the bottom right ninth: each is there, and none is said to be when captions are
  // drawn.
  EXPECT_TRUE(judged("the bottom right photo is labelled frog", scene).is_true);
  EXPECT_EQ(judged("the bottom right photo is labelled deer", scene).named[6],
            (std::vector<size_t>{4}));
  const CaptionTruth wrong = judged("the top center photo is labelled frog", scene);
  EXPECT_FALSE(wrong.is_true);
  EXPECT_EQ(wrong.named[6], (std::vector<size_t>{0, 1, 3}));
  drawing::Chance chance(1, "test", 0);
  std::set<std::string> places;
  for (const std::string& text : true_captions(scene, {.count = 100}, chance)) {
    if (text.starts_with("the ")) places.insert(text);
  }
  EXPECT_EQ(places, (std::set<std::string>{"the top left photo is labelled frog",
                                           "the bottom center photo is labelled frog",
                                           "the middle right photo is labelled deer"}));
}

TEST(Captions, held_out_combinations_are_known) {
  const auto mentions = [](const char* text) { return mentions_held_out(*parse_caption(text)); };
  for (const Sort& sort : held_out_sorts()) {
    EXPECT_TRUE(mentions(caption_text({.subject = sort}).c_str()));
  }
  EXPECT_TRUE(mentions("there are two red squares"));
  EXPECT_TRUE(mentions("a blue circle is above a red circle"));
  EXPECT_TRUE(mentions("a red circle is above a blue circle"));
  EXPECT_FALSE(mentions("a red circle is above a blue square"));
  EXPECT_TRUE(mentions("a cat is below a ship"));
  EXPECT_TRUE(mentions("a ship is below a cat"));
  EXPECT_FALSE(mentions("a cat is below a truck"));
  EXPECT_FALSE(mentions("there is a cat"));
  // Every colour, shape and class is seen in training beside others.
  EXPECT_EQ(caption_colors(), kColorWords);
  for (const std::string& shape : kShapeWords) {
    EXPECT_EQ(std::ranges::count(held_out_sorts(), shape, &Sort::noun), 1);
  }
  EXPECT_EQ(held_out_pairs().size(), 5U);
}

// How often a sentence is true that was chosen without a look at the image, by kind: captions of
// other images, which know how often things are, and any sentences.
TEST(Captions, few_are_true_of_another_image) {
  for (const bool is_collage : {false, true}) {
    std::array<double, kCaptionKinds> right = {}, all = {};
    std::vector<CaptionedScene> scenes;
    for (uint64_t i = 0; i < 400; ++i) scenes.push_back(drawn(is_collage, false, i));
    for (size_t i = 0; i < scenes.size(); ++i) {
      for (size_t k = 1; k <= 10; ++k) {
        for (const std::string& text : scenes[(i + k) % scenes.size()].captions) {
          const Caption caption = *parse_caption(text);
          const auto kind = static_cast<size_t>(caption.kind);
          ++all[kind];
          right[kind] += judge_caption(caption, scenes[i].scene).is_true ? 1 : 0;
        }
      }
    }
    for (size_t kind = 0; kind < (is_collage ? kCaptionKinds : kCaptionKinds - 1); ++kind) {
      const double share = right[kind] / all[kind];
      RecordProperty(fmt::format("{}_{}", is_collage ? "collages" : "shapes", kind),
                     fmt::format("{:.4f} of {}", share, all[kind]));
      EXPECT_LT(share, is_collage ? 0.55 : 0.2) << kind;
      EXPECT_GT(all[kind], 2000) << kind;
    }
  }
}

// Who knows what there is but not where is right by chance: of things that stand alone in two of
// five relations, of any in half of them.
TEST(Captions, half_of_all_relations_between_what_is_there_are_true) {
  for (const bool is_collage : {false, true}) {
    std::array<double, 2> right = {}, all = {};  // of things that stand alone; of any
    for (uint64_t index = 0; index < 400; ++index) {
      const CaptionScene scene = drawn(is_collage, false, index).scene;
      std::map<Sort, int> sorts;
      for (const SceneObject& object : scene.objects) ++sorts[object.sort];
      for (const auto& [a, count] : sorts) {
        for (const auto& [b, other] : sorts) {
          if (a == b) continue;
          for (size_t r = 0; r < kRelations; ++r) {
            Caption caption{.kind = CaptionKind::relation, .subject = a};
            caption.relation = static_cast<Relation>(r);
            caption.object = b;
            const bool is_true = judge_caption(caption, scene).is_true;
            for (const size_t k :
                 count* other == 1 ? std::set<size_t>{0, 1} : std::set<size_t>{1}) {
              right[k] += is_true ? 1 : 0;
              ++all[k];
            }
          }
        }
      }
    }
    const std::string name = is_collage ? "collages" : "shapes";
    RecordProperty(name + "_alone", fmt::format("{:.4f} of {}", right[0] / all[0], all[0]));
    RecordProperty(name + "_any", fmt::format("{:.4f} of {}", right[1] / all[1], all[1]));
    EXPECT_NEAR(right[0] / all[0], 0.38, 0.04);
    EXPECT_NEAR(right[1] / all[1], 0.5, 0.06);
  }
}

TEST(Captions, scenes_are_read_back_from_json) {
  for (const bool is_collage : {false, true}) {
    for (uint64_t index = 0; index < 20; ++index) {
      const CaptionScene scene = drawn(is_collage, false, index).scene;
      EXPECT_EQ(caption_scene_of(Json::parse(to_json(scene).dump()), "x"), scene);
    }
  }
  const auto refused = [](const char* objects, const std::vector<std::string>& words) {
    const Json json =
        Json::parse(fmt::format(R"({{"height": 20, "width": 30, "objects": [{}]}})", objects));
    std::vector<std::string> all = {"a.jsonl: line 3"};
    all.insert(all.end(), words.begin(), words.end());
    expect_error(ErrorKind::data, all, [&] { caption_scene_of(json, "a.jsonl: line 3"); });
  };
  refused(R"({"color": "red", "bbox": [0, 0, 1, 1]})", {"noun"});
  refused(R"({"color": "red", "noun": "star", "bbox": [0, 0, 1, 1]})", {"'star'"});
  refused(R"({"color": "pink", "noun": "cross", "bbox": [0, 0, 1, 1]})", {"'pink'"});
  refused(R"({"noun": "cross", "bbox": [0, 0, 1, 1]})", {"color", "cross"});
  refused(R"({"color": "red", "noun": "frog", "bbox": [0, 0, 1, 1]})", {"color", "frog"});
  refused(R"({"noun": "frog", "bbox": [0, 0, 1]})", {"3 numbers"});
  refused(R"({"noun": "frog", "bbox": [0, 0, 31, 1]})", {"30 x 20 pixels"});
  refused(R"({"noun": "frog", "bbox": [0, 0, 0, 1]})", {"bbox"});
  refused(R"({"noun": "frog"})", {"bbox"});
  expect_error(ErrorKind::data, {"x", "objects"},
               [] { caption_scene_of(Json::parse(R"({"height": 1, "width": 1})"), "x"); });
}

}  // namespace
}  // namespace heddle
