// The page of an analysis.
#include "heddle/base/files/files.h"
#include "heddle/inspect/analysis.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/inspect/run_history.h"

namespace heddle::inspect {

void write_analysis_page(const std::string& path, const std::string& name, const Analysis& analysis,
                         const Json& layers) {
  const std::string model = name.ends_with("/config.json") ? parent_path(name) : name;
  Page page{.title = "What " + short_names({model})[0] + " costs", .scripts = {"analyze.js"}};
  page.data = to_json(analysis);
  page.data["layers"] = layers;
  write_page(path, page);
}

}  // namespace heddle::inspect
