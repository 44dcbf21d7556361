// The path loop of the sender: what marks, losses and delay take off P, and how P comes back.
#include <algorithm>

#include "cc/cadence/state_helpers.h"

namespace paceline::cc::cadence {
namespace {

// The path rate falls at most once per RTT, and grows by multiples after this many clean RTTs.
constexpr unsigned kCleanRtts = 5;
// The queue that a GRANT reports counts in full when it arrives, and less and less over this many
// RTTs.
constexpr std::int64_t kQueueRtts = 8;
// A window is wider by a quarter of the delay that the receiver's queue explains. If all windows
// were wider by all of it, the port would hold that queue twice.
constexpr std::int64_t kQueueWindow = 4;
// On top of a round trip at its rate a channel may have this many packets under way, but no more
// than it sends in half a round trip. With many senders to one port each then has one packet under
// way, and one that meets a queue waits for its ACK. So the burst of senders that catch up does not
// stay in the port until the plan's margin has drained it.
constexpr std::uint64_t kWindowPackets = 2;

// The unloaded round trip. REQUEST and GRANT overtake data: their round trip contains no queue, but
// whatever time the hosts' software takes at present, which is no congestion of the path. A path
// shorter than T gets more room than it needs; one fast answer of a slow host takes none away.
std::int64_t unloaded_rtt(const State& s, const CadenceParams& p) {
  return std::max<std::int64_t>(p.rtt_ns, s.control_rtt_ns);
}

// Delay that the receiver's own port explains.
std::int64_t explained(const State& s, const CadenceParams& p, std::int64_t now) {
  if (s.queue_ns == 0) return 0;
  const std::int64_t age = now - s.budget_at;
  const std::int64_t span = kQueueRtts * p.rtt_ns;
  if (age >= span) return 0;
  return s.queue_ns * (span - age) / span;
}

}  // namespace

void cut_path(State& s, const CadenceParams& p, std::int64_t now, std::uint64_t rate) {
  s.path_mbps = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(rate, std::min(p.path_min_mbps, p.link_mbps), p.link_mbps));
  s.path_limited = s.path_mbps < p.link_mbps;
  s.path_cut_at = now;
  s.path_step_at = now + p.rtt_ns;
  s.clean_rtts = 0;
}

void grow_path(State& s, const CadenceParams& p, std::int64_t now) {
  while (s.path_limited && now >= s.path_step_at) {
    s.path_step_at += p.rtt_ns;
    const std::uint32_t basis = s.grant_mbps > 0 ? s.grant_mbps : p.link_mbps;
    std::uint64_t rate = s.path_mbps;
    rate += static_cast<std::uint64_t>(p.path_increase * basis) + 1;
    if (s.clean_rtts < kCleanRtts) {
      ++s.clean_rtts;
    } else {
      rate += rate / 4;
    }
    // Well above what is granted: the path is no constraint any more.
    if (rate >= std::uint64_t{basis} + basis / 4 || rate >= p.link_mbps) {
      s.path_mbps = p.link_mbps;
      s.path_limited = false;
    } else {
      s.path_mbps = static_cast<std::uint32_t>(rate);
    }
  }
}

bool take_round_trip(State& s, const CadenceParams& p, std::int64_t now, std::uint32_t rtt_ns) {
  if (s.phase == Phase::fallback || p.path_target_ns == 0) return false;
  const std::int64_t queued = std::int64_t{rtt_ns} - unloaded_rtt(s, p) - explained(s, p, now);
  const std::int64_t excess = queued - p.path_target_ns;
  // A packet that was sent before the last cut says nothing of it.
  if (excess <= 0 || now - s.path_cut_at < std::int64_t{rtt_ns}) {
    if (queued > 0 && s.path_limited) s.path_step_at = std::max(s.path_step_at, now + p.rtt_ns);
    return false;
  }
  grow_path(s, p, now);
  const double part =
      std::min(p.path_decrease * static_cast<double>(excess) / static_cast<double>(rtt_ns), 0.5);
  const std::uint32_t rate = s.grant_mbps > 0 ? std::min(s.grant_mbps, s.path_mbps) : s.path_mbps;
  cut_path(s, p, now, rate - static_cast<std::uint32_t>(part * rate));
  return true;
}

std::uint64_t path_window(const State& s, const CadenceParams& p, std::int64_t now,
                          std::uint32_t rate) {
  if (p.path_window == 0) return kUnlimited;
  const auto unloaded = static_cast<double>(unloaded_rtt(s, p));
  const auto span =
      static_cast<std::int64_t>(p.path_window * unloaded) + explained(s, p, now) / kQueueWindow;
  const std::uint64_t slack = bytes_at(rate, p.rtt_ns / 2);
  const std::uint64_t most = std::uint64_t{kWindowPackets} * p.packet_bytes;
  // At the slowest rates a round trip holds less than a byte: a packet may go all the same.
  return std::max<std::uint64_t>(bytes_at(rate, span) + std::min(most, slack), 1);
}

}  // namespace paceline::cc::cadence
