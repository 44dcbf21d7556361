// Which ranks form groups in training, and how much of what they send leaves their servers.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline::workload {

// A group has the ranks that differ only in these digits of the rank, the lowest first.
struct RankDigit {
  std::uint64_t stride = 1;
  std::uint32_t degree = 1;
};
using RankDigits = std::vector<RankDigit>;

// All groups of some ranks.
struct GroupTable {
  std::vector<std::vector<std::uint32_t>> groups;  // by their first ranks, each in the ring's order
  std::vector<std::uint32_t> group_of;             // by rank
};
GroupTable groups_of_ranks(std::uint32_t ranks, const RankDigits& digits);
// Moves its groups behind `groups`. Returns, by rank, which of these it is in.
std::vector<std::uint32_t> append_groups(GroupTable table,
                                         std::vector<std::vector<std::uint32_t>>& groups);

class RankGroups {
 public:
  RankGroups(std::uint64_t ranks, std::uint32_t gpus_per_server)
      : ranks_(ranks), gpus_(gpus_per_server) {}

  // Share of bytes sent between servers if ranks send around the ring of their group.
  double ring_share(const RankDigits& group) const;
  // The same if every rank sends the same amount to each other rank of its group.
  double mesh_share(const RankDigits& group) const;
  // The same if the ranks of a stage send to those of the next stage, and the last ones to the
  // first for all chunks but one.
  double chain_share(const RankDigit& stages, std::uint32_t chunks) const;

 private:
  std::uint64_t server_of(std::uint64_t rank) const { return rank / gpus_; }

  std::uint64_t ranks_;
  std::uint32_t gpus_;
};

}  // namespace paceline::workload
