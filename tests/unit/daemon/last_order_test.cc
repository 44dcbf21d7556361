// How far an order of the tuner has been carried out, whatever happens meanwhile.
#include "control/daemon/tuner/last_order.h"

#include <catch2/catch.hpp>

namespace paceline::daemon {
namespace {

using tuner::online::Order;
using tuner::online::Role;

TEST_CASE("an order is due until it is carried out, and in force once it is done",
          "[live_tuner][last_order]") {
  LastOrder last;
  CHECK_FALSE(last.due());
  CHECK_FALSE(last.in_force());
  last.give({7, Role::candidate, {1, 2}, "good", "a preset"});
  CHECK(last.due());
  CHECK_FALSE(last.in_force());
  last.begin();
  CHECK_FALSE(last.due());
  CHECK_FALSE(last.in_force());
  last.retry();
  CHECK(last.due());
  last.begin();
  last.done(7);
  CHECK(last.in_force());
  CHECK(last.shown() == 0);
  last.show();
  CHECK(last.shown() == 7);
  last.give({8, Role::incumbent, {1, 1}, "plain", "the pair is over"});
  CHECK_FALSE(last.in_force());
  CHECK(last.shown() == 7);
}

TEST_CASE("an order that was done while a newer one came does not make that one be in force",
          "[live_tuner][last_order]") {
  LastOrder last;
  last.give({1, Role::incumbent, {1}, "a", ""});
  last.begin();
  last.give({2, Role::incumbent, {2}, "b", ""});
  last.done(1);
  CHECK(last.due());
  CHECK_FALSE(last.in_force());
}

TEST_CASE("only orders outside of trials settle values", "[live_tuner][last_order]") {
  LastOrder last;
  CHECK_FALSE(last.settles());
  CHECK_FALSE(last.settles_on({1}));
  last.give({1, Role::candidate, {1}, "a", ""});
  CHECK_FALSE(last.settles_on({1}));
  last.give({2, Role::champion, {1}, "champion", ""});
  CHECK(last.settles_on({1}));
  CHECK_FALSE(last.settles_on({2}));
  last.confirm();
  CHECK(last.in_force());
}

TEST_CASE("what another client puts in force replaces the order, under its number",
          "[live_tuner][last_order]") {
  LastOrder last;
  last.replace({3}, "nothing was ordered");
  CHECK_FALSE(last.order());
  last.give({5, Role::candidate, {1}, "a", ""});
  last.replace({3}, "somebody else");
  REQUIRE(last.order());
  CHECK(last.order()->number == 5);
  CHECK(last.order()->role == Role::champion);
  CHECK(last.settles_on({3}));
  CHECK(last.in_force());
  last.restore({});
  CHECK_FALSE(last.in_force());
  CHECK(last.shown() == 0);
}

}  // namespace
}  // namespace paceline::daemon
