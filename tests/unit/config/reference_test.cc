// docs/scenarios.md lists the keys that exist, with the defaults and ranges that hold.

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "dataplane/config/keys/scenario_keys.h"
#include "dataplane/config/scenario/scenario_reader.h"

namespace paceline::config {
namespace {

const std::string kPage = std::string(PACELINE_SOURCE_DIR) + "/docs/scenarios.md";
const std::string kBegin = "<!-- keys: begin -->\n";
const std::string kEnd = "<!-- keys: end -->\n";

std::string page() {
  std::ifstream in(kPage);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST_CASE("the reference page is the table of keys", "[config]") {
  const std::string text = page();
  const auto begin = text.find(kBegin);
  const auto end = text.find(kEnd);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  INFO("write it again with: test_config \"[.write-reference]\"");
  const auto from = begin + kBegin.size();
  CHECK(text.substr(from, end - from) == scenario_reference_markdown());
}

TEST_CASE("write the reference page", "[.write-reference]") {
  std::string text = page();
  const auto from = text.find(kBegin) + kBegin.size();
  text.replace(from, text.find(kEnd) - from, scenario_reference_markdown());
  std::ofstream(kPage) << text;
}

TEST_CASE("every default lies in its range, and every key has a meaning", "[config]") {
  Scenario defaults;
  for (const KeySpec& key : scenario_keys()) {
    INFO(key.path);
    CHECK_FALSE(key.meaning.empty());
    const Field field = key.field(defaults);
    double value = 0;
    if (const auto* p = std::get_if<std::uint32_t*>(&field)) value = **p;
    if (const auto* p = std::get_if<std::uint64_t*>(&field)) value = static_cast<double>(**p);
    if (const auto* p = std::get_if<double*>(&field)) value = **p;
    if (const auto* p = std::get_if<Rate*>(&field)) value = static_cast<double>((*p)->bps);
    if (const auto* p = std::get_if<Picos*>(&field); p != nullptr && **p != kNever) {
      value = static_cast<double>((*p)->count);
    }
    const bool bounded = key.max > 0 && value != 0;
    CHECK((!bounded || (value >= key.min && value <= key.max)));
  }
}

}  // namespace
}  // namespace paceline::config
