// Changes congestion control while the service runs: changes values in force, runs trials of a
// candidate against the champion, and has the guard that ends trials. For the control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/service/congestion/champions.h"
#include "dataplane/service/congestion/guard_watch.h"
#include "dataplane/service/congestion/plugin_shelf.h"
#include "dataplane/service/congestion/trial_table.h"
#include "dataplane/service/workers/service.h"

namespace paceline::service {

inline constexpr std::uint32_t kGuardLookMs = 100;

class CongestionController {
 public:
  // `service` has been started, and outlives the controller.
  explicit CongestionController(Service& service);

  struct Changed {
    std::size_t nic = 0;
    std::uint64_t generation = 0;
    bool changed = false;
  };
  struct Outcome {
    std::vector<std::string> errors;  // if not empty, nothing has changed
    std::vector<Changed> nics;
  };

  const std::vector<Champions::Nic>& nics() const { return champions_.nics(); }
  const std::list<Trial>& trials() const { return trials_.all(); }
  const Trial* find_trial(const std::string& name) const { return trials_.find(name); }
  std::uint64_t remaining_ms(const Trial& trial) const { return trials_.remaining_ms(trial); }
  const PluginShelf& shelf() const { return shelf_; }
  const GuardWatch& guard() const { return guard_; }
  // The limits by which the guard judges a NIC now.
  GuardLimits limits_of(std::size_t nic) const {
    const Trial* const trial = trials_.running_on(nic);
    return trial != nullptr ? trial->limits : GuardLimits{};
  }

  // Puts a change in force and makes the result the champion.
  Outcome configure(const ControlRequest& request);
  // Returns errors.
  std::vector<std::string> begin_trial(const ControlRequest& request);
  Outcome use_arm(const ControlRequest& request);
  Outcome renew(const ControlRequest& request);
  Outcome end_trial(const ControlRequest& request);
  Outcome clear_guard(const ControlRequest& request);

  // Call every kGuardLookMs. The guard checks the workers' counters. Trials that were not renewed
  // in time end.
  void tick(std::uint64_t now_ms);

 private:
  using Changes = std::vector<Champions::Change>;

  // Loads the plug-in of a change to "plugin:PATH". Returns the change with the plug-in's name.
  config::CongestionChange with_plugin(const config::CongestionChange& change,
                                       std::vector<std::string>& errors) const;
  // What a NIC would run after the change, starting from `in_force`; errors begin with its name.
  CcArm resolve(std::size_t nic, const CcArm& in_force, const config::CongestionChange& change,
                std::vector<std::string>& errors);
  Trial* named(const std::string& name, std::vector<std::string>& errors);
  Trial* running(const std::string& name, std::vector<std::string>& errors);
  // Applies all changes or none. Returns errors.
  std::vector<std::string> apply(const Changes& changes);
  Outcome put_arm(Trial& trial, const Changes& changes, const ControlRequest& request);
  Outcome use_arms(Trial& trial, const ControlRequest& request);
  std::vector<std::string> refusals_of(const Trial& trial);
  void put_champion_back(Trial& trial, TrialState state, std::string why);
  void look(std::size_t nic);
  void tripped(std::size_t nic, const GuardTrip& trip, std::string detail = {},
               std::optional<std::uint8_t> arm = {});
  // Names the plug-ins in quarantine on the NIC, each with its reason.
  std::string quarantines_on(std::size_t nic);

  std::uint64_t start_unix_ns_;
  PluginShelf shelf_;
  Champions champions_;
  TrialTable trials_;
  GuardWatch guard_;
  std::uint64_t now_ms_ = 0;
};

}  // namespace paceline::service
