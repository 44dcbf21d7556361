// Small worlds with plans written by hand.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "dataplane/driver/virtual/virtual_world.h"

namespace paceline {

// A star of 100 Gb/s and 1 us where everybody sends at line rate.
inline config::Scenario quiet_star(std::uint32_t hosts) {
  config::Scenario s;
  s.fabric.hosts = hosts;
  s.fabric.rate = rate_from_gbps(100);
  s.fabric.delay = picos_from_micros(1);
  s.cc.algorithm = "fixed";
  return s;
}

inline MessagePlan plan_of(std::initializer_list<PlannedMessage> messages) {
  MessagePlan plan;
  plan.messages = messages;
  return plan;
}

inline WorldOptions checked() {
  WorldOptions options;
  options.check_invariants = true;
  return options;
}

// Queue pairs of a host, whatever their state. The engine numbers them from 16 in the order of
// creation, and the driver destroys none.
inline std::uint32_t queue_pairs(const VirtualWorld& world, std::uint32_t host) {
  std::uint32_t count = 0;
  while (world.engine(host).view().state_of(16 + count) != transport::QpState::reset) ++count;
  return count;
}

// A message of one full packet of 4096 bytes that another message waits for, alone in the fabric:
// 4198 bytes on a link, for it carries immediate data, at 80 ps each over two links and 2 us of
// propagation. Its ACK arrives 2 us and two times 86 bytes later.
inline constexpr std::int64_t kArrivalPs = 2 * 4198 * 80 + 2'000'000;
inline constexpr std::int64_t kAckPs = 2 * 86 * 80 + 2'000'000;

}  // namespace paceline
