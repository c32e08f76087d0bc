// What ranks tell each other beside gradients: tensors of a state, checksums of weights, what their
// time went to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/dist/group.h"
#include "heddle/train/ranks/batch_gradient.h"
#include "heddle/train/run/state.h"

namespace heddle::train {

/// The tensors of all ranks, in the order of ranks, those of one name once. All ranks call it.
NamedTensors gathered(dist::Group& group, const NamedTensors& mine);

/// The values of all parameters that rank 0 gives, to all: f32, one tensor a parameter. All ranks
/// call it.
std::vector<Tensor> told_by_rank_0(dist::Group& group, const nn::Parameters& parameters,
                                   std::vector<Tensor> of_rank_0);

/// Errors: internal, naming a rank, on all of them, unless all have the same weights.
void check_same_weights(dist::Group& group, const nn::Parameters& parameters, int64_t update);

/// The same of a model that each rank has read from `path`; all ranks call it. Errors: usage, on
/// all of them, unless it is the same: each may see a folder of its own.
void check_same_model(dist::Group& group, const std::string& path,
                      const nn::Parameters& parameters);

/// What each rank has loaded from `path`, weights included; all ranks call it. Errors: usage, on
/// all of them, naming the updates, unless it is the same: each may see a folder of its own.
void check_same_state(dist::Group& group, const std::string& path,
                      const std::optional<Progression>& loaded, const nn::Parameters& parameters);

/// What the time of each rank went to since its process began, in order: [{"host",
/// "compute_seconds", "waiting_seconds", "wire_seconds"}]. All ranks call it.
Json times_of_ranks(dist::Group& group, const RankTimes& mine);

}  // namespace heddle::train
