// What a model reads, whatever its kind.
#pragma once

#include <memory>
#include <typeinfo>

#include "heddle/base/error.h"
#include "heddle/ops/dropout.h"
#include "heddle/tensor/segments.h"

namespace heddle {

/// Rows of one kind (nn::TokenRows; picture patches, feature frames), of sequences that lie end to
/// end. A view. A kind is any struct with `segments`, `rows` (for dropout; may be null) and kName,
/// what its rows are called: "tokens".
struct ModelInput {
  template <class Kind>
  requires requires { Kind::kName; }
  ModelInput(const Kind& kind)
      : segments(*kind.segments),
        rows(kind.rows),
        kind_(&kind),
        type_(typeid(Kind)),
        name_(Kind::kName) {}

  /// The rows as those of a kind. Errors: internal, naming both, if they are of another.
  template <class Kind>
  const Kind& as() const {
    check(type_ == typeid(Kind), ErrorKind::internal, "a model that reads {} was given {}",
          Kind::kName, name_);
    return *static_cast<const Kind*>(kind_);
  }

  const Segments& segments;
  const std::shared_ptr<const RowIds>& rows;

 private:
  const void* kind_;
  const std::type_info& type_;
  const char* name_;
};

}  // namespace heddle
