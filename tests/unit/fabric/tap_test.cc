// Somebody looks at every link: all that crosses is shown once, in the order of time, with what
// became of it, and nothing else changes.
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/fabric/random_scenario.h"

namespace paceline::fabric {
namespace {

constexpr Picos kLong = picos_from_micros(100'000);

struct Totals {
  Picos last{0};
  std::uint64_t crossed = 0;         // packets that were on a wire, pauses not
  std::uint64_t delivered_here = 0;  // of these, at a host
  std::uint64_t pauses = 0;
  std::map<std::string, std::uint64_t> lost, refused, never_sent;  // by reason
  std::string wrong;
};

class Watcher final : public LinkTap {
 public:
  Watcher(Totals& totals, bool host_link) : totals_(totals), host_link_(host_link) {}

  void show(Picos now, bool forward, const Packet& packet) override {
    if (open_) totals_.wrong = "shown, and the one before not settled";
    if (now < totals_.last) totals_.wrong = "time went back";
    totals_.last = now;
    open_ = true;
    to_host_ = host_link_ && !forward;
    pause_ = (packet.flags & packet_flag::pfc) != 0;
    if (!pause_ && packet.header_bytes != kLabHeaderBytes) totals_.wrong = "not a packet";
  }
  void settle(Fate fate, const char* reason) override {
    if (!open_) totals_.wrong = "settled, and not shown";
    open_ = false;
    if ((fate == Fate::delivered) != (*reason == 0)) totals_.wrong = "fate and reason disagree";
    if (pause_) {
      ++totals_.pauses;
      return;
    }
    if (fate == Fate::never_sent) {
      ++totals_.never_sent[reason];
      return;
    }
    ++totals_.crossed;
    if (fate == Fate::lost) ++totals_.lost[reason];
    if (fate == Fate::refused) ++totals_.refused[reason];
    if (fate == Fate::delivered && to_host_) ++totals_.delivered_here;
  }

 private:
  Totals& totals_;
  bool host_link_;
  bool open_ = false;
  bool to_host_ = false;
  bool pause_ = false;
};

struct Watched {
  std::uint64_t trace;
  std::uint64_t events;
  NetworkStats stats;
  Totals totals;
};

Watched watch(const RandomScenario& scenario, bool watched) {
  Watched out{};
  std::vector<std::unique_ptr<Watcher>> watchers;
  Lab lab(scenario.spec);
  lab.reply(scenario.reply);
  for (std::uint32_t i = 0; watched && i < scenario.spec.links.size(); ++i) {
    const bool host_link = scenario.spec.links[i].a < scenario.spec.hosts;
    watchers.push_back(std::make_unique<Watcher>(out.totals, host_link));
    lab.net().tap(i, *watchers.back());
  }
  for (const Send& send : scenario.sends) lab.send(send);
  lab.run(kLong);
  lab.net().finish(kLong);
  CHECK(lab.net().check_conservation() == "");
  out.trace = lab.trace_hash();
  out.events = lab.events();
  out.stats = lab.net().stats();
  return out;
}

TEST_CASE("taps on every link show each transmission once, and change nothing") {
  std::array<std::uint64_t, kDropReasons> seen{};
  std::uint64_t pauses = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const RandomScenario scenario = wild_scenario(seed);
    REQUIRE(check(scenario.spec).empty());
    const Watched plain = watch(scenario, false);
    Watched watched = watch(scenario, true);
    CHECK(watched.trace == plain.trace);
    CHECK(watched.events == plain.events);
    CHECK(watched.stats == plain.stats);

    Totals& t = watched.totals;
    const NetworkStats& stats = watched.stats;
    CHECK(t.wrong == "");
    CHECK(t.crossed == stats.hops);
    CHECK(t.delivered_here == stats.delivered_packets);
    CHECK(t.pauses <= stats.pause_frames + stats.resume_frames);
    const auto drops = [&stats](DropReason reason) {
      return stats.drops[static_cast<std::size_t>(reason)];
    };
    for (const DropReason reason : {DropReason::buffer_full, DropReason::headroom_exhausted}) {
      // Where it came from, and where it would have gone.
      CHECK(t.refused[to_string(reason)] == drops(reason));
      CHECK(t.never_sent[to_string(reason)] == drops(reason));
    }
    for (const DropReason reason : {DropReason::link_loss, DropReason::control_loss}) {
      CHECK(t.lost[to_string(reason)] == drops(reason));
    }
    CHECK(t.refused[to_string(DropReason::no_route)] == drops(DropReason::no_route));
    const std::string down = to_string(DropReason::link_down);
    CHECK(t.lost[down] + t.never_sent[down] == drops(DropReason::link_down));
    for (std::size_t i = 0; i < seen.size(); ++i) seen[i] += stats.drops[i];
    pauses += t.pauses;
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    INFO(to_string(static_cast<DropReason>(i)));
    if (static_cast<DropReason>(i) != DropReason::no_route) CHECK(seen[i] > 0);  // below
  }
  CHECK(pauses > 0);
}

TEST_CASE("a tap shows what has no route as refused") {
  Lab lab(star(2, rate_from_gbps(100), picos_from_micros(1)));
  Totals totals;
  Watcher watcher(totals, true);
  lab.net().tap(0, watcher);
  lab.send({.from = 0, .to = 7});
  lab.send({.from = 0, .to = 1});
  CHECK(lab.run());
  CHECK(totals.wrong == "");
  CHECK(totals.crossed == 2);
  CHECK(totals.refused["no_route"] == 1);
}

TEST_CASE("a tap is for a link that exists, one at a time") {
  Lab lab(star(2, rate_from_gbps(100), picos_from_micros(1)));
  Totals totals;
  Watcher watcher(totals, true);
  lab.net().tap(1, watcher);
  CHECK_THROWS_AS(lab.net().tap(1, watcher), std::invalid_argument);
  CHECK_THROWS_AS(lab.net().tap(2, watcher), std::invalid_argument);
}

}  // namespace
}  // namespace paceline::fabric
