// The page of an analysis.
#include "heddle/inspect/analysis.h"
#include "heddle/inspect/page.h"

namespace heddle::inspect {

void write_analysis_page(const std::string& path, const Analysis& analysis, const Json& layers) {
  Page page{.title = "What " + analysis.plan.name + " costs", .scripts = {"analyze.js"}};
  page.data = to_json(analysis);
  page.data["layers"] = layers;
  write_page(path, page);
}

}  // namespace heddle::inspect
