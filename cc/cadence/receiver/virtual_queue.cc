#include "cc/cadence/receiver/virtual_queue.h"

#include <algorithm>

namespace paceline::cc::cadence {
namespace {

// Arrivals are compared with what the port could carry over half an RTT at the least, and this at
// the most.
constexpr std::int64_t kMeasureRtts = 2;
constexpr std::uint64_t kIdlePackets = 2;  // fewer may be one that has not come as a whole yet

std::int64_t quarter_of(const CadenceParams& p) { return std::max<std::int64_t>(p.rtt_ns / 4, 1); }

}  // namespace

void VirtualQueue::pay(std::int64_t span, const CadenceParams& p, const PortLoad& load) {
  if (bytes_ == 0 || span <= 0) return;
  std::int64_t fresh = 0;
  for (const std::int64_t mbps : fresh_mbps_) fresh += mbps;
  // One sender cannot put more into the port than its own link carries, granted and start bytes
  // together: what it was granted leaves its start bytes all the room they need.
  const std::int64_t arriving = static_cast<std::int64_t>(load.committed_mbps) - fresh;
  const std::uint64_t granted =
      load.senders > 1 ? static_cast<std::uint64_t>(std::max<std::int64_t>(arriving, 0)) : 0;
  const std::uint64_t busy = granted + load.unaccounted_mbps;
  if (busy >= p.link_mbps) return;
  const std::uint64_t units =
      (p.link_mbps - busy) * static_cast<std::uint64_t>(std::min(span, std::int64_t{1} << 30)) +
      bits_left_;
  const std::uint64_t paid = units / 8000;
  bits_left_ = units % 8000;
  bytes_ -= std::min(bytes_, paid);
}

void VirtualQueue::advance(std::int64_t now, const CadenceParams& p, const PortLoad& load) {
  const std::int64_t quarter = quarter_of(p);
  for (std::size_t i = 0; i <= fresh_mbps_.size() && now >= fresh_at_ + quarter; ++i) {
    const std::int64_t edge = i < fresh_mbps_.size() ? fresh_at_ + quarter : now;
    pay(edge - at_, p, load);
    at_ = std::max(at_, edge);
    fresh_at_ = edge;
    fresh_slot_ = (fresh_slot_ + 1) % fresh_mbps_.size();
    fresh_mbps_[fresh_slot_] = 0;  // a whole RTT old
  }
  pay(now - at_, p, load);
  at_ = now;
}

void VirtualQueue::charge(std::int64_t now, const CadenceParams& p, std::uint64_t bytes) {
  add(now, p, bytes);
  charged_at_ = now;
}

void VirtualQueue::add(std::int64_t now, const CadenceParams& p, std::uint64_t bytes) {
  const std::int64_t quarter = now / quarter_of(p);
  const auto kept = static_cast<std::int64_t>(owed_.size());
  for (std::int64_t q = std::max(owed_quarter_ + 1, quarter - kept + 1); q <= quarter; ++q) {
    owed_[static_cast<std::size_t>(q % kept)] = 0;
  }
  owed_quarter_ = std::max(owed_quarter_, quarter);
  owed_[static_cast<std::size_t>(owed_quarter_ % kept)] += bytes;
  bytes_ += bytes;
}

// Bytes added from then on, as far back as the ring goes.
std::uint64_t VirtualQueue::owed_since(std::int64_t since, const CadenceParams& p) const {
  const auto kept = static_cast<std::int64_t>(owed_.size());
  const std::int64_t first = since / quarter_of(p);
  std::uint64_t bytes = 0;
  for (std::int64_t q = std::max({first, owed_quarter_ - kept + 1, std::int64_t{0}});
       q <= owed_quarter_; ++q) {
    bytes += owed_[static_cast<std::size_t>(q % kept)];
  }
  return bytes;
}

void VirtualQueue::measure(std::int64_t now, const CadenceParams& p, std::uint64_t arrived) {
  const std::int64_t span = now - measured_at_;
  const std::uint64_t came = arrived - measured_bytes_;
  measured_bytes_ = arrived;
  measured_at_ = now;
  if (span > kMeasureRtts * p.rtt_ns) return;  // too long ago to tell when it idled
  if (came + kIdlePackets * p.packet_bytes > bytes_at(p.link_mbps, span)) return;
  bytes_ = std::min(bytes_, owed_since(now - span - p.rtt_ns, p));
}

std::uint64_t VirtualQueue::before_fresh(std::int64_t now, const CadenceParams& p) const {
  const std::int64_t quarter = quarter_of(p);
  std::int64_t bytes = 0;
  for (std::size_t age = 0; age < fresh_mbps_.size(); ++age) {
    const std::size_t slot = (fresh_slot_ + fresh_mbps_.size() - age) % fresh_mbps_.size();
    const std::int64_t arrives =
        fresh_at_ +
        (static_cast<std::int64_t>(fresh_mbps_.size()) - static_cast<std::int64_t>(age)) * quarter;
    bytes += fresh_mbps_[slot] * std::max<std::int64_t>(arrives - now, 0) / 8000;
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0));
}

}  // namespace paceline::cc::cadence
