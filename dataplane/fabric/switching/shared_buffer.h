// The packet buffer of one switch, shared by all its ports, and the rules that pause or drop.
//
// Lossless classes follow the HPCC simulator (switch-mmu: CheckIngressAdmission and neighbours,
// facts in docs/fidelity.md), per ingress port and class: first a reserve, then the shared part up
// to the dynamic threshold alpha x (capacity - shared use) (Choudhury and Hahne, "Dynamic queue
// length thresholds for shared-memory packet switches", IEEE/ACM ToN 6(2), 1998), then headroom,
// then drop. Pause when headroom is in use or shared use reaches the threshold; resume when
// headroom is empty and shared use plus an offset is below it again. Lossy classes have neither
// reserve nor headroom: a packet is dropped when its egress queue would exceed alpha x (capacity -
// shared use).
//
// Every condition that pauses or drops is monotone: it can only turn from true to false when bytes
// are released. A caller that releases late may thus trust a "no", and must catch up before it
// believes a "yes".
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "dataplane/base/prefetch.h"
#include "dataplane/base/units.h"

namespace paceline::fabric {

class SharedBuffer {
 public:
  struct PortLimits {
    std::uint32_t headroom_bytes = 0;  // per lossless class
    std::uint32_t alpha_q16 = 0;       // alpha x 65536
  };
  struct Counter {
    std::uint32_t bytes = 0;  // reserve and shared part
    std::uint32_t headroom = 0;
  };
  enum class Place : std::uint8_t { buffer, headroom, none };

  // As reserve_bytes: credits bound what lossless classes hold, at most the headroom, which
  // is set aside; they are always admitted and have no threshold.
  static constexpr std::uint32_t kGranted = 0xFFFF'FFFF;

  // total_bytes must exceed the sum of all reserves and headrooms.
  SharedBuffer(std::uint64_t total_bytes, std::vector<PortLimits> ports, std::uint8_t lossless,
               std::uint32_t reserve_bytes, std::uint32_t xon_offset_bytes);

  bool lossless(std::uint8_t traffic_class) const { return (lossless_ >> traffic_class & 1U) != 0; }

  // Where to count a packet of a lossless class.
  Place place_lossless(std::uint16_t port, std::uint8_t traffic_class, std::uint32_t size) const {
    const Counter& counter = at(port, traffic_class);
    const std::uint64_t after = std::uint64_t{counter.bytes} + size;
    if (after <= reserve_) return Place::buffer;
    const std::uint64_t excess = after - reserve_;
    if (excess <= threshold(port) &&
        shared_used_ + std::min<std::uint64_t>(size, excess) <= capacity_) {
      return Place::buffer;
    }
    if (std::uint64_t{counter.headroom} + size <= limits_[port].headroom_bytes) {
      return Place::headroom;
    }
    return Place::none;
  }

  // A packet of a lossy class whose egress queue (of its class) holds queue_bytes.
  bool admits_lossy(std::uint16_t port, std::uint32_t size, std::uint64_t queue_bytes) const {
    return queue_bytes + size <= threshold(port) && shared_used_ + size <= capacity_;
  }

  void charge(std::uint16_t port, std::uint8_t traffic_class, std::uint32_t size, Place place) {
    Counter& counter = mutable_at(port, traffic_class);
    used_ += size;
    if (place == Place::headroom) {
      counter.headroom += size;
      return;
    }
    const std::uint32_t before = shared_part(counter, traffic_class);
    counter.bytes += size;
    shared_used_ += shared_part(counter, traffic_class) - before;
  }

  // Headroom empties first.
  void release(std::uint16_t port, std::uint8_t traffic_class, std::uint32_t size) {
    Counter& counter = mutable_at(port, traffic_class);
    used_ -= size;
    const std::uint32_t from_headroom = std::min(counter.headroom, size);
    const std::uint32_t before = shared_part(counter, traffic_class);
    counter.headroom -= from_headroom;
    counter.bytes -= size - from_headroom;
    shared_used_ -= before - shared_part(counter, traffic_class);
  }

  // Both for lossless classes.
  bool must_pause(std::uint16_t port, std::uint8_t traffic_class) const {
    const Counter& counter = at(port, traffic_class);
    return counter.headroom > 0 || shared_part(counter, traffic_class) >= threshold(port);
  }
  bool may_resume(std::uint16_t port, std::uint8_t traffic_class) const {
    const Counter& counter = at(port, traffic_class);
    if (counter.headroom > 0) return false;
    const std::uint64_t shared = shared_part(counter, traffic_class);
    return shared == 0 || shared + xon_offset_ <= threshold(port);
  }

  std::uint64_t threshold(std::uint16_t port) const {
    // Not negative: no packet is admitted to the shared part past its capacity.
    return (capacity_ - shared_used_) * limits_[port].alpha_q16 >> 16;
  }

  const Counter& at(std::uint16_t port, std::uint8_t traffic_class) const {
    return counters_[port].by_class[traffic_class];
  }
  std::uint32_t shared_part(const Counter& counter, std::uint8_t traffic_class) const {
    const std::uint32_t reserve = lossless(traffic_class) ? reserve_ : 0;
    return counter.bytes > reserve ? counter.bytes - reserve : 0;
  }
  // Looking ahead: starts loading what packets from that port will be checked against, or what
  // releasing one reads. Any number will do.
  void prefetch(std::uint16_t port) const {
    prefetch_line(counters_.data() + port);
    prefetch_line(limits_.data() + port);
  }
  void prefetch_counters(std::uint16_t port) const { prefetch_line(counters_.data() + port); }

  std::uint64_t used() const { return used_; }
  std::uint64_t shared_used() const { return shared_used_; }
  std::uint64_t capacity() const { return capacity_; }
  std::uint16_t ports() const { return static_cast<std::uint16_t>(limits_.size()); }

 private:
  Counter& mutable_at(std::uint16_t port, std::uint8_t traffic_class) {
    return counters_[port].by_class[traffic_class];
  }

  struct alignas(64) PortCounters {  // one cache line
    std::array<Counter, kTrafficClasses> by_class;
  };
  static_assert(sizeof(PortCounters) == 64);

  std::uint64_t capacity_;  // of the shared part
  std::uint64_t shared_used_ = 0;
  std::uint64_t used_ = 0;
  std::uint32_t reserve_;
  std::uint32_t xon_offset_;
  std::uint8_t lossless_;
  std::vector<PortLimits> limits_;
  std::vector<PortCounters> counters_;
};

}  // namespace paceline::fabric
