// The guard over the workers' counters: looks at every NIC's figures in the telemetry segment,
// judges them, and keeps its findings. Its caller acts on a finding. Pure, over memory that others
// write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/service/congestion/arm_guard.h"
#include "dataplane/service/congestion/guard_judge.h"
#include "dataplane/service/workers/telemetry_publisher.h"
#include "dataplane/telemetry/segment_reader.h"

namespace paceline::service {

struct GuardEvent {
  std::uint32_t number = 0;  // of the NIC, from 1 on
  std::string nic;           // where the rule was broken: of a trial's NICs all have the event
  std::uint64_t at_unix_ns = 0;
  GuardTrip trip{};
  bool reverted = false;            // else only reported
  std::string trial;                // that it ended
  std::optional<std::uint8_t> arm;  // with two arms: the one that broke the rule, if one did
  std::string detail;               // which plug-in, and why
};

class GuardWatch {
 public:
  static constexpr std::size_t kMostEvents = 32;

  struct Finding {
    GuardTrip trip;
    std::optional<std::uint8_t> arm;
  };

  // The segment outlives this.
  GuardWatch(std::span<const std::byte> segment, std::size_t nics);

  // Looks at a NIC. False: there is nothing to see.
  bool look(std::size_t nic);
  // Found by the last look(): plug-ins quarantined since the look before.
  std::optional<std::uint64_t> new_quarantine();
  // Found by the last look(): a rule that was broken for long enough.
  std::optional<Finding> judge(const GuardLimits& limits, const NicInForce& in_force);
  // Other parameters are in force: earlier counts are not evidence against them.
  void restart(std::size_t nic);

  // Whether a finding without a revert is news: a rule that is broken all the time is reported
  // once, until it was kept again.
  bool report(std::size_t nic);

  void note(std::size_t nic, GuardEvent event);  // it gets its number here
  // The newest kMostEvents.
  const std::list<GuardEvent>& events(std::size_t nic) const { return nics_[nic].events; }
  // The newest event keeps trials from this NIC until clear().
  void latch(std::size_t nic) { nics_[nic].latched = nics_[nic].last_event; }
  void clear(std::size_t nic) { nics_[nic].latched = 0; }
  std::uint32_t latched(std::size_t nic) const { return nics_[nic].latched; }  // 0: none

 private:
  struct Nic {
    GuardJudge judge;
    ArmGuard by_arm;  // while two arms are in force
    std::list<GuardEvent> events;
    std::uint32_t last_event = 0;
    std::uint32_t latched = 0;
    std::uint64_t quarantines = 0;  // of plug-ins, that were noticed
    bool reported = false;
  };
  std::optional<GuardSample> read(std::size_t nic, telemetry::NicSample& sample) const;

  telemetry::SegmentReader reader_;
  std::vector<Nic> nics_;
  std::size_t looked_at_ = 0;
  telemetry::NicSample sample_;
  GuardSample now_{};
};

}  // namespace paceline::service
