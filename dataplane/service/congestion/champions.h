// The congestion control of every NIC: what is in force, and the champion, which runs outside of
// trials. The champion is kept here, so that the service can put it back by itself. For the control
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cc/plugin/guard.h"
#include "dataplane/service/congestion/cc_change.h"
#include "dataplane/service/workers/service.h"

namespace paceline::service {

class Champions {
 public:
  struct Nic {
    std::string name;
    NicPlace place{};
    cc::PortFacts facts{};
    CcArm champion;
    CcArm current;  // the values in force
    NicInForce in_force{};
  };
  struct Change {
    std::size_t nic = 0;
    const CcArm* arm = nullptr;
    std::uint8_t number = 0;  // of the arm
    std::uint8_t epoch = 0;
    const transport::ArmsByPeer* by_peer = nullptr;  // two arms at a time; `arm`: its own
    std::uint8_t clusters = 0;                       // of them
  };

  // The service has been started. It outlives this.
  explicit Champions(Service& service);

  const std::vector<Nic>& nics() const { return nics_; }
  const Nic& nic(std::size_t n) const { return nics_[n]; }
  // All NICs if none are named. Unknown names are errors.
  std::vector<std::size_t> pick(const std::optional<std::vector<std::string>>& names,
                                std::vector<std::string>& errors) const;

  // Applies all changes or none; returns what is wrong. A change is checked for all of its NICs
  // before the first one changes, and reaches each worker in one letter.
  std::vector<std::string> apply(const std::vector<Change>& changes);
  // It is in force already.
  void set_champion(std::size_t nic, const CcArm& arm) { nics_[nic].champion = arm; }
  // The same values, under the name of another profile.
  void name_current(std::size_t nic, const CcArm& arm) { nics_[nic].current = arm; }

  // Why the NIC's engine does not take two arms at a time; empty: it does take them.
  std::string refusal(std::size_t nic, const transport::ArmsByPeer& arms);
  // Why its engine no longer calls an algorithm's plug-in.
  cc::plugin::Offence quarantined(std::size_t nic, cc::AlgorithmId algorithm);
  // The number of the guard's latched trip, which the worker publishes from now on.
  void note_guard(std::size_t nic, std::uint32_t number);
  std::vector<wire::IpAddress> addresses(std::size_t nic) const;

 private:
  ServiceWorker& worker_of(std::size_t nic) { return service_.worker(nics_[nic].place.worker); }
  NicInForce in_force_after(const Change& change) const;
  // On one worker: checks for refusals, or puts the change in force.
  void check(ServiceWorker& worker, const Change& change, std::vector<std::string>& errors) const;
  void put(ServiceWorker& worker, Picos now, const Change& change) const;

  Service& service_;
  std::vector<Nic> nics_;
};

}  // namespace paceline::service
