#include "dataplane/port/dpdk/dpdk_port.h"

#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "dataplane/port/dpdk/dpdk_mbuf.h"
#include "dataplane/port/frame_split.h"
#include "dataplane/wire/bytes/endian.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline {

namespace {

using namespace dpdk;

constexpr std::uint16_t kBurst = 32;
// The shortest Ethernet frame: 64 bytes less the frame check sequence.
constexpr std::size_t kShortestFrame = 60;
// The most loans of a port at a time: those that a driver reads in one call, and those in a ring.
constexpr std::uint32_t kMostInCall = 64;
constexpr std::uint32_t kMostHandedOn = 1024;
static_assert(wire::kIcrcBytes + kShortestFrame <= kTailBytes);

// Puts the packet's headers into its mbuf, in front of where its payload is, or would be.
rte_mbuf* put_headers(Packet& packet) {
  rte_mbuf* const mbuf = mbuf_of(&packet);
  std::byte* const begin = packet.payload - packet.header_bytes;
  assert(begin >= buffer_of(mbuf));
  std::memcpy(begin, packet.header.data(), packet.header_bytes);
  mbuf->data_off = static_cast<std::uint16_t>(begin - buffer_of(mbuf));
  mbuf->data_len = packet.header_bytes;
  mbuf->ol_flags = 0;
  return mbuf;
}

// Puts the frame together around the payload and describes it to the driver.
rte_mbuf* finish(Packet& packet) {
  rte_mbuf* const mbuf = put_headers(packet);
  std::byte* const begin = packet.payload - packet.header_bytes;
  std::size_t bytes = std::size_t{packet.header_bytes} + packet.payload_bytes;
  if (packet.bth_offset != 0) {
    wire::store_le32(begin + bytes, packet.icrc);
    bytes += wire::kIcrcBytes;
  }
  if (bytes < kShortestFrame) [[unlikely]] {
    std::memset(begin + bytes, 0, kShortestFrame - bytes);
    bytes = kShortestFrame;
  }
  mbuf->data_len = static_cast<std::uint16_t>(bytes);
  mbuf->pkt_len = static_cast<std::uint32_t>(bytes);
  mbuf->nb_segs = 1;
  mbuf->next = nullptr;
  return mbuf;
}

}  // namespace

DpdkPortMade DpdkPort::make(DpdkDevice& device, const DpdkPortSettings& settings) {
  const std::string name = "port on \"" + device.capabilities().device + "\": ";
  if (settings.queue >= device.queues()) {
    return {nullptr, name + "queue = " + std::to_string(settings.queue) + ": the device has " +
                         std::to_string(device.queues())};
  }
  const DpdkMemory& memory = device.memory(settings.queue);
  const std::uint32_t descriptors =
      std::uint32_t{device.settings().rx_descriptors} + device.settings().tx_descriptors;
  std::uint32_t engine_packets = settings.engine_packets;
  if (engine_packets == 0 && memory.packets() > descriptors) {
    engine_packets = memory.packets() - descriptors;
  }
  if (engine_packets < kBurst || engine_packets > memory.packets()) {
    return {nullptr, name + "a memory of " + std::to_string(memory.packets()) + " packets with " +
                         std::to_string(descriptors) + " descriptors leaves the engine " +
                         std::to_string(engine_packets) + ", " + std::to_string(kBurst) +
                         " at least are needed"};
  }
  PortInfo info;
  info.link_rate = settings.link_rate;
  if (info.link_rate.bps == 0) info.link_rate = rate_from_mbps(device.capabilities().link_mbps);
  if (info.link_rate.bps == 0) {
    return {nullptr, name + "the device does not know its link's speed; set link_rate"};
  }
  info.wire = settings.wire;
  info.mtu_bytes = device.settings().mtu_bytes;
  info.payload_room = memory.payload_room();
  info.tx_burst = kBurst;
  info.computes_icrc = false;
  const SendPath path =
      settings.pool != nullptr ? SendPath::copied : device.capabilities().send_path;
  DpdkLoans* loans = nullptr;
  if (path != SendPath::copied) {
    std::string error;
    const std::uint32_t most = path == SendPath::in_call ? kMostInCall : kMostHandedOn;
    loans = device.memory(settings.queue).make_loans(most, error);
    if (loans == nullptr) return {nullptr, name + error};
    info.lends_payload = true;
  }
  const DpdkStampSource* const stamps =
      settings.stamps != nullptr ? settings.stamps : device.stamps();
  info.stamps_arrivals = stamps != nullptr;
  auto port = std::unique_ptr<DpdkPort>(new DpdkPort(device, settings, info, engine_packets));
  if (port->own_pool_) port->own_pool_->keep_loans_with(*port);
  port->loans_ = loans;
  port->from_thread_ = path == SendPath::handed_on;
  if (stamps != nullptr) port->stamps_.emplace(*stamps);
  if (port->gate_ != nullptr && !port->gate_->add(port->visitor_)) {
    port->gate_ = nullptr;
    return {nullptr, name + "more than " + std::to_string(InterruptGate::kMostVisitors) +
                         " ports on devices that need a gate"};
  }
  return {std::move(port), ""};
}

DpdkPort::DpdkPort(DpdkDevice& device, const DpdkPortSettings& settings, const PortInfo& info,
                   std::uint32_t engine_packets)
    : device_(device),
      port_id_(device.port_id()),
      queue_(settings.queue),
      info_(info),
      gate_(device.gate()),
      // After the time of a few packets, a device that keeps up has room again.
      retry_after_(
          later(picos_from_micros(1), serialization_time(4U * info.mtu_bytes, info.link_rate))),
      latest_payload_(RTE_PKTMBUF_HEADROOM + device.memory(settings.queue).frame_room() -
                      info.payload_room - kTailBytes),
      own_pool_(settings.pool != nullptr
                    ? std::optional<PacketPool>()
                    : std::optional<PacketPool>(std::in_place, device.memory(settings.queue),
                                                engine_packets, info.payload_room,
                                                settings.pool_id)),
      pool_(own_pool_ ? *own_pool_ : *settings.pool) {}

DpdkPort::~DpdkPort() {
  recall();  // packets that a ring still holds get their own bytes
  if (gate_ != nullptr) gate_->remove(visitor_);
}

void DpdkPort::release(Packet& packet) {
  rte_mbuf* const mbuf = mbuf_of(&packet);
  if (mbuf->next == nullptr) return;  // lent by the engine, and not sent yet
  DpdkLoans::detach(mbuf);
  --borrowed_;
}

void DpdkPort::recall() {
  if (loans_ == nullptr) return;
  counters_.tx_recalled += loans_->recall();
  counters_.tx_overdue = loans_->overdue();
}

// The frame for the driver. It takes over the loan of the packet's payload.
rte_mbuf* DpdkPort::frame_of(Packet& packet) {
  if (packet.payload_kind != PayloadKind::lent) return finish(packet);
  if (mbuf_of(&packet)->next == nullptr && loans_ != nullptr) {
    rte_mbuf* const mbuf = put_headers(packet);
    if (loans_->attach(mbuf, packet, packet.loan)) {
      // release() must not take the frame for a borrowed one.
      rte_mbuf* const segments = mbuf->next;
      mbuf->next = nullptr;
      pool_.drop_loan(packet);
      mbuf->next = segments;
      return mbuf;
    }
  }
  // Too many loans are out; or the payload came as a loan and is sent on.
  pool_.own_loan(packet);
  ++counters_.tx_lent_copied;
  return finish(packet);
}

// The driver did not take these packets: they become what they were before.
void DpdkPort::take_back(std::span<Packet* const> packets, std::span<rte_mbuf* const> mbufs) {
  std::size_t detached = 0;
  for (std::size_t i = 0; i < mbufs.size(); ++i) {
    if (mbufs[i]->next == nullptr) continue;
    DpdkLoans::detach(mbufs[i]);
    ++detached;
    pool_.lend(*packets[i], packets[i]->loan);
  }
  counters_.tx_lent -= detached;
  if (detached != 0) loans_->take_back(detached);
}

std::size_t DpdkPort::tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) {
  std::array<rte_mbuf*, kBurst> mbufs;
  std::size_t count = 0;
  std::size_t taken = 0;  // from the front of `burst`, dropped ones included
  std::array<std::uint32_t, kBurst> bytes;
  if (from_thread_) loans_->expect(std::min<std::size_t>(kBurst, burst.size()));
  // Take the packets before the first one that cannot be sent; that one is handled alone, below.
  for (; count < kBurst && count < burst.size(); ++count) {
    Packet& packet = *burst[count];
    if (packet.payload_kind == PayloadKind::elided) [[unlikely]]
      break;
    packet.traffic_class = traffic_class;
    packet.wire_bytes = info_.wire.wire_bytes(packet.frame_bytes(), packet.payload_bytes);
    bytes[count] = packet.wire_bytes;
    mbufs[count] = frame_of(packet);
    if (mbufs[count]->next != nullptr) ++counters_.tx_lent;
  }
  if (count != 0) {
    if (gate_ == nullptr) {
      taken = rte_eth_tx_burst(port_id_, queue_, mbufs.data(), static_cast<std::uint16_t>(count));
    } else if (gate_->enter(visitor_)) {
      taken = rte_eth_tx_burst(port_id_, queue_, mbufs.data(), static_cast<std::uint16_t>(count));
      InterruptGate::leave(visitor_);
    }
  }
  // The packets that the driver took may be gone: do not read them any more.
  for (std::size_t i = 0; i < taken; ++i) counters_.tx_bytes += bytes[i];
  counters_.tx_packets += taken;
  pool_.go(taken);
  if (taken < count) {
    take_back(burst.subspan(taken), {mbufs.data() + taken, count - taken});
    ++counters_.tx_full;
    tx_retry_at_ = now + retry_after_;
    return taken;
  }
  if (taken < burst.size() && burst[taken]->payload_kind == PayloadKind::elided) [[unlikely]] {
    ++counters_.tx_elided;
    pool_.free(burst[taken]);
    ++taken;
  }
  return taken;
}

// The lender need not wait for an engine that keeps packets for later.
void DpdkPort::own_received() {
  if (borrowed_ != 0) [[unlikely]]
    pool_.own_loans();
}

std::size_t DpdkPort::rx(std::span<Packet*> burst) {
  std::array<rte_mbuf*, kBurst> mbufs;
  own_received();  // for users that do not report when they have handled a burst
  std::size_t filled = 0;
  // One call is enough unless all packets of the burst were dropped; then the next burst has its
  // turn.
  const auto wanted = static_cast<std::uint16_t>(std::min<std::size_t>(kBurst, burst.size()));
  std::uint16_t n = 0;
  bool looked = true;
  if (gate_ == nullptr) {
    n = rte_eth_rx_burst(port_id_, queue_, mbufs.data(), wanted);
  } else if (gate_->enter(visitor_)) {
    n = rte_eth_rx_burst(port_id_, queue_, mbufs.data(), wanted);
    InterruptGate::leave(visitor_);
  } else {
    looked = false;
  }
  if (from_thread_) {
    DpdkLoans::fetch({mbufs.data(), n});
  } else {
    for (std::uint16_t i = 0; i < n; ++i) rte_prefetch0(rte_pktmbuf_mtod(mbufs[i], void*));
  }
  if (stamps_) [[unlikely]] {
    stamps_->burst(looked && n < wanted);
    filled = accept_stamped({mbufs.data(), n}, burst);
  } else {
    for (std::uint16_t i = 0; i < n; ++i) {
      Packet* const packet = accept(mbufs[i]);
      if (packet != nullptr) burst[filled++] = packet;
    }
  }
  pool_.settle();
  return filled;
}

std::size_t DpdkPort::accept_stamped(std::span<rte_mbuf* const> mbufs, std::span<Packet*> burst) {
  std::size_t filled = 0;
  for (rte_mbuf* const mbuf : mbufs) {
    const Picos came = stamps_->arrival(mbuf);
    Packet* const packet = accept(mbuf);
    if (packet == nullptr) continue;
    packet->time = came;
    burst[filled++] = packet;
  }
  return filled;
}

// The packet of a received mbuf; nullptr: dropped and counted.
Packet* DpdkPort::accept(void* received) {
  auto* const mbuf = static_cast<rte_mbuf*>(received);
  const bool own = mbuf->pool == device_.memory(queue_).handle() && RTE_MBUF_DIRECT(mbuf) &&
                   rte_mbuf_refcnt_read(mbuf) == 1;
  if (mbuf->nb_segs != 1) {
    const bool lent = DpdkLoans::take(mbuf);
    Packet* const packet = lent && own && own_pool_ ? accept_lent(mbuf) : nullptr;
    return packet != nullptr ? packet : copy_in(mbuf, !lent);
  }
  if (!own) [[unlikely]]
    return copy_in(mbuf, false);
  Packet* const packet = packet_of(mbuf);
  std::byte* const frame = buffer_of(mbuf) + mbuf->data_off;
  const FrameParts parts = split_frame({frame, mbuf->data_len});
  // The next user of this packet puts its payload in the same place: headers must fit in front of
  // it, and a whole payload behind.
  const std::size_t payload_at = std::size_t{mbuf->data_off} + parts.header_bytes;
  if (payload_at < kMaxHeaderBytes || payload_at > latest_payload_) [[unlikely]]
    return copy_in(mbuf, false);
  if (!fill(*packet, frame, parts)) {
    rte_pktmbuf_free(mbuf);
    return nullptr;
  }
  packet->pool_id = pool_.id();
  packet->next = nullptr;
  packet->flags = 0;
  pool_.come(1);
  return packet;
}

// Takes a frame of three segments: headers, the payload in its owner's memory, ICRC. nullptr, and
// nothing done, if the frame is divided in another way.
Packet* DpdkPort::accept_lent(rte_mbuf* head) {
  rte_mbuf* const payload = head->next;
  std::byte* const frame = buffer_of(head) + head->data_off;
  if (head->nb_segs != 3 || payload->data_len > info_.payload_room) return nullptr;
  const std::size_t payload_at = std::size_t{head->data_off} + head->data_len;
  if (payload_at < kMaxHeaderBytes || payload_at > latest_payload_) return nullptr;
  // Reads headers and lengths only: the place of the ICRC holds old bytes of the packet.
  FrameParts parts = split_frame({frame, head->pkt_len});
  if (!parts.roce || parts.header_bytes != head->data_len ||
      parts.payload_bytes != payload->data_len) {
    return nullptr;
  }
  parts.icrc = DpdkLoans::icrc_of(head);
  Packet& packet = *packet_of(head);
  fill(packet, frame, parts);
  packet.pool_id = pool_.id();
  packet.next = nullptr;
  packet.flags = 0;
  pool_.come(1);
  pool_.lend(packet, buffer_of(payload) + payload->data_off);
  ++borrowed_;
  ++counters_.rx_lent;
  return &packet;
}

// pieces: the device divided the frame.
Packet* DpdkPort::copy_in(void* received, bool pieces) {
  auto* const mbuf = static_cast<rte_mbuf*>(received);
  const std::size_t bytes = mbuf->pkt_len;
  Packet* packet = nullptr;
  if (bytes > device_.memory(queue_).frame_room()) {
    ++counters_.rx_too_long;
  } else if ((packet = pool_.alloc()) == nullptr) {
    ++counters_.rx_no_packet;
  } else {
    std::byte* const frame = buffer_of(mbuf_of(packet)) + RTE_PKTMBUF_HEADROOM;
    std::size_t at = 0;
    for (const rte_mbuf* piece = mbuf; piece != nullptr; piece = piece->next) {
      std::memcpy(frame + at, buffer_of(piece) + piece->data_off, piece->data_len);
      at += piece->data_len;
    }
    if (fill(*packet, frame, split_frame({frame, at}))) {
      ++(pieces ? counters_.rx_multi_segment : counters_.rx_moved);
    } else {
      pool_.free(packet);
      packet = nullptr;
    }
  }
  if (!pieces && mbuf->next != nullptr) DpdkLoans::detach(mbuf);
  rte_pktmbuf_free(mbuf);
  return packet;
}

// False: the frame is too long, and was counted.
bool DpdkPort::fill(Packet& packet, std::byte* frame, const FrameParts& parts) {
  if (parts.payload_bytes > info_.payload_room) [[unlikely]] {
    ++counters_.rx_too_long;
    return false;
  }
  fill_received(packet, frame, parts, info_.wire);
  packet.payload = frame + parts.header_bytes;
  ++counters_.rx_packets;
  counters_.rx_bytes += packet.wire_bytes;
  if (!parts.roce) ++counters_.rx_other;
  return true;
}

}  // namespace paceline
