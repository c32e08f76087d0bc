// The families of the table, and the same with calls that are timed, or counted alone.
#include <cstddef>

#include "heddle/base/profile.h"
#include "heddle/kernels/cpu/matrix_unit.h"
#include "heddle/kernels/kernels.h"

namespace heddle {
namespace {

// A kernel whose calls are ProfiledCalls under its name, or work of a dry run, made from the type
// of its pointer.
template <auto Member, class Type = decltype(Member)>
struct Timed;

template <auto Member, class Family, class Result, class... Args>
struct Timed<Member, Result (*Family::*)(Args...)> {
  static inline const char* name = nullptr;
  static inline Result (*plain)(Args...) = nullptr;

  static Result call(Args... args) {
    if (is_counting()) {
      count_work(work_of(args...));
      return Result();
    }
    const ProfiledCall timed(name, work_of(args...));
    return plain(args...);
  }
};

Kernels timed(const Kernels& plain) {
  Kernels table = plain;
  Kernels::list([&]<auto Member, auto>(const char* name) {
    Timed<Member>::name = name;
    Timed<Member>::plain = plain.*Member;
    table.*Member = Timed<Member>::call;
  });
  return table;
}

// Puts the definition where there is no kernel.
Kernels complete(Kernels table) {
  size_t count = 0;
  Kernels::list([&]<auto Member, auto definition>(const char*) {
    if (table.*Member == nullptr) table.*Member = definition;
    ++count;
  });
  check(count * sizeof(&kernels) == sizeof(Kernels), ErrorKind::internal,
        "a family of kernels does not list each of its pointers");
  return table;
}

Kernels& table_of_cpu() {
  static Kernels table = [] {
    matrix_unit();  // before any kernel is chosen: it may take instructions away
    return complete(Kernels::of_cpu());
  }();
  return table;
}

}  // namespace

const Kernels& kernels() {
  if (!is_profiling() && !is_counting()) [[likely]]
    return table_of_cpu();
  static const Kernels of_profile = timed(table_of_cpu());
  return of_profile;
}

WithoutKernel::WithoutKernel(std::string_view name) : before_(kernels()) {
  Kernels table = before_;
  bool is_known = false;
  Kernels::list([&]<auto Member, auto>(const char* other) {
    if (name != other) return;
    table.*Member = nullptr;
    is_known = true;
  });
  check(is_known, ErrorKind::internal, "there is no kernel '{}'", name);
  table_of_cpu() = complete(table);
}

WithoutKernel::~WithoutKernel() { table_of_cpu() = before_; }

}  // namespace heddle
