// Bodies by their type.
#include "heddle/serve/api/forms.h"

#include "heddle/text/strings/strings.h"

namespace heddle::serve {

Json body_of(const Exchange& e) {
  const std::string* type = e.request.header("content-type");
  constexpr const char* kForm = "application/x-www-form-urlencoded";
  if (type == nullptr || !lower_case(*type).starts_with(kForm)) return e.json();
  if (e.request.body.starts_with('{')) return e.json();  // as curl -d sends it; no form begins so
  Json body = json_of_form(e.request.body);
  e.reach(RequestPhase::parsed);
  return body;
}

Json query_of(const Exchange& e) { return json_of_form(e.request.query); }

}  // namespace heddle::serve
