// A ring for each rank of a server, all at the same time, as the channels of NCCL. Ring j has a
// share 1 / g of the buffer, of which block r * g + j is the chunk of rank r.
//
// It passes the servers in order, up from local index j in even ones and down to j in odd ones, so
// that it leaves a server and enters the next on the same rail. With an odd number of servers the
// last hop, between two even ones, changes the rail.
#include "tools/workload/schedules/families/families.h"
#include "tools/workload/schedules/schedule_builder.h"

namespace paceline::workload {

namespace {

std::uint32_t rail_ring_rank(const GroupShape& group, std::uint32_t ring, std::uint32_t member) {
  const std::uint32_t g = group.per_server;
  const std::uint32_t server = member / g;
  const std::uint32_t inside = member % g;
  const std::uint32_t local = (ring + (server % 2 == 0 ? inside : g - 1 - inside)) % g;
  return server * g + local;
}

// In step k member i of each ring sends the chunk of member i + ahead - k to member i + 1.
void add_rail_ring_phase(ScheduleBuilder& builder, const GroupShape& group, bool in_turn,
                         std::uint32_t ahead, bool sum) {
  const std::uint32_t n = group.ranks;
  const std::uint32_t of_a_step = n * group.per_server;
  for (std::uint32_t k = 0; k + 1 < n; ++k) {
    for (std::uint32_t ring = 0; ring < group.per_server; ++ring) {
      const auto rank_of = [&](std::uint32_t i) { return rail_ring_rank(group, ring, i % n); };
      for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t number = builder.begin(rank_of(i), rank_of(i + 1), sum);
        if (in_turn && number >= of_a_step) builder.wait_for(number - of_a_step);
        builder.add_block(rank_of(i + ahead + n - k) * group.per_server + ring);
      }
    }
  }
}

Schedule rail_ring_schedule(CollectiveOp op, const GroupShape& group, bool in_turn) {
  const std::uint32_t last = group.ranks - 1;
  ScheduleBuilder builder(op, group.ranks, group.ranks * group.per_server);
  if (op != CollectiveOp::all_gather) add_rail_ring_phase(builder, group, in_turn, last, true);
  if (op != CollectiveOp::reduce_scatter) add_rail_ring_phase(builder, group, in_turn, 0, false);
  return builder.finish();
}

}  // namespace

Schedule rail_ring_all_reduce_schedule(const GroupShape& group, const ScheduleOptions& options) {
  return rail_ring_schedule(CollectiveOp::all_reduce, group, options.in_turn);
}

Schedule rail_ring_reduce_scatter_schedule(const GroupShape& group,
                                           const ScheduleOptions& options) {
  return rail_ring_schedule(CollectiveOp::reduce_scatter, group, options.in_turn);
}

Schedule rail_ring_all_gather_schedule(const GroupShape& group, const ScheduleOptions& options) {
  return rail_ring_schedule(CollectiveOp::all_gather, group, options.in_turn);
}

}  // namespace paceline::workload
