// A message plan sorted by sending host, once for all hosts: each application reads its own part,
// and the sizes of its queues follow from what it will ever need.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/driver/traffic/message_plan.h"

namespace paceline {

class PlanIndex {
 public:
  // One message may be posted in pieces: a work request carries at most 2^31 bytes.
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 30;

  // Pairs of a message that others wait for and a message of the host that waits; ascending.
  using Dependant = std::pair<std::uint32_t, std::uint32_t>;

  // The plan's hosts must be below `hosts`. Counts arrivals by PlannedMessage::notify, and leaves
  // out of all counts of the network what goes over NVLink.
  PlanIndex(const MessagePlan& plan, std::uint32_t hosts);

  // Messages that a host sends and that wait for nothing but their time, by (start, id).
  std::span<const std::uint32_t> own(std::uint32_t host) const {
    return {own_.data() + own_begin_[host], own_begin_[host + 1] - own_begin_[host]};
  }
  // The messages that wait for others.
  std::span<const Dependant> dependants(std::uint32_t host) const {
    return {dependants_.data() + dependants_begin_[host],
            dependants_begin_[host + 1] - dependants_begin_[host]};
  }
  // Messages that the host sends, and times of computing.
  std::uint64_t planned(std::uint32_t host) const { return planned_[host]; }
  // Work requests that the host will post in all.
  std::uint64_t posts(std::uint32_t host) const { return posts_[host]; }
  // Other hosts that it sends to or hears from, by traffic class.
  using Peers = std::array<std::uint32_t, kTrafficClasses>;
  const Peers& peers(std::uint32_t host) const { return peers_[host]; }
  // Messages announced to the host when they have arrived.
  std::uint64_t announced(std::uint32_t host) const { return announced_[host]; }

 private:
  void count_peers(const MessagePlan& plan);

  std::vector<std::uint32_t> own_;
  std::vector<std::size_t> own_begin_;
  std::vector<Dependant> dependants_;
  std::vector<std::size_t> dependants_begin_;
  std::vector<std::uint64_t> planned_;
  std::vector<std::uint64_t> posts_;
  std::vector<Peers> peers_;
  std::vector<std::uint64_t> announced_;
};

}  // namespace paceline
