// What the readers of HTML, XML and plain texts put a MarkedText together with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/text/strings/marked_text.h"

namespace heddle {

class MarkedText::Reader {
 public:
  static constexpr size_t kDeepest = 64;  // elements in each other

  explicit Reader(MarkedText& to) : to_(to) { to_.pieces_.emplace_back(); }

  /// Words of the segment at hand, without entities.
  void add_text(std::string_view text);
  /// What goes with the word behind it.
  void add_mark(std::string_view text);
  /// What ends the segment.
  void add_literal(std::string_view text);
  /// Begins an element around words; deeper ones than kDeepest stay as they are.
  void open(std::string_view tag);
  /// Ends the innermost of that name, and all in it; the tag stays as it is if there is none.
  void close(std::string_view tag);
  /// White space alone at the end is no text.
  void finish();

 private:
  Segment& segment() { return to_.pieces_.back().segment; }
  bool is_empty() { return segment().words.empty() && segment().marks.empty(); }
  bool is_behind_mark() {
    return !segment().marks.empty() && segment().marks.back().before == segment().words.size();
  }
  void keep_empty_elements();

  MarkedText& to_;
  std::vector<int32_t> stack_;
  bool has_space_ = true;  // before what comes next
};

}  // namespace heddle
