// config.json of any model of the registry: its fields, its head, and what is passed over.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/base/json/fields.h"
#include "heddle/nn/parameters.h"

namespace heddle {

class Model;

/// The greatest sizes of a config where several are multiplied: no product of them overflows.
inline constexpr int64_t kMostVocabulary = 1 << 24, kMostWidth = 1 << 20, kMostHeads = 1 << 16,
                         kMostLayers = 1 << 12;

/// The key of config.json that says how weights were quantized, with `quant_method` for whose way
/// that is, as Hugging Face has it.
inline constexpr const char* kQuantizationKey = "quantization_config";
inline constexpr const char* kQuantizationMethod = "heddle";

/// What stands on a stack, named by `architectures` of config.json. Those from sequence_classes on
/// give classes.
enum class Head : uint8_t {
  none,               ///< BertModel: hidden states, and a pooler where the checkpoint has one
  next_token,         ///< GPT2LMHeadModel, LlamaForCausalLM
  ordered_token,      ///< XLNetLMHeadModel: tokens by those before them in any order
  target_token,       ///< MarianMTModel: the next token of a target, by a source
  caption,            ///< the next token of a caption, by an image
  masked_token,       ///< BertForMaskedLM
  next_sentence,      ///< BertForNextSentencePrediction: whether a sentence follows another
  pretraining,        ///< BertForPreTraining: masked tokens and the next sentence
  sequence_classes,   ///< BertForSequenceClassification: a class a sequence
  token_classes,      ///< BertForTokenClassification: a class a token
  image_classes,      ///< ViTForImageClassification: a class an image
  distilled_classes,  ///< DeiTForImageClassificationWithTeacher: the same, by two heads
  objects             ///< DetrForObjectDetection: classes and boxes of an image's objects
};
/// Whether a head gives classes, which id2label names.
constexpr bool has_labels(Head head) { return head >= Head::sequence_classes; }
/// Whether it stands on models that read images.
constexpr bool reads_images(Head head) {
  return head >= Head::image_classes || head == Head::caption;
}
/// Whether a model with it has a source and writes a target.
constexpr bool has_target(Head head) { return head == Head::target_token || head == Head::caption; }

/// What is the same in every family.
struct HubConfig {
  Head head = Head::none;
  std::vector<std::string> labels = {"LABEL_0", "LABEL_1"};  ///< id2label, of heads for classes
  int64_t classes() const { return std::ssize(labels); }
  std::optional<int64_t> pad_token_id;  ///< may be beyond the vocabulary
  bool has_pooler = true;        ///< of a family that may have one, where nothing else stands on it
  bool is_backbone = false;      ///< only its features() are read, below another model
  Json others = Json::object();  ///< keys that change no number here, kept for saving
};

/// A head of a family and Hugging Face's name for the two.
struct HeadClass {
  Head head;
  std::string name;  ///< "GPT2LMHeadModel"
};

/// A family as Hugging Face has it.
struct HubFamily {
  std::vector<HeadClass>
      heads;  ///< that it may have; first that of a config without `architectures`
  /// Keys that are taken for a field: {"hidden_size", "n_embd"}.
  std::vector<std::pair<std::string, std::string>> aliases = {};
  /// Keys that do nothing in Hugging Face's code at the only value that is given; null: at any.
  std::vector<std::pair<std::string, Json>> passed_over = {};
  const char* dropped_in = nullptr;  ///< the first release without the family
  /// AutoTokenizer passes the class over: it wants tokenizer.json.
  bool misreads_tokenizers = false;
  /// The format is heddle's own: an unknown key is an error then, and where its folder says nothing
  /// of searching, heddle's defaults count.
  bool is_own_format = false;
};

/// A model that could be made: what `heddle train` sets by flags and a checkpoint by config.json.
class ModelConfig {
 public:
  virtual ~ModelConfig() = default;

  std::string type;  ///< model_type: "gpt2"
  HubConfig hub;

  /// The family's own fields, which may be set. A const config must not be written through them.
  virtual std::vector<Field> fields() const = 0;
  virtual HubFamily family() const = 0;
  std::vector<HeadClass> heads() const { return family().heads; }
  /// Whether models of the family do.
  bool reads_images() const;
  bool is_own_format() const { return family().is_own_format; }
  /// Errors: data, naming `source`, for fields that do not fit together.
  virtual void check(const std::string& source) const = 0;
  /// The model with parameters under `s`, made or to be loaded. Errors: those of check().
  virtual std::unique_ptr<Model> make(const nn::Scope& s) const = 0;

  /// Takes a config.json of either generation of keys. Says in one warning which keys it does not
  /// know. Errors: data, naming `source` and key, for a wrong type or value, a class of
  /// `architectures` that heddle has not, or a key that changes numbers and is not supported.
  void read(const Json& json, const std::string& source);
  /// Takes from a checkpoint what config.json does not say: whether there is a pooler, and what the
  /// family's Config::fit() finds.
  void fit(const TensorFile& weights);
  /// config.json, in the keys that every version of transformers reads.
  Json json() const;

 private:
  virtual void fit_own(const TensorFile& weights) = 0;
  /// A config.json with the family's own fields where Hugging Face writes something else, and back.
  virtual Json from_hub(const Json& json, const std::string& source) const = 0;
  virtual void to_hub(Json& json) const = 0;
  void read_head(const Json& architectures, const std::string& source);
  void report_unknown(const std::vector<std::string>& keys, const std::string& source) const;
};

/// Whether a key is one of `keys`, which spaces separate.
bool is_listed(std::string_view key, std::string_view keys);
/// Whether a key is one that changes numbers and of which heddle, without a field of that name, has
/// what does nothing only. Errors: data, naming `source`, key and `type`, for another value.
bool check_one_value(const std::string& key, const Json& value, const std::string& type,
                     const std::string& source);
/// Whether a key says how to generate: older checkpoints keep in config.json what newer ones have
/// in generation_config.json.
bool is_generation_key(const std::string& key);

/// That of the class M, see new_config(): the family's own part is M::Config.
template <class M>
class ConfigOf final : public ModelConfig {
 public:
  typename M::Config own;

  std::vector<Field> fields() const override { return FieldList(own); }
  HubFamily family() const override { return M::family(); }
  void check(const std::string& source) const override { own.check(source); }
  std::unique_ptr<Model> make(const nn::Scope& s) const override {
    check("config");
    auto model = std::make_unique<M>(s, own, hub);
    model->config_ = std::make_shared<ConfigOf>(*this);
    return model;
  }

 private:
  void fit_own(const TensorFile& weights) override {
    if constexpr (requires { own.fit(weights); }) own.fit(weights);
  }
  Json from_hub(const Json& json, const std::string& source) const override {
    if constexpr (requires { own.from_hub(json, source); }) return own.from_hub(json, source);
    return json;
  }
  void to_hub(Json& json) const override {
    if constexpr (requires { own.to_hub(json); }) own.to_hub(json);
  }
};

/// A config of the class M with its defaults; the file of each model instantiates this for its M.
/// M has: Config with fields() and check(), static family(), M(Scope, Config, HubConfig); its
/// Config may have fit(TensorFile) and, static, from_hub() and to_hub().
template <class M>
std::unique_ptr<ModelConfig> new_config();

}  // namespace heddle
