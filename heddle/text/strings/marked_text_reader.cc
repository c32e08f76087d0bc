// One pass; words, marks and literals in the order in which they stand.
#include "heddle/text/strings/marked_text_reader.h"

#include <algorithm>

#include "heddle/text/strings/tags.h"

namespace heddle {
void MarkedText::Reader::add_text(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (is_markup_space(text[at])) {
      const size_t end = std::min(text.find_first_not_of(kMarkupSpaces, at), text.size());
      const std::string_view spaces = text.substr(at, end - at);
      if (is_empty()) segment().leading += spaces;
      segment().trailing = spaces;
      if (is_behind_mark()) segment().marks.back().has_space_behind = true;
      has_space_ = true, at = end;
      continue;
    }
    const size_t end = std::min(text.find_first_of(kMarkupSpaces, at), text.size());
    const std::string word(text.substr(at, end - at));
    std::vector<Word>& words = segment().words;
    if (has_space_ || words.empty() || is_behind_mark()) {
      words.push_back({.text = word, .stack = stack_});
      if (!segment().trailing.empty()) words.back().space = segment().trailing;
    } else {
      words.back().ends_outside = words.back().stack != stack_;
      words.back().text += word;
    }
    segment().trailing.clear();
    has_space_ = false, at = end;
  }
}

void MarkedText::Reader::add_mark(std::string_view text) {
  std::vector<Mark>& marks = segment().marks;
  marks.push_back({.before = segment().words.size(),
                   .text = std::string(text),
                   .has_space_before = has_space_});
  segment().trailing.clear();
  has_space_ = false;
}

// Elements that ended with no word in the segment.
void MarkedText::Reader::keep_empty_elements() {
  const auto is_open = [&](int32_t id) { return std::ranges::find(stack_, id) != stack_.end(); };
  for (const int32_t id : segment().elements) {
    if (is_open(id)) continue;
    const Element& element = to_.elements_[static_cast<size_t>(id)];
    segment().marks.push_back({.before = 0, .text = element.open + "</" + element.name + ">"});
    segment().trailing.clear();
  }
  std::erase_if(segment().elements, [&](int32_t id) { return !is_open(id); });
}

void MarkedText::Reader::add_literal(std::string_view text) {
  if (is_empty()) keep_empty_elements();
  Segment& now = segment();
  if (is_empty()) {
    to_.pieces_.back().literal += now.leading;
    now.leading.clear(), now.trailing.clear();
  } else {
    to_.pieces_.emplace_back();
  }
  has_space_ = true;
  to_.pieces_.back().literal += text;
}

void MarkedText::Reader::open(std::string_view tag) {
  if (stack_.size() >= kDeepest) return add_mark(tag);
  const auto id = static_cast<int32_t>(to_.elements_.size());
  to_.elements_.push_back({std::string(tag), std::string(tag_name(tag)), segment().words.size()});
  segment().elements.push_back(id);
  stack_.push_back(id);
}

void MarkedText::Reader::close(std::string_view tag) {
  for (size_t i = stack_.size(); i-- > 0;) {
    const Element& element = to_.elements_[static_cast<size_t>(stack_[i])];
    if (!is_same_tag_name(element.name, tag_name(tag))) continue;
    stack_.resize(i);
    return;
  }
  add_mark(tag);
}

void MarkedText::Reader::finish() {
  if (is_empty()) keep_empty_elements();
  if (!is_empty()) return;
  Piece& last = to_.pieces_.back();
  to_.end_ = last.literal + last.segment.leading;
  to_.pieces_.pop_back();
}

}  // namespace heddle
