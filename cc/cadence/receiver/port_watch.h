// What scans measure at a receiving port: traffic outside any channel, utilisation, and whether
// there is a queue that no channel explains.
#pragma once

#include <cstdint>

#include "cc/cadence/params.h"
#include "cc/cadence/receiver/virtual_queue.h"

namespace paceline::cc::cadence {

class PortWatch {
 public:
  // Between two scans.
  struct Scan {
    std::int64_t span = 0;
    std::uint64_t rx = 0;      // bytes of the channels
    std::uint64_t lapsed = 0;  // of these, beyond what is committed: senders in their fallback
    bool marked = false;
  };

  void count_unaccounted(std::uint64_t bytes) { unaccounted_bytes_ += bytes; }
  std::uint64_t unaccounted_bytes() const { return unaccounted_bytes_; }  // since the last scan
  std::uint64_t unaccounted_mbps() const { return unaccounted_mbps_; }    // X
  std::uint32_t eta_cut() const { return eta_cut_; }  // to be taken off the plan, in 1/64 of it

  // Returns whether eta_cut() has changed.
  bool scan(std::int64_t now, const Scan& scan, const CadenceParams& p, const VirtualQueue& debt);
  // Marks of the last scan are not those of this port's own queue: that cannot persist here.
  bool below_full() const;
  // The port's queue was empty at some moment between the last two scans.
  bool was_empty() const;

 private:
  bool watch_standing_queue(std::int64_t now, std::uint64_t bytes, const CadenceParams& p,
                            const VirtualQueue& debt);

  std::uint64_t unaccounted_bytes_ = 0;
  std::uint64_t unaccounted_mbps_ = 0;
  std::uint32_t util_q8_ = 0;  // of the last two scans, 256 = full
  std::uint32_t last_util_q8_ = 0;
  std::uint64_t long_bytes_ = 0;  // arrivals since long_at_, for the standing queue
  std::int64_t long_at_ = 0;
  bool long_marked_ = false;  // some of them were marked
  std::uint32_t eta_cut_ = 0;
};

}  // namespace paceline::cc::cadence
