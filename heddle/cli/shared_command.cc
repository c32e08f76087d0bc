// Groups of commands, what their ranks must agree on, lines that they share.
#include "heddle/cli/shared_command.h"

#include <algorithm>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/dist/share_out.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/train/run/state.h"

namespace heddle::cli {
namespace {

// What was given on the command line, but for who a process is, and its threads.
dist::Facts facts_of(const Subcommand& command) {
  dist::Facts facts = {{"heddle", command.version()}};
  for (const Option& option : command.get_options()) {
    const std::string name = option.name();
    if (option.group_name() == kRankFlags || name == "--threads") continue;
    facts[name] =
        option.count() == 0 ? "absent" : fmt::format("{}", fmt::join(option.values(), " "));
  }
  return facts;
}

dist::Facts facts_of_files(const std::string& folder) {
  dist::Facts facts;
  for (const std::string& name : list_directory(folder)) {
    const std::string path = join_path(folder, name);
    if (!is_directory(path)) facts[name + " of the model"] = checksum_file(path);
  }
  return facts;
}

// Lines of the input that are answered together.
struct Portion {
  int64_t first = 1;
  std::vector<std::string> lines = {};

  template <class V>
  void parts(V& v) {
    v(first, lines);
  }
};

// What a rank made of its part.
struct Answered {
  std::string output = {};
  std::vector<std::string> skipped = {};  ///< messages on what could not be answered
  int32_t error = 0;                      ///< exit code of what it stopped by
  std::string message = {};

  template <class V>
  void parts(V& v) {
    v(output, skipped, error, message);
  }
};

// While it lives, its rank waits for who gives the input.
class InputWait {
 public:
  explicit InputWait(dist::Group& group) : group_(&group) { group.note_input_wait(true); }
  ~InputWait() { group_->note_input_wait(false); }
  InputWait(const InputWait&) = delete;
  InputWait& operator=(const InputWait&) = delete;

 private:
  dist::Group* group_;
};

// The lines of a rank: those that follow each other and begin in its share of the bytes.
std::span<const std::string> lines_of_rank(const Portion& portion, const dist::Group& group) {
  size_t bytes = 0, at = 0;
  for (const std::string& line : portion.lines) bytes += line.size() + 1;
  const auto rank = static_cast<size_t>(group.rank()), ranks = static_cast<size_t>(group.ranks());
  size_t begin = portion.lines.size(), end = portion.lines.size();
  for (size_t i = 0; i < portion.lines.size(); ++i) {
    const size_t owner = at * ranks / bytes;
    if (owner >= rank) begin = std::min(begin, i);
    if (owner > rank) end = std::min(end, i);
    at += portion.lines[i].size() + 1;
  }
  return std::span(portion.lines).subspan(begin, end - begin);
}

}  // namespace

void run_shared(const Subcommand& command, const dist::GroupOptions& options,
                const std::function<void(dist::Group&)>& work, bool is_shared) {
  const std::unique_ptr<dist::Group> group = dist::make_group(options);
  if (group->is_alone()) return work(*group);
  if (group->rank() != 0) set_log_level(LogLevel::error);
  try {
    dist::check_equal(*group, facts_of(command));
    if (is_shared) work(*group);
    do_on_rank_0(*group, [&] {  // behind which rank 0 has written all
      dist::LocalGroup alone;
      if (!is_shared) work(alone);
    });
  } catch (const std::exception& e) {
    group->leave_with(e.what());
    throw;
  }
}

void check_same_files(dist::Group& group, const dist::GroupOptions& options,
                      const std::string& model, const Precision& precision) {
  if (group.is_alone()) return;
  dist::Facts facts;
  dist::do_alike(group, [&] { facts = facts_of_files(find_model_dir(model)); });
  if (!options.any_cpu) facts["the machine"] = train::machine_signature(precision.compute);
  dist::check_equal(group, facts);
}

int64_t answer_lines(dist::Group& group, const char* command, const LineFlags& flags,
                     BlockSize size, const LineAnswers& answers) {
  if (group.is_alone()) return answer_lines(command, flags, size, answers);
  size.bytes *= static_cast<size_t>(group.ranks());
  size.lines *= static_cast<size_t>(group.ranks());
  std::optional<LineBlocks> blocks;
  Skipped skipped(command, {});
  int64_t count = 0;
  group.expect_work();
  while (true) {
    const auto told = dist::gather_or_fail(group, [&]() -> std::string {
      if (group.rank() != 0) return "";
      const InputWait wait(group);
      if (!blocks) blocks.emplace(command, flags.path, size);
      Portion next{.lines = blocks->next()};
      next.first = blocks->first_line();
      return dist::packed(next);
    });
    const auto portion = dist::unpacked<Portion>(told[0]);
    if (portion.lines.empty()) break;
    count += std::ssize(portion.lines);
    const auto mine = lines_of_rank(portion, group);
    const int64_t first = portion.first + (mine.empty() ? 0 : mine.data() - portion.lines.data());
    write_by_ranks(group, skipped, [&](Results out, Skipped& kept) {
      if (!mine.empty()) answer_block(mine, first, answers, {flags, kept, out});
    });
  }
  dist::do_alike(group, [&] { skipped.report(count); });
  return count;
}

void do_on_rank_0(dist::Group& group, const std::function<void()>& work) {
  dist::do_alike(group, [&] {
    if (group.rank() != 0) return;
    work();
    flush_results();
  });
}

void write_by_ranks(dist::Group& group, Skipped& skipped,
                    const std::function<void(Results out, Skipped& skipped)>& answer) {
  if (group.is_alone()) return answer(Results(), skipped);
  group.expect_work();
  Answered mine;
  Skipped kept("", {}, &mine.skipped);
  try {
    answer(Results(mine.output), kept);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::ranks) throw;
    mine.error = static_cast<int32_t>(error.kind()), mine.message = error.what();
  }
  std::vector<Answered> all;  // up to the first error
  for (const std::string& bytes : group.gather(dist::packed(mine))) {
    all.push_back(dist::unpacked<Answered>(bytes));
    for (const std::string& message : all.back().skipped) skipped.note(message);
    if (all.back().error != 0) break;
  }
  do_on_rank_0(group, [&] {
    for (const Answered& one : all) write_results(one.output);
  });
  const Answered& last = all.back();
  if (last.error == 0) return;
  dist::fail_together(group, static_cast<ErrorKind>(last.error), last.message);
}

void agree(dist::Group& group, const char* what, const std::function<void()>& work,
           const std::function<std::string()>& text) {
  dist::do_alike(group, work);
  if (!group.is_alone()) dist::check_equal(group, {{what, checksum(text())}});
}

std::vector<std::vector<std::string>> all_of_ranks(dist::Group& group,
                                                   const std::vector<std::string>& mine) {
  return dist::share_out_each<std::vector<std::string>>(group, group.ranks(),
                                                        [&](int64_t) { return mine; });
}

int64_t sum_of_ranks(dist::Group& group, int64_t count) {
  int64_t sum = 0;
  for (const int64_t one :
       dist::share_out_each<int64_t>(group, group.ranks(), [&](int64_t) { return count; })) {
    sum += one;
  }
  return sum;
}

void add_of_ranks(dist::Group& group, DroppedCharacters& dropped) {
  dist::Packer mine;
  mine(dropped.count(), dropped.different());
  int64_t rank = 0;
  for (const std::string& told : group.gather(mine.take())) {
    int64_t count = 0;
    std::vector<std::string> different;
    dist::Unpacker unpack(told);
    unpack(count, different);
    if (rank++ != group.rank()) dropped.add(count, different);
  }
  dropped.sort();
}

}  // namespace heddle::cli
