// The generators behind make_schedule, which has checked their arguments.
#pragma once

#include "tools/workload/schedules/schedule.h"

namespace paceline::workload {

// ring_schedules.cc
Schedule ring_all_reduce_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule ring_reduce_scatter_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule ring_all_gather_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule two_level_all_reduce_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule two_level_reduce_scatter_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule two_level_all_gather_schedule(const GroupShape& group, const ScheduleOptions& options);

// rail_ring_schedules.cc
Schedule rail_ring_all_reduce_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule rail_ring_reduce_scatter_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule rail_ring_all_gather_schedule(const GroupShape& group, const ScheduleOptions& options);

// halving_schedules.cc. In `near` ones the largest exchange is with the nearest rank, in `far` ones
// with the farthest.
Schedule halving_near_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule halving_far_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule doubling_near_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule doubling_far_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule halving_doubling_near_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule halving_doubling_far_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule recursive_doubling_schedule(const GroupShape& group, const ScheduleOptions& options);

// tree_schedules.cc
Schedule double_tree_schedule(const GroupShape& group, const ScheduleOptions& options);

// shift_schedules.cc
Schedule bruck_all_gather_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule pat_all_gather_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule pat_reduce_scatter_schedule(const GroupShape& group, const ScheduleOptions& options);

// all_to_all_schedules.cc
Schedule linear_shift_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule pairwise_xor_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule nccl_all_to_all_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule window_all_to_all_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule bruck_all_to_all_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule pxn_all_to_all_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule pxn_batched_all_to_all_schedule(const GroupShape& group, const ScheduleOptions& options);

// rooted_schedules.cc
Schedule chain_broadcast_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule binomial_broadcast_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule scatter_all_gather_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule chain_reduce_schedule(const GroupShape& group, const ScheduleOptions& options);
Schedule binomial_reduce_schedule(const GroupShape& group, const ScheduleOptions& options);

}  // namespace paceline::workload
