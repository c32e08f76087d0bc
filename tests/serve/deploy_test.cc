// What deploy/ names is there: counters that alerts and the dashboard ask for, flags of the units.
#include <regex>
#include <set>

#include "heddle/base/files/files.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"
#include "tests/support/places.h"

namespace heddle::serve {
namespace {

std::string deployed(const char* name) {
  return read_file(std::string(testing::kSource) + "/deploy/" + name);
}

// All that matches, without the endings of a histogram's rows.
std::set<std::string> counters_in(const std::string& text) {
  static const std::regex name("heddle_[a-z_]+"), ending("_(bucket|sum|count)$");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) {
    names.insert(std::regex_replace(at->str(), ending, ""));
  }
  return names;
}

TEST(Deploy, every_counter_that_is_asked_for_is_there) {
  Running running;
  post(running.port(), "/v1/translations", R"({"text": "a dog runs"})");
  const std::string text = get(running.port(), "/metrics").body;
  std::set<std::string> known;
  static const std::regex type("# TYPE (heddle_[a-z_]+) ");
  for (std::sregex_iterator at(text.begin(), text.end(), type), end; at != end; ++at) {
    known.insert((*at)[1]);
  }
  for (const char* file : {"prometheus/alerts.yaml", "grafana/dashboard.json"}) {
    const std::set<std::string> asked = counters_in(deployed(file));
    EXPECT_GE(asked.size(), 2u) << file;
    for (const std::string& name : asked) EXPECT_TRUE(known.contains(name)) << file << ": " << name;
  }
  // What the server counts is shown: nothing is counted for nobody.
  const std::set<std::string> shown = counters_in(deployed("grafana/dashboard.json"));
  for (const std::string& name : known) EXPECT_TRUE(shown.contains(name)) << name;
}

TEST(Deploy, the_dashboard_and_its_panels_are_whole) {
  const Json dashboard = Json::parse(deployed("grafana/dashboard.json"), "dashboard.json");
  std::set<int64_t> ids;
  for (const Json& panel : dashboard.at("panels").as_array()) {
    EXPECT_TRUE(ids.insert(panel.get_int("id")).second);
    EXPECT_EQ(panel.at("datasource").get_string("uid"), "prometheus");
    for (const Json& target : panel.at("targets").as_array()) {
      const std::string& expression = target.get_string("expr");
      EXPECT_EQ(std::ranges::count(expression, '('), std::ranges::count(expression, ')'));
    }
  }
  EXPECT_GE(ids.size(), 6u);
  EXPECT_NE(deployed("grafana/provisioning.yaml").find("uid: prometheus"), std::string::npos);
}

TEST(Deploy, files_name_each_other_by_names_that_there_are) {
  const std::string compose = deployed("compose.yaml");
  static const std::regex path("\\./([a-z/._]+):/");
  int found = 0;
  for (std::sregex_iterator at(compose.begin(), compose.end(), path), end; at != end; ++at) {
    const std::string named = std::string(testing::kSource) + "/deploy/" + (*at)[1].str();
    EXPECT_TRUE(std::filesystem::exists(named)) << named;
    ++found;
  }
  EXPECT_EQ(found, 4);
  EXPECT_NE(compose.find("dockerfile: deploy/Dockerfile"), std::string::npos);
  EXPECT_NE(deployed("prometheus/prometheus.yaml").find("alerts.yaml"), std::string::npos);
}

}  // namespace
}  // namespace heddle::serve
