// Credit-based flow control of links, as InfiniBand has it (InfiniBand Architecture Specification,
// volume 1, section 7.9). Per link and class the sender counts what it has sent (FCTBS), and the
// receiver what has arrived (ABR), in blocks of 64 bytes. The receiver sends a limit (FCCL): what
// has arrived plus what is still free. A class whose far end has no room waits; nothing is lost.
// Classes stand for virtual lanes.
//
// Differences: The counters do not wrap at 4096 blocks, so a buffer may be larger than 128 kB. A
// sender waits until there is room for the largest packet, not for the next one, so that a class
// waits independently of its packets. Updates follow freed bytes (CreditSpec::update_bytes) instead
// of a timer, which protects against lost updates; no update is lost here.
//
// Both ends of a link are in one place. In a fabric of several parts each part has its own
// CreditBook, in which only the ends in that part change.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/fabric/topology/fabric_spec.h"

namespace paceline::fabric {

// Counters of a directed link and class; in blocks, since the link came up.
struct CreditLane {
  std::uint64_t sent = 0;      // near end: FCTBS
  std::uint64_t limit = 0;     // near end: FCCL as last heard; sent <= limit
  std::uint64_t received = 0;  // far end: ABR
  std::uint64_t told = 0;      // far end: FCCL as last sent
  std::uint32_t held = 0;      // far end: arrived and not left
  std::uint32_t buffer = 0;    // far end; held <= buffer
};

class CreditBook {
 public:
  // spec.credit.enabled; check(spec) has found it good.
  explicit CreditBook(const FabricSpec& spec);

  bool covers(std::uint8_t traffic_class) const { return lane_of_[traffic_class] != kNoLane; }
  const CreditLane& at(std::uint32_t link, std::uint8_t traffic_class) const {
    return lanes_[std::size_t{link} * per_link_ + lane_of_[traffic_class]];
  }

  // All of the following for classes that are covered. Near end: a packet begins to leave. False:
  // from now on the class waits.
  bool spend(std::uint32_t link, std::uint8_t traffic_class, std::uint32_t bytes) {
    CreditLane& lane = mutable_at(link, traffic_class);
    lane.sent += credit_blocks(bytes);
    return has_room(lane);
  }
  // Near end: an update arrived. True: the class may send.
  bool hear(std::uint32_t link, std::uint8_t traffic_class, std::uint64_t limit) {
    CreditLane& lane = mutable_at(link, traffic_class);
    if (limit > lane.limit) lane.limit = limit;  // on links that reorder an older one may be late
    return has_room(lane);
  }
  // Far end: a packet has arrived.
  void take_in(std::uint32_t link, std::uint8_t traffic_class, std::uint32_t bytes) {
    CreditLane& lane = mutable_at(link, traffic_class);
    lane.received += credit_blocks(bytes);
    lane.held += credit_blocks(bytes);
  }
  // Far end: one has left its buffer. The limit to tell the near end, if an update is due.
  std::optional<std::uint64_t> release(std::uint32_t link, std::uint8_t traffic_class,
                                       std::uint32_t bytes) {
    CreditLane& lane = mutable_at(link, traffic_class);
    lane.held -= credit_blocks(bytes);
    if (owed(lane) < update_) return std::nullopt;
    lane.told += owed(lane);
    return lane.told;
  }

  // The link has come up, empty. The near end may send nothing until it has heard something; the
  // far end says so at once. What the far end held before, it still holds.
  void restart_near(std::uint32_t link, std::uint8_t traffic_class);
  std::uint64_t restart_far(std::uint32_t link, std::uint8_t traffic_class);

  // Far end: free bytes that the near end was not told of.
  static std::uint64_t owed(const CreditLane& lane) {
    return lane.received + lane.buffer - lane.held - lane.told;
  }
  std::uint32_t update_blocks() const { return update_; }

  // Takes over the ends of a link that `other` moves.
  void take_near(const CreditBook& other, std::uint32_t link);
  void take_far(const CreditBook& other, std::uint32_t link);

 private:
  static constexpr std::uint8_t kNoLane = 0xFF;

  bool has_room(const CreditLane& lane) const { return lane.limit >= lane.sent + largest_; }
  CreditLane& mutable_at(std::uint32_t link, std::uint8_t traffic_class) {
    return lanes_[std::size_t{link} * per_link_ + lane_of_[traffic_class]];
  }

  std::array<std::uint8_t, kTrafficClasses> lane_of_{};  // rank among the classes covered
  std::uint32_t per_link_ = 0;
  std::uint32_t largest_ = 0;  // blocks of the largest packet
  std::uint32_t update_ = 0;
  std::vector<CreditLane> lanes_;
};

}  // namespace paceline::fabric
