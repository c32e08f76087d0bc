// The grammar of captions over the words of lexicons/captions.json.
#include "corpora/captions/caption.h"

#include <algorithm>
#include <string_view>

#include "corpora/lexicon.h"
#include "heddle/base/error.h"

namespace heddle {
namespace {

struct CaptionNoun {
  std::string one, several;
  bool is_shape;
};

struct Grammar {
  std::vector<std::string> colors, numbers, relations, rows, columns, shapes = {}, classes = {};
  std::vector<CaptionNoun> nouns = {};
  std::vector<Sort> held_out_sorts = {};
  std::vector<std::pair<std::string, std::string>> held_out_pairs = {};
};

Grammar load_grammar() {
  const Json& words = lexicon("captions");
  const auto list = [&](const char* key) { return words.at(key).as_strings(key); };
  Grammar g{.colors = list("colors"),
            .numbers = list("numbers"),
            .relations = list("relations"),
            .rows = list("rows"),
            .columns = list("columns")};
  for (const bool is_shape : {true, false}) {
    for (const std::string& line : list(is_shape ? "shapes" : "classes")) {
      const std::vector<std::string> forms = fields_of(line, 2);
      (is_shape ? g.shapes : g.classes).push_back(forms[0]);
      g.nouns.push_back({forms[0], forms[1], is_shape});
    }
  }
  for (const std::string& line : list("held_out_combinations")) {
    const std::vector<std::string> words_of = fields_of(line, 2);
    g.held_out_sorts.push_back({words_of[0], words_of[1]});
  }
  for (const std::string& line : list("held_out_pairs")) {
    const std::vector<std::string> pair = fields_of(line, 2);
    g.held_out_pairs.emplace_back(pair[0], pair[1]);
  }
  check(g.relations.size() == kRelations, ErrorKind::internal, "captions: {} relations",
        g.relations.size());
  check(g.rows.size() == kPlaceRows && g.columns.size() == kPlaceColumns, ErrorKind::internal,
        "captions: {} rows, {} columns", g.rows.size(), g.columns.size());
  return g;
}

const Grammar& grammar() {
  static const Grammar all = load_grammar();
  return all;
}

bool holds(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

const CaptionNoun* noun_of(const std::string& word, bool is_plural) {
  const auto found = std::ranges::find(
      grammar().nouns, word, [&](const CaptionNoun& n) { return is_plural ? n.several : n.one; });
  return found == grammar().nouns.end() ? nullptr : &*found;
}

const char* article_of(const std::string& word) {
  return std::string_view("aeiou").find(word.front()) != std::string_view::npos ? "an" : "a";
}

// Empty words where spaces stand together or at an end.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// Reads words from left to right. A member that reads gives false, or nothing, where the words are
// others.
class CaptionParser {
 public:
  explicit CaptionParser(std::vector<std::string> words) : words_(std::move(words)) {}

  std::optional<Caption> parse() {
    Caption caption;
    const bool is_read = take("there") ? read_there(caption)
                         : take("the") ? read_place(caption)
                                       : read_relation(caption);
    if (!is_read || at_ < words_.size()) return std::nullopt;
    caption.words = std::move(read_);
    return caption;
  }

 private:
  bool is_next(const std::string& word) const { return at_ < words_.size() && words_[at_] == word; }
  bool take(const std::string& word, WordRole role = WordRole::function) {
    if (!is_next(word)) return false;
    read_.push_back({word, role, is_of_object_});
    ++at_;
    return true;
  }
  // Any of these words.
  std::optional<size_t> take_one(const std::vector<std::string>& words, WordRole role) {
    for (size_t i = 0; i < words.size(); ++i) {
      if (take(words[i], role)) return i;
    }
    return std::nullopt;
  }

  bool read_there(Caption& caption) {
    if (take("is")) return read_thing(caption.subject);
    caption.kind = CaptionKind::count;
    if (!take("are")) return false;
    const auto number = take_one(grammar().numbers, WordRole::number);
    if (!number) return false;
    caption.count = static_cast<int64_t>(*number) + 2;
    return read_sort(caption.subject, true);
  }

  bool read_relation(Caption& caption) {
    caption.kind = CaptionKind::relation;
    if (!read_thing(caption.subject) || !take("is")) return false;
    for (size_t r = 0; r < kRelations; ++r) {
      if (!take_relation(words_of(grammar().relations[r]))) continue;
      caption.relation = static_cast<Relation>(r);
      is_of_object_ = true;
      return read_thing(caption.object);
    }
    return false;
  }

  bool read_place(Caption& caption) {
    caption.kind = CaptionKind::place;
    const auto row = take_one(grammar().rows, WordRole::place);
    const auto column = row ? take_one(grammar().columns, WordRole::place) : std::nullopt;
    if (!column) return false;
    caption.place = {*row, *column};
    return take("photo") && take("is") && take("labelled") && read_sort(caption.subject, false) &&
           caption.subject.color.empty();
  }

  // All of the words, or none: "to the left of".
  bool take_relation(const std::vector<std::string>& words) {
    for (size_t i = 0; i < words.size(); ++i) {
      if (at_ + i >= words_.size() || words_[at_ + i] != words[i]) return false;
    }
    for (const std::string& word : words) take(word, WordRole::relation);
    return true;
  }

  bool read_thing(Sort& sort) {
    const std::string article = is_next("an") ? "an" : "a";
    return take(article) && at_ < words_.size() && !words_[at_].empty() &&
           article == article_of(words_[at_]) && read_sort(sort, false);
  }

  bool read_sort(Sort& sort, bool is_plural) {
    const auto color = take_one(grammar().colors, WordRole::color);
    if (color) sort.color = grammar().colors[*color];
    const CaptionNoun* noun = at_ < words_.size() ? noun_of(words_[at_], is_plural) : nullptr;
    if (noun == nullptr || noun->is_shape != color.has_value()) return false;
    sort.noun = noun->one;
    return take(is_plural ? noun->several : noun->one, WordRole::noun);
  }

  std::vector<std::string> words_;
  size_t at_ = 0;
  bool is_of_object_ = false;
  std::vector<CaptionWord> read_;
};

std::string sort_text(const Sort& sort, bool is_plural) {
  const CaptionNoun* noun = noun_of(sort.noun, false);
  check(noun != nullptr && (sort.color.empty() || holds(grammar().colors, sort.color)),
        ErrorKind::internal, "captions: no words for '{}' '{}'", sort.color, sort.noun);
  return (sort.color.empty() ? "" : sort.color + " ") + (is_plural ? noun->several : noun->one);
}

std::string thing_text(const Sort& sort) {
  const std::string text = sort_text(sort, false);
  return fmt::format("{} {}", article_of(text), text);
}

}  // namespace

const char* caption_kind_name(CaptionKind kind) {
  static constexpr const char* names[kCaptionKinds] = {"existence", "count", "relation", "place"};
  return names[static_cast<size_t>(kind)];
}

std::optional<Caption> parse_caption(const std::string& text) {
  return CaptionParser(words_of(text)).parse();
}

std::string caption_text(const Caption& caption) {
  if (caption.kind == CaptionKind::existence) return "there is " + thing_text(caption.subject);
  if (caption.kind == CaptionKind::relation) {
    return fmt::format("{} is {} {}", thing_text(caption.subject),
                       grammar().relations[static_cast<size_t>(caption.relation)],
                       thing_text(caption.object));
  }
  if (caption.kind == CaptionKind::place) {
    return fmt::format("the {} {} photo is labelled {}", grammar().rows.at(caption.place.row),
                       grammar().columns.at(caption.place.column),
                       sort_text(caption.subject, false));
  }
  check(caption.count >= 2 && caption.count <= most_counted(), ErrorKind::internal,
        "captions: no word for the number {}", caption.count);
  return fmt::format("there are {} {}", grammar().numbers[static_cast<size_t>(caption.count - 2)],
                     sort_text(caption.subject, true));
}

const std::vector<std::string>& caption_colors() { return grammar().colors; }
const std::vector<std::string>& caption_shapes() { return grammar().shapes; }
const std::vector<std::string>& caption_classes() { return grammar().classes; }
int64_t most_counted() { return std::ssize(grammar().numbers) + 1; }

const std::vector<Sort>& held_out_sorts() { return grammar().held_out_sorts; }
const std::vector<std::pair<std::string, std::string>>& held_out_pairs() {
  return grammar().held_out_pairs;
}

bool is_held_out(const Sort& sort) {
  return std::ranges::find(held_out_sorts(), sort) != held_out_sorts().end();
}

bool are_held_out(const Sort& a, const Sort& b) {
  if (!a.color.empty() || !b.color.empty()) return false;
  return std::ranges::any_of(held_out_pairs(), [&](const auto& pair) {
    return pair == std::pair(a.noun, b.noun) || pair == std::pair(b.noun, a.noun);
  });
}

bool mentions_held_out(const Caption& caption) {
  if (is_held_out(caption.subject)) return true;
  return caption.kind == CaptionKind::relation &&
         (is_held_out(caption.object) || are_held_out(caption.subject, caption.object));
}

}  // namespace heddle
