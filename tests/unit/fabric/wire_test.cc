// The wire alone: links, an event wheel and a pool; no network, no engine.
#include "dataplane/fabric/wire/wire.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline::fabric {
namespace {

constexpr std::uint32_t kWireActor = 5;

FabricSpec back_to_back(Rate rate = rate_from_gbps(100)) {
  FabricSpec spec;
  spec.hosts = 2;
  spec.links = {{.a = 0, .b = 1, .rate = rate, .delay = Picos{1'000'000}}};
  return spec;
}

struct WireRig {
  explicit WireRig(const FabricSpec& of)
      : spec(of),
        pool(8, 0, true),
        wheel(kWireActor + 2 * static_cast<std::uint32_t>(spec.links.size())),
        wire(spec, pool, wheel, kWireActor, *std::pmr::new_delete_resource()) {}

  Packet* packet(std::uint32_t bytes, std::uint64_t digest = 0) {
    Packet* out = pool.alloc();
    out->wire_bytes = bytes;
    out->digest = digest;
    out->route = 1;
    return out;
  }

  FabricSpec spec;
  PacketPool pool;
  EventWheel wheel;
  Wire wire;
};

TEST_CASE("wire: both directions of a link know their ends") {
  FabricSpec spec = back_to_back();
  spec.switches = 1;
  spec.links.push_back({.a = 0, .b = 2, .rate = rate_from_gbps(30), .delay = Picos{7}});
  const WireRig rig(spec);
  REQUIRE(rig.wire.size() == 4);
  CHECK(rig.wire[0].to == 1);
  CHECK(rig.wire[1].to == 0);
  CHECK(rig.wire[2].to == Link::kToSwitch);  // switch 0
  CHECK(rig.wire[3].to == 0);
  CHECK(rig.wire[0].ps_per_byte == 80);
  CHECK(rig.wire[2].ps_per_byte == 0);  // 266 2/3 ps a byte
  CHECK(rig.wire.rate(2) == rate_from_gbps(30));
  CHECK(rig.wire[3].delay == Picos{7});
}

TEST_CASE("wire: packets arrive one after another, and only the first is in the wheel") {
  WireRig rig(back_to_back());
  Link& link = rig.wire[0];
  rig.wire.put(link, rig.packet(1'000, 1), Picos{0}, Picos{0});
  rig.wire.put(link, rig.packet(500, 2), link.busy, Picos{0});
  CHECK(link.busy == Picos{120'000});
  CHECK(link.head_time == Picos{1'080'000});
  CHECK(rig.wheel.scheduled_at(kWireActor) == Picos{1'080'000});
  Packet* first = Wire::take_first(link);
  CHECK(first->digest == 1);
  CHECK(link.head_time == Picos{1'120'000});
  rig.wire.wait_for_first(link);
  CHECK(rig.wheel.scheduled_at(kWireActor) == Picos{1'120'000});
  Packet* second = rig.wire.take_all(link);
  CHECK(second->digest == 2);
  CHECK(second->next == nullptr);
  CHECK(link.head == nullptr);
  CHECK(link.head_time == kNever);
  CHECK(rig.wheel.scheduled_at(kWireActor) == kNever);
  rig.pool.free(first);
  rig.pool.free(second);
}

TEST_CASE("wire: on links that reorder and vary arrivals stay sorted and a picosecond apart") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 40));
  INFO("seed " << seed);
  WireRig rig(back_to_back(seed % 2 == 0 ? rate_from_gbps(100) : rate_from_gbps(30)));
  Link& link = rig.wire[0];
  const bool reorders = seed % 4 < 2;
  link.impaired = reorders ? Link::kReorders : Link::kVaries;
  Random random(seed, 7);
  std::vector<std::uint64_t> sent;
  for (std::uint64_t i = 0; i < 60; ++i) {
    if (!reorders) link.delay = Picos{static_cast<std::int64_t>(1 + random.below(300'000))};
    const Picos late{reorders ? static_cast<std::int64_t>(random.below(400'000)) : 0};
    rig.wire.put(link, rig.packet(static_cast<std::uint32_t>(64 + random.below(1'400)), i),
                 link.busy, late);
    sent.push_back(i);
    CHECK(link.head_time == link.head->time);
    CHECK(rig.wheel.scheduled_at(kWireActor) == link.head_time);
  }
  std::vector<std::uint64_t> arrived;
  Picos last{-1};
  Packet* next = rig.wire.take_all(link);
  while (Packet* packet = next) {
    next = packet->next;
    CHECK(packet->time > last);
    last = packet->time;
    arrived.push_back(packet->digest);
    rig.pool.free(packet);
  }
  if (!reorders) CHECK(arrived == sent);
  std::sort(arrived.begin(), arrived.end());
  CHECK(arrived == sent);
}

TEST_CASE("wire: a control frame joins what is in flight; one before its time is counted") {
  WireRig rig(back_to_back());
  Link& link = rig.wire[1];
  rig.wire.put(link, rig.packet(1'000), Picos{0}, Picos{0});
  rig.wire.set_now(Picos{100});
  rig.wire.put_control(link, {kRoutePause, 3, 84, 1, 0}, Picos{100});
  CHECK(rig.wire.late_frames() == 0);
  CHECK(link.busy == Picos{80 * 1'084});
  CHECK(link.tail->route == kRoutePause);
  CHECK(link.tail->traffic_class == 3);
  CHECK((link.tail->flags & packet_flag::pfc) != 0);
  rig.wire.put_control(link, {kRouteCredit, 3, 8, 0, 77}, Picos{99});
  CHECK(rig.wire.late_frames() == 1);
  CHECK(link.tail->digest == 77);
}

TEST_CASE("wire: with exact departures a link waits for the earlier of arrival and departure") {
  WireRig rig(back_to_back());
  Link& link = rig.wire[0];
  link.egress = 0;
  link.backlog = 1U << 3;
  link.busy = Picos{500};
  CHECK_FALSE(Wire::exact(link));
  rig.wire.reschedule(link);
  CHECK(rig.wheel.scheduled_at(kWireActor) == kNever);
  const std::vector<std::uint32_t> links{0};
  rig.wire.set_exact(links, true);
  rig.wire.reschedule(link);
  CHECK(rig.wheel.scheduled_at(kWireActor) == Picos{500});
  link.paused = 1U << 3;
  rig.wire.reschedule(link);
  CHECK(rig.wheel.scheduled_at(kWireActor) == kNever);
  // While it is held, others see to the wheel.
  link.paused = 0;
  rig.wire.hold_schedule(true);
  rig.wire.reschedule(link);
  CHECK(rig.wheel.scheduled_at(kWireActor) == kNever);
  rig.wire.hold_schedule(false);
  link.egress = Link::kNoEgress;  // of a host: it has no queue
  CHECK_FALSE(Wire::exact(link));
}

TEST_CASE("wire: copies from another part arrive by their times, in whatever order they come") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 20));
  INFO("seed " << seed);
  WireRig rig(back_to_back());
  Link& link = rig.wire[0];
  Random random(seed, 8);
  std::vector<Picos> times;
  for (std::int64_t i = 0; i < 40; ++i) times.push_back(Picos{1'000 + 10 * i});
  for (std::size_t i = times.size(); i > 1; --i) {
    std::swap(times[i - 1], times[random.below(i)]);
  }
  Packet* model = rig.packet(100);
  Picos earliest = kNever;
  for (const Picos time : times) {
    model->time = time;
    rig.wire.take_in(link, *model);
    earliest = earlier(earliest, time);
    CHECK(link.head_time == earliest);
    CHECK(rig.wheel.scheduled_at(kWireActor) == earliest);
  }
  std::sort(times.begin(), times.end());
  for (const Packet* packet = link.head; const Picos time : times) {
    REQUIRE(packet != nullptr);
    CHECK(packet->time == time);
    packet = packet->next;
  }
  CHECK(link.tail->time == times.back());
}

}  // namespace
}  // namespace paceline::fabric
