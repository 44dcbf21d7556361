#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "control/daemon/api/server/places.h"

namespace paceline::test {
namespace {

using daemon::Caller;
using daemon::Places;

const Caller kAlice{"alice", false};
const Caller kBob{"bob", false};
const Caller kCarol{"carol", false};
const Caller kRoot{"root", true};

TEST_CASE("a reader has a share, and readers together leave places to operators", "[daemon_api]") {
  Places places("listeners", {.most = 8, .most_each = 3, .kept = 3});
  for (int i = 0; i < 3; ++i) CHECK(places.take(kAlice).empty());
  CHECK(places.take(kAlice) ==
        "listeners: alice has 3 already; allowed to a caller who may only read: 3");
  CHECK(places.take(kBob).empty());
  CHECK(places.take(kBob).empty());
  CHECK(places.take(kCarol) ==
        "listeners: callers who may only read have 5 already; the other 3 are kept for those who "
        "may write");
  for (int i = 0; i < 3; ++i) CHECK(places.take(kRoot).empty());
  CHECK(places.take(kRoot) == "listeners: there are 8 already; allowed: 8");

  places.leave(kAlice);
  CHECK(places.take(kCarol).empty());
  places.leave(kCarol);
  places.leave(kRoot);
  CHECK(places.taken() == 6);
  CHECK(places.take(kAlice).empty());
}

TEST_CASE("an operator has no share but the whole", "[daemon_api]") {
  Places places("listeners", {.most = 5, .most_each = 1, .kept = 2});
  for (int i = 0; i < 5; ++i) CHECK(places.take(kRoot).empty());
  CHECK_FALSE(places.take(kAlice).empty());
}

TEST_CASE("a place that was not got is not given back", "[daemon_api]") {
  Places places("listeners", {.most = 1, .most_each = 1, .kept = 0});
  auto first = std::make_unique<daemon::Place>(places, kAlice);
  CHECK(first->take().empty());
  {
    daemon::Place second(places, kBob);
    CHECK_FALSE(second.take().empty());
  }
  CHECK(places.taken() == 1);
  first.reset();
  CHECK(places.taken() == 0);
}

}  // namespace
}  // namespace paceline::test
