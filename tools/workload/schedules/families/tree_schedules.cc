#include <vector>

#include "tools/workload/schedules/families/double_tree.h"
#include "tools/workload/schedules/families/families.h"
#include "tools/workload/schedules/schedule_builder.h"

namespace paceline::workload {

namespace {

std::uint32_t first_tree_parent(std::uint32_t n, std::uint32_t member) {
  if (member == 0) return kNoParent;
  const std::uint32_t lowest = member & (0 - member);
  const std::uint32_t below = member ^ lowest;
  const std::uint32_t parent = below | lowest << 1;
  return parent < n ? parent : below;
}

// The parent of each rank in the tree of a rail: the servers' ranks on it are a binary tree, and in
// each server a chain of the others hangs below.
std::vector<std::uint32_t> rail_tree(const GroupShape& group, std::uint32_t rail,
                                     std::uint32_t tree) {
  const std::uint32_t g = group.per_server;
  const std::uint32_t servers = group.ranks / g;
  std::vector<std::uint32_t> parents(group.ranks);
  for (std::uint32_t s = 0; s < servers; ++s) {
    const std::uint32_t above = double_tree_parent(servers, tree, s);
    parents[s * g + rail] = above == kNoParent ? kNoParent : above * g + rail;
    for (std::uint32_t i = 1; i < g; ++i)
      parents[s * g + (rail + i) % g] = s * g + (rail + i - 1) % g;
  }
  return parents;
}

// All ranks, each after its parent.
std::vector<std::uint32_t> ranks_from_root(const std::vector<std::uint32_t>& parents) {
  std::vector<std::vector<std::uint32_t>> children(parents.size());
  std::vector<std::uint32_t> order;
  order.reserve(parents.size());
  for (std::uint32_t r = 0; r < parents.size(); ++r) {
    if (parents[r] == kNoParent) {
      order.push_back(r);
    } else {
      children[parents[r]].push_back(r);
    }
  }
  for (std::size_t i = 0; i < order.size(); ++i)
    order.insert(order.end(), children[order[i]].begin(), children[order[i]].end());
  return order;
}

void add_tree_all_reduce(ScheduleBuilder& builder, const std::vector<std::uint32_t>& parents,
                         std::uint32_t block) {
  const std::vector<std::uint32_t> order = ranks_from_root(parents);
  for (std::size_t i = order.size(); i-- > 1;) {
    builder.begin(order[i], parents[order[i]], true);
    builder.add_block(block);
  }
  for (std::size_t i = 1; i < order.size(); ++i) {
    builder.begin(parents[order[i]], order[i]);
    builder.add_block(block);
  }
}

}  // namespace

std::uint32_t double_tree_parent(std::uint32_t n, std::uint32_t tree, std::uint32_t member) {
  if (tree == 0) return first_tree_parent(n, member);
  if (n % 2 == 0) {  // mirrored
    const std::uint32_t parent = first_tree_parent(n, n - 1 - member);
    return parent == kNoParent ? kNoParent : n - 1 - parent;
  }
  const std::uint32_t parent = first_tree_parent(n, (member + n - 1) % n);  // shifted
  return parent == kNoParent ? kNoParent : (parent + 1) % n;
}

// Every rail has its two trees, as channels of NCCL have their heads on different NICs: block
// 2 * rail + tree is what one of them carries.
Schedule double_tree_schedule(const GroupShape& group, const ScheduleOptions&) {
  ScheduleBuilder builder(CollectiveOp::all_reduce, group.ranks, 2 * group.per_server);
  for (std::uint32_t rail = 0; rail < group.per_server; ++rail) {
    for (std::uint32_t tree = 0; tree < 2; ++tree)
      add_tree_all_reduce(builder, rail_tree(group, rail, tree), 2 * rail + tree);
  }
  return builder.finish();
}

}  // namespace paceline::workload
