// Whom a host asks, and what it makes of answers, losses and late ones.
#include "dataplane/probing/prober.h"

#include <catch2/catch.hpp>

namespace paceline::probing {
namespace {

ProbePlan plan_of(std::uint32_t peers, std::uint16_t paths) {
  ProbePlan plan;
  plan.session = 9;
  plan.peers = peers;
  plan.paths = paths;
  plan.interval = picos_from_micros(10);
  plan.patience = picos_from_micros(1000);
  plan.kept = 4;
  return plan;
}

ProbeMessage as(ProbeMessage message, ProbeKind kind, std::int64_t received = 0,
                std::int64_t answered = 0) {
  message.kind = kind;
  message.received = Nanos{received};
  message.answered = Nanos{answered};
  return message;
}

// Sent at `at` ns, 100 ns each way and 50 at the other end.
void answer(Prober& prober, const Prober::Next& probe, std::int64_t at) {
  prober.sent(probe.message.sequence, Nanos{at});
  prober.answered(as(probe.message, ProbeKind::answer), probe.peer, Nanos{at + 250});
  prober.answered(as(probe.message, ProbeKind::times, at + 100, at + 150), probe.peer,
                  Nanos{at + 300});
}

}  // namespace

TEST_CASE("every peer is asked by every path in both classes, at the pace of the plan") {
  Prober prober(plan_of(3, 2));
  Picos now{0};
  std::array<std::array<std::array<int, 2>, 2>, 3> asked{};
  for (int i = 0; i < 12; ++i) {
    const auto probe = prober.next(now);
    REQUIRE(probe);
    CHECK_FALSE(prober.next(now));
    ++asked[probe->peer][probe->message.path][probe->message.for_clock ? 1 : 0];
    CHECK(prober.next_deadline() >= now + picos_from_micros(5));
    CHECK(prober.next_deadline() <= now + picos_from_micros(15));
    now = prober.next_deadline();
  }
  for (const auto& peer : asked) {
    for (const auto& path : peer) CHECK((path[0] == 1 && path[1] == 1));
  }
}

TEST_CASE("a round trip is divided into the fabric's part and the host's") {
  Prober prober(plan_of(1, 1));
  Picos now{0};
  for (int i = 0; i < 20; ++i) {
    answer(prober, *prober.next(now), to_nanos(now).count);
    now = prober.next_deadline();
  }
  const PeerFigures figures = prober.figures(0);
  CHECK(figures.paths[0].sent == 20);
  CHECK(figures.paths[0].answered == 20);
  CHECK(figures.samples.size() == 4);
  for (const ProbeSample& sample : figures.samples) {
    CHECK(sample.fabric() == 200);
    CHECK(sample.host() == 50);
  }
  REQUIRE(figures.clock);
  CHECK(figures.clock->probes == 10);
  CHECK(figures.clock->offset_at(to_nanos(now)) == 0);
}

TEST_CASE("one-way delays are those of the latest probe to a peer, by its clock") {
  Prober prober(plan_of(2, 1));
  CHECK_FALSE(prober.one_way());
  Picos now{0};
  for (int i = 0; i < 8; ++i) {
    const auto probe = *prober.next(now);
    if (probe.peer == 0) answer(prober, probe, to_nanos(now).count);
    now = prober.next_deadline();
  }
  REQUIRE(prober.one_way());
  CHECK(prober.one_way()->there == 100);
  CHECK(prober.one_way()->back == 100);
  CHECK(prober.one_way(0)->there == 100);
  CHECK_FALSE(prober.one_way(1));
  CHECK_FALSE(prober.one_way(2));
}

TEST_CASE("answers count in any order, and once") {
  Prober prober(plan_of(1, 1));
  const auto probe = *prober.next(Picos{0});
  prober.answered(as(probe.message, ProbeKind::times, 100, 150), 0, Nanos{400});
  prober.answered(as(probe.message, ProbeKind::answer), 0, Nanos{250});
  CHECK(prober.totals().answered == 0);
  prober.sent(probe.message.sequence, Nanos{0});
  CHECK(prober.totals().answered == 1);
  answer(prober, probe, 0);
  CHECK(prober.totals().answered == 1);
}

TEST_CASE("probes without an answer are lost when patience is over, and not before") {
  Prober prober(plan_of(2, 1));
  Picos now{0};
  std::vector<Prober::Next> probes;
  while (now < picos_from_micros(900)) {
    probes.push_back(*prober.next(now));
    now = prober.next_deadline();
  }
  CHECK(prober.totals().lost == 0);
  answer(prober, probes[0], 0);
  prober.answered(as(probes[1].message, ProbeKind::answer), probes[1].peer, Nanos{250});
  prober.next(picos_from_micros(5000));
  const PathCounts& totals = prober.totals();
  CHECK(totals.sent == probes.size() + 1);
  CHECK(totals.answered == 2);
  CHECK(totals.lost == probes.size() - 2);
  // Too late.
  answer(prober, probes[5], 0);
  CHECK(prober.totals().answered == 2);
}

TEST_CASE("answers of others, to others and to nobody are ignored") {
  Prober prober(plan_of(2, 1));
  const auto probe = *prober.next(Picos{0});
  prober.sent(probe.message.sequence, Nanos{0});
  auto message = as(probe.message, ProbeKind::answer);
  prober.answered(message, 1 - probe.peer, Nanos{10});
  message.session = 8;
  prober.answered(message, probe.peer, Nanos{10});
  message.session = 9;
  message.sequence += 4096;
  prober.answered(message, probe.peer, Nanos{10});
  prober.answered(as(probe.message, ProbeKind::times, 1, 2), probe.peer, Nanos{20});
  CHECK(prober.totals().answered == 0);
}

TEST_CASE("a probe that was refused is as if it had not been") {
  Prober prober(plan_of(1, 1));
  prober.not_sent(*prober.next(Picos{0}));
  prober.next(picos_from_micros(5000));
  CHECK(prober.totals().sent == 1);
  CHECK(prober.totals().lost == 0);
}

}  // namespace paceline::probing
