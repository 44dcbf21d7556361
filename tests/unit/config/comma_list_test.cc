#include "dataplane/config/toml/comma_list.h"

#include <catch2/catch.hpp>

namespace paceline::config::comma_list_test {
namespace {

using Parts = std::vector<std::string_view>;

TEST_CASE("lists cut at commas: one part more than there are commas", "[config]") {
  CHECK(comma_list("ring,double_tree,pat") == Parts{"ring", "double_tree", "pat"});
  CHECK(comma_list("ring") == Parts{"ring"});
  CHECK(comma_list(" a , b") == Parts{" a ", " b"});
  CHECK(comma_list("") == Parts{""});
  CHECK(comma_list(",") == Parts{"", ""});
  CHECK(comma_list("a,,b,") == Parts{"a", "", "b", ""});
}

}  // namespace
}  // namespace paceline::config::comma_list_test
