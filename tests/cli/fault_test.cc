// A part of the calls that change the disk, killed and failing in turn; fault_slow_test.cc has all.
#include "tests/cli/fault_runs.h"

namespace heddle::testing {
namespace {

TEST(Faults, text_run_resumes_to_the_same_bits) { FaultSweep(text_run()).run(17); }

TEST(Faults, translation_run_resumes_to_the_same_bits) { FaultSweep(translation_run()).run(17); }

TEST(Faults, image_run_with_a_teacher_resumes_to_the_same_bits) { FaultSweep(image_run()).run(23); }

TEST(Faults, overwritten_run_is_the_old_or_the_new_one) { FaultSweep(overwriting_run()).run(29); }

TEST(Faults, replaced_export_is_the_old_or_the_new_model) { FaultSweep(replacing_export()).run(5); }

TEST(Faults, tokenizer_is_the_old_or_the_new_one) { FaultSweep(tokenizer_training()).run(2); }

}  // namespace
}  // namespace heddle::testing
