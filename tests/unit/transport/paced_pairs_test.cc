// Pacing at scale: every one of very many queue pairs gets its rate on a port that they fill
// exactly.
#include "tests/perf/paced_pairs.h"

#include <catch2/catch.hpp>
#include <numeric>

namespace paceline::transport::test {
namespace {

void check_rates(std::uint32_t pairs, Rate link_rate, Picos span) {
  CAPTURE(pairs, link_rate.bps, span.count);
  const std::vector<Rate> rates = perf::skewed_rates(pairs, link_rate, 1);
  std::uint64_t sum = 0;
  for (const Rate rate : rates) {
    REQUIRE(rate >= rate_from_mbps(1));
    REQUIRE(rate <= rate_from_mbps(100));
    sum += rate.bps;
  }
  REQUIRE(sum == link_rate.bps);

  perf::PacedPairs sender(link_rate, rates, 2);
  sender.run_until(span);
  const std::vector<std::uint64_t>& sent = sender.port().bytes();
  std::uint32_t off = 0;
  std::uint32_t first_off = 0;
  for (std::uint32_t i = pairs; i-- > 0;) {
    const auto ideal = static_cast<std::int64_t>(bytes_in(span, rates[i]));
    const auto allowed = std::max<std::int64_t>(ideal / 200, sender.full_packet_bytes() + 16);
    if (std::abs(static_cast<std::int64_t>(sent[i]) - ideal) <= allowed) continue;
    ++off;
    first_off = i;
  }
  CAPTURE(first_off, rates[first_off].bps, sent[first_off]);
  CHECK(off == 0);
  // And the port was never idle for long: nothing else bounds what left.
  const std::uint64_t total = std::accumulate(sent.begin(), sent.end(), std::uint64_t{0});
  const std::uint64_t possible = bytes_in(span, link_rate);
  CHECK(total <= possible + sender.full_packet_bytes());
  CHECK(total >= possible - possible / 200 - std::uint64_t{pairs} / 8 * sender.full_packet_bytes());
}

TEST_CASE("paced pairs that fill a port each send their rate, to 0.5 % or a packet",
          "[transport]") {
  check_rates(2'000, rate_from_gbps(8), picos_from_micros(200'000));
}

TEST_CASE("100,000 paced pairs of 1 to 100 Mb/s fill 400 Gb/s for a second", "[transport][slow]") {
  check_rates(100'000, rate_from_gbps(400), picos_from_micros(1'000'000));
}

TEST_CASE("a pair alone at 400 Gb/s fills the port", "[transport]") {
  const Rate rate = rate_from_gbps(400);
  perf::PacedPairs sender(rate, std::span(&rate, 1), 3);
  const Picos span = picos_from_micros(20'000);
  sender.run_until(span);
  const auto ideal = static_cast<std::int64_t>(bytes_in(span, rate));
  CHECK(std::abs(static_cast<std::int64_t>(sender.port().bytes()[0]) - ideal) <= ideal / 200);
}

}  // namespace
}  // namespace paceline::transport::test
