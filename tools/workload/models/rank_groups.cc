#include "tools/workload/models/rank_groups.h"

#include <algorithm>
#include <utility>

namespace paceline::workload {

namespace {

std::uint64_t digit_of(std::uint64_t rank, const RankDigit& digit) {
  return rank / digit.stride % digit.degree;
}

std::uint64_t next_in_ring(std::uint64_t rank, const RankDigits& group) {
  for (const RankDigit& digit : group) {
    const std::uint64_t at = digit_of(rank, digit);
    if (at + 1 < digit.degree) return rank + digit.stride;
    rank -= at * digit.stride;
  }
  return rank;
}

std::uint64_t first_of_group(std::uint64_t rank, const RankDigits& group) {
  for (const RankDigit& digit : group) rank -= digit_of(rank, digit) * digit.stride;
  return rank;
}

double part_of(std::uint64_t some, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(some) / static_cast<double>(all);
}

}  // namespace

GroupTable groups_of_ranks(std::uint32_t ranks, const RankDigits& digits) {
  GroupTable table;
  table.group_of.resize(ranks);
  for (std::uint32_t first = 0; first < ranks; ++first) {
    if (first_of_group(first, digits) != first) continue;
    std::vector<std::uint32_t>& group = table.groups.emplace_back();
    std::uint64_t rank = first;
    do {
      table.group_of[rank] = static_cast<std::uint32_t>(table.groups.size() - 1);
      group.push_back(static_cast<std::uint32_t>(rank));
      rank = next_in_ring(rank, digits);
    } while (rank != first);
  }
  return table;
}

std::vector<std::uint32_t> append_groups(GroupTable table,
                                         std::vector<std::vector<std::uint32_t>>& groups) {
  const auto first = static_cast<std::uint32_t>(groups.size());
  for (std::uint32_t& group : table.group_of) group += first;
  for (auto& ranks : table.groups) groups.push_back(std::move(ranks));
  return std::move(table.group_of);
}

double RankGroups::ring_share(const RankDigits& group) const {
  std::uint64_t between = 0;
  for (std::uint64_t rank = 0; rank < ranks_; ++rank) {
    if (server_of(rank) != server_of(next_in_ring(rank, group))) ++between;
  }
  return part_of(between, ranks_);
}

double RankGroups::mesh_share(const RankDigits& group) const {
  std::uint64_t members = 1;
  for (const RankDigit& digit : group) members *= digit.degree;
  std::uint64_t inside = 0;  // pairs
  std::vector<std::uint64_t> firsts;
  for (std::uint64_t begin = 0; begin < ranks_; begin += gpus_) {
    firsts.clear();
    for (std::uint64_t rank = begin; rank < std::min(begin + gpus_, ranks_); ++rank) {
      firsts.push_back(first_of_group(rank, group));
    }
    std::sort(firsts.begin(), firsts.end());
    for (auto at = firsts.begin(); at != firsts.end();) {
      const auto end = std::upper_bound(at, firsts.end(), *at);
      const auto together = static_cast<std::uint64_t>(end - at);
      inside += together * (together - 1);
      at = end;
    }
  }
  const std::uint64_t pairs = ranks_ * (members - 1);
  return part_of(pairs - inside, pairs);
}

double RankGroups::chain_share(const RankDigit& stages, std::uint32_t chunks) const {
  std::uint64_t all = 0;
  std::uint64_t between = 0;
  for (std::uint64_t rank = 0; rank < ranks_; ++rank) {
    const bool last = digit_of(rank, stages) + 1 == stages.degree;
    const std::uint64_t sends = last ? chunks - 1 : chunks;
    all += sends;
    if (server_of(rank) != server_of(next_in_ring(rank, {stages}))) between += sends;
  }
  return part_of(between, all);
}

}  // namespace paceline::workload
