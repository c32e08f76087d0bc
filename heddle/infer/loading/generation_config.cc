// Two files, one laid over the other.
#include "heddle/infer/loading/generation_config.h"

#include <array>

#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/base/log.h"
#include "heddle/infer/loading/model_dir.h"

namespace heddle {
namespace {

// Keys that change what transformers writes and have no place here, with the value that does
// nothing.
void warn_of_others(const Json& json, const std::string& path) {
  struct Other {
    const char* key;
    double neutral;
  };
  static constexpr std::array kOthers = {Other{"begin_suppress_tokens", 0},
                                         Other{"constraints", 0},
                                         Other{"diversity_penalty", 0},
                                         Other{"encoder_no_repeat_ngram_size", 0},
                                         Other{"encoder_repetition_penalty", 1},
                                         Other{"epsilon_cutoff", 0},
                                         Other{"eta_cutoff", 0},
                                         Other{"exponential_decay_length_penalty", 0},
                                         Other{"force_words_ids", 0},
                                         Other{"guidance_scale", 1},
                                         Other{"penalty_alpha", 0},
                                         Other{"sequence_bias", 0},
                                         Other{"stop_strings", 0},
                                         Other{"typical_p", 1},
                                         Other{"watermarking_config", 0}};
  for (const auto& [key, neutral] : kOthers) {
    const Json* value = json.find(key);
    if (value == nullptr || value->is_null()) continue;
    const bool is_empty = (value->is_array() || value->is_object()) && value->size() == 0;
    if (is_empty || (value->is_number() && value->as_double() == neutral)) continue;
    log_warning(
        "{}: key '{}' changes what transformers writes; heddle has no such rule and passes over it",
        path, key);
  }
}

SearchConfig read_layer(const Json& json, const std::string& path) {
  SearchConfig config;
  (void)read_search(config, json, path);  // the other keys are the model's, or warned of
  warn_of_others(json, path);
  return config;
}

}  // namespace

SearchConfig read_generation_config(const std::string& folder) {
  const std::string own = join_path(folder, kGenerationName);
  const std::string general = join_path(folder, kConfigName);
  Json below = path_exists(general) ? Json::load(general) : Json::object();
  if (!path_exists(own)) return read_layer(below, general);
  // Beside it transformers takes from config.json no more than the special ids.
  Json ids = Json::object();
  for (const char* key :
       {"eos_token_id", "bos_token_id", "pad_token_id", "decoder_start_token_id"}) {
    if (const Json* id = below.find(key)) ids[key] = *id;
  }
  SearchConfig config = read_layer(ids, general);
  lay_over(config, read_layer(Json::load(own), own));
  return config;
}

}  // namespace heddle
