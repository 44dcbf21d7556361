// ECN: RED on the length of the class's egress queue.
#include <catch2/catch.hpp>

#include "dataplane/wire/packet/patch.h"
#include "tests/unit/fabric/lab.h"

namespace paceline::fabric {
namespace {

constexpr std::uint32_t kPacket = lab_wire_bytes(1000);

// Two senders at line rate into one receiver: the queue grows by one packet per packet time to n/2.
FabricSpec two_into_one() {
  FabricSpec spec = star(3, rate_from_gbps(100), picos_from_micros(1));
  spec.pfc.enabled = false;
  return spec;
}

void send_burst(Lab& lab, int each, Ecn ecn = Ecn::ect0) {
  for (int i = 0; i < each; ++i) {
    lab.send({.from = 0, .to = 2, .payload = 1000, .ecn = ecn});
    lab.send({.from = 1, .to = 2, .payload = 1000, .ecn = ecn});
  }
}

std::uint64_t marked(const Lab& lab) {
  std::uint64_t n = 0;
  for (const Delivery& d : lab.deliveries()) n += d.ecn == Ecn::ce ? 1 : 0;
  return n;
}

TEST_CASE("a step threshold marks every packet that leaves more than kmax behind") {
  for (const bool dequeue : {true, false}) {
    FabricSpec spec = two_into_one();
    spec.ecn.mark_at_dequeue = dequeue;
    spec.ecn.kmin_bytes = spec.ecn.kmax_bytes = 20 * kPacket;
    Lab lab(spec);
    send_burst(lab, 100);
    REQUIRE(lab.run());
    REQUIRE(lab.deliveries().size() == 200);
    // A slot is a packet time. In slots 0..99 two packets arrive, from slot 0 on one departs,
    // before the slot's arrivals except in slot 0. After slot s < 100 the queue holds s + 1. A
    // departure leaves s - 1 behind in slots s = 1..99 and 99 - t in slots 100 + t: above 20 for s
    // = 22..99 and t = 0..78. The pair of slot s >= 1 finds s - 1 and s: above 20 for s = 22..99
    // and 21..99.
    CHECK(marked(lab) == 78 + 79);
    CHECK(lab.deliveries()[22].ecn == (dequeue ? Ecn::ce : Ecn::ect0));
    CHECK(lab.deliveries()[21].ecn == Ecn::ect0);
    CHECK(lab.net().stats().marked_packets == marked(lab));
    CHECK(lab.net().egress_stats(5)->marked == marked(lab));
  }
}

TEST_CASE("nothing is marked up to kmin, without ECN, or when not ECN-capable") {
  FabricSpec spec = two_into_one();
  spec.ecn.pmax = 1;
  spec.ecn.kmin_bytes = 99 * kPacket;  // the most a departing packet leaves behind
  spec.ecn.kmax_bytes = 100 * kPacket;
  Lab under(spec);
  send_burst(under, 100);
  REQUIRE(under.run());
  CHECK(marked(under) == 0);

  spec.ecn.kmin_bytes = spec.ecn.kmax_bytes = 0;
  Lab incapable(spec);
  send_burst(incapable, 100, Ecn::not_ect);
  REQUIRE(incapable.run());
  CHECK(marked(incapable) == 0);

  spec.ecn.enabled = false;
  Lab off(spec);
  send_burst(off, 100);
  REQUIRE(off.run());
  CHECK(marked(off) == 0);
}

TEST_CASE("between kmin and kmax the share of marks grows linearly to pmax") {
  FabricSpec spec = two_into_one();
  spec.ecn.kmin_bytes = 0;
  spec.ecn.kmax_bytes = 3'000ULL * kPacket;
  spec.ecn.pmax = 0.5;
  Lab lab(spec);
  send_burst(lab, 3'000);
  REQUIRE(lab.run());
  // The mean length is 1500 packets: probability 0.25 of 6000 packets, sd below 34.
  CHECK(marked(lab) > 1'360);
  CHECK(marked(lab) < 1'640);

  // The same seed marks the same packets; another seed others.
  Lab again(spec);
  send_burst(again, 3'000);
  REQUIRE(again.run());
  CHECK(again.trace_hash() == lab.trace_hash());
  spec.seed = 2;
  Lab other(spec);
  send_burst(other, 3'000);
  REQUIRE(other.run());
  CHECK(other.trace_hash() != lab.trace_hash());
}

TEST_CASE("a mark is in the header as well, and its checksum stays right") {
  FabricSpec spec = two_into_one();
  spec.ecn.kmin_bytes = spec.ecn.kmax_bytes = 0;
  EventWheel wheel(Network::actors_needed(spec));
  Network net(spec, wheel, 0);
  for (int i = 0; i < 3; ++i) {
    for (const std::uint32_t host : {0U, 1U}) {
      Packet* p = net.pool().alloc();
      p->header.fill(std::byte{0});
      p->header_bytes = kLabHeaderBytes;
      p->payload_bytes = 4096;
      p->ecn = Ecn::ect0;
      p->header[12] = std::byte{8};
      p->header[14] = std::byte{0x45};
      p->header[15] = std::byte{2};
      p->header[30] = std::byte{10};
      p->header[33] = std::byte{3};
      // Sum of the 16-bit words: 4502 + 0A00 + 0003 = 4F05.
      p->header[24] = std::byte{0xB0};
      p->header[25] = std::byte{0xFA};
      Picos time{};
      std::uint32_t link = 0;
      Port& port = net.host_port(host);
      while (port.tx(later(port.tx_ready_at(3), time), 3, {&p, 1}) == 0) {
        REQUIRE(wheel.pop(time, link));
        net.link_fired(link, time);
      }
    }
  }
  Picos time{};
  std::uint32_t link = 0;
  while (wheel.pop(time, link)) net.link_fired(link, time);
  Packet* burst[8];
  const std::size_t n = net.host_port(2).rx(burst);
  REQUIRE(n == 6);
  int ce = 0;
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(wire::read_ecn(burst[i]->header_view()) == burst[i]->ecn);
    std::uint32_t sum = 0;
    for (std::size_t at = 14; at < 34; at += 2) {
      sum += std::to_integer<std::uint32_t>(burst[i]->header[at]) << 8 |
             std::to_integer<std::uint32_t>(burst[i]->header[at + 1]);
    }
    CHECK((sum & 0xFFFF) + (sum >> 16) == 0xFFFF);
    ce += burst[i]->ecn == Ecn::ce ? 1 : 0;
  }
  // The first finds the port free; the second and the last leave nothing behind.
  CHECK(ce == 3);
}

TEST_CASE("queue statistics of a burst: depth found, deepest, time-weighted mean") {
  FabricSpec spec = two_into_one();
  spec.ecn.enabled = false;
  Lab lab(spec);
  send_burst(lab, 100);
  REQUIRE(lab.run());
  const Picos end = lab.now();
  lab.net().finish(end);
  const EgressStats egress = *lab.net().egress_stats(5);
  CHECK(egress.packets == 200);
  CHECK(egress.bytes == 200 * kPacket);
  CHECK(egress.queued_bytes == 0);
  CHECK(egress.max_bytes == 100 * kPacket);
  CHECK(lab.net().last_hop_max_bytes() == 100 * kPacket);
  // Queue after slot s: s + 1 packets for s < 100, then 99, 98, ... 0.
  const double packet_slots = 100 * 101 / 2 + 99 * 100 / 2;
  const double slot = kPacket * 80.0;
  CHECK(egress.mean_bytes ==
        Approx(packet_slots * kPacket * slot / static_cast<double>(end.count)).epsilon(1e-9));
  const Histogram& depth = lab.net().last_hop_depth();
  CHECK(depth.count() == 200);
  CHECK(depth.max() == 99 * kPacket);
  CHECK(lab.net().core_depth().count() == 0);
  CHECK(lab.net().egress_stats(0) == std::nullopt);
}

// Hosts 0 and 1 send to 2, all at 100 Gb/s, then 0 to 3 at 25 Gb/s.
std::array<std::uint64_t, 2> marked_at_two_rates(const FabricSpec& spec) {
  Lab lab(spec);
  send_burst(lab, 100);
  for (int i = 0; i < 100; ++i) lab.send({.from = 0, .to = 3, .payload = 1000});
  REQUIRE(lab.run());
  REQUIRE(lab.deliveries().size() == 300);
  std::array<std::uint64_t, 2> by_host{};
  for (const Delivery& d : lab.deliveries()) by_host[d.host - 2] += d.ecn == Ecn::ce ? 1 : 0;
  return by_host;
}

TEST_CASE("ports mark by the curve of their link's rate; those without one by the general curve") {
  FabricSpec spec = star(4, rate_from_gbps(100), picos_from_micros(1));
  spec.pfc.enabled = false;
  spec.links[3].rate = rate_from_gbps(25);
  const MarkingCurve step{20 * kPacket, 20 * kPacket, 1};
  const MarkingCurve never{1000 * kPacket, 1000 * kPacket, 1};
  for (const bool dequeue : {true, false}) {
    const auto with = [&](const MarkingCurve& general, std::vector<EcnSpec::AtRate> at_rates) {
      spec.ecn = {general, true, dequeue, std::move(at_rates)};
      return marked_at_two_rates(spec);
    };
    const auto everywhere = with(step, {});
    CHECK(everywhere[0] == 78 + 79);
    CHECK(everywhere[1] > 40);
    const Rate slow = rate_from_gbps(25), fast = rate_from_gbps(100);
    CHECK(with(never, {{fast, step}}) == std::array<std::uint64_t, 2>{everywhere[0], 0});
    CHECK(with(step, {{fast, never}}) == std::array<std::uint64_t, 2>{0, everywhere[1]});
    CHECK(with(never, {{slow, step}, {fast, step}}) == everywhere);
    CHECK(with(step, {{slow, never}, {rate_from_gbps(400), never}}) ==
          std::array<std::uint64_t, 2>{everywhere[0], 0});
  }
  spec.ecn.enabled = false;
  spec.ecn.at_rates = {{rate_from_gbps(100), step}};
  CHECK(marked_at_two_rates(spec) == std::array<std::uint64_t, 2>{0, 0});
}

TEST_CASE("curves of rates are checked as the general one is, and no rate has two") {
  FabricSpec spec = two_into_one();
  spec.ecn.at_rates = {{rate_from_gbps(25), {2000, 1000, 0.5}},
                       {rate_from_gbps(50), {1000, 2000, 1.5}},
                       {rate_from_gbps(25), {1000, 2000, 0.5}}};
  CHECK(check(spec) ==
        std::vector<std::string>{"ECN at 25000000000 b/s: kmin 2000 B must not exceed kmax 1000 B",
                                 "ECN at 50000000000 b/s: pmax 1.500000 must be within 0 and 1",
                                 "ECN at 25000000000 b/s: given twice"});
}

}  // namespace
}  // namespace paceline::fabric
