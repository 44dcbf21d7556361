// Packet trimming: what is cut off, in which class the rest continues, and that nothing else is
// disturbed.
#include <catch2/catch.hpp>

#include "tests/unit/fabric/random_scenario.h"

namespace paceline::fabric {
namespace {

constexpr std::uint32_t kFull = lab_wire_bytes(4096);

FabricSpec trim_star(std::uint32_t hosts, std::uint64_t threshold) {
  FabricSpec spec;
  spec.hosts = hosts;
  spec.switches = 1;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    spec.links.push_back(
        {.a = h, .b = hosts, .rate = rate_from_gbps(100), .delay = picos_from_micros(1)});
  }
  spec.ecn.enabled = false;
  spec.trim = {true, threshold, kControlClass};
  return spec;
}

// Everybody sends `packets` to host 0 at once.
void burst(Lab& lab, std::uint32_t senders, unsigned packets, std::uint8_t traffic_class = 3) {
  for (std::uint32_t from = 1; from <= senders; ++from) {
    for (unsigned i = 0; i < packets; ++i) {
      lab.send({.from = from, .to = 0, .payload = 4096, .traffic_class = traffic_class});
    }
  }
}

TEST_CASE("trim: the queue stays at the threshold, and every header arrives", "[fabric][trim]") {
  constexpr std::uint64_t kThreshold = 60'000;
  Lab lab(trim_star(9, kThreshold));
  burst(lab, 8, 40);
  CHECK(lab.run());
  lab.net().finish(lab.now());
  const NetworkStats& stats = lab.net().stats();
  CHECK(stats.total_drops() == 0);
  CHECK(stats.delivered_packets == 8 * 40);
  CHECK(stats.trimmed_packets > 200);
  // Data up to the threshold and the packet that passes it; behind it headers, which go first: no
  // more of them wait than come while one packet leaves.
  CHECK(lab.net().last_hop_max_bytes() <= kThreshold + kFull + 16 * lab_wire_bytes(0));
  CHECK(lab.net().check_conservation() == "");
  std::uint64_t headers = 0;
  Picos last_header{0};
  Picos last_data{0};
  for (const Delivery& d : lab.deliveries()) {
    const bool trimmed = (d.flags & packet_flag::trimmed) != 0;
    CHECK(d.traffic_class == (trimmed ? kControlClass : 3));
    headers += trimmed ? 1 : 0;
    (trimmed ? last_header : last_data) = d.at;
  }
  CHECK(headers == stats.trimmed_packets);
  CHECK(last_header < last_data);  // they have overtaken the queue
  CHECK(stats.trimmed_bytes == headers * (kFull - lab_wire_bytes(0)));
  CHECK(lab.net().egress_stats(lab.net().topology().host_downlink(0))->trimmed == headers);
}

TEST_CASE("trim: off, or below the threshold, nothing is", "[fabric][trim]") {
  for (const std::uint64_t threshold : {std::uint64_t{0}, std::uint64_t{10'000'000}}) {
    FabricSpec spec = trim_star(9, threshold);
    spec.trim.enabled = threshold != 0;
    Lab lab(spec);
    burst(lab, 8, 40);
    CHECK(lab.run());
    CHECK(lab.net().stats().trimmed_packets == 0);
    CHECK(lab.net().last_hop_max_bytes() > 1'000'000);
  }
}

TEST_CASE("trim: a full buffer still drops what is left", "[fabric][trim]") {
  // Headroom for data, and of what is shared a thousandth: less than a header.
  FabricSpec spec = trim_star(9, 0);
  spec.pfc.alpha = 0.001;
  spec.buffer_bytes = 420'000;
  Lab lab(spec);
  burst(lab, 8, 200);
  CHECK(lab.run());
  CHECK(lab.net().stats().trimmed_packets > 0);
  CHECK(lab.net().stats().drops[static_cast<std::size_t>(DropReason::buffer_full)] > 0);
  CHECK(lab.net().check_conservation() == "");
}

TEST_CASE("trim: what is trimmed pauses nobody", "[fabric][trim]") {
  // Two packets in a queue at most; three of an ingress pause it.
  FabricSpec spec = trim_star(9, 4'000);
  spec.pfc.alpha = 0.004;
  spec.buffer_bytes = 2'000'000;
  Lab with(spec);
  burst(with, 8, 100);
  CHECK(with.run());
  spec.trim.enabled = false;
  Lab without(spec);
  burst(without, 8, 100);
  CHECK(without.run());
  CHECK(without.net().stats().pause_frames > 10);
  CHECK(with.net().stats().pause_frames == 0);
}

TEST_CASE("trim: packets without payload, of its class or above are left alone", "[fabric][trim]") {
  FabricSpec spec = trim_star(9, 0);
  spec.trim.to_class = 5;
  for (const std::uint8_t traffic_class : {std::uint8_t{5}, std::uint8_t{7}}) {
    Lab lab(spec);
    burst(lab, 8, 20, traffic_class);
    CHECK(lab.run());
    CHECK(lab.net().stats().trimmed_packets == 0);
  }
  Lab lab(spec);
  for (std::uint32_t from = 1; from <= 8; ++from) {
    for (int i = 0; i < 20; ++i) lab.send({.from = from, .to = 0, .payload = 0});
  }
  CHECK(lab.run());
  CHECK(lab.net().stats().trimmed_packets == 0);
}

TEST_CASE("trim: what cannot be configured is refused in words", "[fabric][trim]") {
  const auto refused = [](const TrimSpec& trim, std::uint32_t weight = 0) {
    FabricSpec spec = trim_star(3, 1000);
    spec.trim = trim;
    spec.class_weights[5] = weight;
    return check(spec);
  };
  CHECK(refused({true, 1000, 7}).empty());
  CHECK(refused({true, 1000, 3}).size() == 2);  // not ahead of data; lossless
  CHECK(refused({true, 1000, 8}).size() == 1);
  CHECK(refused({true, 1000, 5}, 2).size() == 1);
  CHECK(refused({false, 1000, 5}, 2).empty());
}

TEST_CASE("trim: departures decided lazily give the same as exact ones", "[fabric][trim]") {
  std::uint64_t trimmed = 0;
  for (std::uint64_t seed = 3'001; seed <= 3'060; ++seed) {
    CAPTURE(seed);
    std::array<std::uint64_t, 3> traces{};
    std::array<NetworkStats, 3> stats{};
    for (unsigned way = 0; way < 3; ++way) {
      RandomScenario scenario = trimming_scenario(seed);
      REQUIRE(check(scenario.spec).empty());
      scenario.spec.exact_departures = way == 1;
      Lab lab(scenario.spec, way == 2 ? 20 : 12);
      lab.reply(scenario.reply);
      lab.look_every(way == 2 ? 3 : 0);
      lab.check_every(way == 0 ? 20 : 0);
      for (const Send& send : scenario.sends) lab.send(send);
      lab.run(picos_from_micros(100'000));
      lab.net().finish(picos_from_micros(100'000));
      CHECK(lab.violation() + lab.net().check_conservation() == "");
      traces[way] = lab.trace_hash();
      stats[way] = lab.net().stats();
    }
    CHECK(traces[0] == traces[1]);
    CHECK(traces[0] == traces[2]);
    CHECK(stats[0] == stats[1]);
    CHECK(stats[0] == stats[2]);
    trimmed += stats[0].trimmed_packets;
  }
  CHECK(trimmed > 2'000);
}

}  // namespace
}  // namespace paceline::fabric
