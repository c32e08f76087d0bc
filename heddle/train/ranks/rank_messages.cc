// Tensors as bytes and back; times as lines.
#include "heddle/train/ranks/rank_messages.h"

#include <algorithm>
#include <cstring>

#include "heddle/base/files/files.h"
#include "heddle/dist/packed.h"
#include "heddle/dist/socket.h"

namespace heddle::train {
namespace {

struct SentTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> sizes = {};
  std::string values = {};

  template <class V>
  void parts(V& v) {
    v(name, dtype, sizes, values);
  }
};

SentTensor sent(const std::string& name, const Tensor& tensor) {
  SentTensor one{.name = name, .dtype = tensor.dtype()};
  for (int axis = 0; axis < tensor.rank(); ++axis) one.sizes.push_back(tensor.size(axis));
  const Tensor whole = tensor.to_contiguous();
  one.values.assign(static_cast<const char*>(whole.raw()),
                    static_cast<size_t>(whole.elements() * size_of(whole.dtype())));
  return one;
}

Tensor received(const SentTensor& one) {
  const Tensor tensor = Tensor::empty(Shape(one.sizes), one.dtype);
  check(std::ssize(one.values) == tensor.elements() * size_of(one.dtype), ErrorKind::internal,
        "a rank told {} bytes of '{}', {}", one.values.size(), one.name, tensor.shape());
  std::ranges::copy(one.values, static_cast<char*>(tensor.raw()));
  return tensor;
}

}  // namespace

NamedTensors gathered(dist::Group& group, const NamedTensors& mine) {
  if (group.is_alone()) return mine;
  std::vector<SentTensor> own;
  for (const auto& [name, tensor] : mine) own.push_back(sent(name, tensor));
  NamedTensors all;
  for (const std::string& told : group.gather(dist::packed(own))) {
    for (const SentTensor& one : dist::unpacked<std::vector<SentTensor>>(told)) {
      const auto is_it = [&](const auto& known) { return known.first == one.name; };
      if (std::ranges::none_of(all, is_it)) all.emplace_back(one.name, received(one));
    }
  }
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
  const std::vector<std::string> all = group.gather(parameters.checksum());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    check(all[rank] == all[0], ErrorKind::internal,
          "update {}: the weights of rank {} are not those of rank 0", update, rank);
  }
}

void check_same_model(dist::Group& group, const std::string& path,
                      const nn::Parameters& parameters) {
  if (group.is_alone()) return;
  dist::check_equal(group, {{"the model in " + path, parameters.checksum()}});
}

void check_same_state(dist::Group& group, const std::string& path,
                      const std::optional<Progression>& loaded, const nn::Parameters& parameters) {
  if (group.is_alone()) return;
  const std::string state =
      loaded ? fmt::format("of update {} (weights {})", loaded->update, parameters.checksum())
             : "absent";
  dist::check_equal(group, {{"the state in " + path, state}});
}

Json times_of_ranks(dist::Group& group, const RankTimes& mine) {
  const Json own = Json::object({{"host", dist::host_name()},
                                 {"compute_seconds", mine.compute},
                                 {"waiting_seconds", mine.waiting},
                                 {"wire_seconds", mine.wire}});
  Json all = Json::array();
  for (const std::string& told : group.gather(own.dump())) all.push_back(Json::parse(told));
  return all;
}

}  // namespace heddle::train
