// Counts messages of one NIC and how they ended (message_figures.h). The code that posts a message
// keeps the result of begin() until the message has ended. One thread; no allocation.
//
// The ideal is simple: the unloaded round trip of a full packet, plus the bytes beyond that packet,
// with headers, at the NIC's own rate. Paths that are shorter or slower than the longest of the
// fabric, and slower links of peers, are not known here; comparisons of parameters on the same
// paths do not suffer from that. A message that was faster than its ideal counts with a slowdown
// of 1.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/telemetry/cluster_figures.h"
#include "dataplane/telemetry/log2.h"
#include "dataplane/telemetry/message_figures.h"

namespace paceline::telemetry {

struct MessageIdeal {
  std::uint64_t rate_bps = 0;
  std::uint32_t base_rtt_ns = 0;  // with a full packet
  std::uint32_t mtu_bytes = 4096;
  std::uint32_t full_packet_bytes = 0;  // on the wire
};

// A message in progress; takes 16 bytes beside the request.
struct MessageBegun {
  std::uint64_t at_ns = 0;
  std::uint32_t bytes = 0;  // up to 2^31 (IBTA vol. 1, 9.7.7)
  std::uint8_t epoch = 0;
  bool counted = false;               // false: nothing to count here
  std::uint8_t cluster = kNoCluster;  // that its data goes to (nic_meter.h)
};
static_assert(sizeof(MessageBegun) == 16);

enum class MessageEnd : std::uint8_t { completed, failed };

class MessageMeter {
 public:
  MessageMeter() = default;
  explicit MessageMeter(const MessageIdeal& ideal) : ideal_(ideal) {
    const std::uint64_t rate = std::max<std::uint64_t>(ideal.rate_bps, 1);
    // 8e9 ns * bits, in 2^-20: at 1 Gb/s 8 ns, and fine enough for 2^31 bytes at 800 Gb/s.
    ns_per_byte_ = (std::uint64_t{8'000'000'000} << 20U) / rate;
    short_log_ = log2_units(std::max(ideal.base_rtt_ns, 1U));
  }

  // The epoch of messages that are posted from now on. 0: none.
  void set_epoch(std::uint8_t epoch) { epoch_ = epoch; }
  std::uint8_t epoch() const { return epoch_; }

  MessageBegun begin(std::uint64_t now_ns, std::uint64_t bytes) {
    const std::size_t size = message_size(bytes);
    MessageFigures& figures = figures_[size];
    ++figures.begun;
    figures.begun_bytes += bytes;
    changed_ |= 1U << size;
    ++outstanding_;
    return {now_ns, static_cast<std::uint32_t>(bytes), epoch_, true, kNoCluster};
  }

  // Call it once for each message that began. A message that was not counted then is not counted
  // now.
  void end(MessageBegun& message, std::uint64_t now_ns, MessageEnd how) {
    if (!message.counted) return;
    message.counted = false;
    --outstanding_;
    const std::size_t size = message_size(message.bytes);
    MessageFigures& figures = figures_[size];
    changed_ |= 1U << size;
    if (message.epoch != epoch_) {
      ++figures.crossed;
      return;
    }
    if (how == MessageEnd::failed) {
      ++figures.failed;
      return;
    }
    ++figures.completed;
    figures.completed_bytes += message.bytes;
    const std::uint64_t took = std::max<std::uint64_t>(now_ns - message.at_ns, 1);
    figures.fct_ns += took;
    const std::uint64_t actual = log2_units(took);
    const std::uint64_t ideal =
        message.bytes <= ideal_.mtu_bytes
            ? short_log_
            : log2_units(std::max<std::uint64_t>(ideal_ns(message.bytes), 1));
    const std::uint64_t log = actual > ideal ? actual - ideal : 0;
    figures.log2_slowdown += log;
    ++figures.slowdown[std::min<std::uint64_t>(log / (kLogUnit / 8), kSlowdownBuckets - 1)];
  }

  // Completion time of a message of this size in an empty network.
  std::uint64_t ideal_ns(std::uint32_t bytes) const {
    const std::uint32_t mtu = std::max<std::uint32_t>(ideal_.mtu_bytes, 1);
    if (bytes <= mtu) return ideal_.base_rtt_ns;
    const std::uint64_t packets = (std::uint64_t{bytes} + mtu - 1) / mtu;
    const std::uint64_t headers =
        ideal_.full_packet_bytes > mtu ? packets * (ideal_.full_packet_bytes - mtu) : 0;
    const std::uint64_t beyond = bytes + headers - std::max(ideal_.full_packet_bytes, mtu);
    __extension__ using Wide = unsigned __int128;
    return ideal_.base_rtt_ns + static_cast<std::uint64_t>(Wide{beyond} * ns_per_byte_ >> 20U);
  }

  const MessagesBySize& figures() const { return figures_; }
  std::uint64_t outstanding() const { return outstanding_; }
  // A bit for each size whose figures have changed since the last call.
  unsigned take_changed() {
    const unsigned changed = changed_;
    changed_ = 0;
    return changed;
  }

 private:
  MessageIdeal ideal_{};
  std::uint64_t ns_per_byte_ = 0;  // in 2^-20
  std::uint64_t short_log_ = 0;    // log2_units of the ideal of one packet
  std::uint64_t outstanding_ = 0;
  unsigned changed_ = 0;
  std::uint8_t epoch_ = 0;
  MessagesBySize figures_{};
};

}  // namespace paceline::telemetry
