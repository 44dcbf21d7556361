// Many paced queue pairs on one port, each with a rate of its own: the sending half of an engine
// (its parts, put together as Engine does) in front of a port that takes packets at line rate and
// acknowledges a message when its last packet has left. Nothing arrives but that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/transport/congestion/scheduler.h"
#include "dataplane/transport/ends/requester.h"
#include "dataplane/transport/transmit_path.h"

namespace paceline::perf {

// Takes packets as fast as the wire carries them and counts them by queue pair.
class CountingPort final : public Port {
 public:
  explicit CountingPort(Rate link_rate) : pool_(64) {
    info_.link_rate = link_rate;
    info_.computes_icrc = true;
  }

  std::size_t rx(std::span<Packet*>) override { return 0; }
  std::size_t tx(Picos now, std::uint8_t, std::span<Packet* const> burst) override {
    if (burst.empty() || busy_ > now) return 0;
    Packet* packet = burst.front();
    const std::byte* bth = packet->header.data() + packet->bth_offset;
    last_qpn_ = wire::load_be32(bth + 4) & 0xFF'FFFFU;
    bytes_.at(last_qpn_) += packet->wire_bytes;
    ++packets_;
    busy_ = now + serialization_time(packet->wire_bytes, info_.link_rate);
    pool_.free(packet);
    return 1;
  }
  Picos rx_ready_at() const override { return kNever; }
  Picos tx_ready_at(std::uint8_t) const override { return busy_; }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override { return info_; }

  void expect(std::uint32_t queue_pairs) { bytes_.assign(queue_pairs, 0); }
  std::uint64_t sent() const { return packets_; }
  const std::vector<std::uint64_t>& bytes() const { return bytes_; }  // on the wire, by number
  std::uint32_t last_qpn() const { return last_qpn_; }

 private:
  PortInfo info_;
  PacketPool pool_;
  Picos busy_{0};
  std::vector<std::uint64_t> bytes_;
  std::uint64_t packets_ = 0;
  std::uint32_t last_qpn_ = 0;
};

// Rates of 1 to 100 Mb/s, most of them small, that sum to `total` exactly (in b/s). The mean must
// leave room for that: 1 Mb/s < total / pairs < 20 Mb/s.
inline std::vector<Rate> skewed_rates(std::uint32_t pairs, Rate total, std::uint64_t seed) {
  constexpr std::uint64_t kLeast = 1'000'000;
  constexpr std::uint64_t kMost = 100'000'000;
  Random random(seed);
  std::vector<double> weight(pairs);
  double sum = 0;
  for (double& w : weight) {
    const double u = random.uniform();
    w = 1 / (0.02 + u) - 1 / 1.02;  // heavy tail, at most 50 times the median
    sum += w;
  }
  const auto spare = static_cast<double>(total.bps - pairs * kLeast);
  std::vector<Rate> rates(pairs);
  std::uint64_t given = 0;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    const auto extra = static_cast<std::uint64_t>(spare * weight[i] / sum);
    rates[i].bps = std::min(kMost, kLeast + extra);
    given += rates[i].bps;
  }
  for (std::uint32_t i = 0; given < total.bps; i = (i + 1) % pairs) {
    const std::uint64_t more = std::min({kMost - rates[i].bps, total.bps - given, kLeast});
    rates[i].bps += more;
    given += more;
  }
  return rates;
}

class PacedPairs {
 public:
  // Each pair begins at a random moment of its first packet interval.
  PacedPairs(Rate link_rate, std::span<const Rate> rates, std::uint64_t seed)
      : port_(link_rate),
        core_(engine_config(), port_),
        scheduler_(core_),
        congestion_(core_, scheduler_, runner_, setups_, peers_, grants_),
        requester_(core_),
        transmit_(core_, scheduler_, congestion_, requester_),
        runner_(core_, setups_),
        setups_(core_, plugins_),
        messages_(core_),
        peers_(core_, setups_, messages_),
        grants_(core_, setups_, peers_, messages_) {
    region_ = core_.regions.add_elided(0, std::uint64_t{1} << 40, transport::access::remote_write);
    const auto pairs = static_cast<std::uint32_t>(rates.size());
    port_.expect(pairs);
    Random random(seed);
    for (std::uint32_t i = 0; i < pairs; ++i) {
      transport::QueuePair& qp = add_pair(i);
      transport::CongestionContext& context = core_.contexts[qp.context];
      context.decision.rate = rates[i];
      const Picos interval = serialization_time(core_.facts.full_packet_bytes, rates[i]);
      context.next_send = {
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(interval.count)))};
      post(qp);
    }
  }

  // Runs until `packets` more have left, or until the time.
  void send(std::uint64_t packets) {
    const std::uint64_t enough = port_.sent() + packets;
    while (port_.sent() < enough) step();
  }
  void run_until(Picos end) {
    while (next_ <= end) step();
  }

  Picos now() const { return core_.now; }
  const CountingPort& port() const { return port_; }
  std::uint32_t full_packet_bytes() const { return core_.facts.full_packet_bytes; }

 private:
  static constexpr std::uint64_t kMessageBytes = std::uint64_t{4096} * 65'536;

  static transport::EngineConfig engine_config() {
    transport::EngineConfig config;
    config.address = wire::IpAddress::v4(0x0A00'0001);
    config.mac = wire::MacAddress::local(1);
    config.peers = transport::PeerPolicy::roce;
    // Line rate, no window: what a context may send is set below.
    config.primary = config.fallback = {cc::AlgorithmId::fixed, {0, 0}};
    return config;
  }

  transport::QueuePair& add_pair(std::uint32_t index) {
    transport::QpConfig config;
    config.send_queue_depth = 1;
    config.retransmit_timeout = picos_from_micros(100'000'000);
    core_.qps.push_back(&core_.qp_storage.emplace_back(core_.qp_number(index, 0), config));
    transport::QueuePair& qp = *core_.qps[index];
    core_.qp_timers.reserve(transport::roomy(index + 1));
    qp.mtu = core_.config.payload_mtu;
    qp.remote_number = index;
    wire::FlowAddressing flow;
    flow.source = core_.config.address;
    flow.destination = wire::IpAddress::v4(0x0A00'0002);
    flow.source_mac = core_.config.mac;
    flow.destination_mac = wire::MacAddress::local(2);
    qp.header = wire::make_header_template(flow);
    congestion_.attach(qp, flow.destination, flow.destination_mac);
    qp.state = transport::QpState::rts;
    return qp;
  }

  void post(transport::QueuePair& qp) {
    transport::WorkRequest request;
    request.opcode = transport::WorkOpcode::write;
    request.length = kMessageBytes;
    request.local_key = request.remote_key = region_;
    if (requester_.post(qp, request) != transport::PostResult::ok) {
      throw std::logic_error("PacedPairs: a message was not taken");
    }
    scheduler_.activate(qp);
  }

  // As Engine::poll, for what can be due here.
  void step() {
    core_.now = next_;
    if (scheduler_.due()) congestion_.run_due();
    if (scheduler_.has_ready()) {
      const std::uint64_t before = port_.sent();
      transmit_.send();
      if (port_.sent() != before) refill(*core_.qps[port_.last_qpn()]);
    }
    next_ = later(scheduler_.next_deadline(), core_.now + Picos{1});
  }

  // The last packet of the message has left: it is acknowledged, and the next one is posted.
  void refill(transport::QueuePair& qp) {
    if (qp.requester.position.request() != qp.requester.queue.tail()) return;
    wire::ParsedPacket ack{};
    ack.psn = qp.requester.position.next() - 1;
    ack.ext.aeth = wire::Aeth::ack(0);
    requester_.on_acknowledge(qp, ack);
    congestion_.perform();
    post(qp);
  }

  CountingPort port_;
  transport::EngineCore core_;
  transport::Scheduler scheduler_;
  transport::CongestionManager congestion_;
  transport::Requester requester_;
  transport::TransmitPath transmit_;
  transport::AlgorithmRunner runner_;
  transport::PluginWatch plugins_;
  transport::CongestionSetups setups_;
  transport::ControlMessages messages_;
  transport::PeerDirectory peers_;
  transport::GrantExchange grants_;
  std::uint32_t region_ = 0;
  Picos next_{0};
};

}  // namespace paceline::perf
