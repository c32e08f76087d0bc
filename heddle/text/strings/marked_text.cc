// Plain texts, their sentences, and a writer that follows words.
#include "heddle/text/strings/marked_text.h"

#include <algorithm>
#include <functional>

#include "heddle/base/utf8.h"
#include "heddle/text/strings/longest_matches.h"
#include "heddle/text/strings/marked_text_reader.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

size_t end_of_core(std::string_view word) {
  size_t end = word.size();
  while (end > 0 && std::string_view(".,;:!?").find(word[end - 1]) != std::string_view::npos) --end;
  return end == 0 ? word.size() : end;
}

}  // namespace

MarkedText MarkedText::of_text(std::string_view plain, std::span<const std::string> kept) {
  MarkedText text;
  Reader reader(text);
  const std::vector<size_t> lengths = longest_matches(plain, kept);
  size_t from = 0;
  for (size_t at = 0; at < plain.size();) {
    const size_t length = lengths[at];
    if (length == 0) {
      ++at;
      continue;
    }
    reader.add_text(plain.substr(from, at - from));
    reader.add_mark(plain.substr(at, length));
    from = at += length;
  }
  reader.add_text(plain.substr(from));
  reader.finish();
  return text;
}

// --- sentences -----------------------------------------------------------------------------------

void MarkedText::split(const SentenceSplitter& splitter) {
  for (Piece& piece : pieces_) split(piece.segment, splitter);
}

// A word that two sentences share (of a language without spaces) becomes two.
void MarkedText::split(Segment& segment, const SentenceSplitter& splitter) {
  std::string text;
  for (const Word& word : segment.words) {
    const bool is_line = !has_tags_ && word.space.find('\n') != std::string::npos;
    if (!text.empty()) text += is_line ? '\n' : ' ';
    text += word.text;
  }
  if (first_invalid_utf8(text)) return;
  std::vector<size_t> borders;
  for (const TextPart& part : splitter.split(text)) borders.push_back(part.begin);
  if (borders.size() < 2) return;
  std::vector<Word> words;
  std::vector<size_t> numbers;  // where each word now begins
  segment.sentences.clear();
  size_t at = 0, next = 0;  // in the text; among the borders
  for (Word& word : segment.words) {
    numbers.push_back(words.size());
    const size_t end = at + word.text.size();
    for (size_t from = at; from < end;) {
      if (next < borders.size() && borders[next] == from) {
        segment.sentences.push_back(words.size());
        ++next;
      }
      const size_t to = next < borders.size() ? std::min(end, borders[next]) : end;
      words.push_back({.text = word.text.substr(from - at, to - from),
                       .stack = word.stack,
                       .ends_outside = word.ends_outside,
                       .space = from == at ? word.space : ""});
      from = to;
    }
    at = end + 1;
  }
  numbers.push_back(words.size());
  segment.words = std::move(words);
  for (Mark& mark : segment.marks) mark.before = numbers[mark.before];
  for (const int32_t id : segment.elements) {
    size_t& before = elements_[static_cast<size_t>(id)].before;
    before = numbers[before];
  }
}

size_t MarkedText::count() const {
  size_t all = 0;
  for (const Piece& piece : pieces_) all += piece.segment.sentences.size();
  return all;
}

std::vector<std::string> MarkedText::texts() const {
  std::vector<std::string> all;
  for (const Piece& piece : pieces_) {
    const Segment& segment = piece.segment;
    for (size_t s = 0; s < segment.sentences.size(); ++s) {
      std::string text;
      for (size_t w = segment.sentences[s]; w < segment.end_of_sentence(s); ++w) {
        text += (text.empty() ? "" : " ") + segment.words[w].text;
      }
      all.push_back(std::move(text));
    }
  }
  return all;
}

// --- writing -------------------------------------------------------------------------------------

// translations, links: of each sentence
std::vector<MarkedText::Written> MarkedText::written_words(
    const Segment& segment, std::span<const std::string> translations,
    std::span<const Links> links) {
  std::vector<Written> all;
  for (size_t s = 0; s < segment.sentences.size(); ++s) {
    const size_t begin = segment.sentences[s], end = segment.end_of_sentence(s);
    if (begin == end) continue;
    std::vector<std::string> words = split_at_spaces(translations[s]);
    // Of each word the one that it came from; where none is known that of the word before.
    std::vector<size_t> from(words.size(), end);
    for (const auto& [source, target] : links[s]) {
      if (target < 0 || source < 0 || target >= std::ssize(words)) continue;
      if (static_cast<size_t>(source) >= end - begin) continue;
      size_t& one = from[static_cast<size_t>(target)];
      one = std::min(one, begin + static_cast<size_t>(source));
    }
    size_t last = begin;
    for (size_t t = 0; t < words.size(); ++t) {
      if (from[t] != end) last = from[t];
      const bool is_border = t == 0 && s > 0;
      all.push_back({std::move(words[t]), last,
                     is_border ? std::string_view(segment.words[begin].space) : " "});
    }
  }
  return all;
}

// Those of the segment, each before a word of `words` or behind all, in the order in which they are
// written. Elements around words that nothing came from stand empty where they began.
std::vector<MarkedText::Mark> MarkedText::marks_of(const Segment& segment,
                                                   std::span<const Written> words) const {
  std::vector<Mark> marks = segment.marks;
  if (!segment.elements.empty()) {
    const int32_t first = segment.elements.front(), last = segment.elements.back();
    std::vector<bool> has_words(static_cast<size_t>(last - first + 1));
    for (const Written& word : words) {
      for (const int32_t id : segment.words[word.from].stack) {
        if (id >= first && id <= last) has_words[static_cast<size_t>(id - first)] = true;
      }
    }
    for (const int32_t id : segment.elements) {
      if (has_words[static_cast<size_t>(id - first)]) continue;
      const Element& element = elements_[static_cast<size_t>(id)];
      marks.push_back({.before = element.before,
                       .text = element.open + "</" + element.name + ">",
                       .is_empty_element = true});
    }
  }
  // What stood before a word stands before the first that came from it, or else from one behind it.
  std::vector<size_t> places(segment.words.size() + 1, words.size()), behind = places;
  for (size_t t = words.size(); t-- > 0;) places[words[t].from] = t;
  for (size_t s = segment.words.size(); s-- > 0;)
    behind[s] = std::min(places[s + 1], behind[s + 1]);
  std::ranges::stable_sort(marks, std::less<>(), &Mark::before);
  for (Mark& mark : marks) {
    const size_t place = places[mark.before];
    mark.before = place < words.size() ? place : behind[mark.before];
  }
  std::ranges::stable_sort(marks, std::less<>(), &Mark::before);
  return marks;
}

std::string MarkedText::written(const Segment& segment, std::span<const Written> words) const {
  const std::vector<Mark> marks = marks_of(segment, words);
  const auto escaped = [&](std::string_view text) {
    return has_tags_ ? html_escaped(text, false) : std::string(text);
  };
  std::string out = segment.leading;
  bool needs_space = false;
  std::vector<int32_t> stack;
  std::string tail;  // punctuation that stands behind the elements
  const auto close_to = [&](size_t depth) {
    for (; stack.size() > depth; stack.pop_back()) {
      out += "</" + elements_[static_cast<size_t>(stack.back())].name + ">";
    }
  };
  size_t written_marks = 0;
  const auto write_marks = [&](size_t t) {
    for (; written_marks < marks.size() && marks[written_marks].before == t; ++written_marks) {
      const Mark& mark = marks[written_marks];
      if (needs_space && mark.has_space_before) out += ' ';
      out += mark.text;
      if (!mark.is_empty_element) needs_space = mark.has_space_behind;
    }
  };
  for (size_t t = 0; t < words.size(); ++t) {
    const Word& source = segment.words[words[t].from];
    size_t same = 0;
    while (same < std::min(stack.size(), source.stack.size()) &&
           stack[same] == source.stack[same]) {
      ++same;
    }
    const bool changes = same < stack.size() || same < source.stack.size();
    if (changes) close_to(same);
    out += std::exchange(tail, "");
    write_marks(t);
    if (needs_space) out += words[t].space;
    for (; same < source.stack.size(); ++same) {
      out += elements_[static_cast<size_t>(source.stack[same])].open;
      stack.push_back(source.stack[same]);
    }
    const bool is_last_of_run =
        t + 1 == words.size() || segment.words[words[t + 1].from].stack != source.stack;
    const std::string_view text = words[t].text;
    const size_t core = source.ends_outside && is_last_of_run ? end_of_core(text) : text.size();
    out += escaped(text.substr(0, core));
    tail = escaped(text.substr(core));
    needs_space = true;
  }
  close_to(0);
  out += tail;
  write_marks(words.size());
  return out + (segment.words.empty() && segment.marks.empty() ? "" : segment.trailing);
}

std::string MarkedText::with(std::span<const std::string> translations,
                             std::span<const Links> links) const {
  std::string out;
  size_t first = 0;  // sentence of the piece
  for (const auto& [literal, segment] : pieces_) {
    const size_t sentences = segment.sentences.size();
    out += literal + written(segment, written_words(segment, translations.subspan(first, sentences),
                                                    links.subspan(first, sentences)));
    first += sentences;
  }
  return out + end_;
}

}  // namespace heddle
