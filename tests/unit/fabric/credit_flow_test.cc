#include "dataplane/fabric/switching/credit_flow.h"

#include <catch2/catch.hpp>

namespace paceline::fabric {
namespace {

constexpr std::uint8_t kGrantedClass = 3;

struct CreditRig {
  CreditRig()
      : spec(spec_of()),
        pool(8, 0, true),
        wheel(2),
        wire(spec, pool, wheel, 0, *std::pmr::new_delete_resource()),
        pauses(2),
        credits(spec, wire, pauses, stats) {}
  static FabricSpec spec_of() {
    FabricSpec spec;
    spec.hosts = 2;
    spec.links = {{.a = 0, .b = 1, .rate = rate_from_gbps(100), .delay = Picos{1'000'000}}};
    spec.credit.enabled = true;
    spec.pfc.lossless_classes = 1U << kGrantedClass;
    return spec;
  }
  const CreditLane& lane() const { return credits.book().at(0, kGrantedClass); }

  FabricSpec spec;
  PacketPool pool;
  EventWheel wheel;
  Wire wire;
  PauseTimes pauses;
  NetworkStats stats;
  CreditFlow credits;
};

TEST_CASE("credit flow: links take part, in the covered classes") {
  CreditRig rig;
  CHECK((rig.wire[0].impaired & Link::kCredits) != 0);
  CHECK((rig.wire[1].notable & Link::kGrants) != 0);
  CHECK(rig.credits.covers(kGrantedClass));
  CHECK_FALSE(rig.credits.covers(kGrantedClass - 1));
}

TEST_CASE(
    "credit flow: a class waits when its credits are spent, and goes on when it hears of more") {
  CreditRig rig;
  Link& link = rig.wire[0];
  Link& back = rig.wire[1];
  const std::uint32_t bytes = 1'024;
  int sent = 0;
  while (link.paused == 0) {
    REQUIRE(sent < 10'000);
    link.busy = link.busy + Picos{80'000};
    rig.credits.spend(link, kGrantedClass, bytes);
    rig.credits.arrived(link, kGrantedClass, bytes);
    ++sent;
  }
  CHECK(link.paused == 1U << kGrantedClass);
  CHECK(rig.lane().held <= rig.lane().buffer);
  // It waits from when its wire is free.
  CHECK(rig.pauses.in_force(0, link.paused, link.busy + Picos{5}) == Picos{5});
  CHECK(rig.stats.credit_updates == 0);

  // What leaves the far end's buffer is told once it is worth an update.
  int released = 0;
  while (rig.stats.credit_updates == 0) {
    REQUIRE(released < sent);
    rig.credits.released(back, kGrantedClass, bytes, Picos{1'000});
    ++released;
  }
  const Packet* update = back.head;
  REQUIRE(update != nullptr);
  CHECK(update->route == kRouteCredit);
  CHECK(update->traffic_class == kGrantedClass);
  CHECK(update->digest == rig.lane().told);
  CHECK(rig.credits.heard(link, kGrantedClass, update->digest));
  CHECK_FALSE(rig.credits.heard(back, kGrantedClass, 0));  // which does not wait
}

TEST_CASE("credit flow: a failed link is told nothing; when it is up both ends begin anew") {
  CreditRig rig;
  Link& link = rig.wire[0];
  Link& back = rig.wire[1];
  rig.credits.spend(link, kGrantedClass, 64 * 100);
  rig.credits.arrived(link, kGrantedClass, 64 * 100);
  back.down = 0xFF;
  for (int i = 0; i < 100; ++i) rig.credits.released(back, kGrantedClass, 64, Picos{10});
  CHECK(rig.stats.credit_updates == 0);
  CHECK(back.head == nullptr);
  CHECK(rig.lane().held == 0);

  back.down = 0;
  rig.credits.restart(back, Picos{20});
  CHECK(back.paused == 1U << kGrantedClass);  // until it hears from the other end
  REQUIRE(back.head != nullptr);
  CHECK(back.head->digest == rig.lane().buffer);
  CHECK(rig.lane().received == 0);
  CHECK(rig.stats.credit_updates == 1);
}

}  // namespace
}  // namespace paceline::fabric
