#include "tests/rt/support/storm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "tests/rt/support/verified_side.h"
#include "tests/support/worker.h"

namespace paceline::test {

namespace {

using namespace transport;
using neighbour::HostConfig;
using neighbour::ResolvingPort;

// Far in every bit from those of the good ends, so that no damage turns one into the other. A
// gateway is there for what is to be answered.
const wire::IpAddress kEvil4 = wire::IpAddress::v4(0xAC1D'55AA);

wire::IpAddress v6_of(std::uint8_t first, std::uint8_t last) {
  wire::IpAddress address;
  address.bytes[0] = std::byte{first};
  address.bytes[15] = static_cast<std::byte>(last);
  return address;
}
const wire::IpAddress kEvil6 = v6_of(0x2A, 0x5A);

wire::IpAddress host_v4(unsigned index) { return wire::IpAddress::v4(0x0A00'0001 + index); }
wire::IpAddress host_v6(unsigned index) {
  return v6_of(0xFD, static_cast<std::uint8_t>(1 + index));
}

// The good ends know each other for certain: any host on the link can claim an address, and no
// protocol of a host's can help that.
HostConfig host_of(unsigned index) {
  HostConfig config;
  config.mac = wire::MacAddress::local(1 + index);
  config.addresses = {{host_v4(index), 24}, {host_v6(index), 64}};
  const wire::MacAddress other = wire::MacAddress::local(2 - index);
  config.fixed = {{host_v4(1 - index), other}, {host_v6(1 - index), other}};
  config.gateway_v4 = host_v4(1 - index);
  config.gateway_v6 = host_v6(1 - index);
  return config;
}

struct End {
  End(Port& port, unsigned index, bool ipv6, std::atomic<int>& finished)
      : resolver(port, host_of(index), Random(9, index)),
        side({index, cc::AlgorithmId::fixed, {}, ipv6}, resolver, finished) {
    worker.add({&side.engine(), &resolver, &side, &resolver});
  }
  ResolvingPort resolver;
  VerifiedSide side;
  Worker worker;
};

// The queue pair that is there to be hurt.
class Victim {
 public:
  explicit Victim(Engine& engine)
      : engine_(engine), send_cq_(256), receive_cq_(256), receives_(16), memory_(16'384) {
    key_ = engine_.regions().add_plain(kBase, memory_, access::local_write | access::remote);
  }
  void make(Picos now) {
    QpConfig config;
    config.send_cq = &send_cq_;
    config.receive_cq = &receive_cq_;
    config.receive_queue = &receives_;
    config.retransmit_timeout = picos_from_micros(500);
    qp_ = engine_.create_qp(config);
    const QpAddress far{kEvil4, wire::MacAddress::local(66), 0x77, Psn(1000)};
    engine_.connect(now, qp_, far, Psn(kFirst), 0xC777);
    for (std::uint64_t id = 0; id < 8; ++id) receives_.post({id, kBase, 8192, key_});
    // Something to be acknowledged, answered and refused.
    for (const WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::read, WorkOpcode::send}) {
      WorkRequest request;
      request.opcode = opcode;
      request.length = 3000;
      request.local_address = request.remote_address = kBase;
      request.local_key = request.remote_key = key_;
      engine_.post_send(now, qp_, request);
    }
  }
  // After each turn. True when it had been hurt.
  bool mend(Picos now) {
    std::array<Completion, 32> batch;
    while (send_cq_.poll(batch) != 0) continue;
    while (receive_cq_.poll(batch) != 0) continue;
    std::array<AsyncEvent, 16> events;
    while (engine_.poll_events(events) != 0) continue;
    if (engine_.view().state_of(qp_) != QpState::error) return false;
    engine_.destroy_qp(now, qp_);
    make(now);
    return true;
  }
  void aim(StormTarget& target) const {
    target.qpn = qp_;
    target.key = key_;
    target.address = kBase;
    const auto attributes = engine_.query_qp(qp_);
    if (attributes) target.expected = attributes->rq_psn;
  }

 private:
  static constexpr std::uint64_t kBase = 0x7000'0000;
  static constexpr std::uint32_t kFirst = 2000;
  Engine& engine_;
  CompletionQueue send_cq_;
  CompletionQueue receive_cq_;
  ReceiveQueue receives_;
  std::vector<std::byte> memory_;
  std::uint32_t key_ = 0;
  std::uint32_t qp_ = 0;
};

// False: no packet or no room, now.
bool inject(Port& port, Picos now, const Frame& frame) {
  if (port.tx_ready_at(0) > now) return false;  // as an engine asks
  Packet* packet = port.packets().alloc();
  if (packet == nullptr) return false;
  // The headers of a device's packet must leave room for what others put in front.
  packet->header_bytes = static_cast<std::uint16_t>(std::min<std::size_t>(frame.size(), 60));
  packet->payload_bytes = static_cast<std::uint16_t>(frame.size() - packet->header_bytes);
  packet->payload_kind = packet->payload_bytes == 0 ? PayloadKind::none : PayloadKind::owned;
  packet->bth_offset = 0;
  packet->ecn = Ecn::not_ect;
  std::memcpy(packet->header.data(), frame.data(), packet->header_bytes);
  if (packet->payload_bytes != 0) {
    std::memcpy(packet->payload, frame.data() + packet->header_bytes, packet->payload_bytes);
  }
  if (port.tx(now, 0, {&packet, 1}) == 1) return true;
  port.packets().free(packet);
  return false;
}

std::uint64_t well_formed_control(const telemetry::EngineCounters& c) {
  return c.hellos_received + c.requests_received + c.grants_received;
}

std::string differ(const char* what, std::uint64_t a, std::uint64_t b) {
  if (a == b) return "";
  return std::string(what) + ": " + std::to_string(a) + " against " + std::to_string(b);
}

// Every frame has a counter.
std::string account(End& victim, const End& peer, const StormConfig& config, StormReport& report) {
  const auto& resolver = victim.resolver.counters();
  const auto& host = victim.resolver.host().counters();
  const telemetry::EngineCounters& engine = victim.side.engine().counters();
  const std::uint64_t good = peer.resolver.counters().tx_sent;
  const std::uint64_t own = peer.resolver.counters().own_sent;
  std::string wrong =
      differ("frames on the wire", resolver.rx_packets, good + own + report.injected);
  if (wrong.empty()) wrong = differ("to the engine", engine.rx_packets, resolver.rx_engine);
  if (wrong.empty()) wrong = differ("to the engine, by the host", host.roce, resolver.rx_engine);
  // Each of these once a frame at most; own_frames and other_address also say more of frames that
  // another has counted.
  const std::uint64_t named = host.roce + host.other_mac + host.other_vlan + host.untagged +
                              host.arp_requests + host.arp_replies + host.nd_solicitations +
                              host.nd_advertisements + host.echo_requests + host.echo_replies +
                              host.errors.refused();
  if (wrong.empty() && (named > resolver.rx_packets ||
                        named + host.own_frames + host.other_address < resolver.rx_packets)) {
    wrong = "the host stack has counted " + std::to_string(named) + " of " +
            std::to_string(resolver.rx_packets) + " frames";
  }
  const std::uint64_t bad = engine.rx_packets - good;
  report.to_engine = bad;
  report.malformed = telemetry::malformed_total(engine);
  report.no_queue_pair = engine.no_queue_pair;
  report.control = well_formed_control(engine);
  report.refused_by_host = resolver.rx_consumed;
  report.answered_by_host = resolver.rx_answered;
  if (wrong.empty() && !config.attack) {
    wrong = differ("the engine has counted",
                   report.malformed + report.no_queue_pair + report.control, bad);
  }
  return wrong;
}

}  // namespace

StormReport& StormReport::operator+=(const StormReport& o) {
  injected += o.injected;
  to_engine += o.to_engine;
  malformed += o.malformed;
  no_queue_pair += o.no_queue_pair;
  control += o.control;
  refused_by_host += o.refused_by_host;
  answered_by_host += o.answered_by_host;
  hurt += o.hurt;
  accepted += o.accepted;
  retransmitted += o.retransmitted;
  turns += o.turns;
  return *this;
}

std::string to_text(const StormReport& r) {
  std::string text;
  const auto add = [&](const char* name, std::uint64_t value) {
    text += (text.empty() ? "" : ", ") + std::to_string(value) + " " + name;
  };
  add("frames", r.injected);
  add("taken or refused by the host stack", r.refused_by_host);
  add("answered by it", r.answered_by_host);
  add("given to the engine", r.to_engine);
  add("malformed", r.malformed);
  add("for no queue pair", r.no_queue_pair);
  add("control messages", r.control);
  add("bytes accepted by an attacked queue pair", r.accepted);
  add("of those hurt", r.hurt);
  add("packets retransmitted by the good", r.retransmitted);
  return text;
}

std::string storm_round(Port& victim_port, Port& peer_port, FrameMutator& mutator,
                        const StormConfig& config, StormReport& total) {
  std::atomic<int> finished{0};
  StormReport report;
  std::string wrong;
  {
    End victim(victim_port, 0, config.ipv6, finished);
    End peer(peer_port, 1, config.ipv6, finished);
    Engine& engine = victim.side.engine();
    if (!victim.side.connect(peer.side.facts()) || !peer.side.connect(victim.side.facts())) {
      return "queue pairs do not connect";
    }
    Picos now{0};
    Victim hurt(engine);
    if (config.attack) hurt.make(now);
    StormTarget target{wire::MacAddress::local(1),
                       host_v4(0),
                       host_v6(0),
                       wire::MacAddress::local(66),
                       kEvil4,
                       kEvil6,
                       0,
                       Psn(0),
                       0,
                       0};
    const std::size_t most = 60U + peer_port.info().payload_room;
    constexpr std::uint64_t kMostTurns = 2'000'000;
    std::optional<Frame> next;
    // Some turns more, for frames in flight and for answers to it.
    for (unsigned after = 0; after < 64; ++report.turns) {
      now = now + picos_from_micros(3);
      for (unsigned i = 0; i < config.burst && report.injected < config.frames; ++i) {
        if (!next) {
          if (config.attack) hurt.aim(target);
          next = mutator.next(target, config.attack && (report.injected & 1U) != 0, most);
        }
        if (!inject(peer_port, now, *next)) break;
        next.reset();
        ++report.injected;
      }
      victim.worker.turn(now);
      peer.worker.turn(now);
      if (config.attack && hurt.mend(now)) ++report.hurt;
      const bool all = report.injected == config.frames && finished.load() == 2;
      if (all) ++after;
      if (report.turns > kMostTurns) return "the good connection does not come to its end";
    }
    // An attacked queue pair sends again as well, and shares its engine's counters.
    report.retransmitted = peer.side.engine().counters().retransmitted_packets;
    if (!config.attack) report.retransmitted += engine.counters().retransmitted_packets;
    wrong = account(victim, peer, config, report);
    if (config.attack) {
      report.accepted = engine.counters().rx_data_bytes - victim.side.bytes_wanted();
    }
    const std::string good_end = peer.side.verdict();
    if (wrong.empty() && !good_end.empty()) wrong = "the peer: " + good_end;
    // With an attacked queue pair beside it, the engine's own counters are of both.
    const std::string verdict = config.attack ? victim.side.bytes_verdict() : victim.side.verdict();
    if (wrong.empty() && !verdict.empty()) wrong = "the victim: " + verdict;
    for (End* end : {&victim, &peer}) {
      if (wrong.empty()) wrong = end->resolver.check_conservation();
      if (wrong.empty()) wrong = end->side.engine().view().check_conservation();
    }
  }
  total += report;
  return wrong;
}

}  // namespace paceline::test
