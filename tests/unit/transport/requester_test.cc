// The requester alone, without an engine: what it asks of the scheduler and of congestion control
// for each answer and each timer, and nothing more.
#include <catch2/catch.hpp>
#include <vector>

#include "dataplane/transport/requester.h"

namespace paceline::transport::test {
namespace {

using Kind = Action::Kind;

// Memory for packets; nobody sends or receives here.
class HeapPort final : public Port {
 public:
  HeapPort() {
    info_.link_rate = rate_from_gbps(100);
    info_.computes_icrc = true;
  }
  std::size_t rx(std::span<Packet*>) override { return 0; }
  std::size_t tx(Picos, std::uint8_t, std::span<Packet* const>) override { return 0; }
  Picos rx_ready_at() const override { return kNever; }
  Picos tx_ready_at(std::uint8_t) const override { return Picos{0}; }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override { return info_; }

 private:
  PortInfo info_;
  PacketPool pool_{64};
};

// One queue pair in a context that nobody schedules.
struct Bench {
  static constexpr std::uint32_t kFirst = 100;  // PSN
  static constexpr std::uint64_t kMtu = 1024;

  Bench() {
    core.now = picos_from_micros(1'000);
    core.contexts.add(core.context_storage.emplace_back());
    context().wants = cc::signal_bit(cc::Signal::ack);
    context().decision.window_bytes = 1U << 30;
    region = core.regions.add_elided(0, 1U << 30, access::remote_write);
    qp.context = 0;
    qp.mtu = kMtu;
    qp.config.retry_count = 1;
    qp.state = QpState::rts;
    qp.header = wire::make_header_template({});
    qp.requester.next_psn = qp.requester.una_psn = qp.requester.max_psn = qp.requester.tail_psn =
        Psn(kFirst);
    qp.requester.retries_left = qp.config.retry_count;
    qp.requester.rnr_left = qp.config.rnr_retry;
    core.qps.push_back(&qp);
    core.qp_timers.reserve(8);
  }

  static EngineConfig config() {
    EngineConfig c;
    c.payload_mtu = kMtu;
    c.base_rtt_ns = 2'000;
    return c;
  }
  CongestionContext& context() { return core.contexts[0]; }

  // A WRITE of so many packets, all of which have left.
  void send(std::uint32_t packets) {
    WorkRequest request;
    request.opcode = WorkOpcode::write;
    request.length = packets * kMtu;
    request.local_key = request.remote_key = region;
    REQUIRE(requester.post(qp, request) == PostResult::ok);
    for (std::uint32_t i = 0; i < packets; ++i) {
      Packet* const packet = core.pool.alloc();
      REQUIRE(requester.build_next(qp, *packet));
      context().inflight_bytes += packet->wire_bytes;
      core.pool.free(packet);
    }
    REQUIRE(asked().empty());
  }
  void answer(std::uint32_t psn, wire::Aeth aeth) {
    wire::ParsedPacket parsed{};
    parsed.psn = Psn(psn);
    parsed.ext.aeth = aeth;
    requester.on_acknowledge(qp, parsed);
  }
  struct Asked {
    std::vector<Kind> kinds;
    std::vector<cc::Event> events;
    bool released = false;
    bool empty() const { return kinds.empty() && !released; }
  };
  Asked asked() {
    Asked a;
    core.actions.take_all(
        [&](Action& action) {
          a.kinds.push_back(action.kind);
          if (action.kind == Kind::deliver) a.events.push_back(action.event);
        },
        [&](std::uint32_t) { a.released = true; });
    return a;
  }

  HeapPort port;
  EngineCore core{config(), port};
  RequesterPart requester{core};
  std::uint32_t region = 0;
  QueuePair qp{EngineCore::qp_number(0, 0), QpConfig{}};
};

TEST_CASE("requester: an ACK is an event with its bytes, and frees a context that was held up",
          "[transport]") {
  Bench b;
  b.send(4);
  const std::uint64_t flown = b.context().inflight_bytes;
  b.answer(Bench::kFirst + 1, wire::Aeth::ack(0));
  auto asked = b.asked();
  REQUIRE(asked.kinds == std::vector{Kind::deliver});
  CHECK(asked.events[0].signal == cc::Signal::ack);
  CHECK(asked.events[0].acked_bytes == flown - b.context().inflight_bytes);
  CHECK_FALSE(asked.released);
  CHECK(b.qp.requester.una_psn == Psn(Bench::kFirst + 2));

  b.context().wants = 0;  // an algorithm that does not listen
  b.context().place = ContextPlace::blocked;
  b.answer(Bench::kFirst + 2, wire::Aeth::ack(0));
  asked = b.asked();
  CHECK(asked.kinds.empty());
  CHECK(asked.released);
  b.answer(Bench::kFirst + 2, wire::Aeth::ack(0));  // nothing new
  CHECK(b.asked().empty());
  CHECK(b.core.counters.stale_acks == 1);
}

TEST_CASE("requester: a sequence NAK goes back, then tells how much goes out again",
          "[transport]") {
  Bench b;
  b.send(4);
  const std::uint64_t packet = b.context().inflight_bytes / 4;
  b.answer(Bench::kFirst + 1, wire::Aeth::nak(0, wire::NakCode::psn_sequence_error));
  const auto asked = b.asked();
  REQUIRE(asked.kinds == std::vector{Kind::resume, Kind::deliver});
  CHECK(asked.events[0].signal == cc::Signal::nack);
  // The first packet of a WRITE has the RETH and is longer.
  CHECK(asked.events[0].lost_bytes + asked.events[0].acked_bytes == 4 * packet);
  CHECK(b.context().inflight_bytes == 0);
  CHECK(b.qp.requester.backlog_bytes == 3 * Bench::kMtu);
  CHECK(b.qp.requester.next_psn == Psn(Bench::kFirst + 1));
}

TEST_CASE("requester: an RNR NAK keeps the queue pair from sending until its time is over",
          "[transport]") {
  Bench b;
  b.send(2);
  b.answer(Bench::kFirst, wire::Aeth::rnr_nak(0, 12));
  const auto asked = b.asked();
  CHECK(asked.kinds == std::vector{Kind::settle});
  CHECK(asked.released);
  CHECK_FALSE(RequesterPart::has_work(b.qp, b.core.now));
  CHECK(RequesterPart::has_work(b.qp, b.core.now + wire::rnr_timer(12)));
}

TEST_CASE("requester: a timeout goes back; when no try is left the work is dropped",
          "[transport]") {
  Bench b;
  b.send(2);
  b.core.now = b.core.now + b.qp.config.retransmit_timeout;
  b.requester.on_timer(b.qp);
  auto asked = b.asked();
  REQUIRE(asked.kinds == std::vector{Kind::resume, Kind::deliver});
  CHECK(asked.events[0].signal == cc::Signal::timeout);
  CHECK(b.qp.requester.retries_left == 0);

  Packet* const packet = b.core.pool.alloc();
  REQUIRE(b.requester.build_next(b.qp, *packet));
  b.context().inflight_bytes += packet->wire_bytes;
  b.core.pool.free(packet);
  b.core.now = b.core.now + b.qp.config.retransmit_timeout;
  b.requester.on_timer(b.qp);
  asked = b.asked();
  CHECK(asked.kinds == std::vector{Kind::dropped, Kind::idle});
  CHECK(b.qp.state == QpState::error);
  CHECK(b.context().inflight_bytes == 0);
  CHECK(b.context().backlog_bytes == 0);
}

TEST_CASE("actions: more than there is room for are kept, in order", "[transport]") {
  bool any = false;
  Actions actions(any);
  CHECK_FALSE(any);
  IntStack records;
  for (std::uint32_t i = 0; i < 100; ++i) {
    records.path = static_cast<std::uint16_t>(i);
    actions.deliver(i, i % 2 == 0 ? &records : nullptr).lost_bytes = i;
  }
  actions.released(7);
  CHECK(any);
  std::uint32_t next = 0;
  bool last = false;
  actions.take_all(
      [&](const Action& action) {
        CHECK(action.context == next);
        CHECK(action.event.lost_bytes == next);
        if (next % 2 == 0) {
          REQUIRE(action.event.int_stack == &action.records);
          CHECK(action.records.path == next);
        } else {
          CHECK(action.event.int_stack == nullptr);
        }
        ++next;
      },
      [&](std::uint32_t context) { last = context == 7 && next == 100; });
  CHECK(last);
  CHECK_FALSE(any);
}

}  // namespace
}  // namespace paceline::transport::test
