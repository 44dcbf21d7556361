// Requests for missing READ responses, alone.
#include "dataplane/transport/state/selective/response_asks.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <deque>

#include "dataplane/base/numbers/random.h"

namespace paceline::transport::test {
namespace {

Psn response_at(std::uint32_t i) { return Psn(0xFF'FFF0) + i; }  // numbers wrap soon

TEST_CASE("response asks: what is asked for goes in ranges, against a model", "[transport]") {
  const auto seed = GENERATE(1U, 2U, 3U, 4U);
  CAPTURE(seed);
  Random random(seed);
  ResponseAsks asks;
  std::deque<std::deque<std::uint32_t>> model;  // each request as the numbers that it asks for
  std::uint32_t oldest = 0;
  std::uint32_t refused = 0;
  std::uint32_t joined = 0;
  for (int step = 0; step < 5'000; ++step) {
    CAPTURE(step);
    switch (random.below(8)) {
      default: {
        std::uint32_t psn = oldest + static_cast<std::uint32_t>(random.below(40));
        const bool may_follow = !model.empty() && model.back().back() + 1 >= oldest;
        if (may_follow && random.below(2) == 0) psn = model.back().back() + 1;
        const bool joins = random.below(4) != 0;
        if (joins && !model.empty() && model.back().back() + 1 == psn &&
            model.back().front() >= oldest) {
          REQUIRE(asks.add(response_at(psn), joins, response_at(oldest)));
          model.back().push_back(psn);
          ++joined;
        } else if (model.size() < 16) {
          REQUIRE(asks.add(response_at(psn), joins, response_at(oldest)));
          model.push_back({psn});
        } else {
          REQUIRE_FALSE(asks.add(response_at(psn), joins, response_at(oldest)));
          ++refused;
        }
        break;
      }
      case 6:
        oldest += static_cast<std::uint32_t>(random.below(6));
        asks.drop_before(response_at(oldest));
        while (!model.empty() && model.front().front() < oldest) {
          model.front().pop_front();
          if (model.front().empty()) model.pop_front();
        }
        break;
      case 7: {
        if (model.empty()) break;
        const ResponseAsk ask = asks.take();
        REQUIRE(ask.first == response_at(model.front().front()));
        REQUIRE(ask.count == model.front().size());
        model.pop_front();
        break;
      }
    }
    REQUIRE(asks.waiting() == model.size());
    REQUIRE(asks.empty() == model.empty());
  }
  CHECK(refused > 10);
  CHECK(joined > 100);
}

TEST_CASE("response asks: bytes in flight are given back once", "[transport]") {
  ResponseAsks asks;
  asks.sent(100);
  asks.sent(20);
  CHECK(asks.answered() == 120);
  CHECK(asks.answered() == 0);
  asks.sent(7);
  asks.add(Psn(1), true, Psn(0));
  asks.came(picos_from_nanos(5));
  asks.measured(4'000);
  asks.clear();
  CHECK(asks.empty());
  CHECK(asks.answered() == 0);
  CHECK(asks.newest() == Picos{-1});
  CHECK(asks.round_trip().smoothed_ns() == 4'000);
}

TEST_CASE("response asks: responses that come twice count once in a round trip", "[transport]") {
  ResponseAsks asks;
  CHECK(asks.repeated(picos_from_nanos(5'000), 1'000));
  CHECK_FALSE(asks.repeated(picos_from_nanos(5'999), 1'000));
  CHECK(asks.repeated(picos_from_nanos(6'000), 1'000));
  asks.measured(4'000);  // asking takes longer
  CHECK_FALSE(asks.repeated(picos_from_nanos(9'999), 1'000));
  CHECK(asks.repeated(picos_from_nanos(10'000), 1'000));
  asks.came(picos_from_nanos(8));
  asks.came(picos_from_nanos(6));
  CHECK(asks.newest() == picos_from_nanos(8));
}

}  // namespace
}  // namespace paceline::transport::test
