// Receive timestamps of a DPDK device: where they are in its mbufs, their clock, and the arrival
// times that one queue's packets get from them (device_clock.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dataplane/port/device_clock.h"
#include "dataplane/port/poll_clock.h"

struct rte_mbuf;

namespace paceline {

struct DpdkStampSource {
  int field = -1;          // where in an mbuf the stamp is
  std::uint64_t flag = 0;  // of an mbuf that has one
  // Reads the clock that stamps are of; 0: well. Any thread.
  int (*read)(std::uint16_t port_id, std::uint64_t* ticks) = nullptr;
  std::uint16_t port_id = 0;
};

// For a started device that was configured to stamp received packets. Nothing: `refusal` says why
// its stamps are unusable.
std::optional<DpdkStampSource> find_stamps(std::uint16_t port_id, std::string& refusal);

class DpdkStamps {
 public:
  explicit DpdkStamps(const DpdkStampSource& source) : source_(source) {}

  void use_clock(const PollClock& clock);
  // Call it after a burst was taken, before asking about its packets. `emptied`: nothing is left.
  void burst(bool emptied);
  // When the packet came, 0 where that is not known; before anybody touches the mbuf.
  Picos arrival(const rte_mbuf* mbuf);

  const DeviceClock& clock() const { return device_; }
  std::uint64_t unstamped() const { return unstamped_; }  // packets without a stamp

 private:
  DpdkStampSource source_;
  PollClock poll_;
  DeviceClock device_;
  Picos now_{0};      // after the burst
  Picos emptied_{0};  // before it, when a burst last left nothing
  Picos emptied_next_{0};
  std::uint64_t unstamped_ = 0;
};

}  // namespace paceline
