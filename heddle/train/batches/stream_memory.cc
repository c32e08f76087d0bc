// Memories by stream, and their form in a state.
#include "heddle/train/batches/stream_memory.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace heddle::train {
namespace {

constexpr std::string_view kPrefix = "memory.";

struct StateName {
  int64_t stream = 0, layer = 0;
};

std::optional<StateName> parse(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  StateName parsed;
  const char* const end = name.data() + name.size();
  const auto [dot, error] = std::from_chars(name.data(), end, parsed.stream);
  if (error != std::errc() || dot == end || *dot != '.') return std::nullopt;
  const auto [last, second] = std::from_chars(dot + 1, end, parsed.layer);
  if (second != std::errc() || last != end) return std::nullopt;
  return parsed;
}

}  // namespace

nn::Memory StreamMemory::before(const Place& place, int64_t stream) const {
  if (place.batch == 0) return {};
  const auto found = parts_.find(stream);
  check(found != parts_.end() && (place == found->second.next || place == found->second.last),
        ErrorKind::data,
        "the state of this run has no memory of stream {} before batch {} of epoch {}; start anew "
        "with `overwrite`",
        stream, place.batch, place.epoch);
  const Part& part = found->second;
  return place == part.next ? part.behind : part.before;
}

void StreamMemory::put(const Place& place, int64_t stream, nn::Memory behind) {
  Part& part = parts_[stream];
  if (!(part.last == place)) {
    part.before = std::move(part.behind);
    part.last = place;
  }
  part.behind = std::move(behind);
  part.next = {place.epoch, place.batch + 1};
}

NamedTensors StreamMemory::tensors() const {
  Place latest;
  for (const auto& [stream, part] : parts_) latest = std::max(latest, part.next);
  NamedTensors all;
  for (const auto& [stream, part] : parts_) {
    if (part.next != latest) continue;
    for (size_t i = 0; i < part.behind.layers.size(); ++i) {
      all.emplace_back(fmt::format("{}{}.{}", kPrefix, stream, i), part.behind.layers[i]);
    }
  }
  return all;
}

void StreamMemory::restore(const NamedTensors& tensors, const Place& place, int64_t streams) {
  parts_.clear();
  std::map<int64_t, std::map<int64_t, Tensor>> by_stream;
  for (const auto& [name, tensor] : tensors) {
    const auto parsed = parse(name);
    check(
        parsed.has_value() && parsed->stream >= 0 && parsed->stream < streams && tensor.rank() == 2,
        ErrorKind::data, "the state of this run has '{}' {}, which is no memory of {} streams",
        name, tensor.shape().str(), streams);
    by_stream[parsed->stream][parsed->layer] = tensor;
  }
  for (auto at = by_stream.begin(); at != by_stream.end(); ++at) {
    const auto next = std::next(at);
    const int64_t count = (next == by_stream.end() ? streams : next->first) - at->first;
    nn::Memory memory;
    for (const auto& [layer, tensor] : at->second) {
      check(tensor.size(0) % count == 0 &&
                (memory.layers.empty() || tensor.size(0) == memory.layers[0].size(0)),
            ErrorKind::data, "the state of this run has {} rows of memory for {} streams",
            tensor.size(0), count);
      memory.layers.push_back(tensor);
    }
    memory.segments = Segments::uniform(count, memory.layers[0].size(0) / count);
    parts_[at->first] = {{-1, -1}, {}, place, std::move(memory)};
  }
}

}  // namespace heddle::train
