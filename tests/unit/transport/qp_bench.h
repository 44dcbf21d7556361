// One queue pair as its classes see it: the state that an engine keeps for it, without an engine.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "dataplane/transport/ends/requester.h"

namespace paceline::transport::test {

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

  explicit Bench(std::uint32_t first = kFirst, std::uint8_t depth_of_reads = 16) {
    core.now = picos_from_micros(1'000);
    core.contexts.add(core.context_storage.emplace_back());
    context().wants = cc::signal_bit(cc::Signal::ack);
    context().decision.window_bytes = 1U << 30;
    region = core.regions.add_elided(0, 1U << 30, access::remote_write | access::local_write);
    qp.context = 0;
    qp.mtu = kMtu;
    qp.config.retry_count = 1;
    qp.config.max_rd_atomic = depth_of_reads;
    qp.config.send_cq = &completions;
    qp.state = QpState::rts;
    qp.header = wire::make_header_template({});
    qp.requester.position.start(Psn(first), 0);
    qp.requester.tail_psn = Psn(first);
    qp.requester.retries.renew(qp.config.retry_count, qp.config.rnr_retry);
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

  void post(WorkOpcode opcode, std::uint64_t length, bool fence = false) {
    WorkRequest request;
    request.opcode = opcode;
    request.length = length;
    request.local_key = request.remote_key = region;
    request.fence = fence;
    request.wr_id = ++posted;
    REQUIRE(requester.post(qp, request) == PostResult::ok);
    context().backlog_bytes = qp.requester.backlog_bytes;  // CongestionManager::posted does
  }
  // Sends what is next; its bytes on the wire.
  std::uint32_t send_next() {
    Packet* const packet = core.pool.alloc();
    REQUIRE(requester.build_next(qp, *packet));
    const std::uint32_t bytes = packet->wire_bytes;
    context().inflight_bytes += bytes;
    core.pool.free(packet);
    return bytes;
  }
  // A WRITE of so many packets, all of which have left.
  void send(std::uint32_t packets) {
    post(WorkOpcode::write, packets * kMtu);
    for (std::uint32_t i = 0; i < packets; ++i) send_next();
    REQUIRE(asked().empty());
  }
  std::vector<Completion> completed() {
    std::vector<Completion> all(256);
    all.resize(completions.poll(all));
    return all;
  }
  void answer(std::uint32_t psn, wire::Aeth aeth) {
    wire::ParsedPacket parsed{};
    parsed.psn = Psn(psn);
    parsed.ext.aeth = aeth;
    requester.on_acknowledge(qp, parsed);
  }
  struct Asked {
    std::vector<Action::Kind> kinds;
    std::vector<cc::Event> events;
    bool released = false;
    bool empty() const { return kinds.empty() && !released; }
  };
  Asked asked() {
    Asked a;
    core.actions.take_all(
        [&](Action& action) {
          a.kinds.push_back(action.kind);
          if (action.kind == Action::Kind::deliver) a.events.push_back(action.event);
        },
        [&](std::uint32_t) { a.released = true; });
    return a;
  }

  HeapPort port;
  CompletionQueue completions{256};
  std::uint64_t posted = 0;
  EngineCore core{config(), port};
  Requester requester{core};
  std::uint32_t region = 0;
  QueuePair qp{EngineCore::qp_number(0, 0), QpConfig{}};
};

}  // namespace paceline::transport::test
