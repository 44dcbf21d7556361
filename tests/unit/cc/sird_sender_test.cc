// csn: credit of all receivers that has piled up at a host, against SThr.
#include "cc/sird/sender.h"

#include <array>

#include "cc/cadence/cadence.h"
#include "cc/sird/sird.h"
#include "tests/unit/cc/grant_support.h"

namespace paceline::cc::test {
namespace {

UplinkWant piled(std::uint64_t bytes) {
  UplinkWant want;
  want.credit_bytes = static_cast<std::uint32_t>(bytes);
  return want;
}

std::vector<std::uint32_t> told(SirdSender& sender, std::int64_t now, bool congested) {
  std::vector<std::uint32_t> all;
  std::array<ShareOutput, 4> out;
  std::size_t n = 0;
  do {
    n = sender.poll(Nanos{now}, out);
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(out[i].share.congested == congested);
      all.push_back(out[i].context);
    }
  } while (n == out.size());
  REQUIRE(sender.check_invariants(Nanos{now}) == "");
  return all;
}

TEST_CASE("sird sender: above SThr all that hold credit are told, and when it is over", "[sird]") {
  const Sird::Params p = grant_params<Sird>("sird");
  SirdSender sender(p);
  const std::uint64_t third = p.threshold_bytes / 3;
  for (std::uint32_t i = 0; i < 6; ++i) sender.update(Nanos{1'000}, i, piled(0));
  for (const std::uint32_t i : {0U, 2U, 4U}) sender.update(Nanos{1'000}, i, piled(third));
  CHECK(told(sender, 1'000, false).empty());
  sender.update(Nanos{5'000}, 0, piled(third + 100));
  CHECK(told(sender, 5'000, true) == std::vector<std::uint32_t>{0, 2, 4});
  CHECK(sender.congested());
  // A channel that gets credit only now is told.
  sender.update(Nanos{5'100}, 1, piled(10));
  CHECK(told(sender, 5'100, true) == std::vector<std::uint32_t>{1});
  sender.update(Nanos{9'000}, 0, piled(0));
  sender.forget(Nanos{9'000}, 2);
  CHECK(told(sender, 9'000, false) == std::vector<std::uint32_t>{0, 1, 4});
}

TEST_CASE("sird sender: one receiver alone is never too much", "[sird]") {
  const Sird::Params p = grant_params<Sird>("sird");
  SirdSender sender(p);
  sender.update(Nanos{1'000}, 7, piled(100 * p.threshold_bytes));
  CHECK(told(sender, 1'000, false).empty());
  CHECK_FALSE(sender.congested());
}

TEST_CASE("sird sender: it looks four times per round trip at most", "[sird]") {
  const Sird::Params p = grant_params<Sird>("sird");
  SirdSender sender(p);
  sender.update(Nanos{1'000}, 0, piled(1));
  CHECK(told(sender, 1'000, false).empty());
  sender.update(Nanos{1'010}, 0, piled(p.threshold_bytes));
  sender.update(Nanos{1'010}, 1, piled(p.threshold_bytes));
  CHECK(told(sender, 1'010, false).empty());
  CHECK(sender.next_wake().count >= 1'000 + 4'700 / 4);
  CHECK(told(sender, sender.next_wake().count, true).size() == 2);
  CHECK(sender.next_wake() == kNeverNanos);
}

TEST_CASE("sird sender: a channel of an algorithm that is left gets its answer", "[sird]") {
  SirdSender sender(grant_params<Sird>("sird"));
  UplinkWant want;
  want.asks_start = true;
  want.start_bytes = 5'000;
  sender.update(Nanos{1'000}, 3, want);
  std::array<ShareOutput, 4> out;
  REQUIRE(sender.poll(Nanos{1'000}, out) == 1);
  CHECK(out[0].context == 3);
  CHECK(out[0].share.answers_start);
  CHECK(out[0].share.start_bytes == 0);
}

TEST_CASE("sird sender: what one GRANT brings has not piled up", "[sird]") {
  const Sird::Params p = grant_params<Sird>("sird");
  Sird::State s{};
  s.phase = GrantChannel::Phase::open;
  s.ceiling = kPacket;
  CHECK(Sird::uplink_want(s, p).credit_bytes == 0);
  s.ceiling = 5 * kPacket;
  CHECK(Sird::uplink_want(s, p).credit_bytes == 4 * kPacket);
  s.phase = GrantChannel::Phase::idle;
  CHECK(Sird::uplink_want(s, p).credit_bytes == 0);
}

}  // namespace
}  // namespace paceline::cc::test
