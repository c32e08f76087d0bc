// Where a run stops because of what is not finite: which tensor it was.
#pragma once

#include <functional>
#include <string>

#include "heddle/nn/parameters.h"

namespace heddle::train {

/// Fails with the first weight that is not finite. last_good: a sentence on the last good state.
/// Errors: data.
void check_weights(const nn::Parameters& parameters, int64_t update, const std::string& last_good);

/// Runs `compute` again with every output checked, and fails with the name of the first bad one, if
/// there is one. what: "loss". Errors: data.
void name_bad_tensor(const std::string& what, int64_t update, const std::string& last_good,
                     const std::function<void()>& compute);

}  // namespace heddle::train
