// Looking through weights, computing again with checks.
#include "heddle/train/not_finite.h"

#include "heddle/kernels/kernels.h"

namespace heddle::train {

void check_weights(const nn::Parameters& parameters, int64_t update, const std::string& last_good) {
  for (const auto& p : parameters.all()) {
    check(kernels().all_finite(p->value().rows()), ErrorKind::data,
          "update {}: the weight '{}' is not finite; lower the learning rate. {}", update,
          p->name(), last_good);
  }
}

void name_bad_tensor(const std::string& what, int64_t update, const std::string& last_good,
                     const std::function<void()>& compute) {
  set_check_finite(true);
  try {
    compute();
  } catch (const Error& e) {
    set_check_finite(false);
    fail(ErrorKind::data, "update {}: the {} is not finite: {}. {}", update, what, e.what(),
         last_good);
  }
  set_check_finite(false);
}

}  // namespace heddle::train
