// An analysis as JSON.
#include "heddle/inspect/analysis.h"

namespace heddle::inspect {
namespace {

Json to_json(const Bytes& bytes) {
  Json json = Json::object();
  json["f32"] = bytes.f32;
  json["bf16"] = bytes.bf16;
  return json;
}

Json to_json(const Step& step) {
  Json json = Json::object();
  json["part"] = step.part;
  json["name"] = step.name;
  json["in"] = step.in;
  json["out"] = step.out;
  json["layers"] = step.layers;
  json["parameters"] = step.parameters;
  json["flops"] = step.flops;
  const AttentionMatrices& m = step.attention;
  if (m.matrices > 0) json["matrices"] = std::vector<int64_t>{m.matrices, m.rows, m.columns};
  return json;
}

Json to_json(const AttentionMemory& m) {
  Json json = Json::object();
  json["entries"] = m.entries;
  json["matrices"] = m.matrices;
  json["head"] = to_json(m.head);
  json["all"] = to_json(m.all);
  json["one_layer"] = to_json(m.one_layer);
  json["flash"] = to_json(m.flash);
  json["has_flash"] = m.has_flash;
  return json;
}

}  // namespace

Json to_json(const Analysis& a) {
  Json json = Json::object();
  json["name"] = a.name;
  json["model_type"] = a.type;
  json["batch"] = a.workload.batch;
  json["length"] = a.workload.source;
  if (a.has_source) json["target_length"] = a.workload.target;
  json["window"] = a.workload.window;
  json["parameters"] = a.parameters;
  json["matrix_parameters"] = a.matrix_parameters;
  Json& flops = json["flops"];
  flops["forward"] = a.forward_flops;
  flops["attention"] = a.attention_flops;
  flops["training"] = a.training_flops;
  flops["training_flash"] = a.training_flash_flops;
  flops["decoding"] = a.decoding_flops;
  flops["decoding_uncached"] = a.uncached_decoding_flops;
  Json& bytes = json["bytes"];
  bytes["weights"] = to_json(a.weights);
  bytes["optimizer"] = to_json(a.optimizer);
  bytes["kept"] = to_json(a.kept);
  bytes["recomputed"] = to_json(a.recomputed);
  bytes["at_once"] = to_json(a.at_once);
  bytes["cache"] = to_json(a.cache);
  bytes["cache_token"] = to_json(a.cache_token);
  bytes["cache_source"] = to_json(a.cache_source);
  json["attention"] = to_json(a.attention);
  json["steps"] = Json::array();
  for (const Step& step : a.steps) json["steps"].push_back(to_json(step));
  return json;
}

}  // namespace heddle::inspect
