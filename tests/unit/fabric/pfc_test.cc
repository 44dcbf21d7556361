// Pause and resume across links: when, whom, for how long, and that nothing is lost.
#include <catch2/catch.hpp>

#include "tests/unit/fabric/lab.h"

namespace paceline::fabric {
namespace {

constexpr Rate kLineRate = rate_from_gbps(100);
constexpr Picos kCable = picos_from_micros(1);
constexpr std::uint32_t kFullPacket = lab_wire_bytes(4096);

std::uint64_t drops(const Network& net, DropReason reason) {
  return net.stats().drops[static_cast<std::size_t>(reason)];
}

// n senders to host n: 64 KB to share, headroom that covers a round trip.
FabricSpec incast(std::uint32_t senders, std::uint64_t headroom = 40'000) {
  FabricSpec spec = star(senders + 1, kLineRate, kCable);
  spec.ecn.enabled = false;
  spec.pfc.headroom_bytes = headroom;
  spec.buffer_bytes = (senders + 1) * (headroom + spec.pfc.reserve_bytes) + 64'000;
  return spec;
}

void load(Lab& lab, std::uint32_t senders, int packets, std::uint8_t traffic_class = 3) {
  for (int i = 0; i < packets; ++i) {
    for (std::uint32_t from = 0; from < senders; ++from) {
      lab.send({.from = from, .to = senders, .payload = 4096, .traffic_class = traffic_class});
    }
  }
}

TEST_CASE("an incast with PFC loses nothing, pauses, and uses the link fully") {
  Lab lab(incast(8));
  load(lab, 8, 200);
  lab.check_every(50);
  CHECK(lab.run());
  CHECK(lab.violation() == "");
  lab.net().finish(lab.now());
  const NetworkStats& stats = lab.net().stats();
  CHECK(stats.delivered_packets == 1'600);
  CHECK(stats.total_drops() == 0);
  CHECK(stats.pause_frames > 100);
  CHECK(stats.resume_frames == stats.pause_frames);
  CHECK(stats.pause_time > Picos{0});
  // Total time: the bottleneck never starves.
  const Picos ideal = kCable * 2 + serialization_time(kFullPacket, kLineRate) * 1'601;
  CHECK(lab.now() == ideal);
  Picos sum{0};
  for (std::uint32_t link = 0; link < lab.net().links(); ++link) {
    sum += lab.net().link_pause_time(link);
  }
  CHECK(sum == stats.pause_time);
  CHECK(stats.buffer_used_max > 64'000 - 16'384);
}

TEST_CASE("without headroom for the packets on their way, lossless packets are lost and counted") {
  Lab lab(incast(8, 5'000));
  load(lab, 8, 200);
  CHECK(lab.run());
  CHECK(drops(lab.net(), DropReason::headroom_exhausted) > 0);
  CHECK(lab.net().stats().delivered_packets + lab.net().stats().total_drops() == 1'600);
  CHECK(lab.net().check_conservation() == "");
}

TEST_CASE("with PFC off the queue is cut at alpha of what is free") {
  FabricSpec spec = incast(8);
  spec.pfc.enabled = false;
  spec.buffer_bytes = 90'000;
  spec.pfc.alpha = 0.5;
  Lab lab(spec);
  load(lab, 8, 100);
  CHECK(lab.run());
  CHECK(drops(lab.net(), DropReason::buffer_full) > 0);
  CHECK(lab.net().stats().pause_frames == 0);
  // q + size <= (90000 - q) / 2 admits up to q = 30000.
  const std::uint64_t deepest = lab.net().last_hop_max_bytes();
  CHECK(deepest <= 30'000);
  CHECK(deepest + kFullPacket > 30'000);
}

// One sender at 100 Gb/s into a receiver at 10 Gb/s: the times of the first pause can be computed.
TEST_CASE("a pause takes effect one frame and one delay after the threshold is reached") {
  FabricSpec spec = star(2, kLineRate, kCable);
  spec.links[1].rate = rate_from_gbps(10);
  spec.ecn.enabled = false;
  spec.pfc.alpha = 1;
  spec.pfc.reserve_bytes = 0;
  spec.pfc.xon_offset_bytes = 0;
  spec.pfc.headroom_bytes = 40'000;
  spec.buffer_bytes =
      80'000 + 2 * 5 * kFullPacket;  // threshold: half of 10 packets when 5 are held
  EventWheel wheel(Network::actors_needed(spec));
  Network net(spec, wheel, 0);
  Port& port = net.host_port(0);
  Picos now{0};
  Picos paused_from = kNever;
  Picos resumed_at = kNever;
  int sent = 0;
  // Sends whenever the port lets it.
  while (resumed_at == kNever) {
    const Picos ready = port.tx_ready_at(3);
    const Picos next = wheel.next_time();
    if (sent < 40 && ready != kNever && later(ready, now) < next) {
      now = later(ready, now);
      Packet* p = net.pool().alloc();
      p->header.fill(std::byte{0});
      p->header_bytes = kLabHeaderBytes;
      p->payload_bytes = 4096;
      p->ecn = Ecn::not_ect;
      p->header[12] = std::byte{8};
      p->header[30] = std::byte{10};
      p->header[33] = std::byte{2};
      REQUIRE(port.tx(now, 3, {&p, 1}) == 1);
      ++sent;
      continue;
    }
    std::uint32_t link = 0;
    REQUIRE(wheel.pop(now, link));
    net.clear_woken();
    net.link_fired(link, now);
    if (paused_from == kNever && port.tx_ready_at(3) == kNever) {
      paused_from = now;
      CHECK(port.tx_ready_at(7) != kNever);  // other classes continue
    }
    if (paused_from != kNever && resumed_at == kNever && port.tx_ready_at(3) != kNever) {
      resumed_at = now;
      REQUIRE(net.woken_hosts().size() == 1);
      CHECK(net.woken_hosts()[0] == 0);  // a resume wakes the engine
    }
    if (paused_from != kNever) {  // a look during the pause sees it grow
      CHECK(net.pause_time(now) == earlier(now, resumed_at) - paused_from);
    }
  }
  // Packet k (from 0) reaches the switch at (k + 1) s + d, with s = 334.24 ns. The first leaves at
  // once and takes 10 s. Packets 1..5 make the sixth arrival the fifth queued: shared use 5 packets
  // against (10 - 5) x 1: pause. The frame of 84 B takes 6.72 ns.
  const Picos s = serialization_time(kFullPacket, kLineRate);
  const Picos frame{84 * 80};
  CHECK(paused_from == s * 6 + kCable + frame + kCable);
  // Until then the sender has sent until paused_from; all of it queues in shared buffer and
  // headroom. It resumes when headroom is empty and 5 or fewer are held, or fewer; the receiver
  // takes one packet per 10 s from the first arrival on.
  const Picos first_departure = s + kCable;
  const Picos wait = resumed_at - frame - kCable - first_departure;
  CHECK(wait.count % (10 * s.count) == 0);
  net.finish(resumed_at);
  CHECK(net.stats().pause_time == resumed_at - paused_from);
  CHECK(net.link_pause_time(0) == resumed_at - paused_from);
  CHECK(net.stats().pause_frames == 1);
  CHECK(net.stats().resume_frames == 1);
  CHECK(net.stats().total_drops() == 0);
  CHECK(net.check_conservation() == "");
}

TEST_CASE("pauses spread upstream through switches, and only for the class concerned") {
  // Hosts 0..3 on switch 6, hosts 4,5 on switch 7, one link between: 0..2 send to 4, 3 sends class
  // 1 to 5.
  FabricSpec spec;
  spec.hosts = 6;
  spec.switches = 2;
  for (std::uint32_t h = 0; h < 6; ++h) {
    spec.links.push_back({h, h < 4 ? 6U : 7U, h == 4 ? rate_from_gbps(10) : kLineRate, kCable});
  }
  spec.links.push_back({6, 7, rate_from_gbps(400), kCable});
  spec.ecn.enabled = false;
  spec.pfc.headroom_bytes = 150'000;
  spec.pfc.lossless_classes = 1U << 1 | 1U << 3;
  spec.buffer_bytes = 5 * 2 * 155'000 + 100'000;
  Lab lab(spec);
  for (int i = 0; i < 100; ++i) {
    for (std::uint32_t from = 0; from < 3; ++from) {
      lab.send({.from = from, .to = 4, .payload = 4096});
    }
    lab.send({.from = 3, .to = 5, .payload = 4096, .traffic_class = 1});
  }
  lab.check_every(20);
  CHECK(lab.run());
  CHECK(lab.violation() == "");
  CHECK(lab.net().stats().total_drops() == 0);
  CHECK(lab.net().link_pause_time(12) > Picos{0});  // switch 6 was paused by switch 7
  for (std::uint32_t h = 0; h < 3; ++h) CHECK(lab.net().link_pause_time(2 * h) > Picos{0});
  CHECK(lab.net().link_pause_time(6) == Picos{0});  // host 3 and its class never were
  Picos last_of_class_1{0};
  for (const Delivery& d : lab.deliveries()) {
    if (d.traffic_class == 1) last_of_class_1 = later(last_of_class_1, d.at);
  }
  // 100 packets of its own plus at most as many of class 3 before it on the shared link, three
  // delays.
  CHECK(last_of_class_1 < serialization_time(kFullPacket, kLineRate) * 400);
}

TEST_CASE("the control class is never paused") {
  Lab lab(incast(8));
  load(lab, 8, 50, kControlClass);
  CHECK(lab.run());
  CHECK(lab.net().stats().pause_frames == 0);
  CHECK(check(incast(8)).empty());
}

TEST_CASE("a faster port gets twice the alpha per doubling of rate") {
  // The same incast through a 400 Gb/s ingress is paused later: alpha 1/2 instead of 1/8.
  const auto deepest = [](bool scale) {
    FabricSpec spec;
    spec.hosts = 3;
    spec.switches = 2;
    spec.links = {{0, 3, kLineRate, kCable},
                  {1, 3, kLineRate, kCable},
                  {2, 4, rate_from_gbps(10), kCable},
                  {3, 4, rate_from_gbps(400), kCable}};
    spec.ecn.enabled = false;
    spec.pfc.scale_alpha_with_rate = scale;
    spec.pfc.headroom_bytes = 150'000;
    spec.buffer_bytes = 3'000'000;
    Lab lab(spec);
    load(lab, 2, 500);
    REQUIRE(lab.run());
    CHECK(lab.net().stats().total_drops() == 0);
    return lab.net().last_hop_max_bytes();
  };
  CHECK(deepest(true) > 2 * deepest(false));
}

}  // namespace
}  // namespace paceline::fabric
