// Recursive halving and doubling, after Rabenseifner.
#include <bit>

#include "tools/workload/schedules/families/families.h"
#include "tools/workload/schedules/schedule_builder.h"

namespace paceline::workload {

namespace {

// The largest power of two of a group's ranks does the exchanges. Among the first 2 * folded ranks
// the odd ones take part, each for itself and for the even one before it.
struct FoldedGroup {
  explicit FoldedGroup(std::uint32_t ranks)
      : members(std::bit_floor(ranks)),
        steps(static_cast<std::uint32_t>(std::countr_zero(members))),
        folded(ranks - members) {}

  std::uint32_t rank_of(std::uint32_t member) const {
    return member < folded ? 2 * member + 1 : member + folded;
  }

  std::uint32_t members;
  std::uint32_t steps;
  std::uint32_t folded;
};

// The bit in which the numbers of a member and its partner differ in step k of halving.
std::uint32_t distance_of_step(const FoldedGroup& group, bool far, std::uint32_t k) {
  return far ? group.members >> (k + 1) : 1U << k;
}
// The bits of steps 0 to k.
std::uint32_t bits_up_to_step(const FoldedGroup& group, bool far, std::uint32_t k) {
  const std::uint32_t bits = (2U << k) - 1;
  return far ? bits << (group.steps - 1 - k) : bits;
}

// Adds the blocks whose number agrees with a member's on these bits.
void add_agreeing_blocks(ScheduleBuilder& builder, const FoldedGroup& group, std::uint32_t member,
                         std::uint32_t bits) {
  for (std::uint32_t block = 0; block < group.members; ++block) {
    if (((block ^ member) & bits) == 0) builder.add_block(block);
  }
}

void add_halving(ScheduleBuilder& builder, const FoldedGroup& group, bool far) {
  for (std::uint32_t k = 0; k < group.steps; ++k) {
    for (std::uint32_t m = 0; m < group.members; ++m) {
      const std::uint32_t partner = m ^ distance_of_step(group, far, k);
      builder.begin(group.rank_of(m), group.rank_of(partner), true);
      add_agreeing_blocks(builder, group, partner, bits_up_to_step(group, far, k));
    }
  }
}

// The partners of halving, backwards.
void add_doubling(ScheduleBuilder& builder, const FoldedGroup& group, bool far) {
  for (std::uint32_t k = group.steps; k-- > 0;) {
    for (std::uint32_t m = 0; m < group.members; ++m) {
      const std::uint32_t partner = m ^ distance_of_step(group, far, k);
      builder.begin(group.rank_of(m), group.rank_of(partner));
      add_agreeing_blocks(builder, group, m, bits_up_to_step(group, far, k));
    }
  }
}

// The folded ranks send their contributions to those that take part.
void add_fold(ScheduleBuilder& builder, const FoldedGroup& group) {
  for (std::uint32_t even = 0; even < 2 * group.folded; even += 2) {
    builder.begin(even, even + 1, true);
    for (std::uint32_t b = 0; b < builder.schedule().blocks; ++b) builder.add_block(b);
  }
}

Schedule halving_schedule(std::uint32_t ranks, bool far) {
  ScheduleBuilder builder(CollectiveOp::reduce_scatter, ranks, ranks);
  add_halving(builder, FoldedGroup(ranks), far);
  return builder.finish();
}

Schedule doubling_schedule(std::uint32_t ranks, bool far) {
  ScheduleBuilder builder(CollectiveOp::all_gather, ranks, ranks);
  add_doubling(builder, FoldedGroup(ranks), far);
  return builder.finish();
}

Schedule halving_doubling_schedule(std::uint32_t ranks, bool far) {
  const FoldedGroup group(ranks);
  ScheduleBuilder builder(CollectiveOp::all_reduce, ranks, group.members);
  add_fold(builder, group);
  add_halving(builder, group, far);
  add_doubling(builder, group, far);
  for (std::uint32_t even = 0; even < 2 * group.folded; even += 2) {
    builder.begin(even + 1, even);
    for (std::uint32_t b = 0; b < group.members; ++b) builder.add_block(b);
  }
  return builder.finish();
}

// The sum that a member has before step k: in `result`, then in a place of scratch per step.
void add_partial_sum(ScheduleBuilder& builder, std::uint32_t k) {
  if (k == 0) {
    builder.add({.target = 0, .target_buffer = ScheduleBuffer::scratch});
  } else {
    builder.add({.source = k - 1,
                 .target = k,
                 .source_buffer = ScheduleBuffer::scratch,
                 .target_buffer = ScheduleBuffer::scratch});
  }
}

}  // namespace

Schedule halving_near_schedule(const GroupShape& group, const ScheduleOptions&) {
  return halving_schedule(group.ranks, false);
}

Schedule halving_far_schedule(const GroupShape& group, const ScheduleOptions&) {
  return halving_schedule(group.ranks, true);
}

Schedule doubling_near_schedule(const GroupShape& group, const ScheduleOptions&) {
  return doubling_schedule(group.ranks, false);
}

Schedule doubling_far_schedule(const GroupShape& group, const ScheduleOptions&) {
  return doubling_schedule(group.ranks, true);
}

Schedule halving_doubling_near_schedule(const GroupShape& group, const ScheduleOptions&) {
  return halving_doubling_schedule(group.ranks, false);
}

Schedule halving_doubling_far_schedule(const GroupShape& group, const ScheduleOptions&) {
  return halving_doubling_schedule(group.ranks, true);
}

// A partner that is ahead must not add to what is still to be sent to it: data that arrives in step
// k goes to place k of scratch, and the own sum is added to it there.
Schedule recursive_doubling_schedule(const GroupShape& group, const ScheduleOptions&) {
  const FoldedGroup folded(group.ranks);
  ScheduleBuilder builder(CollectiveOp::all_reduce, group.ranks, 1, folded.steps);
  add_fold(builder, folded);
  const auto first_send = static_cast<std::uint32_t>(builder.schedule().transfers.size());
  for (std::uint32_t k = 0; k < folded.steps; ++k) {
    for (std::uint32_t m = 0; m < folded.members; ++m) {
      builder.begin(folded.rank_of(m), folded.rank_of(m ^ (1U << k)));
      add_partial_sum(builder, k);
    }
    for (std::uint32_t m = 0; m < folded.members; ++m) {
      builder.begin(folded.rank_of(m), folded.rank_of(m), true);
      add_partial_sum(builder, k);
    }
  }
  const Piece sum{.source = folded.steps - 1, .source_buffer = ScheduleBuffer::scratch};
  for (std::uint32_t m = 0; m < folded.members; ++m) {
    builder.begin(folded.rank_of(m), folded.rank_of(m));
    builder.add(sum);
    builder.wait_for(first_send + m);  // which reads what this writes over
  }
  for (std::uint32_t even = 0; even < 2 * folded.folded; even += 2) {
    builder.begin(even + 1, even);
    builder.add(sum);
  }
  return builder.finish();
}

}  // namespace paceline::workload
