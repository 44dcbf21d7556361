#include "dataplane/fabric/switching/credits.h"

namespace paceline::fabric {

CreditBook::CreditBook(const FabricSpec& spec)
    : largest_(credit_blocks(largest_packet(spec))),
      update_(static_cast<std::uint32_t>(credit_update_of(spec) / kCreditBlock)) {
  lane_of_.fill(kNoLane);
  for (std::size_t c = 0; c < kTrafficClasses; ++c) {
    if ((spec.pfc.lossless_classes >> c & 1U) == 0) continue;
    lane_of_[c] = static_cast<std::uint8_t>(per_link_++);
  }
  lanes_.resize(2 * spec.links.size() * per_link_);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    CreditLane& lane = lanes_[i];
    const LinkSpec& link = spec.links[i / per_link_ / 2];
    lane.buffer = static_cast<std::uint32_t>(credit_buffer_of(spec, link) / kCreditBlock);
    lane.told = lane.buffer;
    lane.limit = lane.buffer;
  }
}

void CreditBook::restart_near(std::uint32_t link, std::uint8_t traffic_class) {
  CreditLane& lane = mutable_at(link, traffic_class);
  lane.sent = 0;
  lane.limit = 0;
}

std::uint64_t CreditBook::restart_far(std::uint32_t link, std::uint8_t traffic_class) {
  CreditLane& lane = mutable_at(link, traffic_class);
  lane.received = 0;
  lane.told = lane.buffer - lane.held;
  return lane.told;
}

void CreditBook::take_near(const CreditBook& other, std::uint32_t link) {
  for (std::size_t i = std::size_t{link} * per_link_; i < (link + std::size_t{1}) * per_link_;
       ++i) {
    lanes_[i].sent = other.lanes_[i].sent;
    lanes_[i].limit = other.lanes_[i].limit;
  }
}

void CreditBook::take_far(const CreditBook& other, std::uint32_t link) {
  for (std::size_t i = std::size_t{link} * per_link_; i < (link + std::size_t{1}) * per_link_;
       ++i) {
    lanes_[i].received = other.lanes_[i].received;
    lanes_[i].told = other.lanes_[i].told;
    lanes_[i].held = other.lanes_[i].held;
  }
}

}  // namespace paceline::fabric
