// Keys of two files, the first that has one.
#include "heddle/infer/generation_config.h"

#include <fmt/ranges.h>

#include <limits>

#include "heddle/base/files.h"
#include "heddle/base/json.h"
#include "heddle/base/log.h"
#include "heddle/infer/model_dir.h"

namespace heddle {
namespace {

struct Source {
  std::string path;
  Json json;
};

// The value of a key, and what opens messages about it.
struct Found {
  const Json* json = nullptr;
  std::string what;
};

class Reader {
 public:
  explicit Reader(const std::string& folder) {
    for (const char* name : {kGenerationName, kConfigName}) {
      const std::string path = join_path(folder, name);
      if (path_exists(path)) sources_.push_back({path, Json::load(path)});
    }
  }

  // null counts as absent
  Found find(const char* key) const {
    for (const Source& s : sources_) {
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
  void number(const char* key, int64_t& value, int64_t least) const {
    const Found f = find(key);
    if (f.json == nullptr) return;
    value = f.json->as_int(f.what);
    check(value >= least, ErrorKind::data, "{} is {}; it must be at least {}", f.what, value,
          least);
  }

 private:
  static int32_t id_of(const Json& json, const std::string& what) {
    const int64_t id = json.as_int(what);
    check(id >= -1 && id <= std::numeric_limits<int32_t>::max(), ErrorKind::data,
          "{} is {}, which is no token id", what, id);
    return static_cast<int32_t>(id);
  }

  std::vector<Source> sources_;
};

// Words that never come, one by one.
void read_bad_words(const Reader& reader, std::vector<int32_t>& suppressed) {
  const Found found = reader.find("bad_words_ids");
  if (found.json == nullptr) return;
  for (const Json& words : found.json->as_array(found.what)) {
    const std::vector<int64_t> ids = words.as_ints(found.what);
    if (ids.size() == 1) suppressed.push_back(static_cast<int32_t>(ids[0]));
    if (ids.size() > 1) {
      log_warning("{}: heddle bans single words only and passes over {}", found.what, ids);
    }
  }
}

EarlyStopping early_stopping_of(const Found& found) {
  if (found.json->is_bool()) return found.json->as_bool() ? EarlyStopping::yes : EarlyStopping::no;
  check(found.json->as_string(found.what) == "never", ErrorKind::data,
        "{} is '{}'; it must be true, false or \"never\"", found.what,
        found.json->as_string(found.what));
  return EarlyStopping::never;
}

}  // namespace

GenerationConfig read_generation_config(const std::string& folder) {
  const Reader reader(folder);
  GenerationConfig c;
  c.eos = reader.ids("eos_token_id");
  std::erase(c.eos, -1);
  reader.id("bos_token_id", c.bos);
  reader.id("pad_token_id", c.pad);
  reader.id("decoder_start_token_id", c.decoder_start);
  reader.id("forced_eos_token_id", c.forced_eos);
  c.suppressed = reader.ids("suppress_tokens");
  read_bad_words(reader, c.suppressed);
  std::erase(c.suppressed, -1);
  if (reader.find("max_new_tokens").json != nullptr) {
    reader.number("max_new_tokens", c.max_new_tokens.emplace(), 1);
  }
  reader.number("num_beams", c.beam, 1);
  reader.number("length_penalty", c.length_penalty);
  if (const Found f = reader.find("early_stopping"); f.json != nullptr) {
    c.early_stopping = early_stopping_of(f);
  }
  reader.number("repetition_penalty", c.rules.repetition_penalty);
  reader.number("no_repeat_ngram_size", c.rules.no_repeat_ngram, 0);
  reader.number("min_new_tokens", c.rules.min_length, 0);
  reader.number("temperature", c.sampling.temperature);
  reader.number("top_k", c.sampling.top_k, 0);
  reader.number("top_p", c.sampling.top_p);
  reader.number("min_p", c.sampling.min_p);
  return c;
}

}  // namespace heddle
