#include "dataplane/fabric/wire/part_boundary.h"

#include <cstring>

namespace paceline::fabric {

void PartBoundary::divide(const Division& division, std::uint32_t part, std::span<Link> links) {
  division_ = &division;
  part_ = part;
  for (Link& link : links) {
    if (!division.crosses(spec_, link.id)) continue;
    const bool leaves = owns(link.id);
    if (!leaves && division.part_to(spec_, link.id) != part) continue;
    link.notable =
        static_cast<std::uint8_t>(link.notable | (leaves ? Link::kLeaves : Link::kEnters));
    if (!leaves) continue;
    link.impaired = static_cast<std::uint8_t>(link.impaired | Link::kCopies);
    leaving_.push_back(link.id);
  }
}

void PartBoundary::send(std::uint32_t link, const Packet& packet) {
  first_sent_ = earlier(first_sent_, packet.time);
  Crossing& crossing = away_[division_->part_to(spec_, link)].emplace_back(packet, link);
  if (uses_tail(packet)) [[unlikely]]
    std::memcpy(crossing.tail.data(), tail_of(packet), kPacketTailBytes);
}

void PartBoundary::recall(std::uint32_t link) {
  std::erase_if(away_[division_->part_to(spec_, link)],
                [link](const Crossing& crossing) { return crossing.link == link; });
}

}  // namespace paceline::fabric
