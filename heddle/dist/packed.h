// Results as bytes, as ranks of one machine kind send them to each other, and back.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "heddle/base/error.h"

namespace heddle::dist {

/// A type that lists its members: template <class V> void parts(V& v) { v(sums, answers); }
template <class T>
concept HasParts = requires(T value, void (*visit)(...)) {
  value.parts(visit);
};

/// One that goes as its bytes in memory.
template <class T>
concept IsPlain = std::is_trivially_copyable_v<T> && !HasParts<T>;

/// Packs plain values, texts, vectors of these, and what has parts.
class Packer {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class T>
  void put(const T& value) {
    if constexpr (HasParts<T>) {
      const_cast<T&>(value).parts(*this);  // which only reads it
    } else {
      static_assert(IsPlain<T>);
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  void put(const std::string& text) {
    put(text.size());
    bytes_ += text;
  }
  template <class T>
  void put(const std::vector<T>& all) {
    put(all.size());
    if constexpr (IsPlain<T>) {
      bytes_.append(reinterpret_cast<const char*>(all.data()), all.size() * sizeof(T));
    } else {
      for (const T& one : all) put(one);
    }
  }

  std::string bytes_;
};

/// Errors: internal where the bytes are not those of what is asked for.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}
  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  bool is_at_end() const { return rest_.empty(); }

 private:
  std::string_view next(size_t count) {
    check(count <= rest_.size(), ErrorKind::internal, "{} bytes of a rank's results lack",
          count - std::min(count, rest_.size()));
    const std::string_view some = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return some;
  }
  template <class T>
  void get(T& value) {
    if constexpr (HasParts<T>) {
      value.parts(*this);
    } else {
      static_assert(IsPlain<T>);
      std::memcpy(static_cast<void*>(&value), next(sizeof value).data(), sizeof value);
    }
  }
  void get(std::string& text) {
    size_t size = 0;
    get(size);
    text = next(size);
  }
  template <class T>
  void get(std::vector<T>& all) {
    size_t size = 0;
    get(size);
    check(size <= rest_.size() / (IsPlain<T> ? sizeof(T) : 1), ErrorKind::internal,
          "{} results in {} bytes", size, rest_.size());
    all.resize(size);
    if constexpr (IsPlain<T>) {
      const std::string_view bytes = next(size * sizeof(T));
      std::ranges::copy(bytes, reinterpret_cast<char*>(all.data()));
    } else {
      for (T& one : all) get(one);
    }
  }

  std::string_view rest_;
};

template <class T>
std::string packed(const T& value) {
  Packer pack;
  pack(value);
  return pack.take();
}
/// Errors: internal where the bytes are not those of one T.
template <class T>
T unpacked(std::string_view bytes) {
  T value;
  Unpacker unpack(bytes);
  unpack(value);
  check(unpack.is_at_end(), ErrorKind::internal, "{} bytes are more than a result", bytes.size());
  return value;
}

}  // namespace heddle::dist
