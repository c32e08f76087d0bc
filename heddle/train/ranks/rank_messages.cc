// Tensors as bytes and back; times as lines.
#include "heddle/train/ranks/rank_messages.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "heddle/base/files/files.h"
#include "heddle/base/progress.h"
#include "heddle/dist/socket.h"

namespace heddle::train {
namespace {

void put(std::string& out, int64_t value) {
  std::array<char, sizeof value> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  out.append(bytes.data(), bytes.size());
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool is_at_end() const { return rest_.empty(); }
  std::string_view bytes(int64_t n) {
    check(n >= 0 && n <= std::ssize(rest_), ErrorKind::internal,
          "a rank's tensors are cut: {} bytes wanted, {} there", n, rest_.size());
    const std::string_view some = rest_.substr(0, static_cast<size_t>(n));
    rest_.remove_prefix(some.size());
    return some;
  }
  int64_t integer() {
    int64_t value = 0;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::string_view rest_;
};

std::string bytes_of(const NamedTensors& tensors) {
  std::string out;
  for (const auto& [name, tensor] : tensors) {
    put(out, std::ssize(name));
    out += name;
    put(out, static_cast<int64_t>(tensor.dtype()));
    put(out, tensor.rank());
    for (int axis = 0; axis < tensor.rank(); ++axis) put(out, tensor.size(axis));
    const Tensor whole = tensor.to_contiguous();
    out.append(static_cast<const char*>(whole.raw()),
               static_cast<size_t>(whole.elements() * size_of(whole.dtype())));
  }
  return out;
}

void take_tensors(std::string_view told, NamedTensors& all) {
  Reader reader(told);
  while (!reader.is_at_end()) {
    const std::string name(reader.bytes(reader.integer()));
    const auto dtype = static_cast<DType>(reader.integer());
    std::vector<int64_t> sizes(static_cast<size_t>(reader.integer()));
    for (int64_t& size : sizes) size = reader.integer();
    const Tensor tensor = Tensor::empty(Shape(sizes), dtype);
    const std::string_view values = reader.bytes(tensor.elements() * size_of(dtype));
    std::ranges::copy(values, static_cast<char*>(tensor.raw()));
    const auto is_it = [&](const auto& known) { return known.first == name; };
    if (std::ranges::none_of(all, is_it)) all.emplace_back(name, tensor);
  }
}

// Of all weights.
std::string checksum_of(const nn::Parameters& parameters) {
  std::string sums;
  for (const auto& p : parameters.all()) {
    const std::span values(p->value().data<float>(), static_cast<size_t>(p->elements()));
    sums += checksum(std::as_bytes(values));
  }
  return checksum(std::as_bytes(std::span(sums)));
}

}  // namespace

NamedTensors gathered(dist::Group& group, const NamedTensors& mine) {
  if (group.is_alone()) return mine;
  NamedTensors all;
  for (const std::string& told : group.gather(bytes_of(mine))) take_tensors(told, all);
  return all;
}

std::vector<Tensor> told_by_rank_0(dist::Group& group, const nn::Parameters& parameters,
                                   std::vector<Tensor> of_rank_0) {
  if (group.is_alone()) return of_rank_0;
  std::vector<Tensor> all;
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const nn::Parameter& p = *parameters.all()[i];
    const bool gives = group.rank() == 0;
    Tensor values = gives ? of_rank_0.at(i) : Tensor::empty(p.shape(), DType::f32);
    const auto bytes = std::as_writable_bytes(
        std::span(values.data<float>(), static_cast<size_t>(values.elements())));
    const std::string told = group.broadcast(
        gives ? std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) : "");
    check(told.size() == bytes.size(), ErrorKind::internal, "'{}': rank 0 told {} bytes, not {}",
          p.name(), told.size(), bytes.size());
    if (!gives) std::memcpy(bytes.data(), told.data(), told.size());
    all.push_back(std::move(values));
  }
  return all;
}

void check_same_weights(dist::Group& group, const nn::Parameters& parameters, int64_t update) {
  if (group.is_alone()) return;
  const std::vector<std::string> all = group.gather(checksum_of(parameters));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    check(all[rank] == all[0], ErrorKind::internal,
          "update {}: the weights of rank {} are not those of rank 0", update, rank);
  }
}

void check_same_model(dist::Group& group, const std::string& path,
                      const nn::Parameters& parameters) {
  if (group.is_alone()) return;
  dist::check_equal(group, {{"the model in " + path, checksum_of(parameters)}});
}

void check_same_state(dist::Group& group, const std::string& path,
                      const std::optional<Progression>& loaded, const nn::Parameters& parameters) {
  if (group.is_alone()) return;
  const std::string state =
      loaded ? fmt::format("of update {} (weights {})", loaded->update, checksum_of(parameters))
             : "absent";
  dist::check_equal(group, {{"the state in " + path, state}});
}

std::vector<std::string> lines_of_ranks(dist::Group& group, const RankTimes& mine) {
  return group.gather(
      fmt::format("rank {} ({}): {} computing, {} waiting for others, {} on the wire", group.rank(),
                  dist::host_name(), format_duration(mine.compute), format_duration(mine.waiting),
                  format_duration(mine.wire)));
}

}  // namespace heddle::train
