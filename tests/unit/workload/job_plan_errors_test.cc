// Jobs that no plan can run: every reason with its text.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/workload/job_plan_samples.h"
#include "tools/workload/job_plans/job_plan.h"
#include "tools/workload/jobs/msccl_file.h"

namespace paceline::workload::job_plan_errors_test {
namespace {

using namespace job_plan_samples;
using Lines = std::vector<std::string>;
using Op = CollectiveOp;

constexpr std::uint64_t kMost = 1'000;

Lines errors_of(const Job& job, const CollectiveSettings& settings = {}) {
  return plan_job(job, servers_of(job.ranks, 1), settings, kMost).errors;
}

// Adds an op that waits for the one before it of the same rank.
void add_op(Job& job, const JobOp& op) {
  const auto id = static_cast<std::uint32_t>(job.ops.size());
  if (id > 0 && job.ops[id - 1].rank == op.rank) job.waits.emplace_back(id, id - 1);
  job.ops.push_back(op);
}

JobOp call_of(std::uint32_t rank, std::uint32_t group, Op op, std::uint64_t bytes) {
  return {.kind = JobOpKind::collective, .rank = rank, .group = group, .op = op, .bytes = bytes};
}
JobOp send_of(std::uint32_t rank, std::uint32_t to, std::uint64_t bytes, std::uint32_t tag = 0) {
  return {.kind = JobOpKind::send, .rank = rank, .peer = to, .tag = tag, .bytes = bytes};
}
JobOp receive_of(std::uint32_t rank, std::uint32_t from, std::uint64_t bytes,
                 std::uint32_t tag = 0) {
  return {.kind = JobOpKind::receive, .rank = rank, .peer = from, .tag = tag, .bytes = bytes};
}

TEST_CASE("job plans: ranks that disagree about their calls", "[workload][jobs]") {
  Job number = job_of_all(2);
  add_op(number, call_of(0, 0, Op::all_reduce, 8));
  add_op(number, call_of(0, 0, Op::all_reduce, 8));
  add_op(number, call_of(1, 0, Op::all_reduce, 8));
  CHECK(errors_of(number) ==
        Lines{"rank 0 takes part in 2 collectives of a group, rank 1 in 1: expected the same"});

  Job operation = job_of_all(2);
  add_op(operation, call_of(0, 0, Op::all_reduce, 8));
  add_op(operation, call_of(1, 0, Op::all_gather, 8));
  CHECK(errors_of(operation) == Lines{"rank 0 (all_reduce of 8 B) and rank 1 (all_gather of 8 B) "
                                      "are one call: expected the same"});

  Job size = job_of_all(3);
  size.names = {"norm"};
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    JobOp op = call_of(rank, 0, Op::reduce_scatter, rank == 2 ? 9 : 8);
    op.line = 7;
    if (rank == 2) op.name = 0;
    add_op(size, op);
  }
  CHECK(errors_of(size) ==
        Lines{"rank 0 (line 7: reduce_scatter of 8 B) and rank 2 (line 7: norm, reduce_scatter of "
              "9 B) are one call: expected the same"});

  Job stranger = job_of_all(3);
  stranger.groups = {{0, 1}};
  for (const std::uint32_t rank : {0U, 1U, 2U}) {
    add_op(stranger, call_of(rank, 0, Op::broadcast, 8));
  }
  CHECK(errors_of(stranger) == Lines{"rank 2 (broadcast of 8 B): the rank is not in the group"});
}

TEST_CASE("job plans: sends and receives that do not fit together", "[workload][jobs]") {
  Job lost = job_of_all(2);
  add_op(lost, send_of(0, 1, 8));
  CHECK(errors_of(lost) == Lines{"rank 0 (send of 8 B to rank 1): no rank receives it"});

  Job never = job_of_all(2);
  add_op(never, receive_of(0, 1, 8));
  add_op(never, receive_of(1, kAnyRank, 8, kAnyTag));
  CHECK(errors_of(never) == Lines{"rank 0 (receive of 8 B from rank 1): no rank sends it",
                                  "rank 1 (receive of 8 B from any rank): no rank sends it"});

  Job tags = job_of_all(2);
  add_op(tags, send_of(0, 1, 8, 1));
  add_op(tags, receive_of(1, 0, 8, 2));
  CHECK(errors_of(tags) == Lines{"rank 1 (receive of 8 B from rank 0): no rank sends it",
                                 "rank 0 (send of 8 B to rank 1): no rank receives it"});

  Job sizes = job_of_all(2);
  add_op(sizes, send_of(0, 1, 8));
  add_op(sizes, receive_of(1, 0, 9));
  CHECK(errors_of(sizes) == Lines{"rank 0 (send of 8 B to rank 1) and rank 1 (receive of 9 B from "
                                  "rank 0) are one message: expected the same size"});
}

TEST_CASE("job plans: ranks that wait for one another", "[workload][jobs]") {
  Job receives = job_of_all(2);
  for (const std::uint32_t rank : {0U, 1U}) {
    add_op(receives, receive_of(rank, 1 - rank, 8));
    add_op(receives, send_of(rank, 1 - rank, 8));
  }
  CHECK(errors_of(receives) ==
        Lines{"the job cannot end: rank 0 (send of 8 B to rank 1) waits for rank 0 (receive of 8 B "
              "from rank 1) waits for rank 1 (send of 8 B to rank 0) waits for rank 1 (receive of "
              "8 B from rank 0) waits for rank 0 (send of 8 B to rank 1)"});

  Job orders = job_of_all(2);
  orders.groups = {{0, 1}, {0, 1}};
  add_op(orders, call_of(0, 0, Op::all_reduce, 8));
  add_op(orders, call_of(0, 1, Op::all_gather, 8));
  add_op(orders, call_of(1, 1, Op::all_gather, 8));
  add_op(orders, call_of(1, 0, Op::all_reduce, 8));
  CHECK(errors_of(orders) ==
        Lines{"the job cannot end: rank 0 (all_gather of 8 B) waits for rank 0 (all_reduce of 8 B) "
              "waits for rank 1 (all_reduce of 8 B) waits for rank 1 (all_gather of 8 B) waits for "
              "rank 0 (all_gather of 8 B)"});

  // The same in one order on both ranks can end.
  std::swap(orders.ops[2], orders.ops[3]);
  CHECK(errors_of(orders) == Lines{});
}

TEST_CASE("job plans: a long circle is told in short", "[workload][jobs]") {
  Job ring = job_of_all(6);
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    add_op(ring, receive_of(rank, (rank + 5) % 6, 8));
    add_op(ring, send_of(rank, (rank + 1) % 6, 8));
  }
  const Lines errors = errors_of(ring);
  REQUIRE(errors.size() == 1);
  CHECK_THAT(errors[0], Catch::Matchers::Contains("waits for 4 others and then for rank "));
}

TEST_CASE("job plans: a custom schedule serves its operation and number of ranks",
          "[workload][jobs]") {
  const auto custom =
      read_msccl_file(std::string(PACELINE_SOURCE_DIR) +
                      "/tests/unit/workload/jobs/msccl/custom_ring_allreduce_8.xml");
  REQUIRE(custom.errors == Lines{});
  CollectiveSettings settings;
  settings.custom = &custom.value.schedule;
  const auto made =
      plan_job(job_of_calls(Op::all_reduce, 8, 8'000, 1), servers_of(8, 1), settings, kMost);
  REQUIRE(made.errors == Lines{});
  std::vector<std::uint64_t> sent(8);
  for (const PlannedMessage& m : made.value.plan.messages) {
    if (!m.computes) sent[m.src] += m.bytes;
  }
  CHECK(sent == std::vector<std::uint64_t>(8, 14'000));  // 2 S (n - 1) / n
  const std::string of_8 =
      "workload.job.schedule_file: it is for all_reduce of 8 ranks; the job has none";
  CHECK(errors_of(job_of_calls(Op::all_reduce, 4, 8'000, 1), settings) == Lines{of_8});
  CHECK(errors_of(job_of_calls(Op::all_gather, 8, 8'000, 1), settings) == Lines{of_8});
}

TEST_CASE("job plans: too many messages, and schedules that are not for the group",
          "[workload][jobs]") {
  CollectiveSettings small;
  small.chunk_bytes = 10;
  // 4 ranks, 100 parts of 4 chunks: 24 transfers of a ring and 4 ends each.
  CHECK(errors_of(job_of_calls(Op::all_reduce, 4, 4'000, 1), small) ==
        Lines{"rank 0 (all_reduce of 4000 B): about 2.8e+03 messages: at most 1000 fit; larger "
              "chunks make fewer"});
  small.chunk_bytes = 1'000;
  CHECK(errors_of(job_of_calls(Op::all_reduce, 4, 4'000, 1), small) == Lines{});

  CHECK(errors_of(job_of_calls(Op::reduce_scatter, 3, 8, 1),
                  settings_with(Op::reduce_scatter, "halving_near")) ==
        Lines{"reduce_scatter by \"halving_near\": ranks = 3: allowed is a power of two"});
  CHECK(errors_of(job_of_calls(Op::reduce, 2, 8, 1), settings_with(Op::reduce, "ring")) ==
        Lines{"reduce by \"ring\": expected \"chain\" or \"binomial\""});
  CollectiveSettings odd = settings_with(Op::all_gather, "pat");
  odd.aggregation = 3;
  CHECK(errors_of(job_of_calls(Op::all_gather, 4, 8, 1), odd) ==
        Lines{"all_gather by \"pat\": aggregation = 3: allowed is 0 or a power of two"});
}

}  // namespace
}  // namespace paceline::workload::job_plan_errors_test
