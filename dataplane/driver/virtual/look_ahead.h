// Prefetches memory of the next events. In a world too large for the caches, an event misses for
// its link, the packet there, the queue that the packet joins and the host's engine, each found
// through the one before. So this looks some dozens of events ahead in the event wheel and
// prefetches in stages; each stage reads what the stage before has fetched. It only reads, and
// changes no result.
//
// Events are handled in batches, sorted by kind (a packet reaching a switch, a packet reaching a
// host, a host with a deadline); a stage takes a batch of one kind at a time. One by one, the next
// kind could not be predicted, and mispredicted branches cost more than the fetches.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dataplane/base/containers/event_wheel.h"
#include "dataplane/base/containers/slab.h"
#include "dataplane/base/units.h"
#include "dataplane/driver/virtual/world_host.h"
#include "dataplane/fabric/network.h"

namespace paceline {

class LookAhead {
 public:
  // Actors of the wheel: those of the network, then hosts, from `first_host` on. All must outlive
  // this.
  LookAhead(EventWheel& wheel, const fabric::Network& network, std::uint32_t first_host);
  void set_hosts(const Slab<WorldHost>& hosts) { hosts_ = &hosts; }

  // Before each event, at its time.
  void step(Picos now) {
    if (--until_batch_ == 0) next_batch(now);
  }

 private:
  enum Kind : std::uint8_t { kSwitch, kArrival, kHost, kOther, kKinds };
  static constexpr std::uint32_t kBatch = 8;   // events between two batches
  static constexpr std::uint32_t kStages = 5;  // after the one that seeks events out
  static constexpr std::uint32_t kAhead = kBatch * (kStages + 1);
  static constexpr std::uint32_t kDeepFrom = 32'768;  // event sources
  static constexpr std::uint32_t kRing = 128;         // events ahead at most, a power of two

  struct Event {
    std::uint32_t actor = 0;
    fabric::FabricAhead::Found found{};
  };
  // Events of one kind; positions modulo 2^32.
  struct Ring {
    std::array<Event, kRing> events;
    std::uint32_t end = 0;
    std::array<std::uint32_t, kStages + 2> ends{};  // of the latest batches, the newest first
    Event& operator[](std::uint32_t i) { return events[i % kRing]; }
  };

  void next_batch(Picos now);
  // Prefetches memory that every poll of a host begins with, and memory that it points to.
  void prefetch_host(std::uint32_t host) const;
  void prefetch_host_parts(std::uint32_t host) const;
  // Visits the batch of a kind that was sought out `stage` batches ago.
  template <class Visit>
  void over(Kind kind, std::uint32_t stage, Visit&& visit) {
    Ring& ring = rings_[kind];
    const std::uint32_t end = ring.ends[stage];
    for (std::uint32_t i = ring.ends[stage + 1]; i != end; ++i) visit(ring[i]);
  }

  EventWheel& wheel_;
  const fabric::FabricAhead& fabric_;
  const Slab<WorldHost>* hosts_ = nullptr;
  std::uint32_t first_host_;
  // Also what a departure behind the packet touches, and who is before it in a queue: worth its
  // instructions where that lies in memory, not where the third-level cache has it.
  bool deep_;
  std::uint32_t until_batch_ = 1;
  std::uint32_t scouted_ = 0;  // of all kinds, modulo 2^32
  std::uint32_t passed_ = 0;
  std::vector<std::uint8_t> kinds_;     // by actor
  std::array<Picos, kRing> over_at_{};  // by then a scouted event is over in any case
  std::array<Ring, kKinds> rings_{};
};

}  // namespace paceline
