#include "tests/wire/replay.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <variant>

#include "cc/params.h"
#include "cc/registry.h"
#include "dataplane/wire/packet/icrc.h"

namespace paceline::test {

using namespace transport;

namespace {

constexpr std::size_t kKeyAt = 8;  // within RETH and AtomicETH, behind the address

CcChoice fixed_rate(const PortInfo& info) {
  cc::PortFacts facts;
  facts.link_rate = info.link_rate;
  facts.mtu_bytes = kGoldenMtu;
  facts.full_packet_bytes = info.wire.wire_bytes(
      static_cast<std::uint32_t>(EngineCore::kPlainHeaderBytes + kGoldenMtu + 8), kGoldenMtu);
  facts.base_rtt_ns = 5000;
  auto resolved = cc::resolve_params(*cc::find(cc::AlgorithmId::fixed), "", {}, facts);
  return {cc::AlgorithmId::fixed, std::get<std::vector<double>>(resolved)};
}

}  // namespace

PortInfo FramePort::info() const {
  PortInfo info;
  info.link_rate = rate_from_gbps(100);
  info.payload_room = 4096;
  return info;
}

void FramePort::arrive(const Frame& frame) {
  wire::ParsedPacket parsed;
  if (wire::parse_frame(frame, parsed) != wire::ParseError::ok) {
    throw std::runtime_error("a frame to be replayed is malformed");
  }
  Packet* packet = pool_.alloc();
  if (packet == nullptr) throw std::runtime_error("the pool of a replay is empty");
  packet->header_bytes = parsed.header_bytes;
  packet->bth_offset = parsed.bth_offset;
  std::memcpy(packet->header.data(), frame.data(), parsed.header_bytes);
  packet->payload_bytes = static_cast<std::uint16_t>(parsed.padded_bytes());
  packet->payload_kind = packet->payload_bytes == 0 ? PayloadKind::none : PayloadKind::owned;
  if (packet->payload_bytes != 0) {
    std::memcpy(packet->payload, frame.data() + parsed.header_bytes, packet->payload_bytes);
  }
  packet->ecn = parsed.ecn;
  packet->icrc = parsed.icrc;
  packet->wire_bytes = info().wire.wire_bytes(packet->frame_bytes(), packet->payload_bytes);
  arriving_.push_back(packet);
}

std::size_t FramePort::rx(std::span<Packet*> burst) {
  std::size_t n = 0;
  while (n < burst.size() && !arriving_.empty()) {
    burst[n++] = arriving_.front();
    arriving_.pop_front();
  }
  return n;
}

std::size_t FramePort::tx(Picos, std::uint8_t, std::span<Packet* const> burst) {
  for (Packet* packet : burst) {
    const std::size_t payload = packet->payload_bytes;
    const std::size_t end = packet->header_bytes + payload;
    Frame frame(end + wire::kIcrcBytes);
    std::memcpy(frame.data(), packet->header.data(), packet->header_bytes);
    if (payload != 0) std::memcpy(frame.data() + packet->header_bytes, packet->payload, payload);
    wire::store_le32(frame.data() + end, packet->icrc);
    sent_.push_back(std::move(frame));
    pool_.free(packet);
  }
  return burst.size();
}

ReplayEnd::ReplayEnd(const wire::IpAddress& own, const wire::IpAddress& peer,
                     std::uint32_t peer_qpn, Psn first_in, Psn first_out, QpConfig qp)
    : peer_(peer) {
  EngineConfig config;
  config.address = own;
  config.mac = wire::MacAddress::local(1);
  config.payload_mtu = kGoldenMtu;
  config.ack_every = 1U << 20;  // as rxe: at the end of a message
  config.peers = PeerPolicy::roce;
  config.check_invariants = true;
  config.primary = config.fallback = fixed_rate(port_.info());
  engine_ = std::make_unique<Engine>(config, port_);
  qp.send_cq = &sends;
  qp.receive_cq = &receipts;
  qp.receive_queue = &receives;
  qp_ = engine_->create_qp(qp);
  if (qp.type == QpType::ud) {
    bring_up_datagrams(qp, first_out);
    return;
  }
  const QpAddress remote{peer, wire::MacAddress::local(2), peer_qpn, first_in};
  if (!engine_->connect(now_, qp_, remote, first_out, 0xC001)) {
    throw std::logic_error("the queue pair of a replay does not connect");
  }
  poll();
}

void ReplayEnd::bring_up_datagrams(const QpConfig& qp, Psn first_out) {
  QpAttributes attributes;
  attributes.qkey = qp.qkey;
  attributes.sq_psn = first_out;
  for (const QpState to : {QpState::init, QpState::rtr, QpState::rts}) {
    attributes.state = to;
    const std::uint32_t mask =
        transition_rule(qp.type, engine_->view().state_of(qp_), to).required | qp_attribute::state;
    if (!engine_->modify_qp(now_, qp_, attributes, mask).ok()) {
      throw std::logic_error("the datagram queue pair of a replay does not come up");
    }
  }
}

std::uint32_t ReplayEnd::address_handle() {
  QpPath path;
  path.ip = peer_;
  path.mac = wire::MacAddress::local(2);
  return engine_->create_address_handle(now_, 0, path);
}

void ReplayEnd::poll() {
  engine_->poll(now_);
  std::string broken = engine_->view().check_conservation();
  if (broken.empty()) broken = engine_->view().violation();
  if (!broken.empty()) throw std::logic_error(broken);
}

void ReplayEnd::touch() { poll(); }

bool ReplayEnd::step() {
  const Picos next = engine_->next_deadline();
  if (next == kNever) return false;
  now_ = next;
  poll();
  return true;
}

void ReplayEnd::feed(const CapturedPacket& packet, Picos within) {
  Frame frame = packet.frame;
  const wire::ParsedPacket& p = packet.parsed;
  std::byte* const bth = frame.data() + p.bth_offset;
  wire::store_be32(bth + 4, (wire::load_be32(bth + 4) & 0xFF00'0000U) | qp_);
  if (p.properties.has_reth() || p.properties.has_atomic_eth()) {
    std::byte* const key = bth + wire::kBthBytes + kKeyAt;
    wire::store_be32(key, key_of(wire::load_be32(key)));
  }
  const std::size_t end = p.header_bytes + p.padded_bytes();
  frame.resize(end + wire::kIcrcBytes);
  wire::store_le32(frame.data() + end, wire::icrc_of_frame(frame, p.l3_offset, end));
  port_.arrive(frame);
  poll();
  const Picos until = now_ + within;
  while (engine_->next_deadline() <= until && step()) {
  }
}

void ReplayEnd::add_region(std::uint32_t captured_key, std::uint64_t base,
                           std::span<std::byte> memory) {
  keys_.push_back({captured_key, engine_->regions().add_plain(
                                     base, memory, access::local_write | access::remote)});
}

// A key that names nothing there names nothing here.
std::uint32_t ReplayEnd::key_of(std::uint32_t captured_key) const {
  for (const Key& key : keys_) {
    if (key.captured == captured_key) return key.ours;
  }
  return 0xFFFF'FFFF;
}

std::vector<CapturedPacket> ReplayEnd::take_sent() {
  std::vector<CapturedPacket> packets;
  for (Frame& frame : port_.take_sent()) {
    CapturedPacket packet;
    if (wire::parse_frame(frame, packet.parsed) != wire::ParseError::ok) {
      throw std::logic_error("what we sent does not parse");
    }
    packet.frame = std::move(frame);
    packets.push_back(std::move(packet));
  }
  return packets;
}

std::vector<Completion> ReplayEnd::completions(CompletionQueue& queue) {
  std::vector<Completion> out(queue.size());
  out.resize(queue.poll(out));
  return out;
}

}  // namespace paceline::test
