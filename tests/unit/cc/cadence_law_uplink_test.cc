// The uplink of docs/algorithms/cadence.md, line by line: the built-in's arbiter answers as the law
// in C does. The numbers of cases are the law's lines.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "cc/cadence/sender.h"
#include "tests/unit/cc/cadence_law.h"

namespace paceline::cc {
namespace {

// A port that sends, twice. A round gives both the same wants; more than T passes between rounds.
class LawUplink {
 public:
  LawUplink(const CadenceLaw& law, std::size_t contexts)
      : law_(law), arbiter_(law.p), slots_(contexts) {
    for (std::size_t i = 0; i < contexts; ++i) {
      Slot& s = slots_[i];
      s.share.rate_mbps = s.share.cap_mbps = law.p.link_mbps;
      s.context = {static_cast<std::uint32_t>(i), 0, {}, &s.want, &s.share, s.state.data()};
    }
  }

  void want(std::size_t i, std::uint64_t left, std::uint32_t limit_mbps, bool awaits) {
    Slot& s = slots_[i];
    s.want = {};
    s.want.left_bytes = left;
    s.want.limit_mbps = limit_mbps;
    s.want.active = left > 0 ? 1 : 0;
    s.want.awaits_grant = awaits ? 1 : 0;
    s.want.weight = 1;
  }
  void ask(std::size_t i, std::uint32_t bytes) {
    slots_[i].want.start_bytes = bytes;
    slots_[i].want.asks_start = 1;
  }

  void round(std::int64_t later_ns) {
    now_ += later_ns;
    std::vector<paceline_cc_uplink_context*> contexts;
    for (Slot& s : slots_) {
      s.share.start_bytes = 0;
      if (s.want.active != 0 || s.want.asks_start != 0) contexts.push_back(&s.context);
    }
    paceline_cc_uplink u{now_,
                         state_.data(),
                         law_.derived.data(),
                         contexts.data(),
                         static_cast<std::uint32_t>(contexts.size()),
                         0,
                         now_,
                         PACELINE_CC_NEVER};
    law_.c->rates->on_uplink(&u);
    for (std::uint32_t i = 0; i < slots_.size(); ++i) arbiter_.update(Nanos{now_}, i, built_in(i));
    std::array<ShareOutput, 3> out;
    std::size_t n = 0;
    for (Slot& s : slots_) s.announced = false;
    do {
      n = arbiter_.poll(Nanos{now_}, out);
      for (std::size_t i = 0; i < n; ++i) {
        slots_[out[i].context].told = out[i].share;
        slots_[out[i].context].announced |= out[i].share.announce;
      }
    } while (n == out.size());
    for (Slot& s : slots_) s.want.asks_start = 0;
  }

  struct Slot {
    alignas(16) std::array<std::byte, PACELINE_CC_UPLINK_BYTES> state{};
    paceline_cc_want want{};
    paceline_cc_share share{};
    paceline_cc_uplink_context context{};
    UplinkShare told{};  // by the built-in
    bool announced = false;

    std::uint64_t told_mbps() const { return told.rate_mbps; }
    std::uint64_t told_cap() const { return told.cap_mbps; }
  };
  const std::vector<Slot>& slots() const { return slots_; }

 private:
  UplinkWant built_in(std::size_t i) const {
    const paceline_cc_want& want = slots_[i].want;
    UplinkWant w;
    w.limit_mbps = want.limit_mbps;
    w.start_bytes = want.start_bytes;
    w.asks_start = want.asks_start != 0;
    w.active = want.active != 0;
    w.awaits_grant = want.awaits_grant != 0;
    if (w.active) {
      w.weight = static_cast<std::uint8_t>(favour(law_.p, want.left_bytes));
      w.bulk = want.left_bytes >= bulk_bytes(law_.p);
    }
    return w;
  }

  const CadenceLaw& law_;
  CadenceSender arbiter_;
  std::vector<Slot> slots_;
  alignas(16) std::array<std::byte, PACELINE_CC_PORT_BYTES> state_{};
  std::int64_t now_ = 1'000'000'000;
};

std::uint64_t law_left(Random& random, const CadenceLaw& law) {
  return 1 + random.below((random.below(2) == 0 ? 4U : 40U) * std::uint64_t{law.p.bdp_bytes});
}

}  // namespace

TEST_CASE("cadence law 21: shares of the uplink are max-min by weight, bounded by G") {
  unsigned bound = 0, weighted = 0;
  for_law_worlds(21, 300, [&](Random& random, const CadenceLaw& law) {
    const std::size_t count = 1 + random.below(12);
    LawUplink u(law, count);
    bool much = false, little = false;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t left = law_left(random, law);
      u.want(i, left, static_cast<std::uint32_t>(1 + random.below(law.p.link_mbps)),
             random.below(4) == 0);
      u.ask(i, 0);
      much = much || left >= bulk_bytes(law.p);
      little = little || left < 4 * std::uint64_t{law.p.bdp_bytes};
    }
    u.round(0);
    weighted += much && little ? 1U : 0U;
    for (const auto& s : u.slots()) {
      const std::uint64_t most = s.want.awaits_grant != 0 ? law.p.link_mbps : s.want.limit_mbps;
      REQUIRE(within(std::min(most, s.told_mbps()),
                     std::min<std::uint64_t>(most, s.share.rate_mbps), 1));
      bound += s.told_mbps() < most ? 1U : 0U;
    }
  });
  CHECK(bound > 300);
  CHECK(weighted > 50);
}

TEST_CASE("cadence law 22: the cap is the share that an unlimited G would give") {
  for_law_worlds(22, 300, [](Random& random, const CadenceLaw& law) {
    const std::size_t count = 1 + random.below(12);
    LawUplink u(law, count);
    for (std::size_t i = 0; i < count; ++i) {
      u.want(i, law_left(random, law),
             static_cast<std::uint32_t>(1 + random.below(3 * law.p.link_mbps / count)),
             random.below(4) == 0);
      u.ask(i, 0);
    }
    u.round(0);
    for (const auto& s : u.slots()) REQUIRE(within(s.told_cap(), s.share.cap_mbps, 1));
  });
}

TEST_CASE("cadence law 23: a cap that changes by an eighth near the grant is announced") {
  unsigned announced = 0, kept = 0, rounded = 0;
  // The built-in counts in whole Mb/s: it may decide otherwise where a change is an eighth, or a
  // cap five quarters of the grant, to within 2 Mb/s.
  const auto on_the_edge = [](const LawUplink::Slot& s) {
    const auto top = static_cast<double>(std::max(s.told.cap_mbps, s.share.cap_mbps));
    const auto low = static_cast<double>(std::min(s.told.cap_mbps, s.share.cap_mbps));
    return std::abs(top - low - top / 8) <= 2 || std::abs(low - 1.25 * s.want.limit_mbps) <= 2;
  };
  for_law_worlds(23, 300, [&](Random& random, const CadenceLaw& law) {
    const std::size_t count = 2 + random.below(6);
    LawUplink u(law, count);
    const auto limit = [&] {
      return static_cast<std::uint32_t>(1 + random.below(2 * law.p.link_mbps / count));
    };
    for (std::size_t i = 0; i < count; ++i) {
      u.want(i, 40 * std::uint64_t{law.p.bdp_bytes}, limit(), false);
      u.ask(i, 0);
    }
    u.round(0);
    for (int round = 0; round < 6; ++round) {
      const std::size_t changed = random.below(count);
      u.want(changed, 40 * std::uint64_t{law.p.bdp_bytes}, limit(), false);
      // Every second round comes too early for another announcement.
      u.round(law.rtt() * (round % 2 == 0 ? 4 : 1) / 2);
      for (const auto& s : u.slots()) {
        if (s.announced != (s.share.announce != 0)) {
          REQUIRE(on_the_edge(s));
          ++rounded;
          return;  // from here on the two hold different caps
        }
        REQUIRE(within(s.told_cap(), s.share.cap_mbps, 1));
        (s.announced ? announced : kept) += 1;
      }
    }
  });
  CHECK(announced > 300);
  CHECK(kept > 300);
  CHECK(rounded < 10);
}

TEST_CASE("cadence law 24: starts of a host are B per T together, a packet each in turn") {
  unsigned short_of = 0;
  for_law_worlds(24, 300, [&](Random& random, const CadenceLaw& law) {
    const std::size_t count = 1 + random.below(8);
    LawUplink u(law, count);
    for (int round = 0; round < 5; ++round) {
      std::uint64_t asked = 0, law_gave = 0, gave = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const auto bytes = static_cast<std::uint32_t>(
            random.below(2) == 0 ? random.below(law.p.bdp_bytes)
                                 : law.p.packet_bytes * (1 + random.below(5)));
        u.want(i, 0, 0, false);
        u.ask(i, bytes);
        asked += bytes;
      }
      u.round(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(law.rtt()))));
      std::uint32_t least = 0xFFFF'FFFF, most = 0;
      for (const auto& s : u.slots()) {
        law_gave += s.share.start_bytes;
        gave += s.told.start_bytes;
        REQUIRE(within(s.share.start_bytes, s.told.start_bytes, 2 * law.p.packet_bytes));
        if (s.told.start_bytes == s.want.start_bytes) continue;
        least = std::min(least, s.told.start_bytes);
        most = std::max(most, s.told.start_bytes);
      }
      short_of += gave < asked ? 1U : 0U;
      REQUIRE(within(gave, law_gave, law.p.packet_bytes));
      REQUIRE((least > most || most - least <= law.p.packet_bytes));
    }
  });
  CHECK(short_of > 300);
}

}  // namespace paceline::cc
