// Copying a config by its fields.
#include "heddle/train/stack_config.h"

namespace heddle::train {

StackConfig& StackConfig::operator=(const StackConfig& other) {
  if (this == &other) return *this;
  config_ = model_config(other.type());
  config_->hub = other.config_->hub;
  static_cast<void>(from_json(config_->fields(), to_json(other.fields()), other.type()));
  return *this;
}

int64_t StackConfig::integer(std::initializer_list<const char*> keys) const {
  const std::vector<Field> all = fields();
  for (const char* key : keys) {
    for (const Field& f : all) {
      const auto* const member = std::get_if<int64_t*>(&f.member);
      if (f.key == key && member != nullptr) return **member;
    }
  }
  return -1;
}

EncoderDecoderFacts facts_of(const StackConfig& config) {
  auto unmade = nn::Parameters::shapes_alone();
  const std::unique_ptr<Model> model = config.make(nn::Scope(unmade));
  return model->need<EncoderDecoder>("train").facts();
}

void StackConfig::set(const std::string& key, int64_t value) {
  set_from_string(fields(), key, std::to_string(value));
}

}  // namespace heddle::train
