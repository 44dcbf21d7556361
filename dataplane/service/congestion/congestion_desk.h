// Who may change congestion control while the service runs, and how: what is in force on every NIC,
// trials of a candidate against the champion, and the guard that ends them. Of the control thread.
//
// The champion is what a NIC runs when nothing is tried: what its testbed says, or the last
// `configure`. It is kept here, so that it can be put back without anybody's help. A change is
// checked for all of its NICs before the first one changes, and reaches each worker in one task.
//
// Time is milliseconds since the start of the service, as tick() was told; it is as fine as ticks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/service/congestion/arm_guard.h"
#include "dataplane/service/congestion/cc_change.h"
#include "dataplane/service/congestion/guard_judge.h"
#include "dataplane/service/congestion/plugin_shelf.h"
#include "dataplane/service/protocol/control_protocol.h"
#include "dataplane/service/workers/service.h"
#include "dataplane/telemetry/segment_reader.h"

namespace paceline::service {

inline constexpr std::uint32_t kGuardLookMs = 100;

struct GuardEvent {
  std::uint32_t number = 0;  // of the NIC, from 1 on
  std::string nic;           // where the rule was broken: of a trial's NICs all have the event
  std::uint64_t at_unix_ns = 0;
  GuardTrip trip{};
  bool reverted = false;            // else only reported
  std::string trial;                // that it ended
  std::optional<std::uint8_t> arm;  // of two at a time: the one that broke the rule, if one did
  std::string detail;               // which plug-in, and why
};

struct Trial {
  std::string name;
  std::vector<std::size_t> nics;
  // Two arms at a time, each for the ports of its clusters: the NICs of each, which together are
  // `nics`; and the arms in force. Empty: the trial's NICs have one arm at a time.
  std::vector<std::vector<std::size_t>> clusters;
  std::vector<std::uint8_t> arms;
  std::vector<CcArm> champions;  // by place in `nics`
  std::vector<CcArm> candidates;
  GuardLimits limits{};
  std::uint32_t hold_ms = 0;
  std::uint64_t renewed_ms = 0;
  std::uint8_t arm = 0;  // with clusters: 1 while any of them has it
  std::uint8_t epoch = 0;
  TrialState state = TrialState::running;
  std::string why;
};

class CongestionDesk {
 public:
  struct Nic {
    std::string name;
    NicPlace place{};
    cc::PortFacts facts{};
    CcArm champion;
    CcArm current;  // of what is in force
    NicInForce in_force{};
    GuardJudge judge;
    ArmGuard by_arm;               // while two arms are in force
    std::list<GuardEvent> events;  // the newest kMostEvents
    std::uint32_t last_event = 0;
    std::uint32_t latched = 0;      // number of the trip, 0: none
    std::uint64_t quarantines = 0;  // of plug-ins, that were noticed
    // Breaking a rule all the time without a trial is reported once, until it was kept again.
    bool reported = false;
  };
  static constexpr std::size_t kMostEvents = 32;
  static constexpr std::size_t kMostTrials = 32;

  // The service has been started. It outlives the desk.
  explicit CongestionDesk(Service& service);

  struct Changed {
    std::size_t nic = 0;
    std::uint64_t generation = 0;
    bool changed = false;
  };
  struct Outcome {
    std::vector<std::string> errors;  // with any, nothing has changed
    std::vector<Changed> nics;
  };

  const std::vector<Nic>& nics() const { return nics_; }
  const std::list<Trial>& trials() const { return trials_; }
  const PluginShelf& shelf() const { return shelf_; }
  // Those that the guard judges a NIC by now.
  GuardLimits limits_of(std::size_t nic) {
    const Trial* const trial = trial_of(nic);
    return trial != nullptr ? trial->limits : GuardLimits{};
  }
  std::uint64_t remaining_ms(const Trial& trial) const;

  Outcome configure(const ControlRequest& request);
  // Errors.
  std::vector<std::string> begin_trial(const ControlRequest& request);
  Outcome use_arm(const ControlRequest& request);
  Outcome renew(const ControlRequest& request);
  Outcome end_trial(const ControlRequest& request);
  Outcome clear_guard(const ControlRequest& request);
  const Trial* find_trial(const std::string& name) const;

  // Every kGuardLookMs: the guard looks at what workers have counted; trials that nobody renews are
  // over.
  void tick(std::uint64_t now_ms);

 private:
  struct Change {
    std::size_t nic = 0;
    const CcArm* arm = nullptr;
    std::uint8_t number = 0;  // of the arm
    std::uint8_t epoch = 0;
    const transport::ArmsByPeer* by_peer = nullptr;  // two arms at a time; `arm`: its own
    std::uint8_t clusters = 0;                       // of them
  };

  // Of all NICs where none are named. Names that do not exist are errors.
  std::vector<std::size_t> pick(const std::optional<std::vector<std::string>>& names,
                                std::vector<std::string>& errors) const;
  // The same change with the name of the plug-in where it says "plugin:PATH", loaded.
  CcChange with_plugin(const CcChange& change, std::vector<std::string>& errors) const;
  // Why this NIC does not call the algorithm's plug-in any more; empty: it does, or it is none.
  std::string quarantine_of(std::size_t nic, cc::AlgorithmId algorithm);
  void notice_quarantine(std::size_t nic);
  Trial* trial_of(std::size_t nic);
  Trial* named(const std::string& name, std::vector<std::string>& errors);
  // All of them, or none; what is wrong.
  std::vector<std::string> apply(const std::vector<Change>& changes);
  void put_champion_back(Trial& trial, TrialState state, std::string why);
  void look(std::size_t nic);
  void tripped(std::size_t nic, const GuardTrip& trip, std::string detail = {},
               std::optional<std::uint8_t> arm = {});
  NicInForce in_force_after(const Change& change) const;
  void pick_clusters(const ControlRequest& request, Trial& trial,
                     std::vector<std::string>& errors) const;
  std::vector<transport::ArmsByPeer> arms_by_peer(const Trial& trial,
                                                  const std::vector<std::uint8_t>& arms) const;
  Outcome use_arms(Trial& trial, const ControlRequest& request);
  std::vector<std::string> refusals_of(const Trial& trial);
  static void note(Nic& nic, GuardEvent event);
  bool sample(std::size_t nic, GuardSample& out);

  Service& service_;
  PluginShelf shelf_;
  telemetry::SegmentReader reader_;
  telemetry::NicSample sample_;
  std::vector<Nic> nics_;
  std::list<Trial> trials_;
  std::uint64_t now_ms_ = 0;
};

}  // namespace paceline::service
