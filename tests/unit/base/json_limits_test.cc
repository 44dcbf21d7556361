#include "dataplane/base/json_depth.h"

#include <catch2/catch.hpp>
#include <string>

namespace paceline {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST_CASE("JSON is measured as it is written", "[base]") {
  CHECK_FALSE(json_too_deep(nested(kDeepestJson)));
  CHECK(json_too_deep(nested(kDeepestJson + 1)));
  CHECK(json_too_deep(R"({"a": )" + nested(kDeepestJson) + "}"));
  CHECK(json_too_deep(std::string(1'000'000, '[')));
  // One after the other, and in texts, is not one in another.
  std::string flat = "[";
  for (int i = 0; i < 1000; ++i) flat += "[{}],";
  CHECK_FALSE(json_too_deep(flat + "0]"));
  CHECK_FALSE(
      json_too_deep("[\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"]"));
  CHECK(json_too_deep("[\"\\\\\"," + nested(kDeepestJson) + "]"));
  CHECK_FALSE(json_too_deep(""));
}

}  // namespace
}  // namespace paceline
