// The table of models: a line each.
#include "heddle/models/registry.h"

#include <algorithm>
#include <array>

#include "heddle/models/bert.h"
#include "heddle/models/gpt2.h"

namespace heddle {
namespace {

using Made = std::unique_ptr<Model>;

template <class M>
Made make(const nn::Scope& s, const Json& json, const std::string& source,
          std::vector<std::string>& unknown) {
  typename M::Config config;
  unknown = from_json(config, json, source);
  config.check(source);
  return std::make_unique<M>(s, config);
}

struct Entry {
  const char* type;
  Made (*make)(const nn::Scope&, const Json&, const std::string&, std::vector<std::string>&);
};

constexpr std::array kModels = {
    Entry{"bert", make<Bert>},
    Entry{"gpt2", make<Gpt2>},
};

}  // namespace

std::vector<std::string> model_types() {
  std::vector<std::string> types;
  for (const Entry& entry : kModels) types.emplace_back(entry.type);
  return types;
}

bool is_model_type(const std::string& type) {
  return std::any_of(kModels.begin(), kModels.end(),
                     [&](const Entry& e) { return type == e.type; });
}

std::unique_ptr<Model> make_model(const std::string& type, const nn::Scope& s, const Json& config,
                                  const std::string& source, std::vector<std::string>& unknown) {
  for (const Entry& entry : kModels) {
    if (type == entry.type) return entry.make(s, config, source, unknown);
  }
  fail(ErrorKind::data, "{}: model_type is '{}'; heddle knows {}", source, type,
       fmt::join(model_types(), ", "));
}

}  // namespace heddle
