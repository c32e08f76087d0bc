// A set of stacks: each byte moves their tops, and what needs no byte is done at once.
#include "heddle/infer/search/json_matcher.h"

#include <algorithm>

#include "heddle/base/error.h"

namespace heddle {
namespace {

using Kind = JsonRule::Kind;

bool are_equal(const JsonStack::Keys* a, const JsonStack::Keys* b) {
  for (; a != b; a = a->outer.get(), b = b->outer.get()) {
    if (a == nullptr || b == nullptr || a->names != b->names) return false;
  }
  return true;
}

}  // namespace

JsonMatcher::JsonMatcher(const JsonGrammar& grammar) : grammar_(&grammar) {
  expand({.frames = {{grammar.start, 0}}}, stacks_);
}

void JsonMatcher::add(JsonStack stack, std::vector<JsonStack>& to) const {
  for (const JsonStack& known : to) {
    if (known.frames == stack.frames && known.key == stack.key &&
        are_equal(known.keys.get(), stack.keys.get())) {
      return;
    }
  }
  if (to.size() < kMostReadings) return to.push_back(std::move(stack));
  const auto longest =
      std::ranges::max_element(to, {}, [this](const JsonStack& known) { return rest_of(known); });
  if (rest_of(stack) < rest_of(*longest)) *longest = std::move(stack);
}

// Goes on to where a byte is needed, in all ways.
void JsonMatcher::expand(JsonStack stack, std::vector<JsonStack>& to, int depth) {
  if (depth > 2000) return;  // as if there were too many readings
  while (!stack.frames.empty()) {
    JsonStack::Frame& top = stack.frames.back();
    const JsonRule& r = rule(top.rule);
    switch (r.kind) {
      case Kind::bytes: return add(std::move(stack), to);
      case Kind::free_key: return add(std::move(stack), to);
      case Kind::literal:
        if (top.at < r.count) return add(std::move(stack), to);
        stack.frames.pop_back();
        break;
      case Kind::sequence: {
        if (top.at == r.count) {
          stack.frames.pop_back();
          break;
        }
        const int32_t part = grammar_->parts(r)[static_cast<size_t>(top.at++)];
        // Nothing is left of the last part's sequence: stacks stay short.
        if (top.at == r.count) stack.frames.pop_back();
        stack.frames.push_back({part, 0});
        break;
      }
      case Kind::choice: {
        stack.frames.pop_back();
        // The last goes on here: members of an object are choices whose last part is the next one.
        const std::span<const int32_t> parts = grammar_->parts(r);
        for (const int32_t part : parts.first(parts.size() - 1)) {
          JsonStack other = stack;
          other.frames.push_back({part, 0});
          expand(std::move(other), to, depth + 1);
        }
        stack.frames.push_back({parts.back(), 0});
        break;
      }
      case Kind::repeat: {
        const bool may_end = top.at >= r.least, may_go_on = top.at < r.most;
        if (may_end && may_go_on) {
          JsonStack ended = stack;
          ended.frames.pop_back();
          expand(std::move(ended), to, depth + 1);
        }
        if (!may_go_on) {
          stack.frames.pop_back();
          break;
        }
        // Times are counted as long as they matter.
        if (r.most < kUnbounded || top.at < r.least) ++top.at;
        stack.frames.push_back({grammar_->parts(r)[0], 0});
        break;
      }
      case Kind::open_keys:
        stack.frames.pop_back();
        stack.keys = std::make_shared<const JsonStack::Keys>(JsonStack::Keys{{}, stack.keys});
        break;
      case Kind::close_keys:
        stack.frames.pop_back();
        stack.keys = stack.keys->outer;
        break;
    }
  }
  is_whole_ = true;
}

bool JsonMatcher::step(JsonStack& stack, uint8_t byte) const {
  JsonStack::Frame& top = stack.frames.back();
  const JsonRule& r = rule(top.rule);
  if (r.kind == Kind::free_key) return step_key(stack, byte);
  if (r.kind == Kind::literal) {
    return static_cast<uint8_t>(grammar_->text(r)[static_cast<size_t>(top.at++)]) == byte;
  }
  if (!grammar_->has(r, byte)) return false;
  stack.frames.pop_back();
  return true;
}

// Characters as table 3-7 of the Unicode Standard has them. Of one that is begun the frame knows
// how many bytes it needs, and between which the next one lies.
bool JsonMatcher::step_key(JsonStack& stack, uint8_t byte) const {
  int64_t& needs = stack.frames.back().at;
  const auto need = [](int64_t count, int64_t low, int64_t high) {
    return count | low << 8 | high << 16;
  };
  if (needs != 0) {
    if (byte < (needs >> 8 & 255) || byte > (needs >> 16)) return false;
    const int64_t left = (needs & 255) - 1;
    needs = left == 0 ? 0 : need(left, 0x80, 0xBF);
  } else if (byte == '"') {
    auto keys = std::make_shared<JsonStack::Keys>(*stack.keys);
    if (std::ranges::find(keys->names, stack.key) != keys->names.end()) return false;
    keys->names.push_back(std::move(stack.key));
    stack.key.clear();
    stack.keys = std::move(keys);
    stack.frames.pop_back();
    return true;
  } else if (byte >= 0xC2 && byte <= 0xDF) {
    needs = need(1, 0x80, 0xBF);
  } else if (byte >= 0xE0 && byte <= 0xEF) {
    needs = need(2, byte == 0xE0 ? 0xA0 : 0x80, byte == 0xED ? 0x9F : 0xBF);
  } else if (byte >= 0xF0 && byte <= 0xF4) {
    needs = need(3, byte == 0xF0 ? 0x90 : 0x80, byte == 0xF4 ? 0x8F : 0xBF);
  } else if (byte < 0x20 || byte > 0x7E || byte == '\\') {
    return false;
  }
  stack.key += static_cast<char>(byte);
  return true;
}

// Most readings end at once: they are not copied.
bool JsonMatcher::takes(const JsonStack& stack, uint8_t byte) const {
  const JsonStack::Frame& top = stack.frames.back();
  const JsonRule& r = rule(top.rule);
  if (r.kind == Kind::literal) {
    return static_cast<uint8_t>(grammar_->text(r)[static_cast<size_t>(top.at)]) == byte;
  }
  return r.kind == Kind::free_key || grammar_->has(r, byte);
}

JsonMatcher JsonMatcher::behind(uint8_t byte) const {
  JsonMatcher next(grammar_);
  for (const JsonStack& stack : stacks_) {
    if (!takes(stack, byte)) continue;
    JsonStack moved = stack;
    if (step(moved, byte)) next.expand(std::move(moved), next.stacks_);
  }
  return next;
}

bool JsonMatcher::read(uint8_t byte) {
  *this = behind(byte);
  return is_possible();
}

bool JsonMatcher::read(std::string_view bytes) {
  return std::ranges::all_of(bytes, [&](char c) { return read(static_cast<uint8_t>(c)); });
}

// Its '"', what a character that is begun needs, and as many more as tell it from all other keys.
// By each of these there is a way on whose rest is shorter: of the keys that begin so, fewer than
// there are characters lie behind one of them.
int64_t JsonMatcher::rest_of_key(const JsonStack& stack) {
  constexpr int64_t kCharacters = 93;  // of ASCII
  const std::vector<std::string>& names = stack.keys->names;
  const int64_t begun = stack.frames.back().at & 255;
  if (begun > 0) {
    const bool may_be_known =
        std::ranges::any_of(names, [&](const auto& name) { return name.starts_with(stack.key); });
    return begun + 1 + (!may_be_known ? 0 : std::ssize(names) < kCharacters ? 1 : 3);
  }
  if (std::ranges::find(names, stack.key) == names.end()) return 1;
  int64_t more = 1;
  for (int64_t room = kCharacters;; room *= kCharacters, ++more) {
    const auto taken = std::ranges::count_if(names, [&](const std::string& name) {
      return name.starts_with(stack.key) && std::ssize(name) == std::ssize(stack.key) + more;
    });
    if (taken < room) return 1 + more;
  }
}

int64_t JsonMatcher::rest_of(const JsonStack& stack) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < stack.frames.size(); ++i) {
    const auto& [number, at] = stack.frames[i];
    const JsonRule& r = rule(number);
    switch (r.kind) {
      case Kind::literal: bytes += r.count - at; break;
      case Kind::sequence:
        for (const int32_t part : grammar_->parts(r).subspan(static_cast<size_t>(at))) {
          bytes += rule(part).bytes;
          // A key that is to come must differ from those that there are.
          if (rule(part).has_key) {
            bytes += rest_of_key({.frames = {{part, 0}}, .keys = stack.keys}) - 1;
          }
        }
        break;
      case Kind::repeat:
        bytes += std::max<int64_t>(0, r.least - at) * rule(grammar_->parts(r)[0]).bytes;
        break;
      case Kind::free_key: bytes += rest_of_key(stack); break;
      default: bytes += r.bytes;
    }
  }
  return bytes;
}

int64_t JsonMatcher::rest() const {
  if (is_whole_) return 0;
  int64_t least = kUnbounded;
  for (const JsonStack& stack : stacks_) least = std::min(least, rest_of(stack));
  return least;
}

bool JsonMatcher::is_in_string() const {
  bool has_character = false;
  for (const JsonStack& stack : stacks_) {
    const auto& [number, at] = stack.frames.back();
    const JsonRule& r = rule(number);
    const bool is_character =
        number >= grammar_->character_begin && number < grammar_->character_end;
    const bool is_end = r.kind == Kind::literal && at == 0 && grammar_->text(r) == "\"";
    if (!is_character && !is_end) return false;
    has_character =
        has_character || (is_character && r.kind == Kind::bytes && grammar_->has(r, ' '));
  }
  return has_character;
}

const JsonStack* JsonMatcher::in_key() const {
  if (is_whole_ || stacks_.size() != 1) return nullptr;
  const auto& [number, at] = stacks_[0].frames.back();
  return rule(number).kind == Kind::free_key && at == 0 ? &stacks_[0] : nullptr;
}

int64_t JsonMatcher::size() const {
  auto bytes = static_cast<int64_t>(stacks_.capacity() * sizeof(JsonStack));
  for (const JsonStack& stack : stacks_) {
    bytes += static_cast<int64_t>(stack.frames.capacity() * sizeof(JsonStack::Frame));
    bytes += std::ssize(stack.key);
    for (const auto* keys = stack.keys.get(); keys != nullptr; keys = keys->outer.get()) {
      for (const std::string& name : keys->names) bytes += 32 + std::ssize(name);
    }
  }
  return bytes;
}

std::string JsonMatcher::identity() const {
  std::string all = is_whole_ ? "w" : "";
  for (const JsonStack& stack : stacks_) {
    for (const auto& [number, at] : stack.frames) all += fmt::format("{}.{} ", number, at);
    all += '|' + stack.key;
    for (const JsonStack::Keys* keys = stack.keys.get(); keys != nullptr;
         keys = keys->outer.get()) {
      for (const std::string& name : keys->names) all += '"' + name;
      all += '}';
    }
    all += '\n';
  }
  return all;
}

}  // namespace heddle
