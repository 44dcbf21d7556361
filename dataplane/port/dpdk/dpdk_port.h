// One queue of a DPDK device as a Port: what the engine sees of a NIC.
//
// Receive: a frame is read in place. Its headers (at most 128 bytes) are copied into the Packet in
// the mbuf's private area, its payload stays where the device wrote it. A frame in several
// segments, or in an mbuf that is not of the port's memory, is copied into one piece and counted.
// The ICRC is taken out for the engine to check; Ethernet padding is dropped. A frame that is not a
// RoCEv2 datagram is passed up whole (frame_split.h), with bth_offset 0, and no ICRC is taken out.
// Packet::time is the device's time stamp, converted to the clock of use_clock(); 0 if the device
// does not stamp, and then PortInfo::stamps_arrivals is false.
//
// A payload that another port of the process lent is read where it lies.
//
// Transmit: headers and ICRC are written around the payload, so that one segment leaves; short
// frames are padded to 60 bytes. The device adds the frame check sequence. A packet with bth_offset
// 0 (ARP and the like) gets no ICRC. One call of the driver per call of tx. Packets that the driver
// does not take stay the caller's, unchanged; tx_ready_at then says when to try again, because
// devices do not report free room. A lent payload is sent in place (dpdk_loans.h) if the device
// allows it; if too many are lent, it is copied and counted.
//
// Threads: rx, tx and packets() belong to one thread, which may be any; other queues of the device
// may belong to others. LcoreRegistration (dpdk_eal.h) makes such a thread faster.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "dataplane/port/dpdk/dpdk_device.h"
#include "dataplane/port/frame_split.h"
#include "dataplane/port/packet_pool.h"
#include "dataplane/port/port.h"

struct rte_mbuf;

namespace paceline {

struct DpdkPortSettings {
  std::uint16_t queue = 0;
  // Rate to which engines pace. 0: the device's link speed, which it must then know.
  Rate link_rate{};
  WireAccounting wire{};
  // How many packets the engine may hold. 0: all of the memory but those that the descriptors of
  // this queue hold. Ports that share a memory must each name their part.
  std::uint32_t engine_packets = 0;
  std::uint16_t pool_id = 0;
  // The pool of another port on the same memory and thread, which outlives this one: both use it
  // (port/bonded_port.h). Such a port copies payloads. Null: it has its own.
  PacketPool* pool = nullptr;
  // The source of arrival times. Null: the device's own stamps, if it has any.
  const DpdkStampSource* stamps = nullptr;
};

struct DpdkPortCounters {
  std::uint64_t tx_packets = 0;
  std::uint64_t tx_bytes = 0;        // on the wire
  std::uint64_t tx_full = 0;         // calls of tx that left packets behind: the device was full
  std::uint64_t tx_elided = 0;       // dropped: their payload exists only as a digest
  std::uint64_t tx_lent = 0;         // of tx_packets: sent from registered memory
  std::uint64_t tx_lent_copied = 0;  // of tx_packets: lent, but copied for lack of a segment
  std::uint64_t tx_recalled = 0;     // of tx_lent: copied on the way, because memory was recalled
  std::uint64_t tx_overdue = 0;      // of tx_lent: still read a tenth of a second after the recall
  std::uint64_t rx_packets = 0;      // given to the caller of rx
  std::uint64_t rx_bytes = 0;        // on the wire
  std::uint64_t rx_other = 0;        // of these: not a RoCEv2 datagram
  std::uint64_t rx_multi_segment = 0;  // of these: copied, the device gave it in pieces
  std::uint64_t rx_moved = 0;      // of these: copied out of another memory, or to a better place
  std::uint64_t rx_lent = 0;       // of these: read in the sender's memory
  std::uint64_t rx_no_packet = 0;  // dropped: no free packet to copy into
  std::uint64_t rx_too_long = 0;   // dropped: longer than the payload room
};

class DpdkPort;

struct DpdkPortMade {
  std::unique_ptr<DpdkPort> port;  // null: see error
  std::string error;
};

class DpdkPort final : public Port, private LoanKeeper {
 public:
  // `device` must outlive it, and the engine must be gone before it is.
  static DpdkPortMade make(DpdkDevice& device, const DpdkPortSettings& settings);
  ~DpdkPort() override;

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  // A device reports nothing by itself: it has to be polled.
  Picos rx_ready_at() const override { return Picos{0}; }
  Picos tx_ready_at(std::uint8_t) const override { return tx_retry_at_; }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override { return info_; }
  void use_clock(const PollClock& clock) override {
    if (stamps_) stamps_->use_clock(clock);
  }
  // As last read from the device.
  std::uint8_t links_up() const override { return link_up_ ? 1 : 0; }
  // Reads it from the device. Takes microseconds.
  void look_at_link() { link_up_ = device_.link_up(); }

  // Null: packets have no arrival time. On the port's thread.
  const DpdkStamps* stamps() const { return stamps_ ? &*stamps_ : nullptr; }
  DpdkDevice& device() { return device_; }
  const DpdkPortCounters& counters() const { return counters_; }

 private:
  DpdkPort(DpdkDevice& device, const DpdkPortSettings& settings, const PortInfo& info,
           std::uint32_t engine_packets);

  // As LoanKeeper.
  void release(Packet& packet) override;
  void recall() override;
  void own_received() override;
  rte_mbuf* frame_of(Packet& packet);
  void take_back(std::span<Packet* const> packets, std::span<rte_mbuf* const> mbufs);
  Packet* accept(void* received);
  Packet* accept_lent(rte_mbuf* head);
  Packet* copy_in(void* received, bool pieces);
  std::size_t accept_stamped(std::span<rte_mbuf* const> mbufs, std::span<Packet*> burst);
  bool fill(Packet& packet, std::byte* frame, const FrameParts& parts);

  DpdkDevice& device_;
  std::uint16_t port_id_;
  std::uint16_t queue_;
  PortInfo info_;
  InterruptGate* gate_;
  Picos retry_after_;
  Picos tx_retry_at_{0};
  DpdkPortCounters counters_;
  std::size_t latest_payload_;  // where in an mbuf a payload may begin at the latest
  std::optional<PacketPool> own_pool_;
  PacketPool& pool_;
  bool link_up_ = true;
  DpdkLoans* loans_ = nullptr;  // of the memory; null: payloads are copied
  bool from_thread_ = false;    // another thread writes the packets received
  std::size_t borrowed_ = 0;    // received packets that refer to their senders' memory
  std::optional<DpdkStamps> stamps_;
  InterruptGate::Visitor visitor_;
};

}  // namespace paceline
