// Which context sends next, and when: the scheduler over contexts that the test makes.
#include "dataplane/transport/congestion/scheduler.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/transport/read/read_responder.h"
#include "tests/unit/transport/congestion_bench.h"

namespace paceline::transport::test {
namespace {

// A packet of a WRITE with one packet, by its headers: Ethernet, IPv4, UDP, BTH, RETH, ICRC, FCS,
// preamble and gap.
constexpr std::uint32_t wire_bytes_of_write(std::uint32_t payload) {
  const std::uint32_t frame = 14 + 20 + 8 + 12 + 16 + (payload + 3) / 4 * 4 + 4 + 4;
  return std::max(frame, 64U) + 20;
}
constexpr std::uint32_t kFullWrite = wire_bytes_of_write(kBenchMtu);
// Headers of a first and a last packet beyond those of a middle one.
constexpr std::uint32_t kQuantum = kFullWrite - 16 + 20;

struct SchedulerBench : CoreBench {
  std::uint32_t add_context(Rate rate = rate_from_gbps(100)) {
    const std::uint32_t index = core.contexts.add(core.context_storage.emplace_back());
    scheduler.reserve(roomy(core.contexts.size()));
    CongestionContext& c = context(index);
    c.in_use = true;
    c.traffic_class = kDefaultDataClass;
    c.decision.rate = rate;
    c.limiter_since = c.next_send = c.pace_from = core.now;
    return index;
  }
  QueuePair& pair_in(std::uint32_t index) {
    QueuePair& qp = add_pair();
    qp.context = index;
    ++context(index).queue_pairs;
    return qp;
  }
  // A pair with a message to send, in a context.
  QueuePair& busy_pair(std::uint32_t index, std::uint64_t length) {
    QueuePair& qp = pair_in(index);
    post(qp, length);
    scheduler.activate(qp);
    return qp;
  }
  // So many READ responses of a full packet each are due.
  void owe_responses(QueuePair& qp, std::uint32_t packets) {
    ResponderResource resource;
    resource.first_psn = Psn(0);
    resource.packets = packets;
    resource.rkey = region;
    resource.length = std::uint64_t{packets} * kBenchMtu;
    qp.responder.responses.add(resource);
    qp.response_ready = true;
    qp.responder.backlog_bytes += resource.length;
    context(qp).backlog_bytes += resource.length;
    scheduler.activate(qp);
    scheduler.note_response(qp);
  }

  struct Served {
    std::uint32_t context;
    QueuePair* qp;
    std::uint32_t bytes;
    bool response;
  };
  // The next entry of the ring sends a packet; nothing if the entry is stale.
  std::optional<Served> serve(unsigned ring = kDefaultDataClass) {
    REQUIRE((scheduler.ready_classes() >> ring & 1U) != 0);
    const std::uint32_t index = scheduler.pop_ready(ring);
    CongestionContext& c = context(index);
    c.in_rings = static_cast<std::uint8_t>(c.in_rings & ~(1U << ring));
    if (c.place != ContextPlace::ready) return std::nullopt;
    QueuePair& qp = *core.qps[c.active_head];
    const bool response = scheduler.sends_response(qp, c);
    Packet* const packet = core.pool.alloc();
    REQUIRE((response ? ReadResponder::build(core, qp, *packet) : sender.build_next(qp, *packet)));
    const Scheduler::Sent sent{packet->wire_bytes, !response && !qp.unreliable, response};
    core.pool.free(packet);
    core.actions.take_all([](Action&) {}, [](std::uint32_t) {});
    scheduler.charge(c, sent);
    scheduler.pace(c, sent);
    if (scheduler.has_work(qp)) {
      scheduler.end_turn(qp, c, sent);
    } else {
      qp.lane_balance = 0;
      scheduler.deactivate(qp);
    }
    return Served{index, &qp, sent.wire_bytes, response};
  }
  // Time advances until something is ready.
  void wait() {
    while (!scheduler.has_ready()) {
      const Picos next = scheduler.next_deadline();
      REQUIRE(next != kNever);
      core.now = later(core.now, next);
      run_due();
    }
  }
  void run_due() {
    for (std::uint32_t i; (i = scheduler.pop_paced()) != Scheduler::kNone;) scheduler.place(i);
  }
  Served serve_next() {
    for (;;) {
      wait();
      if (const auto served = serve()) return *served;
    }
  }

  Scheduler scheduler{core};
  Requester sender{core};
};

TEST_CASE("scheduler: queue pairs of a context share it byte by byte", "[transport][scheduler]") {
  const auto seed = GENERATE(1U, 2U, 3U, 4U, 5U);
  CAPTURE(seed);
  Random random(seed);
  SchedulerBench b;
  const std::uint32_t index = b.add_context();
  b.context(index).decision.window_bytes = 1U << 30;
  std::vector<std::uint64_t> length, bytes;
  const auto count = static_cast<std::uint32_t>(2 + random.below(7));
  for (std::uint32_t i = 0; i < count; ++i) {
    // Messages of a few packets, of a part of one, of nothing at all.
    length.push_back(random.below(3) == 0 ? random.below(64) : random.below(5 * kBenchMtu));
    bytes.push_back(0);
    b.busy_pair(index, length[i]);
  }
  std::uint32_t last = 0;
  for (int packet = 0; packet < 4000; ++packet) {
    for (std::uint32_t i = 0; i < count; ++i) {
      QueuePair& qp = *b.core.qps[i];
      if (qp.requester.queue.size() > 100) b.acknowledge(qp);
      while (qp.requester.queue.tail() - qp.requester.position.request() < 2) {
        b.post(qp, length[i]);
      }
    }
    const auto served = b.serve_next();
    const std::uint32_t from = b.core.qp_index(*served.qp);
    bytes[from] += served.bytes;
    REQUIRE((from == last || from == (last + 1) % count));  // turns go round
    last = from;
    const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
    REQUIRE(*most - *least <= kQuantum + kFullWrite);
  }
  CHECK(b.context(index).sent_total == std::accumulate(bytes.begin(), bytes.end(), 0UL));
  CHECK(*std::min_element(bytes.begin(), bytes.end()) > 400'000 / count);
}

// The model knows the rule as it is in the paper: a list, a quantum for the entry that comes to its
// head.
TEST_CASE("scheduler: pairs come and go as a model of deficit round robin says",
          "[transport][scheduler]") {
  const auto seed = GENERATE(1U, 2U, 3U, 4U);
  CAPTURE(seed);
  Random random(seed);
  SchedulerBench b;
  const std::uint32_t index = b.add_context();
  b.context(index).decision.window_bytes = 1U << 30;
  struct Entry {
    std::uint32_t pair;
    std::uint32_t deficit;
  };
  std::deque<Entry> model;
  std::vector<std::uint32_t> payload;
  for (std::uint32_t i = 0; i < 6; ++i) {
    payload.push_back(static_cast<std::uint32_t>(random.below(kBenchMtu + 1)));
    b.pair_in(index);
  }
  for (int step = 0; step < 3000; ++step) {
    const auto i = static_cast<std::uint32_t>(random.below(payload.size()));
    QueuePair& chosen = *b.core.qps[i];
    const auto at = std::find_if(model.begin(), model.end(), [&](Entry e) { return e.pair == i; });
    const std::uint64_t what = random.below(8);
    if (what == 0 && at == model.end()) {
      b.post(chosen, payload[i]);
      b.post(chosen, payload[i]);
      b.scheduler.activate(chosen);
      b.scheduler.activate(chosen);  // twice is once
      model.push_back({i, model.empty() ? kQuantum : 0});
    } else if (what == 1 && at != model.end()) {
      const bool head = at == model.begin();
      model.erase(at);
      if (head && !model.empty()) model.front().deficit += kQuantum;
      b.scheduler.deactivate(chosen);
      b.scheduler.deactivate(chosen);
    } else if (!model.empty()) {
      const auto served = b.serve_next();
      Entry& front = model.front();
      REQUIRE(b.core.qp_index(*served.qp) == front.pair);
      const std::uint32_t bytes = wire_bytes_of_write(payload[front.pair]);
      REQUIRE(served.bytes == bytes);
      QueuePair& qp = *served.qp;
      if (!Requester::has_work(qp, b.core.now)) {
        b.acknowledge(qp);
        model.pop_front();
        if (!model.empty()) model.front().deficit += kQuantum;
      } else {
        front.deficit -= std::min(front.deficit, bytes);
        if (front.deficit < bytes) {
          model.push_back(front);
          model.pop_front();
          model.front().deficit += kQuantum;
        }
      }
    }
    REQUIRE((b.context(index).active_head == kNoIndex) == model.empty());
    REQUIRE((b.context(index).place == ContextPlace::idle) == model.empty());
    if (model.empty()) {
      REQUIRE(b.context(index).limiter == cc::Limiter::application);
    } else {
      REQUIRE(b.context(index).active_head == model.front().pair);
    }
    for (const Entry& e : model) REQUIRE(b.core.qps[e.pair]->deficit == e.deficit);
  }
}

TEST_CASE("scheduler: contexts of a class take turns, urgent ones before all others",
          "[transport][scheduler]") {
  SchedulerBench b;
  for (std::uint32_t i = 0; i < 4; ++i) b.busy_pair(b.add_context(), 40 * kBenchMtu);
  const std::uint32_t urgent = b.add_context();
  b.context(urgent).decision.urgent = true;
  b.busy_pair(urgent, 2 * kBenchMtu);
  const std::uint32_t late = b.add_context();
  b.busy_pair(late, 40 * kBenchMtu);
  // All have their time before the next packet.
  std::vector<std::uint32_t> order;
  for (int i = 0; i < 14; ++i) {
    order.push_back(b.serve().value().context);
    b.core.now = b.core.now + picos_from_micros(1);
    b.run_due();
  }
  CHECK(order ==
        std::vector<std::uint32_t>{urgent, urgent, 0, 1, 2, 3, late, 0, 1, 2, 3, late, 0, 1});
}

TEST_CASE("scheduler: a window, a ceiling and a rate of 0 hold a context back until they do not",
          "[transport][scheduler]") {
  SchedulerBench b;
  const std::uint32_t index = b.add_context();
  CongestionContext& c = b.context(index);
  QueuePair& qp = b.busy_pair(index, 40 * kBenchMtu);
  const auto blocked_by = [&](cc::Limiter limiter) {
    b.core.now = b.core.now + picos_from_micros(1);
    b.run_due();
    CHECK(c.place == ContextPlace::blocked);
    CHECK(c.limiter == limiter);
    CHECK(b.scheduler.next_deadline() ==
          (b.scheduler.has_ready() ? b.core.now + Picos{1} : kNever));
  };
  const Picos began = b.core.now;
  const std::uint32_t first = b.serve_next().bytes;
  CHECK(first == kFullWrite);

  SECTION("a window") {
    c.decision.window_bytes = first + 1;  // one byte is room for a packet
    b.scheduler.place(index);
    CHECK(b.serve_next().bytes == kFullWrite - 16);
    blocked_by(cc::Limiter::window);
    b.acknowledge(qp);
    b.scheduler.place(index);
    CHECK(c.place == ContextPlace::ready);
    b.serve_next();
    b.serve_next();
    blocked_by(cc::Limiter::window);
    c.decision.window_bytes = 1U << 20;
    b.scheduler.place(index);
    CHECK(c.place == ContextPlace::ready);
  }
  SECTION("a ceiling") {
    c.decision.ceiling = first + 2 * (kFullWrite - 16);
    b.scheduler.place(index);
    b.serve_next();
    b.serve_next();  // exactly up to it
    CHECK(c.sent_total == c.decision.ceiling);
    blocked_by(cc::Limiter::credit);
    c.decision.ceiling += kFullWrite - 17;
    b.scheduler.place(index);
    blocked_by(cc::Limiter::credit);
    c.decision.ceiling += 1;
    b.scheduler.place(index);
    CHECK(c.place == ContextPlace::ready);
  }
  SECTION("less than a full packet is left below the ceiling, and that is all there is") {
    b.acknowledge(qp);
    QueuePair& other = b.busy_pair(index, 100);
    c.decision.ceiling = c.sent_total + wire_bytes_of_write(100);
    b.scheduler.deactivate(qp);
    CHECK(c.active_head == b.core.qp_index(other));
    CHECK(b.serve_next().bytes == wire_bytes_of_write(100));
    CHECK(c.sent_total == c.decision.ceiling);
  }
  SECTION("a rate of 0") {
    const Rate before = std::exchange(c.decision.rate, Rate{0});
    c.decision.limiter = cc::Limiter::grant;
    b.scheduler.take_decision(index, c, before);
    b.scheduler.place(index);
    blocked_by(cc::Limiter::grant);
    c.decision.rate = before;
    b.scheduler.take_decision(index, c, Rate{0});
    b.scheduler.place(index);
    CHECK(c.place == ContextPlace::ready);
  }
  // Each moment counts for one bound.
  b.core.now = b.core.now + picos_from_micros(3);
  b.scheduler.settle_limiter(c);
  CHECK(std::accumulate(c.limiter_picos.begin(), c.limiter_picos.end(), std::int64_t{0}) ==
        (b.core.now - began).count);
}

TEST_CASE("scheduler: READ responses go past a full window, requests do not",
          "[transport][scheduler]") {
  SchedulerBench b;
  const std::uint32_t index = b.add_context();
  CongestionContext& c = b.context(index);
  c.decision.window_bytes = kFullWrite;
  b.busy_pair(index, 40 * kBenchMtu);
  QueuePair& responder = b.busy_pair(index, 40 * kBenchMtu);
  b.serve_next();
  b.core.now = b.core.now + picos_from_micros(1);
  b.run_due();
  REQUIRE(c.place == ContextPlace::blocked);
  b.owe_responses(responder, 5);
  const std::uint64_t in_flight = c.inflight_bytes;
  std::vector<Picos> at;
  for (int i = 0; i < 5; ++i) {
    const auto served = b.serve_next();
    at.push_back(b.core.now);
    CHECK(served.qp == &responder);
    CHECK(served.response);
  }
  CHECK(c.inflight_bytes == in_flight);  // nobody acknowledges them
  b.core.now = b.core.now + picos_from_micros(10);
  b.run_due();
  CHECK(c.place == ContextPlace::blocked);
  CHECK(c.limiter == cc::Limiter::window);
  // A window of a packet per round trip: so many of them, however fast the port is. The first ones
  // of a context that was late have the allowance of a packet.
  CHECK((at[4] - at[2]).count / 2 ==
        std::int64_t{kBenchRttNs} * 1000 * (kFullWrite - 16) / kFullWrite);
}

TEST_CASE("scheduler: requests and READ responses of a pair share its turns byte by byte",
          "[transport][scheduler]") {
  SchedulerBench b;
  const std::uint32_t index = b.add_context();
  b.context(index).decision.window_bytes = 1U << 30;
  QueuePair& qp = b.pair_in(index);
  const auto payload = GENERATE(16U, 300U, kBenchMtu);
  for (int i = 0; i < 120; ++i) b.post(qp, payload);
  b.scheduler.activate(qp);
  b.owe_responses(qp, 100);
  std::int64_t requests = 0, responses = 0;
  while (qp.response_ready && Requester::has_work(qp, b.core.now)) {
    const auto served = b.serve_next();
    (served.response ? responses : requests) += served.bytes;
    REQUIRE(std::abs(requests - responses) <= std::int64_t{kFullWrite});
  }
  CHECK(requests + responses > 10'000);
}

TEST_CASE("scheduler: packets of a context leave at its rate, and a new rate holds at once",
          "[transport][scheduler]") {
  SchedulerBench b;
  const Rate slow = rate_from_gbps(10), slower = rate_from_gbps(1);
  const std::uint32_t index = b.add_context(slow);
  CongestionContext& c = b.context(index);
  b.busy_pair(index, 40 * kBenchMtu);
  constexpr std::uint32_t kMiddle = kFullWrite - 16;
  const auto change = [&](Rate rate) {
    const Rate before = std::exchange(c.decision.rate, rate);
    b.scheduler.take_decision(index, c, before);
    b.scheduler.place(index);
  };

  const Picos start = b.core.now;
  b.serve_next();
  b.serve_next();
  CHECK(b.core.now - start == serialization_time(kFullWrite, slow));
  b.serve_next();
  CHECK(b.core.now - start ==
        serialization_time(kFullWrite, slow) + serialization_time(kMiddle, slow));
  // While a packet is waited for.
  const Picos third = b.core.now;
  change(slower);
  CHECK(b.scheduler.next_deadline() == third + serialization_time(kMiddle, slower));
  CHECK(c.place == ContextPlace::paced);
  change(slow);
  CHECK(b.scheduler.next_deadline() == third + serialization_time(kMiddle, slow));

  SECTION("time that was lost is made up for by a packet, and no more") {
    b.core.now = third + picos_from_micros(500);
    b.run_due();
    const Picos found = b.core.now;
    b.serve_next();
    b.serve_next();
    CHECK(b.core.now <= found + serialization_time(2 * kMiddle, slow));
    const Picos fourth = b.core.now;
    b.serve_next();
    CHECK(b.core.now - fourth == serialization_time(kMiddle, slow));
  }
  SECTION("from rate 0 there is nothing to make up for, unless others have work, too") {
    const bool others = GENERATE(false, true);
    if (others) b.busy_pair(b.add_context(Rate{0}), 100);
    change(Rate{0});
    b.core.now = third + picos_from_micros(500);
    b.run_due();
    change(slow);
    CHECK(c.next_send == (others ? third + serialization_time(kMiddle, slow) : b.core.now));
  }
  SECTION("a rate that will rise before the packet is due is asked for then") {
    change(slower);
    c.decision.wake_at = to_nanos(third) + Nanos{2'000};
    b.scheduler.place(index);
    CHECK(b.scheduler.next_deadline() == to_picos(c.decision.wake_at));
    b.core.now = b.scheduler.next_deadline();
    CHECK(b.scheduler.due());
    CHECK(b.scheduler.wake_due(c));
  }
}

TEST_CASE("scheduler: deadlines and the likely next are those of what is sent",
          "[transport][scheduler]") {
  const auto seed = GENERATE(1U, 2U, 3U);
  CAPTURE(seed);
  Random random(seed);
  SchedulerBench b;
  std::map<std::uint32_t, Picos> next;  // model: when each context may send
  std::vector<Rate> rate;
  for (std::uint32_t i = 0; i < 9; ++i) {
    rate.push_back(rate_from_gbps(1 + random.below(20)));
    b.add_context(rate[i]);
    b.context(i).decision.window_bytes = 1U << 30;
    b.busy_pair(i, 900 * kBenchMtu);
    next[i] = b.core.now;
  }
  int likely = 0;
  for (int step = 0; step < 2000; ++step) {
    Picos earliest = kNever;
    for (const auto& [index, at] : next) earliest = earlier(earliest, at);
    const Picos deadline = b.scheduler.next_deadline();
    REQUIRE(deadline == later(earliest, b.scheduler.has_ready() ? b.core.now + Picos{1} : Picos{}));
    REQUIRE(b.scheduler.due() == (!b.scheduler.has_ready() && earliest <= b.core.now));
    if (!b.scheduler.has_ready()) {
      REQUIRE(earliest > b.core.now);
      const std::uint32_t guess = b.scheduler.likely_next();
      REQUIRE(guess < 9);
      likely += next[guess] == earliest ? 1 : 0;
      b.core.now = deadline;
      REQUIRE(b.scheduler.due());
      b.run_due();
      REQUIRE_FALSE(b.scheduler.due());
    } else {
      const std::uint32_t guess = b.scheduler.likely_next();
      const auto served = b.serve().value();
      REQUIRE(served.context == guess);
      REQUIRE(next[guess] <= b.core.now);
      next[guess] = next[guess] + serialization_time(served.bytes, rate[guess]);
      if (!Requester::has_work(*served.qp, b.core.now)) next[guess] = kNever;
    }
  }
  CHECK(likely > 0);
}

TEST_CASE("scheduler: what is ready waits for the port", "[transport][scheduler]") {
  SchedulerBench b;
  const std::uint32_t index = b.add_context();
  b.busy_pair(index, 100);
  CHECK(b.scheduler.sends_little());
  b.port.ready_at[kDefaultDataClass] = b.core.now + picos_from_micros(7);
  CHECK(b.scheduler.next_deadline() == b.port.ready_at[kDefaultDataClass]);
  b.port.ready_at[kDefaultDataClass] = kNever;  // paused
  CHECK(b.scheduler.next_deadline() == kNever);
  // What was refused, in a class without contexts.
  Packet* const packet = b.core.pool.alloc();
  b.scheduler.backlog().push_refused(2, packet);
  CHECK(b.scheduler.has_ready());
  CHECK_FALSE(b.scheduler.sends_little());
  CHECK(b.scheduler.next_deadline() == b.core.now + Picos{1});
  b.core.pool.free(packet);
}

TEST_CASE("scheduler: real timers come apart from what is sent", "[transport][scheduler]") {
  SchedulerBench b;
  const std::uint32_t index = b.add_context();
  CongestionContext& c = b.context(index);
  c.decision.timed = true;
  c.decision.wake_at = to_nanos(b.core.now) + Nanos{5'000};
  b.scheduler.take_decision(index, c, c.decision.rate);
  CHECK(b.scheduler.next_deadline() == b.core.now + picos_from_micros(5));
  c.decision.wake_at = kNeverNanos;
  b.scheduler.take_decision(index, c, c.decision.rate);
  CHECK(b.scheduler.next_deadline() == kNever);
  c.decision.wake_at = to_nanos(b.core.now) + Nanos{6'000};
  b.scheduler.take_decision(index, c, c.decision.rate);
  CHECK(b.scheduler.pop_timed() == Scheduler::kNone);
  b.core.now = b.scheduler.next_deadline();
  CHECK(b.scheduler.pop_paced() == Scheduler::kNone);
  CHECK(b.scheduler.pop_timed() == index);
  CHECK(b.scheduler.pop_timed() == Scheduler::kNone);
  CHECK_FALSE(c.timer_set);
}

TEST_CASE("scheduler: a context that is removed leaves no time, no timer and no turn",
          "[transport][scheduler]") {
  SchedulerBench b;
  const std::uint32_t index = b.add_context(rate_from_gbps(1));
  CongestionContext& c = b.context(index);
  QueuePair& qp = b.busy_pair(index, 10 * kBenchMtu);
  c.decision.timed = true;
  c.decision.wake_at = to_nanos(b.core.now) + Nanos{50'000};
  b.scheduler.take_decision(index, c, c.decision.rate);
  const bool paced = GENERATE(false, true);
  const Picos began = b.core.now;
  if (paced) b.serve_next();
  CHECK(c.place == (paced ? ContextPlace::paced : ContextPlace::ready));
  b.core.now = b.core.now + picos_from_micros(2);
  b.scheduler.deactivate(qp);
  if (paced) CHECK(b.scheduler.next_deadline() == to_picos(c.decision.wake_at));  // the timer's
  b.scheduler.remove(index);
  CHECK(c.place == ContextPlace::idle);
  CHECK_FALSE(c.timer_set);
  CHECK(std::accumulate(c.limiter_picos.begin(), c.limiter_picos.end(), std::int64_t{0}) ==
        (b.core.now - began).count);
  if (!paced) CHECK_FALSE(b.serve().has_value());  // an entry of the ring is stale
  CHECK(b.scheduler.next_deadline() == kNever);
  b.core.now = b.core.now + picos_from_micros(1'000);
  CHECK(b.scheduler.pop_paced() == Scheduler::kNone);
  CHECK(b.scheduler.pop_timed() == Scheduler::kNone);
}

TEST_CASE("scheduler: a context found in another class's ring goes to its own",
          "[transport][scheduler]") {
  SchedulerBench b;
  const std::uint32_t index = b.add_context();
  CongestionContext& c = b.context(index);
  QueuePair& qp = b.busy_pair(index, 10 * kBenchMtu);
  qp.unreliable = true;
  CHECK(b.scheduler.ready_classes() == 1U << kDefaultDataClass);
  c.traffic_class = 5;
  CHECK(b.scheduler.class_of_next(c) == 5);
  CHECK_FALSE(b.scheduler.parked(index, c, kDefaultDataClass));  // the port takes class 5
  b.port.ready_at[5] = kNever;
  CHECK(b.scheduler.parked(index, c, kDefaultDataClass));
  CHECK_FALSE(b.scheduler.parked(index, c, 5));
  b.scheduler.take_own_turn(index, c);  // once in a ring
  CHECK(b.scheduler.ready_classes() == (1U << kDefaultDataClass | 1U << 5));
  CHECK(b.scheduler.likely_next() == index);
  qp.unreliable = false;
  CHECK(b.serve(5).value().context == index);
  CHECK(b.scheduler.ready_classes() == 1U << kDefaultDataClass);
}

}  // namespace
}  // namespace paceline::transport::test
