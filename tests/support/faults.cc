// A tracer of our own: seccomp stops the program at each call that could change the disk.
#include "tests/support/faults.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <iterator>
#include <stdexcept>

namespace heddle::testing {
namespace {

static_assert(sizeof(void*) == 8, "registers are those of x86-64");

using Registers = user_regs_struct;
using Argument = unsigned long long Registers::*;
constexpr Argument kFirst = &Registers::rdi, kSecond = &Registers::rsi, kThird = &Registers::rdx;

// Where a call says which file it means: the argument that is its path, or its descriptor.
struct Call {
  long number;
  const char* name;
  Argument path = nullptr, descriptor = nullptr;  // both: relative to that folder
  Argument flags = nullptr;                       // of open
  Argument size = nullptr;                        // of a write
};

constexpr Call kCalls[] = {
    {SYS_open, "open", kFirst, nullptr, kSecond},
    {SYS_openat, "open", kSecond, kFirst, kThird},
    {SYS_creat, "creat", kFirst},
    {SYS_write, "write", nullptr, kFirst, nullptr, kThird},
    {SYS_pwrite64, "write", nullptr, kFirst, nullptr, kThird},
    {SYS_writev, "write", nullptr, kFirst},
    {SYS_fsync, "fsync", nullptr, kFirst},
    {SYS_fdatasync, "fsync", nullptr, kFirst},
    {SYS_ftruncate, "truncate", nullptr, kFirst},
    {SYS_truncate, "truncate", kFirst},
    {SYS_rename, "rename", kFirst},
    {SYS_renameat, "rename", kSecond, kFirst},
    {SYS_renameat2, "rename", kSecond, kFirst},
    {SYS_link, "link", kFirst},
    {SYS_linkat, "link", kSecond, kFirst},
    {SYS_symlink, "link", kSecond},
    {SYS_symlinkat, "link", kThird, kSecond},
    {SYS_mkdir, "mkdir", kFirst},
    {SYS_mkdirat, "mkdir", kSecond, kFirst},
    {SYS_rmdir, "rmdir", kFirst},
    {SYS_unlink, "unlink", kFirst},
    {SYS_unlinkat, "unlink", kSecond, kFirst},
    {SYS_fchmod, "chmod", nullptr, kFirst},
    {SYS_fchown, "chown", nullptr, kFirst},
    {SYS_copy_file_range, "write", nullptr, kThird},
    {SYS_sendfile, "write", nullptr, kFirst},
    {SYS_fallocate, "write", nullptr, kFirst},
};

std::string read_text(pid_t thread, unsigned long long address) {
  std::string text;
  while (text.size() < PATH_MAX) {
    errno = 0;
    const long word = ptrace(PTRACE_PEEKDATA, thread, address + text.size(), nullptr);
    if (errno != 0) break;
    char bytes[sizeof word];
    std::memcpy(bytes, &word, sizeof word);
    const auto end = std::find(bytes, bytes + sizeof word, '\0');
    text.append(bytes, end);
    if (end != bytes + sizeof word) break;
  }
  return text;
}

std::string link_target(const std::string& link) {
  std::error_code error;
  return std::filesystem::read_symlink(link, error).string();
}

// The file that a call means, as an absolute path.
std::filesystem::path file_of(pid_t thread, const Call& call, const Registers& registers) {
  const std::string process = "/proc/" + std::to_string(thread);
  std::filesystem::path folder = link_target(process + "/cwd");
  if (call.descriptor != nullptr) {
    const auto fd = static_cast<int>(registers.*call.descriptor);
    if (fd != AT_FDCWD) folder = link_target(process + "/fd/" + std::to_string(fd));
  }
  if (call.path == nullptr) return folder;
  return (folder / read_text(thread, registers.*call.path)).lexically_normal();
}

bool reads_only(const Call& call, const Registers& registers) {
  if (call.flags == nullptr) return false;
  const auto flags = registers.*call.flags;
  return (flags & O_ACCMODE) == O_RDONLY && (flags & (O_CREAT | O_TRUNC)) == 0;
}

// In the child: the kernel stops it at these calls alone, so that all others run at full speed.
bool stop_at_calls() {
  constexpr size_t kCount = std::size(kCalls);
  sock_filter filter[kCount + 3];
  filter[0] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (size_t i = 0; i < kCount; ++i) {
    filter[i + 1] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(kCalls[i].number),
                             static_cast<uint8_t>(kCount - i), 0);
  }
  filter[kCount + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[kCount + 2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
  const sock_fprog program = {std::size(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

[[noreturn]] void become(const std::vector<std::string>& words, const Fault& fault,
                         const TempDir& streams) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int in = open("/dev/null", O_RDONLY);
  const int out = open((streams / "out").c_str(), O_WRONLY | O_CREAT, 0600);
  const int err = open((streams / "err").c_str(), O_WRONLY | O_CREAT, 0600);
  setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // its own tracer finds ours there
  if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(127);
  if (chdir(fault.folder.c_str()) != 0) _exit(127);
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(127);
  raise(SIGSTOP);  // until the parent has said what it wants to see
  if (stop_at_calls()) execv(arguments[0], arguments.data());
  _exit(127);
}

class Tracer {
 public:
  Tracer(pid_t child, const Fault& fault) : child_(child), fault_(fault) {}

  int trace() {
    int status = 0;
    if (waitpid(child_, &status, __WALL) != child_ || !WIFSTOPPED(status)) return status;
    ptrace(PTRACE_SETOPTIONS, child_, nullptr,
           PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
               PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC);
    for (pid_t thread = child_;;) {
      ptrace(PTRACE_CONT, thread, nullptr, signal_of(status));
      thread = waitpid(-1, &status, __WALL);
      while (thread > 0 && !WIFSTOPPED(status)) {
        if (thread == child_) return status;
        thread = waitpid(-1, &status, __WALL);
      }
      if (thread < 0) return status;
      if (status >> 16 == PTRACE_EVENT_SECCOMP) look_at(thread);
    }
  }
  FaultResult result;

 private:
  // What a stop is passed on as: stops of our own are no signals of the program.
  static long signal_of(int status) {
    const int signal = WSTOPSIG(status);
    return status >> 16 != 0 || signal == SIGSTOP || signal == SIGTRAP ? 0 : signal;
  }

  void look_at(pid_t thread) {
    Registers registers;
    if (ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return;  // it was just killed
    const auto call = std::find_if(std::begin(kCalls), std::end(kCalls), [&](const Call& c) {
      return c.number == static_cast<long>(registers.orig_rax);
    });
    if (call == std::end(kCalls)) return;
    if (!fault_.counts_reading && reads_only(*call, registers)) return;
    const std::string file =
        file_of(thread, *call, registers).lexically_relative(fault_.folder).string();
    if (file.empty() || file.starts_with("..")) return;
    const std::string name = std::string(call->name) + " " + file;
    if (!fault_.only.empty() && name != fault_.only) return;
    ++result.calls;
    if (is_torn_) kill(child_, SIGKILL);
    if (result.calls != fault_.at || fault_.kind == Fault::Kind::none) return;
    result.was_hit = true;
    result.call = name;
    strike(thread, *call, registers);
  }

  void strike(pid_t thread, const Call& call, Registers& registers) {
    if (fault_.kind == Fault::Kind::send) {
      kill(child_, fault_.signal);
      return;
    }
    if (fault_.kind == Fault::Kind::fail) {
      registers.orig_rax = static_cast<unsigned long long>(-1);  // no call at all
      registers.rax = static_cast<unsigned long long>(-fault_.error);
    } else if (call.size != nullptr) {
      registers.*call.size /= 2;
      is_torn_ = true;
    } else {
      kill(child_, SIGKILL);
      return;
    }
    ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
  }

  pid_t child_;
  const Fault& fault_;
  bool is_torn_ = false;
};

}  // namespace

FaultResult run_with_fault(std::vector<std::string> arguments, const Fault& fault) {
  arguments.insert(arguments.begin(), kProgram);
  const TempDir streams;
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("run_with_fault: fork failed");
  if (child == 0) become(arguments, fault, streams);
  Tracer tracer(child, fault);
  const int status = tracer.trace();
  CliResult& run = tracer.result.run;
  run.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (run.exit_code == 127) throw std::runtime_error("run_with_fault: cannot trace");
  run.out = read_file(streams / "out");
  run.err = read_file(streams / "err");
  return tracer.result;
}

}  // namespace heddle::testing
