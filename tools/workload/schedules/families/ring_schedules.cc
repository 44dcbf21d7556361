// Ring schedules of one and of two levels. With two levels, g ranks per server, chunk (local l,
// server q) is block q * g + l, so that the rank of the same number owns the chunk.
#include "tools/workload/schedules/families/families.h"
#include "tools/workload/schedules/families/ring_steps.h"

namespace paceline::workload {

namespace {

// In step k member i sends chunk i + ahead - k to member i + 1.
void add_ring_phase(ScheduleBuilder& builder, const RingShape& ring, std::uint32_t ahead,
                    bool sum) {
  const std::uint32_t m = ring.members;
  const auto rank_of = [&](std::uint32_t member) {
    return (ring.first + member % m * ring.stride) % builder.ranks();
  };
  for (std::uint32_t k = 0; k + 1 < m; ++k) {
    for (std::uint32_t i = 0; i < m; ++i) {
      const std::uint32_t chunk = (i + ahead + m - k) % m;
      builder.begin(rank_of(i), rank_of(i + 1), sum);
      for (std::uint32_t j = 0; j < ring.chunk_blocks; ++j)
        builder.add_block(ring.first_block + chunk * ring.chunk_stride + j * ring.block_stride);
    }
  }
}

std::uint32_t servers_of(const GroupShape& group) { return group.ranks / group.per_server; }

// The ring of a server's GPUs: chunk l has the blocks of local index l of all servers.
RingShape ring_inside(const GroupShape& group, std::uint32_t server) {
  return {.members = group.per_server,
          .first = server * group.per_server,
          .chunk_blocks = servers_of(group),
          .block_stride = group.per_server};
}

// The ring of the servers along a rail.
RingShape ring_across(const GroupShape& group, std::uint32_t local) {
  return {.members = servers_of(group),
          .first = local,
          .stride = group.per_server,
          .first_block = local,
          .chunk_stride = group.per_server};
}

void add_two_level_reduce_scatter(ScheduleBuilder& builder, const GroupShape& group) {
  for (std::uint32_t s = 0; s < servers_of(group); ++s)
    add_ring_reduce_scatter(builder, ring_inside(group, s));
  for (std::uint32_t l = 0; l < group.per_server; ++l)
    add_ring_reduce_scatter(builder, ring_across(group, l));
}

void add_two_level_all_gather(ScheduleBuilder& builder, const GroupShape& group) {
  for (std::uint32_t l = 0; l < group.per_server; ++l)
    add_ring_all_gather(builder, ring_across(group, l));
  for (std::uint32_t s = 0; s < servers_of(group); ++s)
    add_ring_all_gather(builder, ring_inside(group, s));
}

}  // namespace

void add_ring_reduce_scatter(ScheduleBuilder& builder, const RingShape& ring) {
  add_ring_phase(builder, ring, ring.members - 1, true);
}

void add_ring_all_gather(ScheduleBuilder& builder, const RingShape& ring) {
  add_ring_phase(builder, ring, 0, false);
}

Schedule ring_all_reduce_schedule(const GroupShape& group, const ScheduleOptions&) {
  ScheduleBuilder builder(CollectiveOp::all_reduce, group.ranks, group.ranks);
  add_ring_reduce_scatter(builder, {.members = group.ranks});
  add_ring_all_gather(builder, {.members = group.ranks});
  return builder.finish();
}

Schedule ring_reduce_scatter_schedule(const GroupShape& group, const ScheduleOptions&) {
  ScheduleBuilder builder(CollectiveOp::reduce_scatter, group.ranks, group.ranks);
  add_ring_reduce_scatter(builder, {.members = group.ranks});
  return builder.finish();
}

Schedule ring_all_gather_schedule(const GroupShape& group, const ScheduleOptions&) {
  ScheduleBuilder builder(CollectiveOp::all_gather, group.ranks, group.ranks);
  add_ring_all_gather(builder, {.members = group.ranks});
  return builder.finish();
}

Schedule two_level_all_reduce_schedule(const GroupShape& group, const ScheduleOptions&) {
  ScheduleBuilder builder(CollectiveOp::all_reduce, group.ranks, group.ranks);
  add_two_level_reduce_scatter(builder, group);
  add_two_level_all_gather(builder, group);
  return builder.finish();
}

Schedule two_level_reduce_scatter_schedule(const GroupShape& group, const ScheduleOptions&) {
  ScheduleBuilder builder(CollectiveOp::reduce_scatter, group.ranks, group.ranks);
  add_two_level_reduce_scatter(builder, group);
  return builder.finish();
}

Schedule two_level_all_gather_schedule(const GroupShape& group, const ScheduleOptions&) {
  ScheduleBuilder builder(CollectiveOp::all_gather, group.ranks, group.ranks);
  add_two_level_all_gather(builder, group);
  return builder.finish();
}

}  // namespace paceline::workload
