// The worlds whose speed is measured: by tests/bench in time, by tests/perf in instructions.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "dataplane/config/scenario.h"
#include "dataplane/driver/virtual/virtual_world.h"
#include "tools/workload/workload.h"

namespace paceline::perf {

struct WorldCase {
  // "incast": 63 senders to one; "moe": all-to-all of 32 hosts; "permutation-1024" and
  // "permutation-8192": every host to another one, on a fat tree
  std::string workload = "incast";
  std::string algorithm = "dcqcn";  // dcqcn with profile "paper", the others with their defaults
  std::uint64_t message_bytes = 20'000'000;  // per sender; all-to-all: mean of a pair
  std::uint32_t payload_bytes = 4096;
};

inline config::Scenario scenario_of(const WorldCase& which) {
  config::Scenario s;
  s.name = which.workload;
  s.transport.payload_bytes = which.payload_bytes;
  s.cc.algorithm = which.algorithm;
  if (which.algorithm == "dcqcn") s.cc.profile = "paper";
  s.cc.fallback_profile = "paper";
  s.workload.message_bytes = which.message_bytes;
  if (which.workload == "incast") {
    s.fabric.hosts = 64;
    s.workload.kind = "incast";
    s.workload.fan_in = 63;
    s.workload.start_jitter = picos_from_micros(1);
  } else if (which.workload == "moe") {
    s.fabric.hosts = 32;
    s.workload.kind = "all_to_all";
    s.workload.skew = 1;
    s.workload.start_jitter = picos_from_micros(20);
  } else if (which.workload == "permutation-1024" || which.workload == "permutation-8192") {
    s.fabric.topology = "fat_tree";
    s.fabric.k = which.workload == "permutation-1024" ? 16 : 32;
    s.fabric.hosts = s.fabric.k * s.fabric.k * s.fabric.k / 4;
    s.workload.kind = "permutation";
    s.workload.start_jitter = picos_from_micros(10);
  } else {
    throw std::invalid_argument("unknown workload '" + which.workload + "': incast, moe");
  }
  return s;
}

inline MessagePlan plan_of(const config::Scenario& scenario) {
  auto plan = workload::make_plan(scenario, {}, scenario.seed);
  if (!plan.ok()) throw std::invalid_argument(plan.errors.front());
  return std::move(plan.value);
}

// Runs it to its end; a speed of something that did not end well is no speed.
inline void run_to_completion(VirtualWorld& world) {
  const RunEnd end = world.run();
  if (end != RunEnd::completed || world.messages_failed() != 0) {
    throw std::runtime_error(std::string("the run ended as '") + to_string(end) +
                             "': " + world.problem());
  }
}

}  // namespace paceline::perf
