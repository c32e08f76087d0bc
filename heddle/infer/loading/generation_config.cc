// Keys of two files, the first that has one.
#include "heddle/infer/loading/generation_config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/base/log.h"
#include "heddle/infer/decoding/limits.h"
#include "heddle/infer/loading/model_dir.h"

namespace heddle {
namespace {

constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();

struct Source {
  std::string path;
  Json json;
};

// The value of a key, and what opens messages about it.
struct Found {
  const Json* json = nullptr;
  std::string what;
};

int32_t id_of(const Json& json, const std::string& what) {
  const int64_t id = json.as_int(what);
  check(id >= -1 && id <= std::numeric_limits<int32_t>::max(), ErrorKind::data,
        "{} is {}, which is no token id", what, id);
  return static_cast<int32_t>(id);
}

class Reader {
 public:
  explicit Reader(const std::string& folder) {
    for (const char* name : {kGenerationName, kConfigName}) {
      const std::string path = join_path(folder, name);
      if (path_exists(path)) sources_.push_back({path, Json::load(path)});
    }
  }

  // null counts as absent. Where there is a generation_config.json, transformers takes from
  // config.json no more than the special ids.
  Found find(const char* key) const {
    static const std::set<std::string> everywhere = {"eos_token_id", "bos_token_id", "pad_token_id",
                                                     "decoder_start_token_id"};
    for (const Source& s : sources_) {
      if (&s != sources_.data() && !everywhere.contains(key)) break;
      const Json* json = s.json.find(key);
      if (json != nullptr && !json->is_null()) {
        return {json, fmt::format("{}: key '{}'", s.path, key)};
      }
    }
    return {};
  }

  std::vector<int32_t> ids(const char* key) const {
    const Found found = find(key);
    std::vector<int32_t> ids;
    if (found.json == nullptr) return ids;
    if (!found.json->is_array()) return {id_of(*found.json, found.what)};
    for (const Json& each : found.json->as_array()) ids.push_back(id_of(each, found.what));
    return ids;
  }

  void id(const char* key, std::optional<int32_t>& value) const {
    const std::vector<int32_t> all = ids(key);  // -1 is none
    if (!all.empty() && all[0] >= 0) value = all[0];
  }

  void number(const char* key, double& value) const {
    if (const Found f = find(key); f.json != nullptr) value = f.json->as_double(f.what);
  }
  void number(const char* key, double& value, double least, double most) const {
    number(key, value);
    check(value >= least && value <= most, ErrorKind::data, "{} is {}; it must be from {} to {}",
          find(key).what, value, least, most);
  }
  void number(const char* key, int64_t& value, int64_t least, int64_t most = kMostTokens) const {
    const Found f = find(key);
    if (f.json == nullptr) return;
    value = f.json->as_int(f.what);
    check(value >= least && value <= most, ErrorKind::data, "{} is {}; it must be from {} to {}",
          f.what, value, least, most);
  }

 private:
  std::vector<Source> sources_;
};

// Tokens that never come, one by one or in a row. An end is never banned, as in Hugging Face.
void read_banned_ngrams(const Reader& reader, GenerationConfig& c) {
  const Found found = reader.find("bad_words_ids");
  if (found.json == nullptr) return;
  for (const Json& tokens : found.json->as_array(found.what)) {
    std::vector<int32_t> ids;
    for (const Json& token : tokens.as_array(found.what)) ids.push_back(id_of(token, found.what));
    if (ids.size() > 1) c.rules.banned_ngrams.push_back(ids);
    const bool is_end =
        ids.size() == 1 && std::find(c.eos.begin(), c.eos.end(), ids[0]) != c.eos.end();
    if (ids.size() == 1 && !is_end) c.suppressed.push_back(ids[0]);
  }
}

EarlyStopping early_stopping_of(const Found& found) {
  if (found.json->is_bool()) return found.json->as_bool() ? EarlyStopping::yes : EarlyStopping::no;
  check(found.json->as_string(found.what) == "never", ErrorKind::data,
        "{} is '{}'; it must be true, false or \"never\"", found.what,
        found.json->as_string(found.what));
  return EarlyStopping::never;
}

// Keys that change what transformers writes and have no place here, with the value that does
// nothing.
void warn_of_others(const Reader& reader) {
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
                                         Other{"forced_bos_token_id", -1},
                                         Other{"guidance_scale", 1},
                                         Other{"penalty_alpha", 0},
                                         Other{"sequence_bias", 0},
                                         Other{"stop_strings", 0},
                                         Other{"typical_p", 1},
                                         Other{"watermarking_config", 0}};
  for (const auto& [key, neutral] : kOthers) {
    const Found found = reader.find(key);
    if (found.json == nullptr) continue;
    const bool is_empty =
        (found.json->is_array() || found.json->is_object()) && found.json->size() == 0;
    if (is_empty || (found.json->is_number() && found.json->as_double(found.what) == neutral)) {
      continue;
    }
    log_warning("{} changes what transformers writes; heddle has no such rule and passes over it",
                found.what);
  }
}

}  // namespace

GenerationConfig read_generation_config(const std::string& folder) {
  const Reader reader(folder);
  GenerationConfig c;
  c.eos = reader.ids("eos_token_id");
  std::erase(c.eos, -1);
  reader.id("bos_token_id", c.bos);
  reader.id("decoder_start_token_id", c.decoder_start);
  reader.id("forced_eos_token_id", c.forced_eos);
  c.suppressed = reader.ids("suppress_tokens");
  read_banned_ngrams(reader, c);
  std::erase(c.suppressed, -1);
  if (reader.find("max_new_tokens").json != nullptr) {
    reader.number("max_new_tokens", c.max_new_tokens.emplace(), 1);
  }
  if (reader.find("max_length").json != nullptr) {
    reader.number("max_length", c.max_length.emplace(), 1);
  }
  reader.number("min_length", c.min_length, 0);
  reader.number("num_beams", c.beam, 1, kMostBeams);
  reader.number("length_penalty", c.length_penalty, -100, 100);
  if (const Found f = reader.find("early_stopping"); f.json != nullptr) {
    c.early_stopping = early_stopping_of(f);
  }
  reader.number("repetition_penalty", c.rules.repetition_penalty, 1e-6, 1e6);
  reader.number("no_repeat_ngram_size", c.rules.no_repeat_ngram, 0);
  reader.number("min_new_tokens", c.rules.min_length, 0);
  reader.number("temperature", c.sampling.temperature);
  reader.number("top_k", c.sampling.top_k, 0);
  reader.number("top_p", c.sampling.top_p);
  reader.number("min_p", c.sampling.min_p);
  warn_of_others(reader);
  return c;
}

}  // namespace heddle
