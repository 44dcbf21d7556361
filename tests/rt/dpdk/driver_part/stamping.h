// Plays the part of a device that stamps what it receives, on one end of a ring: what the other end
// puts into the ring has arrived, and gets its stamp there. One of a device; gone before both are.
#pragma once

#include <cstdint>
#include <functional>

#include "dataplane/port/dpdk/dpdk_stamps.h"

struct rte_eth_rxtx_callback;

namespace paceline::test {

class Stamping {
 public:
  // `clock`: the device's, now. Any thread.
  Stamping(std::uint16_t port_id, std::uint16_t other_end, std::function<std::uint64_t()> clock);
  ~Stamping();
  Stamping(const Stamping&) = delete;
  Stamping& operator=(const Stamping&) = delete;

  const DpdkStampSource& source() const { return source_; }
  // What packets get; the clock if there is none.
  std::function<std::uint64_t()> stamp;
  bool silent = false;  // packets get none

  std::uint64_t ticks() const { return clock_(); }

 private:
  std::function<std::uint64_t()> clock_;
  DpdkStampSource source_;
  std::uint16_t other_end_;
  const rte_eth_rxtx_callback* callback_;
};

}  // namespace paceline::test
