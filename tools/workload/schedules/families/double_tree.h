// The two binary trees of NCCL's tree all-reduce over the same members, none of which is a leaf in
// both.
#pragma once

#include <cstdint>

namespace paceline::workload {

inline constexpr std::uint32_t kNoParent = 0xFFFF'FFFF;  // of a root

// Parent of a member in tree 0 or 1 of n.
std::uint32_t double_tree_parent(std::uint32_t n, std::uint32_t tree, std::uint32_t member);

}  // namespace paceline::workload
