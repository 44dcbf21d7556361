// I3: unscheduled bytes that were announced are a debt of the port, the virtual queue. It shrinks
// by what the port can carry beyond the promised rates. An increase counts from one RTT after it
// was granted, when its packets can arrive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cc/cadence/params.h"

namespace paceline::cc::cadence {

// Other traffic of the port, beside the virtual queue.
struct PortLoad {
  std::uint64_t committed_mbps = 0;
  std::uint64_t unaccounted_mbps = 0;
  std::size_t senders = 0;
};

class VirtualQueue {
 public:
  std::uint64_t bytes() const { return bytes_; }
  std::int64_t charged_at() const { return charged_at_; }  // the last start

  // Pays for the time since the last call. To be called before the load changes, and before
  // anything is added.
  void advance(std::int64_t now, const CadenceParams& p, const PortLoad& load);
  // A start was announced.
  void charge(std::int64_t now, const CadenceParams& p, std::uint64_t bytes);
  // Bytes that still arrive at a rate that was given up. They count only while there is a debt.
  void add_late(const CadenceParams& p, std::uint64_t bytes) { add(at_, p, bytes); }
  // The committed rate changes by this much. Data arrives at the new rate one RTT later: a decrease
  // too is seen here only then.
  void expect(std::int64_t mbps) { fresh_mbps_[fresh_slot_] += mbps; }
  // Bytes that drain until the increases of the last RTT have arrived.
  std::uint64_t before_fresh(std::int64_t now, const CadenceParams& p) const;

  // The virtual queue assumes that every sender uses its granted rate. If one does not, the port
  // idles while a queue is still counted. A port that has idled has no queue, except for bytes that
  // were announced since, or in the RTT before (a start takes that long to arrive). `arrived` is
  // the total of bytes that reached the port; it can be judged when may_measure().
  bool may_measure(std::int64_t now, const CadenceParams& p) const {
    return 2 * (now - measured_at_) >= p.rtt_ns;
  }
  void measure(std::int64_t now, const CadenceParams& p, std::uint64_t arrived);
  void clear() { bytes_ = 0; }

 private:
  void pay(std::int64_t span, const CadenceParams& p, const PortLoad& load);
  void add(std::int64_t now, const CadenceParams& p, std::uint64_t bytes);
  std::uint64_t owed_since(std::int64_t since, const CadenceParams& p) const;

  std::uint64_t bytes_ = 0;
  std::int64_t at_ = 0;          // paid until then
  std::uint64_t bits_left_ = 0;  // remainder of the drain, so that it does not round away
  std::int64_t charged_at_ = 0;
  std::array<std::uint64_t, 16> owed_{};  // bytes added, by quarters of an RTT
  std::int64_t owed_quarter_ = 0;         // the newest of them
  std::int64_t measured_at_ = 0;          // when arrivals were last looked at,
  std::uint64_t measured_bytes_ = 0;      // and their total then
  // Increases of the last RTT, by quarters: committed, but not on the wire here yet.
  std::array<std::int64_t, 4> fresh_mbps_{};
  std::size_t fresh_slot_ = 0;
  std::int64_t fresh_at_ = 0;  // when the present quarter began
};

}  // namespace paceline::cc::cadence
