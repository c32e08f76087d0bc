// The teacher's pass over a batch of its student.
#include "heddle/train/tasks/word_teacher.h"

#include <algorithm>

#include "heddle/base/profile.h"
#include "heddle/ops/reduce.h"
#include "heddle/train/tasks/losses.h"

namespace heddle::train {

WordTeacher::WordTeacher(const std::string& path, const Corpora& corpora,
                         const EncoderDecoderFacts& student, int64_t longest)
    : loaded_(load_translation_model(path)) {
  const EncoderDecoderFacts& own = loaded_.translator().facts();
  check(loaded_.tokenizer->fingerprint() == corpora.tokenizer.fingerprint() &&
            loaded_.target().fingerprint() == corpora.target().fingerprint() &&
            own.target_vocab_size == student.target_vocab_size,
        ErrorKind::data,
        "{}: the teacher has other tokens than its student, so that its probabilities are of other "
        "words; leave out `tokenizer`, or choose `teaching` sequence",
        path);
  const PairMarks& marks = corpora.marks;
  const int64_t room = 1 + std::min(own.longest_source - marks.source_rows(),
                                    own.longest_target - marks.target_rows());
  check(room >= longest, ErrorKind::data,
        "{}: the teacher has positions for {} tokens, and `max_tokens` is {}", path, room, longest);
  const bool starts_alike = own.decoder_start_token_id == student.decoder_start_token_id ||
                            !loaded_.target().languages().empty();  // they begin with what is asked
  check(starts_alike && own.eos_token_id == student.eos_token_id, ErrorKind::data,
        "{}: the teacher begins or ends targets with other ids than its student", path);
}

Tensor WordTeacher::probabilities(const TranslationBatch& batch, const nn::Run& run) const {
  const ProfilePhase phase("teacher");
  const NoGrad off;
  nn::Run plain;
  plain.compute = run.compute;
  const EncoderDecoder& model = loaded_.translator();
  return softmax(model.output()(decoder_states(model, batch, plain), plain));
}

}  // namespace heddle::train
