// A port in front of another port that finds the MAC addresses of neighbours. It writes MAC
// addresses (and the 802.1Q tag, with the priority of the traffic class) into packets that the
// engine sends, asks for unknown addresses, answers what a host must answer, and passes only RoCEv2
// to the engine. The engine does not notice it.
//
// A packet to a neighbour that is not known yet is parked with that neighbour, a few for each
// (NeighbourLimits). Parked packets leave in order when the neighbour answers. To refuse such a
// packet would stop the whole class behind one host that is down, because an engine offers refused
// packets again before anything else. To drop it would cost the first message of every connection a
// retransmission timeout. RFC 4861, 7.2.2 asks for at least one packet to be kept and for newer
// packets to replace older ones. Here older packets stay, because a RoCEv2 receiver takes packets
// in order. Packets to a neighbour that has just failed to answer are dropped at once; to the
// engine they are lost, which ends in its retry limit.
//
// Call poll(now) before the engine's poll, on the same thread; rx_ready_at covers the timers of
// this port. A packet that tx does not take is unchanged, except for the addresses and the tag,
// which are written again each time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/neighbour/host_stack.h"
#include "dataplane/port/capture/capture.h"
#include "dataplane/port/packet.h"
#include "dataplane/port/packet_pool.h"
#include "dataplane/port/port.h"

namespace paceline::neighbour {

struct ResolvingCounters {
  // tx_taken = tx_sent + tx_dropped() + parked + queued (check_conservation)
  std::uint64_t tx_taken = 0;   // from the engine
  std::uint64_t tx_sent = 0;    // of tx_taken, given to the port behind
  std::uint64_t tx_parked = 0;  // of tx_taken, parked for some time
  std::uint64_t drop_not_ip = 0;
  std::uint64_t drop_too_long = 0;     // longer than ip_mtu
  std::uint64_t drop_no_room = 0;      // no room for a tag in the header buffer
  std::uint64_t drop_not_unicast = 0;  // to a group, to broadcast or to an address no host can have
  std::uint64_t drop_own_address = 0;  // to an own address
  std::uint64_t drop_no_route =
      0;  // not on the link, and no gateway; or no own address to ask from
  std::uint64_t drop_unanswered = 0;  // parked, and the neighbour did not answer
  std::uint64_t drop_failed = 0;      // the neighbour has just failed to answer
  std::uint64_t drop_table_full = 0;  // no place for one more neighbour
  std::uint64_t drop_park_full = 0;   // no place for one more waiting packet, or packets are scarce
  // rx_packets = rx_engine + rx_answered + rx_consumed
  std::uint64_t rx_packets = 0;   // from the port behind
  std::uint64_t rx_engine = 0;    // given to the engine
  std::uint64_t rx_answered = 0;  // their buffers became answers
  std::uint64_t rx_consumed = 0;  // learned from, or refused: HostCounters has the reasons
  // own frames: own_made + rx_answered = own_sent + own_dropped + queued
  std::uint64_t own_made = 0;  // solicitations and announcements
  std::uint64_t own_sent = 0;
  std::uint64_t own_dropped = 0;    // too many queued for a port that does not take them
  std::uint64_t own_no_packet = 0;  // not made: the pool was empty
  std::uint64_t slow_lookups = 0;   // packets whose destination was not in the cache

  std::uint64_t tx_dropped() const {
    return drop_not_ip + drop_too_long + drop_no_room + drop_not_unicast + drop_own_address +
           drop_no_route + drop_unanswered + drop_failed + drop_table_full + drop_park_full;
  }
};

class ResolvingPort final : public Port {
 public:
  // `behind` must outlive this. Throws std::invalid_argument with all `problems` of `config`.
  ResolvingPort(Port& behind, const HostConfig& config, Random random);
  ~ResolvingPort() override;

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  Picos rx_ready_at() const override { return earlier(behind_->rx_ready_at(), next_deadline()); }
  Picos tx_ready_at(std::uint8_t traffic_class) const override {
    return behind_->tx_ready_at(traffic_class);
  }
  std::uint8_t links_up() const override { return behind_->links_up(); }
  PacketPool& packets() override { return behind_->packets(); }
  // The port behind, with the path MTU that ip_mtu leaves and the bytes of the tag.
  PortInfo info() const override;

  void use_clock(const PollClock& clock) override { behind_->use_clock(clock); }

  // The port behind. Between polls a wrapper with the same packet pool may replace it, to capture.
  Port& behind() { return *behind_; }
  void put_behind(Port& port) { behind_ = &port; }
  // Shows every packet dropped here to `tap`, with the reason; nullptr: stops that.
  void show_drops(LinkTap* tap) { drop_tap_ = tap; }

  // Runs timers, announces, sends what waits for the port behind. `now` never goes back.
  void poll(Picos now);
  // Later than the last poll; kNever when nothing is to be done.
  Picos next_deadline() const;

  // Starts to ask for a destination before there are packets for it. True when it is known.
  bool resolve(Picos now, const wire::IpAddress& destination);
  // An upper layer has evidence that our packets reach the host at `destination`.
  void confirm(Picos now, const wire::IpAddress& destination);
  // Changes the own MAC address (failover) and announces it.
  void set_mac(Picos now, const wire::MacAddress& mac);
  // Tells all neighbours where our addresses are; done once at the first poll.
  void announce(Picos now);

  const HostStack& host() const { return host_; }
  const NeighbourTable& table() const { return host_.table(); }
  const ResolvingCounters& counters() const { return counters_; }
  std::size_t parked() const { return parked_total_; }
  // Empty if every packet is accounted for.
  std::string check_conservation() const;

 private:
  struct Fifo {
    Packet* head = nullptr;
    Packet* tail = nullptr;
    std::uint32_t count = 0;
    void push(Packet* packet);
    Packet* pop();
  };
  // One destination of the engine, direct mapped.
  struct Slot {
    wire::IpAddress destination{};
    Picos valid_until{0};
    wire::MacAddress mac{};
  };
  static constexpr std::size_t kSlots = 256;
  static constexpr std::uint32_t kMaxQueuedOwn = 64;

  // What to do with a packet. At this point only its addresses have been written.
  struct Fate {
    std::uint64_t* drop = nullptr;               // drop it and count it here
    std::uint32_t park = NeighbourTable::kNone;  // park it until this neighbour answers
    bool send() const { return drop == nullptr && park == NeighbourTable::kNone; }
  };
  Fate prepare(Packet& packet, std::uint8_t traffic_class);
  Fate prepare_slow(Packet& packet, const wire::IpAddress& source,
                    const wire::IpAddress& destination, Slot& slot);
  void drop(Packet& packet, std::uint64_t& counter);
  void keep_or_drop(Packet& packet, std::uint8_t traffic_class, const Fate& fate);
  void write_addresses(Packet& packet, const wire::MacAddress& destination) const;
  bool flush(std::uint8_t traffic_class);
  bool flush(Fifo& fifo, std::uint8_t traffic_class, std::uint64_t& sent);
  void flush_all();
  void enqueue_own(Packet* packet);
  Packet* new_packet();
  void release(std::uint32_t neighbour);
  void give_up(std::uint32_t neighbour);
  void run_due();
  void forget_cached();

  Port* behind_;
  LinkTap* drop_tap_ = nullptr;
  PortInfo info_;
  HostStack host_;
  std::uint32_t ip_mtu_;
  std::uint32_t park_limit_;
  std::uint32_t park_limit_each_;
  bool tagged_;
  bool started_ = false;
  Picos now_{0};
  std::uint64_t epoch_ = 0;  // of the table, as of the slots
  std::array<Slot, kSlots> slots_{};
  std::vector<Fifo> parked_;  // by neighbour
  std::size_t parked_total_ = 0;
  // Ready to leave before the engine's next packets: own answers and requests, then released parked
  // packets, in order.
  std::array<Fifo, kTrafficClasses> queued_own_{};
  std::array<Fifo, kTrafficClasses> queued_{};
  std::uint32_t queued_mask_ = 0;
  std::uint32_t own_count_ = 0;
  ResolvingCounters counters_;
};

}  // namespace paceline::neighbour
