// BART: Lewis et al. 2020, "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language
// Generation, Translation, and Comprehension": post-norm, with a norm over the embeddings and
// learned positions, whose table has two rows before the first.
#include "heddle/models/families/bart_stack.h"

namespace heddle {
namespace {

struct BartConfig : BartFields {
  BartConfig() {
    position_embedding_type = "learned", position_offset = 2;
    normalize_embedding = true;
  }
};

}  // namespace

class Bart final : public BartStack {
 public:
  using Config = BartConfig;
  using BartStack::BartStack;
  static HubFamily family() { return family_of("Bart", Config()); }
};

template std::unique_ptr<ModelConfig> new_config<Bart>();

}  // namespace heddle
