// Commands whose work several processes share, started by mpirun, srun, heddle launch or by hand.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heddle/cli/group_flags.h"
#include "heddle/cli/lines.h"
#include "heddle/dist/group.h"

namespace heddle::cli {

/// Does the work of a command in the group that the flags and the environment say, see
/// dist::make_group(): of one process where they say none. Ranks other than 0 speak of errors
/// alone. What one rank ends by, all are told.
/// Errors: those of make_group() and `work`; usage unless all ranks have the same version and
/// flags.
/// is_shared: else rank 0 does all of it, in a group of its own, while the others wait.
void run_shared(const Subcommand& command, const dist::GroupOptions& options,
                const std::function<void(dist::Group&)>& work, bool is_shared = true);

/// What must be equal on all ranks before they share work: how they compute, and the files of the
/// model's folder by name and content. All ranks call it. Errors: usage, naming what differs; those
/// of find_model_dir(), on all ranks.
void check_same_files(dist::Group& group, const dist::GroupOptions& options,
                      const std::string& model, const Precision& precision);

/// answer_lines() by all ranks, which all call it: rank 0 reads the input, some blocks at a time,
/// each rank answers a part of them, and rank 0 writes the answers in order, so that the output is
/// that of one process. A rank holds no more than what is answered together.
int64_t answer_lines(dist::Group& group, const char* command, const LineFlags& flags,
                     BlockSize size, const LineAnswers& answers);

/// What rank 0 does alone while the others wait, as writing results, which are on the standard
/// output when it returns; all call it. Errors: see dist::gather_or_fail().
void do_on_rank_0(dist::Group& group, const std::function<void()>& work);

/// Each rank answers what is its part, and rank 0 writes what came of it, in the order of ranks;
/// all ranks call it. What is skipped comes to `skipped` of all of them. Errors: of several ranks
/// the first one's, on all of them, behind the answers before it.
void write_by_ranks(dist::Group& group, Skipped& skipped,
                    const std::function<void(Results out, Skipped& skipped)>& answer);

/// dist::do_alike(), of which all must have the same text(), whose checksums are compared; one rank
/// alone makes none. Errors: usage too, where `what` ("the data") differs.
void agree(dist::Group& group, const char* what, const std::function<void()>& work,
           const std::function<std::string()>& text);
/// What each rank gives, by rank; all ranks call it.
std::vector<std::vector<std::string>> all_of_ranks(dist::Group& group,
                                                   const std::vector<std::string>& mine);
/// The sum of what each rank counted; all ranks call it.
int64_t sum_of_ranks(dist::Group& group, int64_t count);
/// Adds what the other ranks have counted, and sorts, so that all is as of one rank; all call it.
void add_of_ranks(dist::Group& group, DroppedCharacters& dropped);

}  // namespace heddle::cli
