// Pause frames of an Ethernet device of DPDK: query, setting, counters (pause.h). For a configured
// device; one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/port/pause.h"

namespace paceline {

PauseState probe_pause(std::uint16_t port_id);
// "": done. Else why not, in the driver's words.
std::string set_pause(std::uint16_t port_id, PauseMode mode);

// Pause frames since the device started to count; the latter two, those for one priority.
struct PauseFrames {
  bool counted = false;  // false: the device has no such counter, and the rest says nothing
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t priority_sent = 0;
  std::uint64_t priority_received = 0;
};

class PauseReader {
 public:
  // Finds the counters.
  explicit PauseReader(std::uint16_t port_id);
  PauseFrames read() const;

 private:
  std::uint16_t port_id_;
  std::vector<PauseCounterPlace> places_;
  std::vector<std::uint64_t> ids_;  // the same, as DPDK wants them
};

}  // namespace paceline
