// The faults of an open device (paceline exec --fault): those of its queue pairs, and those of the
// whole port. Reports each on standard error.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/attach/injection/fault_plan.h"
#include "dataplane/verbs/injection/alarm.h"
#include "dataplane/verbs/injection/pair_faults.h"

namespace paceline::verbs {

class FaultInjector {
 public:
  // `notices`: the reading end of the pipe of asynchronous events.
  FaultInjector(std::vector<attach::FaultRule> rules, std::uint64_t seed, std::string socket,
                std::string nic, int notices)
      : rules_(std::move(rules)),
        seed_(seed),
        socket_(std::move(socket)),
        nic_(std::move(nic)),
        notices_(notices) {}

  std::shared_ptr<PairFaults> for_pair(bool reliable);
  // Reports the faults of requests of a queue pair, and carries out those of the port. Requires
  // that no queue's lock is held.
  void carry_out(const std::vector<Injected>& faults, std::uint32_t qp_number);
  Alarm& alarm() { return alarm_; }

 private:
  std::string take_port_down(std::uint64_t micros) const;
  std::string raise_gid_change() const;

  const std::vector<attach::FaultRule> rules_;
  const std::uint64_t seed_;
  const std::string socket_;
  const std::string nic_;
  const int notices_;
  const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  std::atomic<std::uint32_t> pairs_{0};
  Alarm alarm_;
};

// The faults that the environment asks for; nullptr: none. `error`: what is wrong with it.
std::unique_ptr<FaultInjector> fault_injector_of_environment(std::string socket, std::string nic,
                                                             int notices, std::string& error);

}  // namespace paceline::verbs
