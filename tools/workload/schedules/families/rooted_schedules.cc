// Broadcast and reduce. Member v is the rank v after the root.
#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "tools/workload/schedules/families/families.h"
#include "tools/workload/schedules/families/ring_steps.h"

namespace paceline::workload {

namespace {

// A rank's sends one after the other, each when the one before is complete.
class OrderedSends {
 public:
  OrderedSends(ScheduleBuilder& builder, std::uint32_t root)
      : builder_(builder), root_(root), last_(builder.ranks()) {}

  // Begins a transfer from a member to another.
  void begin(std::uint32_t from, std::uint32_t to) {
    const std::uint32_t n = builder_.ranks();
    const std::uint32_t transfer = builder_.begin((root_ + from) % n, (root_ + to) % n);
    if (last_[from]) builder_.wait_for(*last_[from]);
    last_[from] = transfer;
  }

 private:
  ScheduleBuilder& builder_;
  std::uint32_t root_;
  std::vector<std::optional<std::uint32_t>> last_;
};

// The block of a member goes down a binomial tree, together with those of all below it.
void add_binomial_scatter(ScheduleBuilder& builder, std::uint32_t root) {
  const std::uint32_t n = builder.ranks();
  OrderedSends sends(builder, root);
  for (std::uint32_t half = std::bit_ceil(n) / 2; half > 0; half /= 2) {
    for (std::uint32_t v = 0; v + half < n; v += 2 * half) {
      sends.begin(v, v + half);
      for (std::uint32_t b = v + half; b < std::min(v + 2 * half, n); ++b) builder.add_block(b);
    }
  }
}

}  // namespace

Schedule chain_broadcast_schedule(const GroupShape& group, const ScheduleOptions& options) {
  const std::uint32_t n = group.ranks;
  ScheduleBuilder builder(CollectiveOp::broadcast, n, 1, 0, options.root);
  for (std::uint32_t v = 0; v + 1 < n; ++v) {
    builder.begin((options.root + v) % n, (options.root + v + 1) % n);
    builder.add_block(0);
  }
  return builder.finish();
}

Schedule binomial_broadcast_schedule(const GroupShape& group, const ScheduleOptions& options) {
  const std::uint32_t n = group.ranks;
  ScheduleBuilder builder(CollectiveOp::broadcast, n, 1, 0, options.root);
  OrderedSends sends(builder, options.root);
  for (std::uint32_t have = 1; have < n; have *= 2) {
    for (std::uint32_t v = 0; v < std::min(have, n - have); ++v) {
      sends.begin(v, v + have);
      builder.add_block(0);
    }
  }
  return builder.finish();
}

Schedule scatter_all_gather_schedule(const GroupShape& group, const ScheduleOptions& options) {
  ScheduleBuilder builder(CollectiveOp::broadcast, group.ranks, group.ranks, 0, options.root);
  add_binomial_scatter(builder, options.root);
  add_ring_all_gather(builder, {.members = group.ranks, .first = options.root});
  return builder.finish();
}

Schedule chain_reduce_schedule(const GroupShape& group, const ScheduleOptions& options) {
  const std::uint32_t n = group.ranks;
  ScheduleBuilder builder(CollectiveOp::reduce, n, 1, 0, options.root);
  for (std::uint32_t v = 1; v < n; ++v) {
    builder.begin((options.root + v) % n, (options.root + v + 1) % n, true);
    builder.add_block(0);
  }
  return builder.finish();
}

// The broadcast's steps backwards, with every arrow turned round.
Schedule binomial_reduce_schedule(const GroupShape& group, const ScheduleOptions& options) {
  const std::uint32_t n = group.ranks;
  ScheduleBuilder builder(CollectiveOp::reduce, n, 1, 0, options.root);
  for (std::uint32_t have = std::bit_ceil(n) / 2; have > 0; have /= 2) {
    for (std::uint32_t v = 0; v < std::min(have, n - have); ++v) {
      builder.begin((options.root + v + have) % n, (options.root + v) % n, true);
      builder.add_block(0);
    }
  }
  return builder.finish();
}

}  // namespace paceline::workload
