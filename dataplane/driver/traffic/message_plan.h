// The work of the applications of a virtual world: messages that begin at a time or when others
// have ended, and computing times between them. Produced by tools/workload (generators, importers),
// consumed by the driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/units.h"

namespace paceline {

inline constexpr std::uint32_t kNoMessage = 0xFFFF'FFFF;
// PlannedMessage::hint_kind, as in RequestMessage.
inline constexpr std::uint16_t kHintRing = 1;
inline constexpr std::uint16_t kHintAllToAll = 2;

// A message waits for others that its sender receives until they have arrived, and for others that
// its sender sends until they are complete.
struct PlannedMessage {
  std::uint32_t src = 0;
  std::uint32_t dst = 0;
  std::uint64_t bytes = 0;
  Picos start{0};                    // not before this time
  std::uint32_t after = kNoMessage;  // waits for the message with this index; MessagePlan::joins
                                     // has what it waits for besides
  Picos gap{0};                      // begins this long after the last that it waits for
  std::uint32_t lane = 0;            // messages of one (src, dst, lane) share a queue pair, in
                                     // order; kNoMessage: any idle queue pair of the pair
  std::uint8_t traffic_class = kDefaultDataClass;
  bool nvlink = false;            // stays within a server; set by the world
  std::uint16_t job = 0;          // a tag carried through to the result
  std::uint32_t collective = 0;   // index into MessagePlan::collectives
  std::uint16_t hint_kind = 0;    // RequestMessage::hint_kind; 0 = no hint
  std::uint16_t hint_degree = 0;  // senders that the destination's port has at the same time
  bool notify = false;            // another message waits for its arrival; set by the world
  bool notify_sender = false;     // another message waits for its completion; set by the world
  bool relays = false;            // carries on what message `after` brought: both count as one
  bool computes = false;  // no message: host src == dst is busy for `gap`. With a gap of 0, a join
};

// A message waits for a further one.
struct Join {
  std::uint32_t message = 0;
  std::uint32_t after = 0;
  friend auto operator<=>(const Join&, const Join&) = default;
};

// A set of messages that completes as one: efficiency = ideal / measured completion.
struct Collective {
  std::string name;  // "incast", "all_to_all", "ring_all_reduce"
  Picos ideal{0};    // max over ports of wire bytes / C, plus base latency; set by the world
};

// Computations that a host begins from `from` on and before `until` take `factor` times as long.
struct SlowComputing {
  std::uint32_t host = 0;
  Picos from{0};
  Picos until{0};
  double factor = 1;
};

struct MessagePlan {
  std::vector<PlannedMessage> messages;  // index = message id
  std::vector<Join> joins;
  std::vector<Collective> collectives;  // empty for open-loop traffic
  std::vector<SlowComputing> slow_computing;
  // All queue pairs are connected before the run, as communicators are; else each at its first
  // message.
  bool connected = false;
  bool limits = false;  // what held back senders is recorded by collective (SenderLimits)
};

// Sets `notify` and `notify_sender` from the dependencies. Throws std::invalid_argument if a
// message waits for one that its sender neither sends nor receives, or that does not exist.
void mark_awaited(MessagePlan& plan);

// How long a host is busy with a computation that begins at `now`.
Picos computing_time(const MessagePlan& plan, const PlannedMessage& computing, Picos now);

}  // namespace paceline
