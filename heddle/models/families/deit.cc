// DeiT: Touvron et al. 2021, "Training data-efficient image transformers & distillation through
// attention", section 3.2: ViT with a second token, whose classes a teacher teaches.
#include "heddle/models/families/vit_stack.h"
#include "heddle/ops/elementwise.h"

namespace heddle {

class Deit final : public VitStack {
 public:
  using Config = VitConfig;
  static HubFamily family() {
    return {.heads = {{Head::distilled_classes, "DeiTForImageClassificationWithTeacher"},
                      {Head::image_classes, "DeiTForImageClassification"},
                      {Head::none, "DeiTModel"}},
            .passed_over = {{"is_causal", false}}};
  }

  Deit(const Scope& s, const Config& c, const HubConfig& hub)
      : VitStack({base_scope(s, "deit", hub), "deit", {"cls_token", "distillation_token"}}, c,
                 hub) {
    if (hub.head == Head::image_classes) {
      heads_.sequence_classes = classes(s / "classifier", token(0));
    }
    if (hub.head != Head::distilled_classes) return;
    heads_.own_classes = classes(s / "cls_classifier", token(0));
    heads_.distilled_classes = classes(s / "distillation_classifier", token(1));
    heads_.sequence_classes = [own = heads_.own_classes, distilled = heads_.distilled_classes](
                                  const Tensor& h, const ModelInput& input, const Run& run) {
      return scale(add(own(h, input, run), distilled(h, input, run)), 0.5f);
    };
  }
};

template std::unique_ptr<ModelConfig> new_config<Deit>();

}  // namespace heddle
