// Random impairments of links: loss, damage, duplication and delay of packets. Each directed link
// draws from its own generator, in the order of departure, so that the traffic of one link does not
// change the draws of another.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/base/units.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/wire/link.h"

namespace paceline::fabric {

class Impairments {
 public:
  explicit Impairments(const FabricSpec& spec);

  struct Drawn {
    bool lost = false;
    bool corrupt = false;
    bool duplicate = false;
    Picos late{0};  // by how much it is delayed beyond its propagation
    std::uint8_t traffic_class = kTrafficClasses;  // of data; kTrafficClasses: its own
  };
  // For the next packet that leaves by this link. A probability of 0 draws nothing.
  Drawn draw(std::uint32_t link);

  // The action is loss, corrupt, duplicate, reorder or reclass; it holds from the next draw on.
  void change(std::uint32_t link, const LinkEvent& event);
  // A packet of data leaves by this link in another class than its own.
  void count_reclassed(std::uint32_t link) { ++links_[link].reclassed; }
  std::uint64_t reclassed(std::uint32_t link) const { return links_[link].reclassed; }
  // Sets what Link::impaired says about draws. A link that has reordered stays one that may: late
  // packets can be in flight.
  void mark(Link& link) const;

  // Replaces the state of a link by what `other` has for it.
  void take_over(const Impairments& other, std::uint32_t link) {
    links_[link] = other.links_[link];
  }

 private:
  struct PerLink {
    double loss = 0;
    double error_rate = 0;
    double duplicate = 0;
    double reorder = 0;
    std::uint8_t traffic_class = kTrafficClasses;
    std::uint64_t reclassed = 0;
    Random random{0};
  };

  std::vector<PerLink> links_;
  std::uint64_t reorder_delay_;
};

}  // namespace paceline::fabric
