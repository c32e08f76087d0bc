// mBART: Liu et al. 2020, "Multilingual Denoising Pre-training for Neural Machine Translation":
// BART with the norms before the sublayers, and one at the end of each stack.
#include "heddle/models/families/bart_stack.h"

namespace heddle {
namespace {

struct MBartConfig : BartFields {
  MBartConfig() {
    position_embedding_type = "learned", position_offset = 2;
    normalize_embedding = normalize_before = true;
  }
};

}  // namespace

class MBart final : public BartStack {
 public:
  using Config = MBartConfig;
  using BartStack::BartStack;
  static HubFamily family() { return family_of("MBart", Config()); }
};

template std::unique_ptr<ModelConfig> new_config<MBart>();

}  // namespace heddle
