// Which cache lines a poll will touch. In virtual time, hosts take turns packet by packet: with
// thousands of hosts, a host's state is out of the cache when its poll begins. Nothing here changes
// anything.
//
// Loads in stages, some events before the poll; each stage reads what the one before has loaded.
// `packet` is what the poll will receive; nullptr: it will send.
#pragma once

#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

class Requester;
class Scheduler;

class EngineLookahead {
 public:
  EngineLookahead(const EngineCore& core, const Scheduler& scheduler, const Requester& requester)
      : core_(core), scheduler_(scheduler), requester_(requester) {}

  void load_state() const;
  void load_deadlines() const;
  void load_flow(const Packet* packet) const;
  void load_flow_parts(const Packet* packet) const;
  void load_request(const Packet* packet) const;

 private:
  const QueuePair* queue_pair_of(const Packet* packet) const;

  const EngineCore& core_;
  const Scheduler& scheduler_;
  const Requester& requester_;
};

}  // namespace paceline::transport
