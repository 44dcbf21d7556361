#include "dataplane/base/text/json_limits.h"

#include <catch2/catch.hpp>
#include <string>

namespace paceline {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST_CASE("JSON is measured as it is written", "[base]") {
  CHECK_FALSE(json_excess(nested(kDeepestJson)));
  CHECK(json_excess(nested(kDeepestJson + 1)));
  CHECK(json_excess(R"({"a": )" + nested(kDeepestJson) + "}"));
  CHECK(json_excess(std::string(1'000'000, '[')));
  // One after the other, and in texts, is not one in another.
  std::string flat = "[";
  for (int i = 0; i < 1000; ++i) flat += "[{}],";
  CHECK_FALSE(json_excess(flat + "0]"));
  CHECK_FALSE(
      json_excess("[\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"]"));
  CHECK(json_excess("[\"\\\\\"," + nested(kDeepestJson) + "]"));
  CHECK_FALSE(json_excess(""));
}

TEST_CASE("a long number in JSON is found where it begins", "[base]") {
  const std::string longest(kLongestJsonNumber, '1');
  CHECK_FALSE(json_excess("[" + longest + "," + longest + " " + longest + "]"));
  CHECK_FALSE(json_excess("{\"" + longest + "1\": \"" + longest + "1\"}"));
  const JsonExcess excess = json_excess("[true, -" + longest + "]");
  CHECK(excess.what == "a number of more than 64 characters");
  CHECK(excess.at == 7);
  CHECK(json_excess("1e" + longest).at == 0);
  CHECK(json_excess("[0." + std::string(100'000'000, '0') + "]").at == 1);
}

}  // namespace
}  // namespace paceline
