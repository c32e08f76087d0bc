// A machine with a stack and a memo, as pickles want it, but without a way to call anything.
#include "heddle/io/pickle.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "heddle/base/error.h"
#include "heddle/io/byte_reader.h"

namespace heddle {
namespace {

using Kind = PickleValue::Kind;

// Far beyond any checkpoint (a tensor takes about 15 values), within any memory: for each of the
// stack, its marks, the memo, the nodes and what they hold.
constexpr size_t kMaxValues = 4'000'000;
constexpr size_t kMaxNameBytes = 200;
constexpr uint8_t kNewestProtocol = 5;

const char* kind_name(Kind kind) {
  constexpr const char* kNames[] = {"None",   "a boolean", "an integer", "a number",
                                    "a text", "bytes",     "a tuple",    "a list",
                                    "a dict", "the name",  "a call of",  "a storage"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

std::string describe(const PickleValue& value) {
  std::string text = kind_name(value.kind);
  if (value.is(Kind::name) || value.is(Kind::call)) text += " " + value.name();
  return text;
}

const std::string& PickleValue::name() const {
  return is(Kind::call) ? node->items[0].node->text : node->text;
}

const std::vector<PickleValue>& PickleValue::arguments() const {
  return node->items[1].node->items;
}

class Pickle::Machine {
 public:
  Machine(Pickle& pickle, std::span<const std::byte> bytes, const std::string& what,
          const PickleNames& is_allowed)
      : pickle_(pickle), reader_(bytes, what), is_allowed_(is_allowed) {}

  void run() {
    for (;;) {
      const size_t at = reader_.at();
      const auto op = reader_.read<uint8_t>();
      if (op == '.') break;  // STOP
      if (!push_plain(op) && !push_text(op) && !push_container(op) && !change(op)) {
        refuse(op, at);
      }
      check_count(std::max({pickle_.nodes_.size(), stack_.size(), marks_.size(), memo_.size()}));
    }
    pickle_.value_ = pop();
    pickle_.size_ = reader_.at();
  }

 private:
  // --- the stack ---------------------------------------------------------------------------

  [[noreturn]] void fail_here(const std::string& problem) const {
    fail(ErrorKind::data, "{}: the pickle makes no sense before byte {}: {}", reader_.what(),
         reader_.at(), problem);
  }

  void check_count(size_t values) const {
    check(values <= kMaxValues, ErrorKind::data,
          "{}: the pickle holds more than {} values; no checkpoint does", reader_.what(),
          kMaxValues);
  }

  // To be called before nodes get so many items: those that a memo repeats count each time.
  void count_items(size_t more) {
    items_ += more;
    check_count(items_);
  }

  PickleValue pop() {
    const PickleValue value = top("takes");
    stack_.pop_back();
    return value;
  }

  PickleValue& top(const char* use = "uses") {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) fail_here(fmt::format("it {} a value where there is none", use));
    return stack_.back();
  }

  std::vector<PickleValue> pop_to_mark() {
    if (marks_.empty()) fail_here("it looks for a mark that was not set");
    const auto begin = stack_.begin() + static_cast<int64_t>(marks_.back());
    std::vector<PickleValue> values(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return values;
  }

  std::vector<PickleValue> pop_count(size_t count) {
    std::vector<PickleValue> values(count);
    for (size_t i = count; i-- > 0;) values[i] = pop();
    return values;
  }

  void push(PickleValue value) { stack_.push_back(value); }
  void push(Kind kind, PickleNode node) {
    push({.kind = kind, .node = &pickle_.nodes_.emplace_back(std::move(node))});
  }
  void push_integer(int64_t value) { push({.kind = Kind::integer, .integer = value}); }

  // --- opcodes -----------------------------------------------------------------------------

  // By their codes, with the names that pickletools has for them. Each of these functions gives
  // false for an opcode that is not its own.
  bool push_plain(uint8_t op) {
    switch (op) {
      case 'N': push({}); return true;                                      // NONE
      case 0x88: push({.kind = Kind::boolean, .integer = 1}); return true;  // NEWTRUE
      case 0x89: push({.kind = Kind::boolean}); return true;                // NEWFALSE
      case 'K': push_integer(reader_.read<uint8_t>()); return true;         // BININT1
      case 'M': push_integer(reader_.read<uint16_t>()); return true;        // BININT2
      case 'J': push_integer(reader_.read<int32_t>()); return true;         // BININT
      case 0x8a: push_integer(read_long()); return true;                    // LONG1
      case 'G': {  // BINFLOAT: the one thing that is big-endian
        const uint64_t bits = __builtin_bswap64(reader_.read<uint64_t>());
        push({.kind = Kind::real, .real = std::bit_cast<double>(bits)});
        return true;
      }
      default: return false;
    }
  }

  bool push_text(uint8_t op) {
    const auto text = [&](Kind kind, uint64_t bytes) {
      push(kind, {.text = std::string(reader_.text(bytes))});
      return true;
    };
    switch (op) {
      case 0x8c: return text(Kind::text, reader_.read<uint8_t>());   // SHORT_BINUNICODE
      case 'X': return text(Kind::text, reader_.read<uint32_t>());   // BINUNICODE
      case 0x8d: return text(Kind::text, reader_.read<uint64_t>());  // BINUNICODE8
      case 'U': return text(Kind::text, reader_.read<uint8_t>());    // SHORT_BINSTRING of Python 2
      case 'T': return text(Kind::text, reader_.read<uint32_t>());   // BINSTRING of Python 2
      case 'C': return text(Kind::bytes, reader_.read<uint8_t>());   // SHORT_BINBYTES
      case 'B': return text(Kind::bytes, reader_.read<uint32_t>());  // BINBYTES
      default: return false;
    }
  }

  bool push_container(uint8_t op) {
    const auto container = [&](Kind kind, std::vector<PickleValue> items) {
      if (kind == Kind::dict && items.size() % 2 != 0) fail_here("a dict's last key has no value");
      count_items(items.size());
      push(kind, {.items = std::move(items)});
      return true;
    };
    switch (op) {
      case '(': marks_.push_back(stack_.size()); return true;      // MARK
      case ')': return container(Kind::tuple, {});                 // EMPTY_TUPLE
      case 0x85: return container(Kind::tuple, pop_count(1));      // TUPLE1
      case 0x86: return container(Kind::tuple, pop_count(2));      // TUPLE2
      case 0x87: return container(Kind::tuple, pop_count(3));      // TUPLE3
      case 't': return container(Kind::tuple, pop_to_mark());      // TUPLE
      case ']': return container(Kind::list, {});                  // EMPTY_LIST
      case 'l': return container(Kind::list, pop_to_mark());       // LIST
      case '}': return container(Kind::dict, {});                  // EMPTY_DICT
      case 'd': return container(Kind::dict, pop_to_mark());       // DICT
      case 'Q': return container(Kind::persistent, pop_count(1));  // BINPERSID
      default: return false;
    }
  }

  bool change(uint8_t op) {
    switch (op) {
      case 0x80: check_protocol(reader_.read<uint8_t>()); return true;             // PROTO
      case 0x95: reader_.skip(8); return true;                                     // FRAME
      case 'a': add(Kind::list, pop_count(1)); return true;                        // APPEND
      case 'e': add(Kind::list, pop_to_mark()); return true;                       // APPENDS
      case 's': add(Kind::dict, pop_count(2)); return true;                        // SETITEM
      case 'u': add(Kind::dict, pop_to_mark()); return true;                       // SETITEMS
      case 'q': memo_[reader_.read<uint8_t>()] = top(); return true;               // BINPUT
      case 'r': memo_[reader_.read<uint32_t>()] = top(); return true;              // LONG_BINPUT
      case 0x94: memo_[static_cast<uint32_t>(memo_.size())] = top(); return true;  // MEMOIZE
      case 'h': push(recall(reader_.read<uint8_t>())); return true;                // BINGET
      case 'j': push(recall(reader_.read<uint32_t>())); return true;               // LONG_BINGET
      case 'c': read_global(); return true;                                        // GLOBAL
      case 0x93: {                                                                 // STACK_GLOBAL
        const std::vector<PickleValue> parts = pop_count(2);
        if (!parts[0].is(Kind::text) || !parts[1].is(Kind::text)) fail_here("a name is no text");
        push_name(parts[0].node->text, parts[1].node->text);
        return true;
      }
      case 'R': reduce(); return true;  // REDUCE
      case 'b':                         // BUILD
        pop();
        top();
        return true;  // attributes of an object change no tensor
      default: return false;
    }
  }

  [[noreturn]] void refuse(uint8_t op, size_t at) const {
    const bool makes_object =
        op == 0x81 || op == 0x92 || op == 'i' || op == 'o';  // NEWOBJ, NEWOBJ_EX, INST, OBJ
    check(!makes_object, ErrorKind::data,
          "{}: the pickle would make an object of a class of its own at byte {}; it was not run, "
          "because heddle reads tensors and runs no code",
          reader_.what(), at);
    fail(ErrorKind::data,
         "{}: opcode 0x{:02x} at byte {} of the pickle is none that a state_dict needs",
         reader_.what(), op, at);
  }

  void check_protocol(uint8_t version) const {
    check(version >= 2 && version <= kNewestProtocol, ErrorKind::data,
          "{}: the pickle has protocol {}; heddle reads 2 to {}", reader_.what(), version,
          kNewestProtocol);
  }

  // Two's complement of up to 8 bytes.
  int64_t read_long() {
    const auto count = reader_.read<uint8_t>();
    if (count > 8) fail_here(fmt::format("an integer of {} bytes; 8 are the most", count));
    const auto bytes = reader_.take(count);
    if (count == 0) return 0;
    uint64_t value = (std::to_integer<uint8_t>(bytes.back()) & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
    return static_cast<int64_t>(value);
  }

  PickleValue recall(uint32_t index) const {
    const auto at = memo_.find(index);
    if (at == memo_.end())
      fail_here(fmt::format("it recalls value {}, which it never kept", index));
    return at->second;
  }

  void add(Kind kind, std::vector<PickleValue> values) {
    if (!top().is(kind)) {
      fail_here(fmt::format("it adds to {}, not to {}", describe(top()), kind_name(kind)));
    }
    if (kind == Kind::dict && values.size() % 2 != 0) fail_here("a dict's last key has no value");
    count_items(values.size());
    std::vector<PickleValue>& items = top().node->items;
    items.insert(items.end(), values.begin(), values.end());
  }

  void read_global() {
    const std::string_view module = reader_.line(), name = reader_.line();
    push_name(module, name);
  }

  // A name is kept once, however often it is asked for.
  void push_name(std::string_view module, std::string_view function) {
    const size_t bytes = module.size() + 1 + function.size();
    check(bytes <= kMaxNameBytes, ErrorKind::data,
          "{}: the pickle asks for a name of {} bytes, which no state_dict needs; it was not run",
          reader_.what(), bytes);
    const std::string name = fmt::format("{}.{}", module, function);
    check(name == "collections.OrderedDict" || is_allowed_(name), ErrorKind::data,
          "{}: the pickle asks for '{}', which no state_dict needs; it was not run. Save the "
          "weights alone: torch.save(model.state_dict(), ..), or as safetensors",
          reader_.what(), name);
    const auto [at, is_new] = names_.emplace(name, nullptr);
    if (is_new) at->second = &pickle_.nodes_.emplace_back(PickleNode{.text = name});
    push({.kind = Kind::name, .node = at->second});
  }

  void reduce() {
    std::vector<PickleValue> parts = pop_count(2);
    if (!parts[0].is(Kind::name) || !parts[1].is(Kind::tuple)) {
      fail_here(fmt::format("it calls {} with {}", describe(parts[0]), describe(parts[1])));
    }
    const bool is_dict = parts[0].name() == "collections.OrderedDict";
    if (is_dict) return push(Kind::dict, {.items = pairs_of(parts[1].node->items)});
    count_items(parts.size());
    push(Kind::call, {.items = std::move(parts)});
  }

  // OrderedDict(), or as Python 2 wrote it, OrderedDict([[key, value], ..]).
  std::vector<PickleValue> pairs_of(const std::vector<PickleValue>& arguments) {
    std::vector<PickleValue> items;
    if (arguments.empty()) return items;
    if (arguments.size() != 1 || !arguments[0].is(Kind::list)) {
      fail_here("an OrderedDict is made of no list");
    }
    for (const PickleValue& pair : arguments[0].node->items) {
      const bool is_container = pair.is(Kind::tuple) || pair.is(Kind::list) || pair.is(Kind::dict);
      if (!is_container || pair.node->items.size() != 2) {
        fail_here("an OrderedDict is made of something that is no pair");
      }
      count_items(2);
      items.insert(items.end(), pair.node->items.begin(), pair.node->items.end());
    }
    return items;
  }

  Pickle& pickle_;
  ByteReader reader_;
  const PickleNames& is_allowed_;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::unordered_map<uint32_t, PickleValue> memo_;
  std::unordered_map<std::string, PickleNode*> names_;
  size_t items_ = 0;  // of all nodes together
};

Pickle::Pickle(std::span<const std::byte> bytes, const std::string& what,
               const PickleNames& is_allowed) {
  Machine(*this, bytes, what, is_allowed).run();
}

}  // namespace heddle
