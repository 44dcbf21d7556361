// A storm of broken frames on a live port, and a good connection in the middle of it. Two hosts on
// two ports of a cable, in made-up time on one thread: resolving ports, engines, workers, all of it
// as on a device. The frames come in by the peer's port. Whatever ports carry frames will do.
//
// What must hold: the good connection moves every byte, nobody else's state is touched by what is
// not from its peer, and every frame is accounted for by one counter or another.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/port/port.h"
#include "tests/rt/support/frame_mutator.h"

namespace paceline::test {

struct StormConfig {
  std::uint64_t frames = 20'000;
  // Half of the frames go to a queue pair of the victim's that is there to be hurt, and is made
  // anew when it is.
  bool attack = false;
  bool ipv6 = false;
  unsigned burst = 32;  // frames per turn
};

struct StormReport {
  std::uint64_t injected = 0;
  std::uint64_t to_engine = 0;  // of these, RoCEv2 for one of the victim's addresses
  std::uint64_t malformed = 0;
  std::uint64_t no_queue_pair = 0;
  std::uint64_t control = 0;  // HELLO, REQUEST, GRANT that were well formed
  std::uint64_t refused_by_host = 0;
  std::uint64_t answered_by_host = 0;
  std::uint64_t hurt = 0;           // attacked queue pairs that went into error
  std::uint64_t accepted = 0;       // requests of the storm that the attacked queue pair took
  std::uint64_t retransmitted = 0;  // by either good end
  std::uint64_t turns = 0;

  StormReport& operator+=(const StormReport& other);
};

std::string to_text(const StormReport& report);

// One conversation. Adds to `report`; empty, or what is wrong.
std::string storm_round(Port& victim, Port& peer, FrameMutator& mutator, const StormConfig& config,
                        StormReport& report);

}  // namespace paceline::test
