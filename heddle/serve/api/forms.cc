// Bodies by their type.
#include "heddle/serve/api/forms.h"

namespace heddle::serve {

Json body_of(const Exchange& e) {
  const std::string* type = e.request.header("content-type");
  if (type == nullptr || !type->starts_with("application/x-www-form-urlencoded")) return e.json();
  return json_of_form(e.request.body);
}

Json query_of(const Exchange& e) { return json_of_form(e.request.query); }

}  // namespace heddle::serve
