// Wrappers of the kernels, made from the types of their pointers.
#include "heddle/kernels/profiled.h"

#include <iterator>

#include "heddle/kernels/work.h"

namespace heddle {
namespace {

template <auto Member, class Type = decltype(Member)>
struct Timed;

template <auto Member, class Result, class... Args>
struct Timed<Member, Result (*Kernels::*)(Args...)> {
  static inline const char* name = nullptr;
  static inline Result (*plain)(Args...) = nullptr;

  static Result call(Args... args) {
    const ProfiledCall timed(name, work_of(args...));
    return plain(args...);
  }
};

template <auto Member>
void wrap(Kernels& table, const char* name) {
  if (table.*Member == nullptr) return;  // absent kernels stay absent
  Timed<Member>::name = name;
  Timed<Member>::plain = table.*Member;
  table.*Member = Timed<Member>::call;
}

struct KernelEntry {
  const char* name;
  void (*wrap)(Kernels& table, const char* name);
};

constexpr KernelEntry kEntries[] = {
    {"gemm", wrap<&Kernels::gemm>},
    {"convert", wrap<&Kernels::convert>},
    {"add", wrap<&Kernels::add>},
    {"mul", wrap<&Kernels::mul>},
    {"axpby", wrap<&Kernels::axpby>},
    {"add_row", wrap<&Kernels::add_row>},
    {"activation", wrap<&Kernels::activation>},
    {"activation_backward", wrap<&Kernels::activation_backward>},
    {"dropout", wrap<&Kernels::dropout>},
    {"exp", wrap<&Kernels::exp>},
    {"sum_columns", wrap<&Kernels::sum_columns>},
    {"sum_rows", wrap<&Kernels::sum_rows>},
    {"sum_squares", wrap<&Kernels::sum_squares>},
    {"all_finite", wrap<&Kernels::all_finite>},
    {"softmax", wrap<&Kernels::softmax>},
    {"softmax_backward", wrap<&Kernels::softmax_backward>},
    {"log_softmax", wrap<&Kernels::log_softmax>},
    {"scan_logits", wrap<&Kernels::scan_logits>},
    {"norm", wrap<&Kernels::norm>},
    {"norm_backward", wrap<&Kernels::norm_backward>},
    {"embedding", wrap<&Kernels::embedding>},
    {"embedding_backward", wrap<&Kernels::embedding_backward>},
    {"gather_rows", wrap<&Kernels::gather_rows>},
    {"attention", wrap<&Kernels::attention>},
    {"attention_backward", wrap<&Kernels::attention_backward>},
    {"cross_entropy", wrap<&Kernels::cross_entropy>},
    {"adam", wrap<&Kernels::adam>},
};
static_assert(std::size(kEntries) * sizeof(&Kernels::gemm) == sizeof(Kernels),
              "each kernel of the table needs its line above");

}  // namespace

Kernels profiled_kernels(const Kernels& plain) {
  Kernels table = plain;
  for (const KernelEntry& entry : kEntries) entry.wrap(table, entry.name);
  return table;
}

}  // namespace heddle
