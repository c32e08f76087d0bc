// Every call that changes the disk, killed and failing in turn.
#include "tests/cli/fault_runs.h"

namespace heddle::testing {
namespace {

TEST(EveryFault, text_run_resumes_to_the_same_bits) { FaultSweep(text_run()).run(1); }

TEST(EveryFault, translation_run_resumes_to_the_same_bits) { FaultSweep(translation_run()).run(1); }

TEST(EveryFault, image_run_with_a_teacher_resumes_to_the_same_bits) {
  FaultSweep(image_run()).run(1);
}

TEST(EveryFault, overwritten_run_is_the_old_or_the_new_one) {
  FaultSweep(overwriting_run()).run(1);
}

TEST(EveryFault, replaced_export_is_the_old_or_the_new_model) {
  FaultSweep(replacing_export()).run(1);
}

TEST(EveryFault, tokenizer_is_the_old_or_the_new_one) { FaultSweep(tokenizer_training()).run(1); }

}  // namespace
}  // namespace heddle::testing
