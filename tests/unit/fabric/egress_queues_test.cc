#include "dataplane/fabric/switching/egress_queues.h"

#include <array>
#include <catch2/catch.hpp>
#include <deque>
#include <memory_resource>

#include "dataplane/base/numbers/random.h"

namespace paceline::fabric {
namespace {

struct EgressRig {
  explicit EgressRig(const FabricSpec& of)
      : spec(of), pool(16, 0, true), queues(spec, pool, counted, *std::pmr::new_delete_resource()) {
    index = queues.add(0, 0, 2, true);
  }
  Egress& egress() { return queues[index]; }
  void push(Packet* packet, Picos now) {
    EgressQueues::push(egress(), egress().queues[packet->traffic_class], packet, now);
  }
  // Whether it is marked.
  bool found_by(Packet* packet) {
    const std::uint64_t before = counted.marked_packets;
    queues.found_by(egress(), egress().queues[packet->traffic_class], packet);
    return counted.marked_packets != before;
  }
  Packet* pop(std::uint8_t traffic_class, Picos at, bool& marked) {
    const std::uint64_t before = counted.marked_packets;
    Packet* packet = queues.pop(egress(), traffic_class, at);
    marked = counted.marked_packets != before;
    return packet;
  }
  bool cuts(std::uint8_t traffic_class) {
    return queues.above_trim_threshold(egress().queues[traffic_class]);
  }
  Packet* packet(std::uint32_t bytes, std::uint8_t traffic_class, Ecn ecn = Ecn::ect0) {
    Packet* out = pool.alloc();
    out->wire_bytes = bytes;
    out->traffic_class = traffic_class;
    out->ecn = ecn;
    out->payload_bytes = 0;
    out->header_bytes = 0;
    out->bth_offset = 0;
    return out;
  }

  FabricSpec spec;
  PacketPool pool;
  NetworkStats counted;
  EgressQueues queues;
  std::uint32_t index = 0;
};

FabricSpec one_egress() {
  FabricSpec spec;
  spec.hosts = 1;
  spec.switches = 1;
  spec.links = {{.a = 1, .b = 0, .rate = rate_from_gbps(100)}};
  spec.ecn.enabled = false;
  return spec;
}

TEST_CASE("egress: for any traffic each class is a FIFO, and the counters are what it holds") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 30));
  INFO("seed " << seed);
  EgressRig rig(one_egress());
  Random random(seed, 5);
  std::array<std::deque<Packet*>, kTrafficClasses> model;
  std::uint64_t bytes = 0;
  std::uint64_t most = 0;
  std::uint64_t left = 0;
  double integral = 0;
  Picos now{0};
  for (int i = 0; i < 500; ++i) {
    const Picos step{static_cast<std::int64_t>(random.below(1'000))};
    integral += static_cast<double>(bytes) * static_cast<double>(step.count);
    now += step;
    unsigned backlog = 0;
    for (std::size_t c = 0; c < kTrafficClasses; ++c) backlog |= model[c].empty() ? 0U : 1U << c;
    if (backlog == 0 || random.below(2) == 0) {
      const auto c = static_cast<std::uint8_t>(random.below(kTrafficClasses));
      Packet* packet = rig.packet(static_cast<std::uint32_t>(64 + random.below(1'000)), c);
      rig.push(packet, now);
      model[c].push_back(packet);
      bytes += packet->wire_bytes;
      most = std::max(most, bytes);
    } else {
      const std::uint8_t c = rig.queues.choose(rig.index, backlog);
      CHECK(c == std::bit_width(backlog) - 1);  // strict priority
      bool marked = true;
      Packet* packet = rig.pop(c, now, marked);
      CHECK_FALSE(marked);
      CHECK(packet == model[c].front());
      model[c].pop_front();
      bytes -= packet->wire_bytes;
      left += packet->wire_bytes;
      if (model[c].empty()) rig.queues.emptied(rig.index, c);
      rig.pool.free(packet);
    }
    REQUIRE(rig.egress().queued_bytes == bytes);
  }
  rig.egress().integrate(now);
  const EgressStats stats = rig.queues.stats(rig.index);
  CHECK(stats.max_bytes == most);
  CHECK(stats.bytes == left);
  CHECK(stats.queued_bytes == bytes);
  CHECK(stats.mean_bytes == Approx(integral / static_cast<double>(now.count)));
  CHECK(rig.queues.last_hop_max_bytes() == most);
}

TEST_CASE("egress: classes with weights share what strict ones leave, in proportion") {
  FabricSpec spec = one_egress();
  spec.class_weights = {};
  spec.class_weights[1] = 1;
  spec.class_weights[2] = 3;
  EgressRig rig(spec);
  for (int i = 0; i < 400; ++i) {
    rig.push(rig.packet(1'000, 1), Picos{0});
    rig.push(rig.packet(1'000, 2), Picos{0});
  }
  rig.push(rig.packet(1'000, 7), Picos{0});
  bool marked = false;
  CHECK(rig.queues.choose(rig.index, 0b1000'0110) == 7);
  rig.pool.free(rig.pop(7, Picos{1}, marked));
  std::array<int, kTrafficClasses> sent{};
  for (int i = 0; i < 400; ++i) {
    const std::uint8_t c = rig.queues.choose(rig.index, 0b0000'0110);
    ++sent[c];
    rig.pool.free(rig.pop(c, Picos{1}, marked));
  }
  CHECK(sent[2] == Approx(300).margin(20));
  CHECK(sent[1] + sent[2] == 400);
}

TEST_CASE("egress: marking follows its curve, by the queue at departure or at arrival") {
  const bool at_departure = GENERATE(true, false);
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(1, 4));
  INFO("seed " << seed);
  FabricSpec spec = one_egress();
  spec.seed = seed;
  spec.ecn.enabled = true;
  spec.ecn.kmin_bytes = 10'000;
  spec.ecn.kmax_bytes = 30'000;
  spec.ecn.pmax = 0.5;
  spec.ecn.mark_at_dequeue = at_departure;
  EgressRig rig(spec);
  // The share marked of 2,000 packets that find, or leave, this many bytes.
  const auto share = [&](std::uint32_t others, Ecn ecn) {
    int count = 0;
    for (int i = 0; i < 2'000; ++i) {
      Packet* other = rig.packet(others, 3, Ecn::not_ect);
      Packet* packet = rig.packet(100, 3, ecn);
      bool marked = false;
      if (at_departure) {
        CHECK_FALSE(rig.found_by(packet));
        rig.push(packet, Picos{0});
        rig.push(other, Picos{0});
        CHECK(rig.pop(3, Picos{0}, marked) == packet);
        bool again = false;
        CHECK(rig.pop(3, Picos{0}, again) == other);
        CHECK_FALSE(again);
      } else {
        rig.push(other, Picos{0});
        marked = rig.found_by(packet);
        bool again = false;
        CHECK(rig.pop(3, Picos{0}, again) == other);
        CHECK_FALSE(again);
      }
      CHECK((packet->ecn == Ecn::ce) == marked);
      count += marked ? 1 : 0;
      rig.pool.free(packet);
      rig.pool.free(other);
    }
    return count / 2'000.0;
  };
  CHECK(share(10'000, Ecn::ect0) == 0);
  CHECK(share(20'000, Ecn::ect1) == Approx(0.25).margin(0.05));  // five standard deviations
  CHECK(share(30'001, Ecn::ect0) == 1);
  CHECK(share(40'000, Ecn::not_ect) == 0);
}

TEST_CASE("egress: a packet without payload is not trimmed, and a lost one counts as dropped") {
  FabricSpec spec = one_egress();
  spec.trim.enabled = true;
  spec.trim.threshold_bytes = 1'000;
  EgressRig rig(spec);
  Packet* first = rig.packet(800, 1);
  rig.push(first, Picos{0});
  CHECK_FALSE(rig.cuts(1));
  rig.push(rig.packet(300, 1), Picos{0});
  CHECK(rig.cuts(1));
  CHECK_FALSE(rig.cuts(2));
  CHECK_FALSE(rig.queues.trim(rig.egress(), rig.packet(1'000, 1)));
  CHECK(EgressQueues::lose(rig.egress(), 1) == first);
  CHECK(EgressQueues::lose(rig.egress(), 2) == nullptr);
  CHECK(rig.queues.stats(rig.index).drops == 1);
  CHECK(rig.egress().queued_bytes == 300);
}

}  // namespace
}  // namespace paceline::fabric
