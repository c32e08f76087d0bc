// Results and errors of all ranks.
#include "heddle/dist/share_out.h"

#include <optional>

namespace heddle::dist {

std::vector<std::string> gather_or_fail(Group& group, const std::function<std::string()>& compute) {
  if (group.is_alone()) return {compute()};
  // The exit code of an error, 0 for none; its message, or the result.
  Packer pack;
  try {
    pack(int32_t{0}, compute());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::ranks) throw;
    pack(static_cast<int32_t>(error.kind()), std::string(error.what()));
  }
  std::vector<std::string> results;
  for (const std::string& told : group.gather(pack.take())) {
    int32_t kind = 0;
    Unpacker unpack(told);
    unpack(kind, results.emplace_back());
    if (kind != 0) fail_together(group, static_cast<ErrorKind>(kind), results.back());
  }
  return results;
}

void do_alike(Group& group, const std::function<void()>& work) {
  static_cast<void>(gather_or_fail(group, [&]() -> std::string {
    work();
    return "";
  }));
}

}  // namespace heddle::dist
