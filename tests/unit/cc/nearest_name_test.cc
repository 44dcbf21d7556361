#include "cc/nearest_name.h"

#include <catch2/catch.hpp>

using namespace paceline::cc;

TEST_CASE("nearest name: by edit distance, first of equals, none of none") {
  const std::string_view names[] = {"fixed", "dcqcn", "cadence"};
  CHECK(nearest_name("cadense", names) == "cadence");
  CHECK(nearest_name("dcqn", names) == "dcqcn");
  CHECK(nearest_name("", names) == "fixed");  // five edits, as dcqcn is
  CHECK(nearest_name("x", {}).empty());
}

TEST_CASE("nearest name: a swap of neighbours is one edit") {
  const std::string_view names[] = {"dcqcn"};
  CHECK(nearest_name("dcqnc", names, 1) == "dcqcn");
  CHECK(nearest_name("dcqnc", names, 0).empty());
}

TEST_CASE("nearest name: with a limit nothing farther away, and nothing wholly replaced") {
  const std::string_view names[] = {"k1", "alpha_gain"};
  CHECK(nearest_name("alpha_gian", names, 2) == "alpha_gain");
  CHECK(nearest_name("alp_gn", names, 3).empty());
  CHECK(nearest_name("alp_gn", names, 4) == "alpha_gain");
  CHECK(nearest_name("zz", names, 2).empty());  // k1 is two edits away, and shares no letter
  CHECK(nearest_name("zz", names) == "k1");
}
