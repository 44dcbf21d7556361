#include "control/daemon/tuner/tuner_orders.h"

#include <catch2/catch.hpp>

#include "cc/registry.h"

namespace paceline::daemon {

using tuner::online::Order;
using tuner::online::Role;

TEST_CASE("an order is read as it was kept; one of another algorithm is none", "[tuner_orders]") {
  for (const Role role : {Role::champion, Role::incumbent, Role::candidate}) {
    const Order order{7, role, {0.5, 2}, "preset", "why"};
    const auto read = order_of(json_of(order), 2);
    REQUIRE(read.has_value());
    CHECK(read->number == 7);
    CHECK(read->role == role);
    CHECK(read->values == order.values);
    CHECK(read->name == "preset");
    CHECK(read->reason == "why");
    CHECK_FALSE(order_of(json_of(order), 3).has_value());
  }
  CHECK_FALSE(order_of(Json("text"), 0).has_value());
  CHECK_FALSE(order_of(Json{{"number", 1}}, 0).has_value());
}

TEST_CASE("values of a set are in the order of the algorithm's table", "[tuner_orders]") {
  const cc::AlgorithmInfo& info = *cc::find("dcqcn");
  ParamSet set;
  set.values[std::string(info.params[1].name)] = 42;
  std::vector<double> values = values_of_set(info, set);
  REQUIRE(values.size() == info.params.size());
  CHECK(values[0] == info.params[0].default_value);
  CHECK(values[1] == 42);
  std::vector<double> other = values;
  other[0] += 1;
  const Json differ = params_that_differ(info, values, other);
  CHECK(differ.size() == 1);
  CHECK(differ[std::string(info.params[0].name)] == other[0]);
}

}  // namespace paceline::daemon
