// ViT: Dosovitskiy et al. 2021, "Transformers for Image Recognition at Scale" (arXiv 2010.11929):
// the state of a class token before the patches is classified, or (appendix D.3) their mean.
#include "heddle/models/families/vit_stack.h"

namespace heddle {

/// Beside Hugging Face's keys those of heddle's own that say what is classified.
struct PooledVitConfig : VitConfig {
  std::string pooling = "token";
  bool class_token = true, norm_after_pooling = false;

  template <class V>
  void fields(V& v) {
    VitConfig::fields(v);
    v("pooling", pooling,
      "what is classified: the state of the class token, or the mean of the patches' states",
      one_of({"token", "mean"}));
    v("class_token", class_token, "a token stands before the patches, and attends to them");
    v("norm_after_pooling", norm_after_pooling,
      "the last norm stands behind the mean, not before it (timm's fc_norm)");
  }
  bool pools_mean() const { return pooling == "mean"; }
  void check(const std::string& source) const {
    VitConfig::check(source);
    heddle::check(class_token || pools_mean(), ErrorKind::data,
                  "{}: pooling is token and class_token false; a model without a class token needs "
                  "pooling mean",
                  source);
    heddle::check(!norm_after_pooling || pools_mean(), ErrorKind::data,
                  "{}: norm_after_pooling is true and pooling token; the norm can stand behind a "
                  "mean alone, which is pooling mean",
                  source);
  }
};

class Vit final : public VitStack {
 public:
  using Config = PooledVitConfig;
  static HubFamily family() {
    return {.heads = {{Head::image_classes, "ViTForImageClassification"}, {Head::none, "ViTModel"}},
            .passed_over = {{"is_causal", false}}};
  }

  Vit(const Scope& s, const Config& c, const HubConfig& hub)
      : VitStack({.scope = base_scope(s, "vit", hub),
                  .base = "vit",
                  .tokens = token_names(c),
                  .pools_mean = c.pools_mean(),
                  .norms_mean = c.norm_after_pooling},
                 c, hub) {
    if (hub.head != Head::image_classes) return;
    heads_.sequence_classes = classes(s / "classifier", c.pools_mean() ? patch_mean() : token());
  }

 private:
  static std::vector<std::string> token_names(const Config& c) {
    return c.class_token ? std::vector<std::string>{"cls_token"} : std::vector<std::string>{};
  }
};

template std::unique_ptr<ModelConfig> new_config<Vit>();

}  // namespace heddle
