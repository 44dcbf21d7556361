// The state of an engine and the classes of congestion control around it, without an engine.
#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cc/params.h"
#include "cc/registry.h"
#include "dataplane/transport/congestion/congestion_manager.h"
#include "dataplane/transport/congestion/migration.h"
#include "dataplane/transport/ends/requester.h"
#include "dataplane/wire/extensions/control.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport::test {

// Takes what it is offered, up to `room` packets, and keeps what they said.
class RecordingPort final : public Port {
 public:
  struct Sent {
    Picos at;
    std::uint8_t traffic_class;
    Packet packet;  // headers alone
    wire::ParsedPacket parsed;
  };

  RecordingPort() {
    info_.link_rate = rate_from_gbps(100);
    info_.computes_icrc = true;
    ready_at.fill(Picos{0});
  }
  std::size_t rx(std::span<Packet*>) override { return 0; }
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override {
    std::size_t n = 0;
    for (; n < burst.size() && room != 0; ++n, --room) {
      sent.push_back({now, traffic_class, *burst[n], parse(*burst[n])});
      pool_.free(burst[n]);
    }
    return n;
  }
  Picos rx_ready_at() const override { return kNever; }
  Picos tx_ready_at(std::uint8_t traffic_class) const override { return ready_at[traffic_class]; }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override { return info_; }

  static wire::ParsedPacket parse(const Packet& packet) {
    wire::ParsedPacket parsed{};
    REQUIRE(wire::parse_headers(packet.header_view(), packet.payload_bytes, parsed) ==
            wire::ParseError::ok);
    return parsed;
  }

  std::vector<Sent> sent;
  std::uint64_t room = ~std::uint64_t{0};
  std::array<Picos, kTrafficClasses> ready_at;

 private:
  PortInfo info_;
  PacketPool pool_{256};
};

inline constexpr std::uint32_t kBenchMtu = 1024;
inline constexpr std::uint32_t kBenchRttNs = 2'000;

// Values of an algorithm for a RecordingPort.
inline CcChoice bench_choice(cc::AlgorithmId id,
                             std::vector<std::pair<std::string_view, double>> overrides = {}) {
  const cc::PortFacts facts{
      rate_from_gbps(100), kBenchMtu,
      WireAccounting{}.wire_bytes(EngineCore::kPlainHeaderBytes + kBenchMtu + 8, kBenchMtu),
      kBenchRttNs, false};
  std::vector<cc::ParamOverride> list;
  for (const auto& [name, value] : overrides) list.push_back({name, value});
  auto resolved = cc::resolve_params(*cc::find(id), "", list, facts);
  if (const auto* errors = std::get_if<std::vector<cc::ParamError>>(&resolved)) {
    throw std::invalid_argument(errors->front().message);
  }
  return {id, std::get<std::vector<double>>(resolved)};
}

inline CcSetup bench_setup(cc::AlgorithmId primary) {
  return {bench_choice(primary), bench_choice(cc::AlgorithmId::dcqcn)};
}

inline EngineConfig bench_config(cc::AlgorithmId primary = cc::AlgorithmId::fixed) {
  EngineConfig config;
  config.address = wire::IpAddress::v4(0x0A00'0001);
  config.mac = wire::MacAddress::local(1);
  config.payload_mtu = kBenchMtu;
  config.base_rtt_ns = kBenchRttNs;
  config.check_invariants = true;
  config.primary = bench_choice(primary);
  config.fallback = bench_choice(cc::AlgorithmId::dcqcn);
  return config;
}

inline wire::IpAddress host(std::uint32_t number) {
  return wire::IpAddress::v4(0x0A00'0100U + number);
}

// The state alone, with queue pairs that have work.
struct CoreBench {
  explicit CoreBench(const EngineConfig& config = bench_config()) : core(config, port) {
    core.now = picos_from_micros(1'000);
    region =
        core.regions.add_elided(0, std::uint64_t{1} << 30, access::remote | access::local_write);
  }

  // Connected, but in no context.
  QueuePair& add_pair(std::uint8_t traffic_class = kDefaultDataClass, QpType type = QpType::rc) {
    const std::uint32_t index = core.qps.size();
    QpConfig config;
    config.type = type;
    config.traffic_class = traffic_class;
    config.send_cq = &completions;
    QueuePair& qp = core.qp_storage.emplace_back(EngineCore::qp_number(index, 0), config);
    core.qps.push_back(&qp);
    core.qp_timers.reserve(roomy(index + 1));
    qp.mtu = kBenchMtu;
    qp.state = QpState::rts;
    qp.path.ip = host(index);
    qp.header = wire::make_header_template(core.flow_to(qp.path));
    qp.requester.position.start(Psn(100), 0);
    qp.requester.tail_psn = Psn(100);
    return qp;
  }
  void post(QueuePair& qp, std::uint64_t length) {
    WorkRequest request;
    request.opcode = WorkOpcode::write;
    request.length = length;
    request.local_key = request.remote_key = region;
    Requester requester(core);
    REQUIRE(requester.post(qp, request) == PostResult::ok);
  }
  // The far side has everything that was sent. Returns its bytes on the wire.
  std::uint64_t acknowledge(QueuePair& qp) {
    const std::uint64_t before = core.contexts[qp.context].inflight_bytes;
    wire::ParsedPacket parsed{};
    parsed.psn = qp.requester.position.next() + static_cast<std::uint32_t>(-1);
    parsed.ext.aeth = wire::Aeth::ack(0);
    Requester requester(core);
    requester.on_acknowledge(qp, parsed);
    std::vector<Completion> all(256);
    completions.poll(all);
    return before - core.contexts[qp.context].inflight_bytes;
  }
  CongestionContext& context(std::uint32_t index) { return core.contexts[index]; }
  CongestionContext& context(const QueuePair& qp) { return core.contexts[qp.context]; }

  RecordingPort port;
  CompletionQueue completions{4096};
  EngineCore core;
  std::uint32_t region = 0;
};

// With the classes of congestion control.
struct CongestionBench : CoreBench {
  explicit CongestionBench(const EngineConfig& config = bench_config()) : CoreBench(config) {}

  // A queue pair to that host, in the context that its data is charged to.
  QueuePair& connect(std::uint32_t to, std::uint8_t traffic_class = kDefaultDataClass) {
    QueuePair& qp = add_pair(traffic_class);
    qp.path.ip = host(to);
    qp.path.mac = wire::MacAddress::local(100 + to);
    qp.path.traffic_class = traffic_class;
    qp.header = wire::make_header_template(core.flow_to(qp.path));
    congestion.attach(qp, qp.path.ip, qp.path.mac);
    return qp;
  }
  // The queue pair has a message to send, and its algorithm is told.
  void begin(QueuePair& qp, std::uint64_t length) {
    post(qp, length);
    congestion.perform();
    cc::Event event;
    event.signal = cc::Signal::message;
    event.message_bytes = length;
    congestion.deliver(qp.context, event);
    if (Requester::has_work(qp, core.now)) scheduler.activate(qp);
  }
  // The queue pair's next packet leaves; its bytes on the wire.
  std::uint32_t send(QueuePair& qp) {
    Packet* const packet = core.pool.alloc();
    REQUIRE(Requester(core).build_next(qp, *packet));
    const std::uint32_t bytes = packet->wire_bytes;
    core.pool.free(packet);
    scheduler.charge(context(qp), {bytes, true, false});
    congestion.perform();
    return bytes;
  }
  // Hands the control packets that wait to the port.
  void send_control() {
    while (Packet* packet = core.control_head) {
      core.control_head = packet->next;
      port.tx(core.now, kControlClass, {&packet, 1});
    }
    core.control_tail = nullptr;
  }
  // The control messages of a kind that were queued since the last call for any kind.
  template <class Message>
  std::vector<Message> taken(wire::Operation kind) {
    send_control();
    std::vector<Message> all;
    for (const RecordingPort::Sent& sent : port.sent) {
      if (sent.parsed.properties.operation != kind) continue;
      REQUIRE(wire::parse_control(wire::control_body(sent.packet.header_view(), sent.parsed),
                                  all.emplace_back()) == wire::ParseError::ok);
    }
    port.sent.clear();
    return all;
  }
  std::vector<HelloMessage> hellos() { return taken<HelloMessage>(wire::Operation::hello); }
  std::vector<RequestMessage> requests() { return taken<RequestMessage>(wire::Operation::request); }
  std::vector<GrantMessage> grant_messages() { return taken<GrantMessage>(wire::Operation::grant); }
  // A control message that has come from that host.
  struct Arrived {
    Packet packet;
    wire::ParsedPacket parsed;
  };
  template <class Message>
  Arrived from(std::uint32_t sender, const Message& message) const {
    wire::FlowAddressing flow;
    flow.source = host(sender);
    flow.source_mac = wire::MacAddress::local(100 + sender);
    flow.destination = core.config.address;
    const wire::HeaderTemplate header = wire::make_header_template(flow);
    Arrived a{};
    a.packet.header_bytes = static_cast<std::uint16_t>(
        wire::build_control(header, wire::HeaderBuffer{a.packet.header}, Psn(1), message));
    a.parsed = RecordingPort::parse(a.packet);
    return a;
  }
  // All contexts, as far as they are in use.
  std::uint32_t contexts_in_use() const {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < core.contexts.size(); ++i) n += core.contexts[i].in_use ? 1 : 0;
    return n;
  }

  Scheduler scheduler{core};
  PluginWatch watch;
  CongestionSetups setups{core, watch};
  ControlMessages messages{core};
  PeerDirectory peers{core, setups, messages};
  GrantExchange grants{core, setups, peers, messages};
  AlgorithmRunner runner{core, setups};
  CongestionManager congestion{core, scheduler, runner, setups, peers, grants};
  Migration migration{core, scheduler, congestion, setups, peers, grants, watch};
};

}  // namespace paceline::transport::test
