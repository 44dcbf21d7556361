// The demand table of Cadence's receiving port: what is known of each channel, which of them are
// active, waiting or listed, and the sums over them. It decides nothing: the receiver and the
// planner say when a rate changes.
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
#include "cc/downlink_allocator.h"

namespace paceline::cc::cadence {

struct alignas(64) Channel {
  enum class Mode : std::uint8_t { unknown, idle, active, waiting };

  // Read and written by an allocation: one cache line.
  std::uint64_t final_total = 0;   // sent_total + demand of the last REQUEST
  std::uint64_t rx_base = 0;       // sent_total minus counters when the channel appeared
  std::int64_t sent_at = 0;        // last GRANT
  std::int64_t lease_end = 0;      // of the newest GRANT, one RTT of travel included
  std::int64_t old_lease_end = 0;  // of the newest GRANT above the present one; halvings move it
  std::uint32_t grant = 0;         // Mb/s, as last sent
  std::uint32_t com = 0;           // Mb/s that the sender may still believe it is granted
  std::uint32_t tx_cap = 0;
  std::uint32_t position = 0;  // among the listed channels, plus 1
  std::uint16_t seq = 0;       // of the newest grant; 0 is never sent
  std::uint16_t echo = 0;
  Mode mode = Mode::unknown;
  std::uint8_t start_window = 0;  // window in which its last start was counted
  bool due : 1 = false;           // a GRANT is queued
  bool midway : 1 = false;        // traffic of another algorithm came in with it
  bool later : 1 = false;         // its newest decrease takes effect an RTT after its sender knows

  std::int64_t req_at = 0;       // last REQUEST
  std::uint64_t sent_known = 0;  // sent or announced as unscheduled
  std::uint64_t unscheduled_total = 0;
  std::uint64_t limit_total = 0;  // highest ceiling sent
  std::uint32_t req_stamp = 0;    // timestamp of the last REQUEST
  std::uint32_t last_rx = 0;      // counters at the last scan, low bits
  std::uint32_t heard_us = 0;     // last REQUEST, or scan that found data
  std::uint32_t path_us = 0;      // last quick-adapt
  std::uint32_t turn_us = 0;      // since when active or waiting
  std::uint16_t req_seq = 0;
  std::uint16_t channel = 0;
  std::uint16_t path_seq = 0;
  std::uint16_t alpha_q16 = 0;
  std::uint16_t last_packets = 0;  // like last_rx
  std::uint16_t last_ce = 0;

  void next_seq() { seq = seq == 0xFFFF ? std::uint16_t{1} : static_cast<std::uint16_t>(seq + 1); }
};
static_assert(sizeof(Channel) == 128 && std::is_trivially_copyable_v<Channel>);

inline std::uint32_t micros(std::int64_t ns) { return static_cast<std::uint32_t>(ns / 1000); }

// A broken invariant, in words.
std::string fault(std::string_view what, std::uint64_t is, std::uint64_t bound);

class ChannelTable {
 public:
  using Mode = Channel::Mode;
  static constexpr std::size_t kCountersPerBlock = 64;

  // Makes room for this peer. Returns whether there was none.
  bool grow(std::uint32_t peer);
  std::uint32_t size() const { return static_cast<std::uint32_t>(channels_.size()); }
  Channel& operator[](std::uint32_t peer) { return channels_[peer]; }
  const Channel& operator[](std::uint32_t peer) const { return channels_[peer]; }
  ChannelCounters& counters(std::uint32_t peer) const {
    return (*counter_blocks_[peer / kCountersPerBlock])[peer % kCountersPerBlock];
  }

  // Listed: active, with committed rate left, or with bytes that still arrive.
  std::span<const std::uint32_t> listed() const { return listed_; }
  bool list(std::uint32_t peer);  // returns whether it was not listed
  void unlist(std::uint32_t peer);

  std::span<const std::uint64_t> active_bits() const { return active_; }  // a bit by peer
  std::uint32_t active() const { return active_count_; }
  std::uint32_t waiting() const { return waiting_count_; }
  void activate(std::int64_t now, std::uint32_t peer);
  void enqueue(std::int64_t now, std::uint32_t peer);  // to wait; an active one leaves the set
  std::optional<std::uint32_t> pop_waiting();          // whoever waits longest; to be activated
  void release(std::uint32_t peer);                    // idle, with nothing granted or committed
  void erase(std::uint32_t peer);                      // with its counters

  std::uint64_t committed() const { return com_sum_; }  // Mb/s
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
  void lower(Channel& ch, std::uint32_t mbps, bool later);

  // Wire bytes that reached the port so far, modulo 2^64: of all channels, and of count_other().
  std::uint64_t arrived() const;
  void count_other(std::uint64_t bytes) { other_bytes_ += bytes; }
  // Bytes that a channel sent or announced, as far as is known here.
  std::uint64_t known_sent(std::uint32_t peer) const;

  // Called with a REQUEST's sent total. No more can have arrived than was sent, since REQUESTs
  // overtake data. An excess was sent under another algorithm, before the connection came into this
  // channel: no sent_total has it, or the first one had it and it was counted again on arrival.
  void forget_uncharged(std::uint32_t peer, std::uint64_t sent);
  // Bytes that came for a listed channel since the last call, or since it was listed.
  struct Arrivals {
    std::uint32_t bytes = 0;
    std::uint16_t packets = 0;
    std::uint16_t ce = 0;
  };
  Arrivals take_arrivals(std::uint32_t peer);

  // Reports the first channel that breaks I2, or a list, sum or order of rates that disagrees with
  // the channels. Empty: nothing is broken.
  std::string check(const CadenceParams& p) const;

 private:
  void set_mode(std::uint32_t peer, Mode mode);

  std::vector<Channel> channels_;  // by peer
  std::vector<std::unique_ptr<std::array<ChannelCounters, kCountersPerBlock>>> counter_blocks_;
  std::vector<std::uint32_t> listed_;
  std::vector<std::uint32_t> waiting_;  // ring of peers in order of arrival; stale ones skipped
  std::size_t waiting_head_ = 0;
  std::vector<std::uint64_t> active_;
  std::uint32_t active_count_ = 0;
  std::uint32_t waiting_count_ = 0;
  std::uint64_t com_sum_ = 0;
  std::uint64_t grant_sum_ = 0;
  std::uint64_t other_bytes_ = 0;  // arrivals, except those of listed channels
};

}  // namespace paceline::cc::cadence
