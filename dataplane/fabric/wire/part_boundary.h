// The edge of one part of a fabric (docs/architecture.md, "Parallel virtual time"). A link that
// leaves its part works like any other: its packets stay in its list until the time of arrival, so
// its events and losses are those of an undivided fabric. A copy of each packet goes to the part
// where the link ends, into the list of its link of the same number; that copy arrives.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/fabric/topology/division.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/wire/crossing.h"
#include "dataplane/fabric/wire/link.h"
#include "dataplane/port/packet.h"

namespace paceline::fabric {

class PartBoundary {
 public:
  // Must outlive this. Until divide() the fabric is whole: every link is its own.
  explicit PartBoundary(const FabricSpec& spec) : spec_(spec) {}

  // Marks the links that cross an edge of `part`. `division` must outlive this.
  void divide(const Division& division, std::uint32_t part, std::span<Link> links);
  const Division* division() const { return division_; }
  std::uint32_t part() const { return part_; }
  bool owns(std::uint32_t link) const {
    return division_ == nullptr || division_->part_from(spec_, link) == part_;
  }
  // Links of this part that end in another.
  const std::vector<std::uint32_t>& leaving() const { return leaving_; }

  // Lists that take packets to other parts from now on, one for each part.
  void send_to(std::span<std::vector<Crossing>> lists) { away_ = lists; }
  // Both are for a link that leaves. recall() removes packets that it has sent and no part has
  // taken in.
  void send(std::uint32_t link, const Packet& packet);
  void recall(std::uint32_t link);
  // When the first packet arrives that was sent since the last call; kNever when none was.
  Picos first_sent() { return std::exchange(first_sent_, kNever); }

 private:
  const FabricSpec& spec_;
  const Division* division_ = nullptr;
  std::uint32_t part_ = 0;
  std::vector<std::uint32_t> leaving_;
  std::span<std::vector<Crossing>> away_;
  Picos first_sent_ = kNever;
};

}  // namespace paceline::fabric
