// Priority flow control at one switch (IEEE 802.1Qbb): which upstream ports have been told to pause
// which classes. The buffer says when that is due (shared_buffer.h); the caller sends the frame.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/fabric/switching/shared_buffer.h"

namespace paceline::fabric {

class PauseControl {
 public:
  explicit PauseControl(std::size_t ports) : told_(ports, 0) {}

  // Somebody is paused by this switch.
  bool active() const { return count_ != 0; }
  std::uint32_t count() const { return count_; }  // ports and classes
  bool told(std::uint16_t port, std::uint8_t traffic_class) const {
    return (told_[port] >> traffic_class & 1U) != 0;
  }

  // The buffer's counters are up to date. True: the upstream must be told, and counts as told.
  bool pause(const SharedBuffer& buffer, std::uint16_t port, std::uint8_t traffic_class) {
    if (told(port, traffic_class) || !buffer.must_pause(port, traffic_class)) return false;
    told_[port] = static_cast<std::uint8_t>(told_[port] | 1U << traffic_class);
    ++count_;
    return true;
  }
  // A packet of this port and class has left. True: the upstream must be told to go on, and counts
  // as told.
  bool resume(const SharedBuffer& buffer, std::uint16_t port, std::uint8_t traffic_class) {
    if (!told(port, traffic_class) || !buffer.may_resume(port, traffic_class)) return false;
    told_[port] = static_cast<std::uint8_t>(told_[port] & ~(1U << traffic_class));
    --count_;
    return true;
  }
  // The link at this port has failed: whoever was paused there knows nothing of it any more.
  void forget(std::uint16_t port) {
    count_ -= static_cast<std::uint32_t>(std::popcount(told_[port]));
    told_[port] = 0;
  }

 private:
  std::uint32_t count_ = 0;
  std::vector<std::uint8_t> told_;  // per port a bit for each class
};

}  // namespace paceline::fabric
