// The receiving half that algorithms with grants of bytes (SIRD, Homa) share: state per channel,
// REQUESTs in, GRANTs out. A subclass decides which sender is granted how much, and when.
//
// Per channel it knows what was sent and announced (REQUEST), what has arrived (the engine's
// counters), and the granted ceiling. Outstanding is the ceiling less the arrived bytes: bytes that
// may be in flight, including those sent without a grant. Nothing else bounds the queue in front of
// the port.
//
// Bytes that never arrive. When a sender reports a loss, bytes in flight count as arrived; so do
// bytes that were sent and have not arrived for `reclaim_ns`. A channel that is silent for long
// loses its grants. Late data is not counted twice: no more can have arrived than was sent, and the
// next REQUEST corrects the count.
//
// A REQUEST that brings no grant within a round trip is answered all the same (hold, or the same
// ceiling again): waiting senders learn that the receiver listens, and lost GRANTs are repeated.
//
// Cost: O(channels with demand or outstanding bytes) per poll; a poll per packet time while there
// is demand. Memory: 128 bytes and the counters per channel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cc/grants/grant_channel.h"
#include "cc/interface/downlink_allocator.h"

namespace paceline::cc {

class GrantReceiver : public DownlinkAllocator {
 public:
  ChannelCounters* on_request(Nanos now, std::uint32_t peer, const RequestMessage&) override;
  void on_unaccounted_bytes(std::uint64_t) override {
  }  // the bound is on bytes, whatever their speed
  void forget(Nanos now, std::uint32_t peer) override;
  std::size_t poll(Nanos now, std::span<ReceiverOutput> out) override;
  Nanos next_wake() const override;
  std::string check_invariants(Nanos now) const override;

  // For telemetry and tests.
  std::uint64_t outstanding() const;
  std::uint64_t outstanding(std::uint32_t peer) const;
  std::uint64_t ceiling(std::uint32_t peer) const { return channels_[peer].limit_total; }

 protected:
  struct Channel {
    std::uint64_t final_total = 0;  // sent + demand, as told
    std::uint64_t limit_total = 0;  // the ceiling
    std::uint64_t rx_base = 0;      // sent_total minus counters when the channel appeared
    std::uint64_t sent_known = 0;   // sent or announced
    std::uint64_t unscheduled_total = 0;
    std::uint64_t seen_rx = 0;  // counters at the last look
    std::int64_t req_at = 0;
    std::int64_t arrived_at = 0;  // when data was seen last, or there was first some to wait for
    std::int64_t born_at = 0;     // since when there is demand that is not granted
    std::int64_t answer_at = kNeverNanos.count;  // a REQUEST waits for an answer until then
    std::uint64_t window_at = 0;                 // arrived when the present window began
    std::uint32_t window_packets = 0;            // counters then
    std::uint32_t window_ce = 0;
    std::uint32_t position = 0;  // in listed_, plus 1
    std::uint32_t req_stamp = 0;
    std::uint16_t req_seq = 0;
    std::uint16_t grant_seq = 0;
    std::uint16_t channel = 0;
    std::uint8_t round = 0;
    bool known = false;
    bool congested = false;     // as the sender says
    std::uint8_t priority = 0;  // GrantMessage::priority
  };

  GrantReceiver(const GrantPort& port, std::int64_t reclaim_ns);
  void take_port(const GrantPort& port, std::int64_t reclaim_ns);

  // --- what a subclass decides ---
  // Grants what may be granted now; every grant() fills one message. Ends when room() is gone.
  virtual void share(std::int64_t now) = 0;
  // When share may have something next, provided that some channel wants more.
  virtual std::int64_t share_at() const = 0;
  // opened: a channel begins, or begins again. scanned: once per round trip while it is listed.
  virtual void opened(std::uint32_t /*peer*/) {}
  virtual void scanned(std::int64_t /*now*/, std::uint32_t /*peer*/) {}

  // --- what it is given ---
  std::uint64_t arrived(std::uint32_t peer) const {
    return channels_[peer].rx_base + counters(peer).rx_bytes;
  }
  // Demand that was reported and is not granted.
  static std::uint64_t wanted(const Channel& c) {
    return c.final_total > c.limit_total ? c.final_total - c.limit_total : 0;
  }
  // Outstanding bytes that count against a bound. While a sender wants more, a rest of less than a
  // packet does not: the sender cannot use it, and the rests of many would take room from all.
  std::uint64_t under_way(std::uint32_t peer) const {
    const std::uint64_t bytes = outstanding(peer);
    return wanted(channels_[peer]) > 0 ? bytes - bytes % port_.packet_bytes : bytes;
  }
  std::uint64_t under_way() const {
    std::uint64_t sum = 0;
    for (const std::uint32_t peer : listed_) sum += under_way(peer);
    return sum;
  }
  // Bytes to grant so that the sender can send `bytes` in full packets: the first packet of a
  // message is longer.
  std::uint64_t with_headers(std::uint32_t peer, std::uint64_t bytes) const {
    const std::uint64_t rest = outstanding(peer) % port_.packet_bytes;
    return bytes + (rest < kGrantMessageExtra ? kGrantMessageExtra - rest : 0);
  }
  bool room() const { return room_left() > 0; }
  std::size_t room_left() const { return out_.size() - filled_; }  // messages of this poll
  // Raises the ceiling by `bytes` and sends a GRANT.
  void grant(std::int64_t now, std::uint32_t peer, std::uint64_t bytes);
  // Priority that GRANTs to the channel carry from now on: a level plus 1; 0: none.
  void set_priority(std::uint32_t peer, std::uint8_t priority) {
    channels_[peer].priority = priority;
  }
  void drop_priorities() {
    for (Channel& c : channels_) c.priority = 0;
  }
  std::span<const std::uint32_t> listed() const { return listed_; }
  bool is_listed(std::uint32_t peer) const {
    return peer < channels_.size() && channels_[peer].position != 0;
  }
  Channel& channel(std::uint32_t peer) { return channels_[peer]; }
  const Channel& channel(std::uint32_t peer) const { return channels_[peer]; }
  ChannelCounters& counters(std::uint32_t peer) const {
    return (*blocks_[peer / kPerBlock])[peer % kPerBlock];
  }
  const GrantPort& port() const { return port_; }
  std::int64_t packet_ns() const { return packet_ns_; }

 private:
  static constexpr std::size_t kPerBlock = 64;

  void add(std::uint32_t peer);
  void open(std::int64_t now, Channel& c, std::uint32_t peer, const RequestMessage& r);
  void arrive_at_least(Channel& c, std::uint32_t peer, std::uint64_t total);
  void list(std::int64_t now, std::uint32_t peer);
  void unlist(std::uint32_t peer);
  void write_grant(std::int64_t now, std::uint32_t peer, bool hold);
  void scan(std::int64_t now);
  void answer(std::int64_t now);

  GrantPort port_;
  std::int64_t reclaim_ns_ = 0;
  std::int64_t packet_ns_ = 0;
  std::vector<Channel> channels_;  // by peer
  std::vector<std::unique_ptr<std::array<ChannelCounters, kPerBlock>>> blocks_;
  std::vector<std::uint32_t> listed_;  // with demand or outstanding bytes
  std::span<ReceiverOutput> out_;      // of the current poll
  std::size_t filled_ = 0;
  std::int64_t scan_at_ = kNeverNanos.count;
  std::int64_t answer_at_ = kNeverNanos.count;  // not after the earliest of any channel's
  bool wants_more_ = false;                     // some channel wants more
};

}  // namespace paceline::cc
