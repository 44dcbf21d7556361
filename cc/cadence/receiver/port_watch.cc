#include "cc/cadence/receiver/port_watch.h"

#include <algorithm>

namespace paceline::cc::cadence {
namespace {

constexpr std::int64_t kForeignRtts = 16;  // time constant of X
constexpr std::uint32_t kFullQ8 = 248;     // 0.97: a last-hop queue cannot persist below
constexpr std::uint32_t kEmptyQ8 = 230;    // 0.90: the port's queue was empty at some moment
// The standing-queue loop: a port that was marked and measures full over a long window drains a
// queue that no ledger knows of (uncounted bytes, a sender's clock, a wrong overhead). Full: a
// quarter of the margin and less is idle; three quarters: no queue. Without marks a full port is
// what is wanted: windows bound what stands there.
constexpr std::int64_t kLongRtts = 64;
constexpr std::uint32_t kMaxEtaCut = 8;

}  // namespace

bool PortWatch::below_full() const { return std::max(util_q8_, last_util_q8_) < kFullQ8; }
bool PortWatch::was_empty() const { return std::max(util_q8_, last_util_q8_) < kEmptyQ8; }

bool PortWatch::watch_standing_queue(std::int64_t now, std::uint64_t bytes, const CadenceParams& p,
                                     const VirtualQueue& debt) {
  long_bytes_ += bytes;
  const std::int64_t span = now - long_at_;
  if (span < kLongRtts * p.rtt_ns) return false;
  const std::uint64_t full = bytes_at(p.link_mbps, span);
  const std::uint64_t idle = full - std::min(long_bytes_, full);
  const std::uint64_t margin = bytes_at(p.link_mbps - p.eta_mbps, span);
  long_bytes_ = 0;
  long_at_ = now;
  const bool marked = long_marked_;
  long_marked_ = false;
  const bool explained = debt.bytes() > 0 || now - debt.charged_at() < span;
  if (marked && !explained && 4 * idle <= margin && eta_cut_ < kMaxEtaCut) {
    ++eta_cut_;
    return true;
  }
  if (4 * idle > 3 * margin && eta_cut_ > 0) {
    --eta_cut_;
    return true;
  }
  return false;
}

bool PortWatch::scan(std::int64_t now, const Scan& scan, const CadenceParams& p,
                     const VirtualQueue& debt) {
  const auto span = static_cast<std::uint64_t>(scan.span);
  const std::uint64_t all = scan.rx + unaccounted_bytes_;
  last_util_q8_ = util_q8_;
  util_q8_ = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(all * 8000 / span * 256 / p.link_mbps, 512));
  long_marked_ = long_marked_ || scan.marked;
  const bool changed = watch_standing_queue(now, all, p, debt);
  const std::int64_t weight = std::min(scan.span, kForeignRtts * p.rtt_ns);
  const auto now_mbps = static_cast<std::int64_t>((unaccounted_bytes_ + scan.lapsed) * 8000 / span);
  const auto before = static_cast<std::int64_t>(unaccounted_mbps_);
  unaccounted_mbps_ =
      static_cast<std::uint64_t>(before + (now_mbps - before) * weight / (kForeignRtts * p.rtt_ns));
  unaccounted_bytes_ = 0;
  return changed;
}

}  // namespace paceline::cc::cadence
