// Messages of the applications of a virtual world: an open-loop schedule and dependencies between
// messages. Produced by tools/workload (generators, importers), consumed by the driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/units.h"

namespace paceline {

inline constexpr std::uint32_t kNoMessage = 0xFFFF'FFFF;

struct PlannedMessage {
  std::uint32_t src = 0;
  std::uint32_t dst = 0;
  std::uint64_t bytes = 0;
  Picos start{0};                    // not before this time
  std::uint32_t after = kNoMessage;  // not before the message with this index was fully received
                                     // by `src` (its dst must be our src)
  Picos gap{0};                      // and then this much later (compute time)
  std::uint32_t lane = 0;            // messages of one (src, dst, lane) share a queue pair, in
                                     // order; kNoMessage: any idle queue pair of the pair
  std::uint8_t traffic_class = kDefaultDataClass;
  bool nvlink = false;            // stays within a server; set by the world
  std::uint16_t job = 0;          // tags carried through to the result
  std::uint16_t collective = 0;   // index into MessagePlan::collectives
  std::uint16_t hint_kind = 0;    // RequestMessage::hint_kind; 0 = no hint
  std::uint16_t hint_degree = 0;  // senders that the destination's port has at the same time
  bool notify = false;            // somebody waits for its arrival; set by the world
  bool relays = false;            // carries on what message `after` brought: both count as one
};

// A set of messages that completes as one: efficiency = ideal / measured completion.
struct Collective {
  std::string name;  // "incast", "all_to_all", "ring_all_reduce"
  Picos ideal{0};    // max over ports of wire bytes / C, plus base latency; set by the world
};

struct MessagePlan {
  std::vector<PlannedMessage> messages;  // index = message id; sorted by (start, src, dst)
  std::vector<Collective> collectives;   // empty for open-loop traffic
};

}  // namespace paceline
