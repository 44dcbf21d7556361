// The demand table of Cadence's receiving port: state of each channel, lists of active, waiting and
// listed channels, and sums over channels. It decides nothing: the receiver and the planner decide
// when a rate changes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cc/cadence/params.h"
#include "cc/interface/downlink_allocator.h"

namespace paceline::cc::cadence {

// One channel at the receiving port. Bytes are wire bytes, rates Mb/s.
struct alignas(64) Channel {
  enum class Mode : std::uint8_t { unknown, idle, active, waiting };

  // Read and written by an allocation: one cache line.
  std::uint64_t final_total = 0;   // sent_total + demand of the last REQUEST
  std::uint64_t rx_base = 0;       // sent_total minus counters when the channel appeared
  std::int64_t sent_at = 0;        // last GRANT
  std::int64_t lease_end = 0;      // of the newest GRANT, one RTT of travel included
  std::int64_t old_lease_end = 0;  // of the newest GRANT above the present one; halvings move it
  std::uint32_t grant = 0;         // as last sent
  std::uint32_t com = 0;           // what the sender may still believe it is granted
  std::uint32_t tx_cap = 0;
  std::uint32_t position = 0;  // among the listed channels, plus 1
  std::uint16_t seq = 0;       // of the newest grant; 0 is never sent
  std::uint16_t echo = 0;      // seq that the sender confirmed
  Mode mode = Mode::unknown;
  bool due = false;      // a GRANT is queued
  bool revoked = false;  // the GRANT says that nothing is in force any more
  bool midway = false;   // began after another algorithm had sent data

  std::int64_t req_at = 0;        // last REQUEST
  std::uint64_t sent_known = 0;   // sent or announced as unscheduled
  std::uint64_t limit_total = 0;  // highest ceiling sent
  std::uint32_t req_stamp = 0;    // timestamp of the last REQUEST
  std::uint32_t last_rx = 0;      // counter at the last scan, low bits
  std::uint32_t heard_us = 0;     // last REQUEST, or scan that found data
  std::uint32_t turn_us = 0;      // since when active or waiting
  std::uint32_t delay_us = 0;     // of the queued GRANT: its rate begins that much later
  std::uint16_t req_seq = 0;
  std::uint16_t channel = 0;

  void next_seq() { seq = seq == 0xFFFF ? std::uint16_t{1} : static_cast<std::uint16_t>(seq + 1); }
};
static_assert(sizeof(Channel) == 128 && std::is_trivially_copyable_v<Channel>);

// Describes a broken invariant in words.
std::string fault(std::string_view what, std::uint64_t is, std::uint64_t bound);

class ChannelTable {
 public:
  using Mode = Channel::Mode;
  static constexpr std::size_t kCountersPerBlock = 64;

  bool grow(std::uint32_t peer);  // makes room for this peer; returns whether there was none
  std::uint32_t size() const { return static_cast<std::uint32_t>(channels_.size()); }
  Channel& operator[](std::uint32_t peer) { return channels_[peer]; }
  const Channel& operator[](std::uint32_t peer) const { return channels_[peer]; }
  ChannelCounters& counters(std::uint32_t peer) const {
    return (*counter_blocks_[peer / kCountersPerBlock])[peer % kCountersPerBlock];
  }

  // Listed: active, or with committed rate left.
  std::span<const std::uint32_t> listed() const { return listed_; }
  void list(std::uint32_t peer);
  void unlist(std::uint32_t peer);

  std::uint32_t active() const { return active_count_; }
  std::uint32_t waiting() const { return waiting_count_; }
  void activate(std::int64_t now, std::uint32_t peer);
  void enqueue(std::int64_t now, std::uint32_t peer);  // it waits, and is not active any more
  std::optional<std::uint32_t> pop_waiting();          // the longest waiting; to be activated
  void release(std::uint32_t peer);                    // idle, with nothing granted or committed
  void erase(std::uint32_t peer);                      // with its counters

  std::uint64_t committed() const { return com_sum_; }
  std::uint64_t granted() const { return grant_sum_; }
  void set_com(Channel& ch, std::uint32_t mbps) {
    com_sum_ = com_sum_ - ch.com + mbps;
    ch.com = mbps;
  }
  void set_grant(Channel& ch, std::uint32_t mbps) {
    grant_sum_ = grant_sum_ - ch.grant + mbps;
    ch.grant = mbps;
  }
  // Sets a smaller grant, or none. The committed rate falls only when the sender confirms.
  void lower(Channel& ch, std::uint32_t mbps);

  // GRANTs to be sent, at most one per channel. Their fields are filled in when they leave.
  void push_grant(std::uint32_t peer, std::uint32_t delay_us = 0);
  std::optional<std::uint32_t> pop_grant();
  bool grants_due() const { return !due_.empty(); }

  // Bytes of a channel's total that have arrived, and bytes of its demand that have not.
  std::uint64_t arrived(std::uint32_t peer) const {
    return channels_[peer].rx_base + counters(peer).rx_bytes;
  }
  std::uint64_t left(std::uint32_t peer) const {
    const std::uint64_t sent = arrived(peer);
    return channels_[peer].final_total > sent ? channels_[peer].final_total - sent : 0;
  }
  // Bytes that a channel sent or announced, as far as this port knows.
  std::uint64_t known_sent(std::uint32_t peer) const;
  // Called with the sent total of a REQUEST. REQUESTs overtake data, so no more can have arrived
  // than was sent. An excess was sent under another algorithm, before the connection joined this
  // channel: either no sent_total contains it, or the first one did and it was counted again on
  // arrival.
  void forget_uncharged(std::uint32_t peer, std::uint64_t sent);
  // Whether data came for a channel since the last call.
  bool take_arrivals(std::uint32_t peer);

  // Reports the first channel that violates I2, or a list, sum or order of rates that disagrees
  // with the channels. Empty: nothing is wrong.
  std::string check(const CadenceParams& p) const;

 private:
  void set_mode(std::uint32_t peer, Mode mode);

  std::vector<Channel> channels_;  // by peer
  std::vector<std::unique_ptr<std::array<ChannelCounters, kCountersPerBlock>>> counter_blocks_;
  std::vector<std::uint32_t> listed_;
  std::vector<std::uint32_t> waiting_;  // ring of peers in order of arrival; stale ones skipped
  std::size_t waiting_head_ = 0;
  std::vector<std::uint32_t>
      due_;  // peers whose GRANT leaves next; of a channel that is gone: none
  std::size_t due_head_ = 0;
  std::uint32_t active_count_ = 0;
  std::uint32_t waiting_count_ = 0;
  std::uint64_t com_sum_ = 0;
  std::uint64_t grant_sum_ = 0;
};

}  // namespace paceline::cc::cadence
