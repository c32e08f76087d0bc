// ViT: Dosovitskiy et al. 2021, "Transformers for Image Recognition at Scale" (arXiv 2010.11929):
// a class token before the patches.
#include "heddle/models/families/vit_stack.h"

namespace heddle {

class Vit final : public VitStack {
 public:
  using Config = VitConfig;
  static HubFamily family() {
    return {
        .heads = {{Head::image_classes, "ViTForImageClassification"}, {Head::none, "ViTModel"}}};
  }

  Vit(const Scope& s, const Config& c, const HubConfig& hub)
      : VitStack({base_scope(s, "vit", hub), "vit", {"cls_token"}}, c, hub) {
    if (hub.head == Head::image_classes) heads_.sequence_classes = classes(s / "classifier", 0);
  }
};

template std::unique_ptr<ModelConfig> new_config<Vit>();

}  // namespace heddle
