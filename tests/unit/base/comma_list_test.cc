#include "dataplane/base/text/comma_list.h"

#include <catch2/catch.hpp>

namespace paceline::comma_list_test {
namespace {

using Parts = std::vector<std::string_view>;

TEST_CASE("lists cut at commas: one part more than there are commas", "[base]") {
  CHECK(comma_list("ring,double_tree,pat") == Parts{"ring", "double_tree", "pat"});
  CHECK(comma_list("ring") == Parts{"ring"});
  CHECK(comma_list(" a , b") == Parts{" a ", " b"});
  CHECK(comma_list("") == Parts{""});
  CHECK(comma_list(",") == Parts{"", ""});
  CHECK(comma_list("a,,b,") == Parts{"a", "", "b", ""});
}

}  // namespace
}  // namespace paceline::comma_list_test
