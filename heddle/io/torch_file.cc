// From a pickle's calls to tensors: storages, offsets and strides, each checked against the file.
#include "heddle/io/torch_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/io/byte_reader.h"
#include "heddle/io/pickle.h"
#include "heddle/tensor/shape.h"

namespace heddle {
namespace {

using Kind = PickleValue::Kind;
using Bytes = std::span<const std::byte>;

// The largest pickle that is read: some 100,000 tensors' names, strides and storages.
constexpr size_t kMaxPickle = size_t{16} << 20;

// What torch calls the types of elements, and storages of them.
struct TorchDType {
  std::string_view name, storage;
  DType dtype;
};
constexpr TorchDType kDTypes[] = {{"torch.float32", "torch.FloatStorage", DType::f32},
                                  {"torch.bfloat16", "torch.BFloat16Storage", DType::bf16},
                                  {"torch.float16", "torch.HalfStorage", DType::f16},
                                  {"torch.float64", "torch.DoubleStorage", DType::f64},
                                  {"torch.int64", "torch.LongStorage", DType::i64},
                                  {"torch.int32", "torch.IntStorage", DType::i32},
                                  {"torch.int16", "torch.ShortStorage", DType::i16},
                                  {"torch.int8", "torch.CharStorage", DType::i8},
                                  {"torch.uint8", "torch.ByteStorage", DType::u8},
                                  {"torch.bool", "torch.BoolStorage", DType::boolean}};
constexpr std::string_view kUntyped = "torch.storage.UntypedStorage";

// What makes tensors: storage, offset, sizes, strides, and what matters to training alone.
constexpr std::string_view kTensor = "torch._utils._rebuild_tensor",
                           kTensor2 = "torch._utils._rebuild_tensor_v2",
                           kTensor3 = "torch._utils._rebuild_tensor_v3",  // with its dtype
    kParameter = "torch._utils._rebuild_parameter",
                           kParameterWithState = "torch._utils._rebuild_parameter_with_state",
                           kSize = "torch.Size";

std::optional<DType> find_dtype(std::string_view name, std::string_view TorchDType::*kind) {
  const auto* const known = std::ranges::find(kDTypes, name, kind);
  return known == std::end(kDTypes) ? std::nullopt : std::optional(known->dtype);
}

bool makes_tensor(std::string_view name) {
  return name == kTensor || name == kTensor2 || name == kTensor3;
}

bool makes_parameter(std::string_view name) {
  return name == kParameter || name == kParameterWithState;
}

// Storages and dtypes that heddle lacks pass here: they are refused by name when a tensor has one.
bool is_needed(std::string_view name) {
  const bool is_torch = name.starts_with("torch.") && name.find('.', 6) == name.npos;
  return makes_tensor(name) || makes_parameter(name) || name == kSize || name == kUntyped ||
         (is_torch && name.ends_with("Storage")) || find_dtype(name, &TorchDType::name).has_value();
}

// A storage as the pickle refers to it.
struct StorageId {
  std::string type, key;
  int64_t count = 0;  // elements; of an untyped one bytes
};

// A tensor as the pickle describes it.
struct View {
  StorageId storage;
  DType dtype = DType::f32;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
};

}  // namespace

class TorchFile::Builder {
 public:
  Builder(TorchFile& file, std::shared_ptr<MappedFile> mapped)
      : file_(file), mapped_(std::move(mapped)), bytes_(mapped_->bytes()) {
    file_.add_file(mapped_);
  }

  void build() {
    if (is_zip(bytes_)) return build_zip();
    // The integer 0x1950a86a20f9469cfc6c as a pickle.
    constexpr std::string_view magic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.",
                                     15);
    const std::string_view front(reinterpret_cast<const char*>(bytes_.data()),
                                 std::min(bytes_.size(), magic.size()));
    if (front == magic) return build_before_1_6(magic.size());
    expect(!front.starts_with("version https"),
           "this is a Git LFS pointer, not the weights; fetch them (git lfs pull)");
    refuse(
        "the {} bytes begin neither as a zip archive nor as torch.save wrote before PyTorch 1.6; "
        "it is no file of torch.save, or the download was cut short",
        bytes_.size());
  }

 private:
  const std::string& path() const { return file_.path(); }

  // Errors: data, with the path before the message.
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, const Args&... args) const {
    fail(ErrorKind::data, "{}: {}", path(), fmt::vformat(format, fmt::make_format_args(args...)));
  }
  template <class... Args>
  void expect(bool condition, fmt::format_string<Args...> format, const Args&... args) const {
    if (!condition) refuse(format, args...);
  }

  Pickle read_pickle(Bytes bytes, const std::string& what) const {
    return Pickle(bytes.first(std::min(bytes.size(), kMaxPickle)), what, is_needed);
  }

  // --- the two forms -----------------------------------------------------------------------

  // NAME/data.pkl is the dict, NAME/data/KEY the storages.
  void build_zip() {
    file_.entries_ = read_zip(bytes_, path());
    const ZipEntry* pickle = nullptr;
    for (const ZipEntry& entry : file_.entries_) {
      expect(!entry.name.ends_with("/constants.pkl"),
             "it holds '{}', so it is a TorchScript program; heddle runs no code. Save the weights "
             "alone: torch.save(model.state_dict(), ..)",
             entry.name);
      const bool is_pickle = entry.name.ends_with("/data.pkl") || entry.name == "data.pkl";
      if (is_pickle && pickle == nullptr) pickle = &entry;
    }
    expect(pickle != nullptr, "the zip archive holds no data.pkl; it is no file of torch.save");
    const std::string root = pickle->name.substr(0, pickle->name.size() - 8), data = root + "data/";
    for (const ZipEntry& entry : file_.entries_) {
      if (entry.name == root + "byteorder") check_byte_order(entry);
      if (entry.name.starts_with(data)) storages_[entry.name.substr(data.size())] = entry.bytes;
    }
    verify_entry(*pickle, path());
    expect(pickle->bytes.size() <= kMaxPickle, "'{}' has {} bytes; at most {} are read",
           pickle->name, pickle->bytes.size(), kMaxPickle);
    const Pickle read = read_pickle(pickle->bytes, path() + ": " + pickle->name);
    add_tensors(read.value());
  }

  void check_byte_order(const ZipEntry& entry) const {
    const std::string order(reinterpret_cast<const char*>(entry.bytes.data()),
                            std::min<size_t>(entry.bytes.size(), 16));
    expect(order == "little", "its numbers are {}-endian; little is needed", order);
  }

  // Pickles end to end (magic, protocol, machine, the dict, the storages' keys), then of each
  // storage the number of its elements and their bytes.
  void build_before_1_6(size_t at) {
    const std::string what = path();
    at += read_pickle(bytes_.subspan(at), what + ": protocol").size();
    const Pickle machine = read_pickle(bytes_.subspan(at), what + ": machine");
    check_machine(machine.value());
    at += machine.size();
    const Pickle dict = read_pickle(bytes_.subspan(at), what + ": state_dict");
    at += dict.size();
    const Pickle keys = read_pickle(bytes_.subspan(at), what + ": storages");
    at += keys.size();
    std::map<std::string, StorageId> ids;  // of the tensors' storages, by key
    for_each_tensor(dict.value(), [&](const std::string&, const View& view) {
      ids[view.storage.key] = view.storage;
    });
    place_storages(keys.value(), ids, at);
    add_tensors(dict.value());
  }

  void check_machine(const PickleValue& machine) const {
    if (!machine.is(Kind::dict)) return;
    const std::vector<PickleValue>& items = machine.node->items;
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      if (!items[i].is(Kind::text) || items[i].node->text != "little_endian") continue;
      expect(items[i + 1].integer != 0, "its numbers are big-endian; little is needed");
    }
  }

  void place_storages(const PickleValue& keys, const std::map<std::string, StorageId>& ids,
                      size_t at) {
    expect(keys.is(Kind::list), "the keys of the storages are {}, no list", describe(keys));
    ByteReader reader(bytes_, path());
    reader.skip(at);
    for (const PickleValue& key : keys.node->items) {
      const std::string name = text_of(key, "the key of a storage");
      const auto id = ids.find(name);
      expect(id != ids.end(),
             "storage '{}' belongs to no tensor, so its dtype is unknown; save the file with "
             "PyTorch 1.6 or newer",
             name);
      const auto count = reader.read<int64_t>();
      expect(count >= 0 && count == id->second.count,
             "storage '{}' has {} elements, but its tensors say {}", name, count, id->second.count);
      storages_[name] = reader.take(static_cast<uint64_t>(storage_bytes(id->second)));
    }
  }

  // --- what the pickle says ----------------------------------------------------------------

  template <class F>
  void for_each_tensor(const PickleValue& dict, const F& f) const {
    expect(dict.is(Kind::dict), "it holds {}, not a dict of tensors; save model.state_dict()",
           describe(dict));
    const std::vector<PickleValue>& items = dict.node->items;
    std::string others;
    int64_t tensors = 0;
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      const std::string key = items[i].is(Kind::text) ? items[i].node->text : describe(items[i]);
      if (!items[i + 1].is(Kind::call) || items[i + 1].name() == kSize) {
        if (others.size() < 200) others += (others.empty() ? "'" : ", '") + key + "'";
        continue;
      }
      expect(items[i].is(Kind::text), "{} is a tensor's name; a text is needed", key);
      f(key, read_view(items[i + 1], fmt::format("tensor '{}'", key)));
      ++tensors;
    }
    expect(tensors > 0 || others.empty(),
           "none of its entries is a tensor ({}); save model.state_dict() itself", others);
  }

  std::string text_of(const PickleValue& value, const std::string& what) const {
    expect(value.is(Kind::text), "{} is {}; a text is needed", what, describe(value));
    return value.node->text;
  }

  int64_t count_of(const PickleValue& value, const std::string& what) const {
    expect(value.is(Kind::integer) && value.integer >= 0,
           "{} is {}; a whole number of at least 0 is needed", what,
           value.is(Kind::integer) ? std::to_string(value.integer) : describe(value));
    return value.integer;
  }

  std::vector<int64_t> counts_of(const PickleValue& value, const std::string& what) const {
    const PickleValue* list = &value;
    if (value.is(Kind::call) && value.name() == kSize && value.arguments().size() == 1) {
      list = &value.arguments()[0];
    }
    expect(list->is(Kind::tuple) || list->is(Kind::list), "{} are {}; a tuple of numbers is needed",
           what, describe(*list));
    expect(list->node->items.size() <= size_t{Shape::kMaxRank},
           "{} are {} numbers; a tensor of heddle has at most {} axes", what,
           list->node->items.size(), Shape::kMaxRank);
    std::vector<int64_t> counts;
    for (const PickleValue& item : list->node->items) counts.push_back(count_of(item, what));
    return counts;
  }

  const std::vector<PickleValue>& arguments(const PickleValue& call, size_t least,
                                            const std::string& what) const {
    expect(call.arguments().size() >= least, "{} is made with {} arguments; {} takes {}", what,
           call.arguments().size(), call.name(), least);
    return call.arguments();
  }

  View read_view(const PickleValue& made, const std::string& what) const {
    const PickleValue* call = &made;
    if (makes_parameter(call->name())) {
      call = &arguments(*call, 1, what)[0];
      expect(call->is(Kind::call), "{} is a parameter of {}", what, describe(*call));
    }
    const std::string& maker = call->name();
    expect(makes_tensor(maker), "{} is {}, no tensor", what, describe(*call));
    const auto& given = arguments(*call, maker == kTensor3 ? 7 : 4, what);
    View view;
    view.storage = read_storage(given[0], what);
    view.offset = count_of(given[1], what + ": offset");
    view.sizes = counts_of(given[2], what + ": sizes");
    view.strides = counts_of(given[3], what + ": strides");
    expect(view.sizes.size() == view.strides.size(), "{} has {} sizes but {} strides", what,
           view.sizes.size(), view.strides.size());
    const bool is_v3 = maker == kTensor3;
    const std::string type = is_v3 && given[6].is(Kind::name) ? given[6].node->text
                             : is_v3                          ? describe(given[6])
                                                              : view.storage.type;
    const auto dtype = find_dtype(type, is_v3 ? &TorchDType::name : &TorchDType::storage);
    expect(dtype.has_value(),
           "{} has {}; heddle reads f64, f32, f16, bf16, i64, i32, i16, i8, u8 and bool", what,
           type);
    view.dtype = *dtype;
    return view;
  }

  // ('storage', type, key, device, count), in the older form with a view of None.
  StorageId read_storage(const PickleValue& value, const std::string& what) const {
    expect(value.is(Kind::persistent) && value.node->items[0].is(Kind::tuple),
           "the storage of {} is {}", what, describe(value));
    const std::vector<PickleValue>& id = value.node->items[0].node->items;
    expect(id.size() >= 5 && id[0].is(Kind::text) && id[0].node->text == "storage" &&
               id[1].is(Kind::name),
           "the storage of {} is not described as torch.save does", what);
    expect(id.size() < 6 || id[5].is(Kind::none),
           "the storage of {} is a view of another, as PyTorch before 0.4 wrote; save it anew",
           what);
    return {id[1].node->text, text_of(id[2], what + ": key of the storage"),
            count_of(id[4], what + ": size of the storage")};
  }

  int64_t storage_bytes(const StorageId& id) const {
    const auto dtype = id.type == kUntyped ? DType::u8 : find_dtype(id.type, &TorchDType::storage);
    expect(dtype.has_value(),
           "storage '{}' is a {}; heddle reads f64, f32, f16, bf16, i64, i32, i16, i8, u8 and bool",
           id.key, id.type);
    const int64_t bytes = bytes_of(*dtype, std::span(&id.count, 1));
    expect(bytes >= 0, "storage '{}' claims {} elements", id.key, id.count);
    return bytes;
  }

  // --- tensors -----------------------------------------------------------------------------

  void add_tensors(const PickleValue& dict) {
    std::vector<std::pair<std::string, StoredTensor>> tensors;
    for_each_tensor(dict, [&](const std::string& name, const View& view) {
      tensors.emplace_back(name, tensor_of(view, fmt::format("tensor '{}'", name)));
    });
    std::ranges::stable_sort(tensors, {}, [](const auto& t) { return t.second.bytes.data(); });
    for (auto& [name, tensor] : tensors) file_.add(name, std::move(tensor));
  }

  StoredTensor tensor_of(const View& view, const std::string& what) {
    const auto found = storages_.find(view.storage.key);
    expect(found != storages_.end(), "{} lies in storage '{}', which is not there", what,
           view.storage.key);
    const Bytes storage = found->second;
    expect(static_cast<int64_t>(storage.size()) == storage_bytes(view.storage),
           "storage '{}' has {} bytes, but {} says {}", view.storage.key, storage.size(), what,
           storage_bytes(view.storage));
    const int64_t size = size_of(view.dtype);
    const int64_t needed = bytes_of(view.dtype, view.sizes);
    expect(needed >= 0, "{} has the impossible shape [{}]", what, fmt::join(view.sizes, ", "));
    StoredTensor tensor{view.dtype, view.sizes, {}};
    if (needed == 0) return tensor;
    const int64_t last = last_element(view);
    expect(last >= 0 && last < static_cast<int64_t>(storage.size()) / size,
           "{} of shape [{}] with strides [{}] from element {} reaches beyond the {} elements of "
           "its storage",
           what, fmt::join(view.sizes, ", "), fmt::join(view.strides, ", "), view.offset,
           static_cast<int64_t>(storage.size()) / size);
    const Bytes from = storage.subspan(static_cast<size_t>(view.offset * size));
    tensor.bytes = is_in_order(view) ? from.first(static_cast<size_t>(needed))
                                     : copy_in_order(view, from, needed, what);
    return tensor;
  }

  // The largest index into the storage, or -1 if it does not fit.
  static int64_t last_element(const View& view) {
    int64_t last = view.offset;
    for (size_t i = 0; i < view.sizes.size(); ++i) {
      int64_t step;
      if (__builtin_mul_overflow(view.sizes[i] - 1, view.strides[i], &step)) return -1;
      if (__builtin_add_overflow(last, step, &last)) return -1;
    }
    return last;
  }

  static bool is_in_order(const View& view) {
    int64_t expected = 1;
    for (size_t i = view.sizes.size(); i-- > 0;) {
      if (view.sizes[i] != 1 && view.strides[i] != expected) return false;
      expected *= view.sizes[i];
    }
    return true;
  }

  // from: the storage from the first element on. A stride of 0 makes much of little, so that the
  // copies together may be as large as the file, not larger.
  Bytes copy_in_order(const View& view, Bytes from, int64_t needed, const std::string& what) {
    copied_ += static_cast<size_t>(needed);
    expect(static_cast<size_t>(needed) <= bytes_.size() && copied_ <= bytes_.size() + kMaxPickle,
           "{} of shape [{}] with strides [{}] would take {} bytes, more than the file has; save a "
           "contiguous() copy",
           what, fmt::join(view.sizes, ", "), fmt::join(view.strides, ", "), needed);
    std::vector<std::byte>& copy = file_.copies_.emplace_back(static_cast<size_t>(needed));
    const auto size = static_cast<size_t>(size_of(view.dtype));
    std::vector<int64_t> index(view.sizes.size());
    int64_t at = 0;
    for (size_t to = 0; to < copy.size(); to += size) {
      std::memcpy(copy.data() + to, from.data() + static_cast<size_t>(at) * size, size);
      for (size_t axis = index.size(); axis-- > 0;) {
        at += view.strides[axis];
        if (++index[axis] < view.sizes[axis]) break;
        at -= view.strides[axis] * view.sizes[axis];
        index[axis] = 0;
      }
    }
    return copy;
  }

  TorchFile& file_;
  std::shared_ptr<MappedFile> mapped_;
  Bytes bytes_;
  std::map<std::string, Bytes> storages_;  // by key
  size_t copied_ = 0;
};

TorchFile TorchFile::open(const std::string& path, Mapping mapping) {
  TorchFile file(path);
  Builder(file, std::make_shared<MappedFile>(path, mapping)).build();
  return file;
}

void TorchFile::verify() const {
  for (const ZipEntry& entry : entries_) verify_entry(entry, path());
}

}  // namespace heddle
