// Notices of switches: what a congestion point makes of a queue, and what reaches the source.
#include <catch2/catch.hpp>
#include <string>

#include "dataplane/fabric/switching/congestion_points.h"
#include "tests/unit/fabric/random_scenario.h"

namespace paceline::fabric {
namespace {

constexpr std::uint8_t kData = kDefaultDataClass;
constexpr std::uint8_t kSendOnly = 0x04;

CongestionPoints points_of(std::uint64_t set_point, double weight, std::uint64_t sample) {
  FabricSpec spec;
  spec.notice = {true, set_point, weight, sample};
  CongestionPoints points(spec);
  points.add(set_point);
  return points;
}

// Lets packets join a queue of this length until one is sampled.
NoticeMessage next_sample(CongestionPoints& points, std::uint64_t queue, unsigned& packets) {
  NoticeMessage out;
  for (packets = 1; !points.sample(0, kData, 1'000, queue, out); ++packets) {
    REQUIRE(packets < 100'000);
  }
  return out;
}

TEST_CASE("congestion point: excess and growth make the feedback, in 63 steps of five queues") {
  CongestionPoints points = points_of(100'000, 2, 10'000);
  unsigned packets = 0;
  CHECK(next_sample(points, 60'000, packets).feedback == 10);  // (-40 + 2 * 60) / 500 of 63
  const NoticeMessage still = next_sample(points, 60'000, packets);
  CHECK(still.feedback == 0);
  CHECK(still.excess_bytes == -40'000);
  CHECK(still.growth_bytes == 0);
  const NoticeMessage grown = next_sample(points, 150'000, packets);
  CHECK(grown.feedback == 28);  // (50 + 2 * 90) / 500
  CHECK(grown.excess_bytes == 50'000);
  CHECK(grown.growth_bytes == 90'000);
  CHECK(grown.traffic_class == kData);
  CHECK(next_sample(points, 120'000, packets).feedback == 0);  // above, and falling
  CHECK(next_sample(points, 5'000'000, packets).feedback == 63);
}

TEST_CASE("congestion point: a sample every so many bytes, eight times as often when full") {
  CongestionPoints points = points_of(100'000, 0, 150'000);
  unsigned packets = 0;
  for (const auto& [queue, parts] : {std::pair{50'000U, 1U}, std::pair{130'000U, 3U},
                                     std::pair{120'000U, 2U}, std::pair{900'000U, 8U}}) {
    CAPTURE(queue);
    next_sample(points, queue, packets);
    double sum = 0;
    unsigned least = 1'000'000, most = 0;
    for (int i = 0; i < 400; ++i) {
      next_sample(points, queue, packets);
      sum += packets;
      least = std::min(least, packets);
      most = std::max(most, packets);
    }
    CHECK(sum / 400 == Approx(150.5 / parts).epsilon(0.05));
    CHECK(least >= 150 * 85 / 100 / parts);
    CHECK(most <= 150 * 115 / 100 / parts + 1);
    CHECK(least < most);
  }
}

// Two hosts send to a third through one switch; 100 Gb/s, 1 us.
FabricSpec notifying_star() {
  FabricSpec spec;
  spec.hosts = 3;
  spec.switches = 1;
  for (std::uint32_t h = 0; h < 3; ++h) {
    spec.links.push_back(
        {.a = h, .b = 3, .rate = rate_from_gbps(100), .delay = picos_from_micros(1)});
  }
  spec.notice = {true, 20'000, 2, 10'000};
  spec.ecn.kmin_bytes = spec.ecn.kmax_bytes = 20'000;
  return spec;
}

void send_both(Lab& lab, Ecn ecn, unsigned packets) {
  for (unsigned i = 0; i < packets; ++i) {
    for (std::uint32_t from = 0; from < 2; ++from) {
      lab.send({.at = Picos{0}, .from = from, .to = 2, .ecn = ecn, .opcode = kSendOnly});
    }
  }
}

std::size_t delivered_to(const Lab& lab, std::uint32_t host) {
  return static_cast<std::size_t>(
      std::count_if(lab.deliveries().begin(), lab.deliveries().end(),
                    [host](const Delivery& d) { return d.host == host; }));
}

TEST_CASE("notices: sources of a long queue are told, in the control class, and not marked") {
  Lab lab(notifying_star());
  lab.check_every(7);
  send_both(lab, Ecn::ect1, 100);
  REQUIRE(lab.run());
  const NetworkStats& stats = lab.net().stats();
  CHECK(stats.notices > 10);
  CHECK(delivered_to(lab, 0) + delivered_to(lab, 1) == stats.notices);
  CHECK(delivered_to(lab, 0) > 0);
  CHECK(delivered_to(lab, 1) > 0);
  CHECK(delivered_to(lab, 2) == 200);
  CHECK(stats.marked_packets == 0);
  CHECK(stats.injected_packets == 200 + stats.notices);
  for (const Delivery& d : lab.deliveries()) {
    if (d.host == 2) continue;
    CHECK(d.traffic_class == kControlClass);
    CHECK(d.ecn == Ecn::not_ect);
  }
}

TEST_CASE("notices: who does not ask is marked, and not told") {
  for (const Ecn ecn : {Ecn::ect0, Ecn::not_ect}) {
    Lab lab(notifying_star());
    send_both(lab, ecn, 100);
    REQUIRE(lab.run());
    CHECK(lab.net().stats().notices == 0);
    CHECK((lab.net().stats().marked_packets > 0) == (ecn == Ecn::ect0));
  }
  FabricSpec plain = notifying_star();
  plain.notice.enabled = false;
  Lab lab(plain);
  send_both(lab, Ecn::ect1, 100);
  REQUIRE(lab.run());
  CHECK(lab.net().stats().notices == 0);
  CHECK(lab.net().stats().marked_packets > 0);
}

TEST_CASE("notices: a flow alone on its path hears nothing") {
  Lab lab(notifying_star());
  for (unsigned i = 0; i < 100; ++i)
    lab.send({.at = Picos{0}, .from = 0, .to = 2, .ecn = Ecn::ect1, .opcode = kSendOnly});
  REQUIRE(lab.run());
  CHECK(lab.net().stats().notices == 0);
}

TEST_CASE("notices: without a set point of its own a port has that of its marks") {
  FabricSpec spec = notifying_star();
  spec.notice.set_point_bytes = 0;
  Lab implied(spec);
  Lab given(notifying_star());
  for (Lab* lab : {&implied, &given}) {
    send_both(*lab, Ecn::ect1, 100);
    REQUIRE(lab->run());
  }
  CHECK(implied.trace_hash() == given.trace_hash());
  CHECK(implied.net().stats().notices == given.net().stats().notices);
}

TEST_CASE("notices: a link that begins to lose packets goes on being sampled") {
  FabricSpec spec = notifying_star();
  for (std::uint32_t link = 0; link < 3; ++link) {
    spec.events.push_back(
        {.at = Picos{0}, .link = link, .action = LinkAction::loss, .probability = 1e-9});
  }
  Lab lab(spec);
  send_both(lab, Ecn::ect1, 100);
  REQUIRE(lab.run());
  CHECK(lab.net().stats().notices > 10);
}

TEST_CASE("notices: a fabric whose set point is nothing is refused") {
  FabricSpec spec = notifying_star();
  spec.notice.set_point_bytes = 0;
  spec.ecn.kmin_bytes = 0;
  REQUIRE(check_buildable(spec).size() == 1);
  CHECK(check_buildable(spec)[0].find("set point is kmin, 0 B") != std::string::npos);
  spec.notice = {true, 1'000, -1, 0};
  CHECK(check_buildable(spec).size() == 2);
}

}  // namespace
}  // namespace paceline::fabric
