// Python's pickles, read without running any code: what a pickle would call is only named.
// Source: CPython, Lib/pickletools.py (the opcodes of protocols 2 to 5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

struct PickleNode;

/// A value of a pickle. Values that hold others refer to a node of the pickle.
struct PickleValue {
  enum class Kind : uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    bytes,
    tuple,
    list,
    dict,
    name,       ///< a class or function, by its name only
    call,       ///< what calling a name would give; it was not called
    persistent  ///< something outside the pickle, by its id
  };
  Kind kind = Kind::none;
  int64_t integer = 0;  ///< of integer and boolean
  double real = 0;
  PickleNode* node = nullptr;  ///< of all that follows real

  bool is(Kind k) const { return kind == k; }
  /// Of a name or a call: what it names, "torch._utils._rebuild_tensor_v2".
  const std::string& name() const;
  /// Of a call.
  const std::vector<PickleValue>& arguments() const;
};

struct PickleNode {
  std::string text = {};  ///< of text, bytes and name
  /// Of tuple, list; of dict keys and values in turn; of call the name and the tuple of arguments,
  /// which calls may share; of persistent the id. A container may hold itself.
  std::vector<PickleValue> items = {};
};

/// "a text", "a call of torch.Size": for messages.
std::string describe(const PickleValue& value);

/// Whether a pickle may hold this name, "torch.FloatStorage".
using PickleNames = std::function<bool(std::string_view name)>;

/// One pickle at the front of `bytes`. collections.OrderedDict is a dict; attributes that a pickle
/// sets on objects are passed over.
class Pickle {
 public:
  /// `what` opens messages. Errors: data for a name that `is_allowed` refuses (it says that nothing
  /// was run), opcodes that make objects, more values than memory is given to, however few bytes
  /// ask for them, and for anything cut short or without sense.
  Pickle(std::span<const std::byte> bytes, const std::string& what, const PickleNames& is_allowed);

  const PickleValue& value() const { return value_; }
  /// Bytes that the pickle takes; what follows is another's.
  size_t size() const { return size_; }

 private:
  class Machine;
  std::deque<PickleNode> nodes_;  // references stay valid
  PickleValue value_;
  size_t size_ = 0;
};

}  // namespace heddle
