// The small classes that a queue pair is made of, each alone.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/transport/state/ack_requests.h"
#include "dataplane/transport/state/drain.h"
#include "dataplane/transport/state/incoming_message.h"
#include "dataplane/transport/state/pending_answer.h"
#include "dataplane/transport/state/rate_limit.h"
#include "dataplane/transport/state/receive_position.h"
#include "dataplane/transport/state/retry_budget.h"
#include "dataplane/transport/state/round_trip.h"
#include "dataplane/transport/state/selective/early_packets.h"
#include "dataplane/transport/state/selective/loss_patience.h"
#include "dataplane/transport/state/selective/marked_bytes.h"
#include "dataplane/transport/state/selective/pending_xack.h"
#include "dataplane/transport/state/send_position.h"

namespace paceline::transport::test {
namespace {

TEST_CASE("send position: any order of sending, acknowledging and going back, against a model",
          "[transport]") {
  const auto seed = GENERATE(1U, 2U, 3U, 4U);
  CAPTURE(seed);
  Random random(seed);
  constexpr std::uint32_t kFirst = 0xFF'FFF0;  // numbers wrap soon
  SendPosition position;
  position.start(Psn(kFirst), 7);
  // The model counts packets from the first; requests have 1 to 4 packets each.
  std::deque<std::uint32_t> starts{0};
  std::uint32_t next = 0, oldest = 0, end = 0;
  const auto request_of = [&](std::uint32_t packet) {
    std::uint32_t i = 0;
    while (i + 1 < starts.size() && starts[i + 1] <= packet) ++i;
    return i;
  };
  for (int step = 0; step < 3000; ++step) {
    while (starts.back() <= next + 8) {
      starts.push_back(starts.back() + 1 + static_cast<std::uint32_t>(random.below(4)));
    }
    switch (random.below(4)) {
      case 0:
      case 1: {
        const std::uint32_t request = request_of(next);
        const bool last = starts[request + 1] == next + 1;
        REQUIRE(position.sent(last) == (next == end));
        end = std::max(end, ++next);
        break;
      }
      case 2:
        if (next == oldest) break;
        oldest += 1 + static_cast<std::uint32_t>(random.below(next - oldest));
        position.acknowledge(Psn(kFirst) + oldest);
        break;
      default: {
        if (random.below(8) != 0) break;
        next = oldest;
        const std::uint32_t request = request_of(next);
        position.move(Psn(kFirst) + next, 7 + request, next - starts[request]);
        break;
      }
    }
    REQUIRE(position.next() == Psn(kFirst) + next);
    REQUIRE(position.oldest() == Psn(kFirst) + oldest);
    REQUIRE(position.end() == Psn(kFirst) + end);
    REQUIRE(position.request() == 7 + request_of(next));
    REQUIRE(position.packet() == next - starts[request_of(next)]);
  }
}

TEST_CASE("send position: a request for responses takes a number for each of them", "[transport]") {
  SendPosition position;
  position.start(Psn(0xFF'FFFE), 0);
  CHECK(position.asked(3, false));
  CHECK(position.next() == Psn(1));
  CHECK(position.end() == Psn(1));
  CHECK(position.packet() == 3);
  CHECK(position.asked(2, true));
  CHECK(position.request() == 1);
  CHECK(position.packet() == 0);
  position.move(Psn(0xFF'FFFE), 0, 0);
  CHECK_FALSE(position.asked(5, true));  // none of them for the first time
  CHECK(position.end() == Psn(3));
}

TEST_CASE("retry budget: what is spent comes back with progress", "[transport]") {
  RetryBudget budget;
  budget.renew(2, 1);
  CHECK(budget.spend());
  CHECK(budget.spend());
  CHECK_FALSE(budget.spend());
  CHECK(budget.spend_rnr());
  CHECK_FALSE(budget.spend_rnr());
  budget.renew_retries(1);
  CHECK(budget.spend());
  CHECK_FALSE(budget.spend_rnr());
  budget.renew(0, RetryBudget::kForEver);
  CHECK_FALSE(budget.spend());
  for (int i = 0; i < 100; ++i) CHECK(budget.spend_rnr());
}

TEST_CASE("ack requests: one packet of every so many asks", "[transport]") {
  AckRequests requests;
  requests.asked(picos_from_nanos(5));
  CHECK(requests.asked_at() == picos_from_nanos(5));
  CHECK_FALSE(requests.due(3));
  CHECK_FALSE(requests.due(3));
  CHECK(requests.due(3));
  requests.asked(picos_from_nanos(6));
  CHECK_FALSE(requests.due(3));
  requests.ask_next(3);
  CHECK(requests.due(3));
}

TEST_CASE("round trip: one packet is timed at a time, and estimates settle", "[transport]") {
  RoundTripProbe probe;
  CHECK_FALSE(probe.answered(Psn(5)));
  probe.start(Psn(0xFF'FFFF), picos_from_nanos(7));
  CHECK_FALSE(probe.answered(Psn(0xFF'FFFF)));  // all before it
  CHECK(probe.answered(Psn(0)));
  CHECK(probe.sent_at() == picos_from_nanos(7));
  CHECK_FALSE(probe.answered(Psn(0)));
  probe.start(Psn(1), picos_from_nanos(9));
  probe.stop();
  CHECK_FALSE(probe.answered(Psn(9)));

  RoundTripEstimate estimate;
  CHECK(estimate.smoothed_ns() == 0);
  estimate.add(8'000);
  CHECK(estimate.smoothed_ns() == 8'000);
  estimate.add(16'000);
  CHECK(estimate.smoothed_ns() == 9'000);
  estimate.add(4'000);
  CHECK(estimate.least_ns() == 4'000);
  for (int i = 0; i < 100; ++i) estimate.add(4'000);
  CHECK(estimate.smoothed_ns() - 4'000 < 8);
}

TEST_CASE("incoming message: what is placed, and what a WRITE still announces", "[transport]") {
  IncomingMessage message;
  CHECK_FALSE(message.open());
  message.begin_write(0x11, 4096, 3000);
  CHECK(message.open());
  CHECK(message.is_write());
  message.placed(1024);
  CHECK(message.address() == 5120);
  CHECK(message.received() == 1024);
  CHECK(message.remaining() == 1976);
  message.close();
  CHECK_FALSE(message.open());
  CHECK(message.received() == 1024);  // for its completion
  message.begin_send(0x22, 64);
  message.placed(10);
  CHECK(message.key() == 0x22);
  CHECK_FALSE(message.is_write());
  CHECK(message.received() == 10);
  CHECK(message.remaining() == 0);
}

TEST_CASE("receive position: requests in order, and each gap told once, against a model",
          "[transport]") {
  const auto seed = GENERATE(1U, 2U, 3U);
  CAPTURE(seed);
  Random random(seed);
  ReceivePosition position;
  std::uint64_t expected = 0xFF'FFF8;  // numbers wrap soon
  position.start(Psn(static_cast<std::uint32_t>(expected)));
  std::uint32_t messages = 0;
  bool quiet = false;  // the peer knows what is expected
  for (int i = 0; i < 1'000; ++i) {
    const auto count = static_cast<std::uint32_t>(1 + random.below(5));
    switch (random.below(6)) {
      case 0:
        position.accept();
        expected += 1;
        quiet = false;
        break;
      case 1:
        position.accept(count);
        expected += count;
        quiet = false;
        break;
      case 2:
        position.complete_message();
        ++messages;
        break;
      case 3:
        position.put_off();
        quiet = true;
        break;
      default:
        REQUIRE(position.tell_gap() == !quiet);
        quiet = true;
    }
    REQUIRE(position.expected() == Psn(static_cast<std::uint32_t>(expected)));
    REQUIRE(position.msn() == messages);
  }
  CHECK(next_msn(0xFF'FFFF) == 0);
}

TEST_CASE("pending answer: the newest waits, with the marks of those before it", "[transport]") {
  PendingAnswer answer;
  CHECK_FALSE(answer.due());
  answer.put(Psn(1), wire::Aeth::ack(1), true);
  answer.put(Psn(2), wire::Aeth::ack(2), false);
  CHECK(answer.due());
  PendingAnswer::Answer taken = answer.take();
  CHECK_FALSE(answer.due());
  CHECK(taken.psn == Psn(2));
  CHECK(taken.aeth == wire::Aeth::ack(2));
  CHECK(taken.becn);
  answer.put(Psn(3), wire::Aeth::ack(3), false);
  CHECK_FALSE(answer.take().becn);
  answer.put(Psn(4), wire::Aeth::ack(4), true);
  answer.drop();
  CHECK_FALSE(answer.due());
  answer.put(Psn(5), wire::Aeth::nak(4, wire::NakCode::invalid_request), false);
  taken = answer.take();
  CHECK(taken.psn == Psn(5));
  CHECK(taken.becn);
}

TEST_CASE("rate limit: as a bucket that fills at the rate, against a model", "[transport]") {
  const auto seed = GENERATE(1U, 2U, 3U);
  CAPTURE(seed);
  Random random(seed);
  const Rate rate = rate_from_mbps(800 + random.below(100'000));
  const Picos burst = picos_from_nanos(static_cast<std::int64_t>(random.below(20'000)));
  Picos now = picos_from_micros(5);
  RateLimit limit(rate, burst, now);
  Picos credit = burst;
  for (int i = 0; i < 2'000; ++i) {
    const Picos pause{static_cast<std::int64_t>(random.below(4'000'000))};
    const auto bytes = static_cast<std::uint32_t>(64 + random.below(4'096));
    now += pause;
    credit = earlier(burst, credit + pause) - serialization_time(bytes, rate);
    REQUIRE(limit.charge(bytes, now) == now - credit);
  }
}

TEST_CASE("drain: says once that it is done, to who wants to hear it", "[transport]") {
  Drain drain;
  CHECK_FALSE(drain.active());
  CHECK_FALSE(drain.done());
  for (const bool notify : {true, false}) {
    drain.begin(notify);
    CHECK(drain.active());
    CHECK(drain.waits());
    CHECK_FALSE(drain.done());
    CHECK(drain.finish() == notify);
    CHECK(drain.active());
    CHECK_FALSE(drain.waits());
    CHECK(drain.done());
    drain.end();
    CHECK_FALSE(drain.active());
    CHECK_FALSE(drain.done());
  }
}

TEST_CASE("loss patience: grows when something was sent again for nothing, shrinks slowly",
          "[transport]") {
  LossPatience patience;
  constexpr std::uint32_t kRoundTrip = 8'000;
  const auto quarters = [&] { return patience.reordering(kRoundTrip).count / 2'000'000; };
  const auto factor = [&] { return patience.probe_wait(Picos{1}).count; };
  CHECK(quarters() == 1);
  CHECK(factor() == 1);
  patience.on_repeated_packet();
  CHECK(quarters() == 5);
  CHECK(factor() == 2);
  for (int i = 0; i < 7; ++i) patience.on_round_trip();
  CHECK(factor() == 2);
  patience.on_round_trip();
  CHECK(factor() == 1);
  // Responses that came twice double the wait three times at most, and never lower it.
  for (int i = 0; i < 6; ++i) patience.on_repeated_response();
  CHECK(factor() == 8);
  for (int i = 0; i < 20; ++i) patience.on_repeated_packet();
  CHECK(factor() == 1024);
  CHECK(quarters() == 64);
  patience.on_repeated_response();
  CHECK(factor() == 1024);
  // A quarter less after 64 losses in a row; something sent again in vain restarts the count
  // anew.
  for (int i = 0; i < 63; ++i) patience.on_loss();
  patience.on_repeated_packet();
  for (int i = 0; i < 63; ++i) patience.on_loss();
  CHECK(quarters() == 64);
  patience.on_loss();
  CHECK(quarters() == 63);
  for (int i = 0; i < 64 * 100; ++i) patience.on_loss();
  CHECK(quarters() == 1);
  patience.restart();
  CHECK(factor() == 1);
  patience.expect_reordering(0);
  CHECK(patience.reordering(kRoundTrip) == Picos{0});
}

TEST_CASE("marked bytes: no mark counts twice, whatever order XACKs come in", "[transport]") {
  const auto seed = GENERATE(1U, 2U, 3U);
  CAPTURE(seed);
  Random random(seed);
  MarkedBytes marked;
  std::uint32_t newest = 0;  // wraps
  std::uint64_t all = 0;
  std::uint64_t taken = 0;
  std::deque<std::uint32_t> late;
  for (int i = 0; i < 5'000; ++i) {
    const auto step = static_cast<std::uint32_t>(random.below(1 << 20));
    newest += step;
    all += step;
    late.push_back(newest);
    if (random.below(4) != 0) taken += marked.take(newest, ~std::uint64_t{0});
    if (late.size() > 8) {
      if (random.below(2) == 0) taken += marked.take(late.front(), ~std::uint64_t{0});
      late.pop_front();
    }
    REQUIRE(taken <= all);
  }
  taken += marked.take(newest, ~std::uint64_t{0});
  CHECK(taken == all);
  CHECK(marked.total() == newest);
  CHECK(marked.take(newest, 100) == 0);
  CHECK(marked.take(newest + 50, 0) == 0);
  CHECK(marked.take(newest + 50, 20) == 20);
  CHECK(marked.take(newest + 50, 20) == 0);
}

TEST_CASE("early packets: any order of arrival, against a model", "[transport]") {
  const auto seed = GENERATE(1U, 2U, 3U);
  CAPTURE(seed);
  Random random(seed);
  constexpr std::uint32_t kWindow = 64;
  EarlyPackets early(kWindow);
  Psn expected(0xFF'FFE0);  // numbers wrap soon
  early.start(expected);
  struct Kept {
    Packet* packet;
    bool continues;
  };
  std::map<std::uint32_t, Kept> model;  // by distance from the expected one
  std::vector<Packet> packets(kWindow);
  for (int i = 0; i < 5'000; ++i) {
    const auto ahead = static_cast<std::uint32_t>(1 + random.below(kWindow - 1));
    const Psn psn = expected + ahead;
    REQUIRE(early.has(psn) == model.contains(ahead));
    if (!model.contains(ahead)) {
      if (random.below(2) == 0) {
        early.place(psn, random.below(2) == 0);
        model[ahead] = {nullptr, early.continues(psn)};
      } else {
        early.hold(psn, &packets[ahead]);
        model[ahead] = {&packets[ahead], false};
      }
    }
    const std::uint32_t furthest = model.empty() ? 0 : model.rbegin()->first;
    REQUIRE(distance(early.highest(), expected) >= static_cast<std::int32_t>(furthest));
    const auto held = std::count_if(model.begin(), model.end(),
                                    [](const auto& m) { return m.second.packet != nullptr; });
    REQUIRE(early.held() == static_cast<std::uint32_t>(held));
    if (random.below(3) != 0) continue;
    // The expected one comes: all move on by one.
    ++expected;
    early.reach(expected);
    std::map<std::uint32_t, Kept> rest;
    for (const auto& [at, kept] : model) {
      if (at != 1) {
        rest[at - 1] = kept;
        continue;
      }
      REQUIRE(early.continues(expected) == kept.continues);
      REQUIRE(early.release(expected) == kept.packet);
      REQUIRE_FALSE(early.has(expected));
      REQUIRE_FALSE(early.continues(expected));
    }
    model = rest;
  }
  std::size_t left = 0;
  while (early.release_any() != nullptr) ++left;
  CHECK(early.held() == 0);
  CHECK(left ==
        static_cast<std::size_t>(std::count_if(
            model.begin(), model.end(), [](const auto& m) { return m.second.packet != nullptr; })));
}

TEST_CASE("pending XACK: due once, a refusal before an ACK, marks add up", "[transport]") {
  PendingXack pending;
  const wire::Aeth ack = wire::Aeth::ack(7);
  CHECK_FALSE(pending.take_due(ack).has_value());
  wire::ParsedPacket parsed;
  parsed.psn = Psn(5);
  parsed.udp_source_port = 0xC001;
  parsed.ecn = Ecn::ce;
  Packet packet;
  packet.wire_bytes = 1000;
  pending.on_packet(parsed, packet, picos_from_nanos(100));
  pending.want();
  REQUIRE(pending.take_due(ack).has_value());
  CHECK_FALSE(pending.take_due(ack).has_value());
  pending.on_duplicate();
  wire::Xack xack = pending.take(picos_from_nanos(350), true);
  CHECK(xack.trigger == Psn(5));
  CHECK(xack.trigger_port == 0xC001);
  CHECK(xack.marked);
  CHECK(xack.duplicate);
  CHECK_FALSE(xack.trimmed);
  CHECK(xack.marked_bytes == 1000);
  CHECK(xack.hold_ns == 250);
  CHECK(xack.records.empty());
  parsed.psn = Psn(6);
  parsed.ecn = Ecn::ect0;
  pending.on_packet(parsed, packet, picos_from_nanos(400));
  pending.on_trimmed();
  CHECK_FALSE(pending.refuses());
  pending.want(wire::Aeth::nak(7, wire::NakCode::remote_access_error));
  CHECK(pending.refuses());
  const auto refusal = pending.take_due(ack);
  REQUIRE(refusal.has_value());
  CHECK_FALSE(refusal->is_ack());
  CHECK_FALSE(pending.refuses());
  xack = pending.take(picos_from_micros(1'000), false);
  CHECK(xack.trigger == Psn(6));
  CHECK(xack.trimmed);
  CHECK_FALSE(xack.marked);
  CHECK_FALSE(xack.duplicate);
  CHECK(xack.marked_bytes == 1000);
  CHECK(xack.hold_ns == 0xFFFF);
}

}  // namespace
}  // namespace paceline::transport::test
