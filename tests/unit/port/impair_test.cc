#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <stdexcept>
#include <vector>

#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/patch.h"
#include "tests/support/impair.h"
#include "tests/support/ring_port.h"

namespace paceline {
namespace {

constexpr std::uint64_t kPackets = 4000;

struct Result {
  std::vector<std::uint64_t> order;  // numbers as they came out
  std::vector<std::uint64_t> damaged;
  std::size_t marked = 0;
  ImpairmentCounters counters;
  friend bool operator==(const Result& a, const Result& b) {
    return a.order == b.order && a.damaged == b.damaged && a.marked == b.marked;
  }
};

// Sends numbered packets one by one through an impaired end and notes what comes out.
Result pass(const Impairments& impairments, std::uint64_t seed) {
  RingCableConfig config;
  config.ring_packets = 64;
  config.pool_packets = 512;
  RingCable cable(config);
  RingPort& from = cable.end(0);
  Result result;
  {
    ImpairedPort port(cable.end(1), impairments, Random(seed));
    wire::FlowAddressing flow;
    flow.source = wire::IpAddress::v4(1);
    flow.destination = wire::IpAddress::v4(2);
    const wire::HeaderTemplate header = wire::make_header_template(flow);
    for (std::uint64_t n = 0; n < kPackets; ++n) {
      Packet* packet = from.packets().alloc();
      wire::TransportFields fields;
      fields.payload_bytes = 64;
      packet->header_bytes = static_cast<std::uint16_t>(
          wire::build_data(header, wire::HeaderBuffer{packet->header}, fields));
      packet->payload_bytes = 64;
      packet->payload_kind = PayloadKind::owned;
      packet->digest = n;
      packet->icrc = 0;
      std::memset(packet->payload, 0, 64);
      const auto original = packet->header;
      REQUIRE(from.tx({0}, kDefaultDataClass, {&packet, 1}) == 1);
      std::array<Packet*, 8> got{};
      std::size_t count;
      do {
        count = port.rx(got);
        for (std::size_t i = 0; i < count; ++i) {
          Packet& p = *got[i];
          result.order.push_back(p.digest);
          result.marked += p.ecn == Ecn::ce ? 1U : 0U;
          wire::patch_ecn(p.header_view(), Ecn::ect0);
          const bool clean =
              std::memcmp(p.header.data(), original.data(), p.header_bytes) == 0 && p.icrc == 0 &&
              std::all_of(p.payload, p.payload + 64, [](std::byte b) { return b == std::byte{0}; });
          if (!clean) result.damaged.push_back(p.digest);
          port.packets().free(&p);
        }
      } while (count == got.size());
    }
    result.counters = port.counters();
  }
  cable.drain();
  CHECK(cable.end(0).packets().in_use() == 0);
  CHECK(cable.end(1).packets().in_use() == 0);
  return result;
}

TEST_CASE("without impairments everything passes as it is", "[port]") {
  const Result result = pass({}, 1);
  REQUIRE(result.order.size() == kPackets);
  CHECK(std::is_sorted(result.order.begin(), result.order.end()));
  CHECK(result.damaged.empty());
  CHECK(result.marked == 0);
}

TEST_CASE("each impairment happens as often as asked, and alone", "[port]") {
  // 10 % of 4000: 400, standard deviation 19; 5 of them either way.
  const auto about_400 = [](std::uint64_t n) { return n > 305 && n < 495; };
  const Result drop = pass({.drop = 0.1}, 2);
  CHECK(about_400(drop.counters.dropped));
  CHECK(drop.order.size() == kPackets - drop.counters.dropped);
  CHECK(drop.damaged.empty());

  const Result corrupt = pass({.corrupt = 0.1}, 3);
  CHECK(about_400(corrupt.counters.corrupted));
  CHECK(corrupt.order.size() == kPackets);
  // All but those whose bit was one of the two of the ECN field, which this test sets back.
  CHECK(corrupt.damaged.size() <= corrupt.counters.corrupted);
  CHECK(corrupt.damaged.size() + 8 >= corrupt.counters.corrupted);

  const Result twice = pass({.duplicate = 0.1}, 4);
  CHECK(about_400(twice.counters.duplicated));
  CHECK(twice.order.size() == kPackets + twice.counters.duplicated);
  CHECK(std::is_sorted(twice.order.begin(), twice.order.end()));

  const Result mark = pass({.mark = 0.1}, 5);
  CHECK(about_400(mark.counters.marked));
  CHECK(mark.marked == mark.counters.marked);
  CHECK(mark.damaged.empty());

  const Result reorder = pass({.reorder = 0.1, .max_hold = 5}, 6);
  CHECK(about_400(reorder.counters.reordered));
  CHECK_FALSE(std::is_sorted(reorder.order.begin(), reorder.order.end()));
  const std::set<std::uint64_t> distinct(reorder.order.begin(), reorder.order.end());
  CHECK(distinct.size() == reorder.order.size());
  CHECK(reorder.order.size() + 5 >= kPackets);  // the last may still be set aside
  for (std::size_t i = 0; i < reorder.order.size(); ++i) {
    // Nobody comes out later than max_hold arrivals after its own turn.
    CHECK(i <= reorder.order[i] + 5);
  }
}

TEST_CASE("same seed, same impairments; another seed, others", "[port]") {
  const Impairments all = {
      .drop = 0.05, .corrupt = 0.05, .duplicate = 0.05, .reorder = 0.05, .mark = 0.05};
  CHECK(pass(all, 7) == pass(all, 7));
  CHECK_FALSE(pass(all, 7) == pass(all, 8));
}

TEST_CASE("what is no probability is refused", "[port]") {
  RingCable cable;
  CHECK_THROWS_AS(ImpairedPort(cable.end(0), {.drop = 1.1}, Random(1)), std::invalid_argument);
  CHECK_THROWS_AS(ImpairedPort(cable.end(0), {.mark = -0.1}, Random(1)), std::invalid_argument);
  CHECK_THROWS_AS(ImpairedPort(cable.end(0), {.reorder = 0.1, .max_hold = 0}, Random(1)),
                  std::invalid_argument);
}

}  // namespace
}  // namespace paceline
