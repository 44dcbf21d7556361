// Plans as GOAL schedules and flow lists, read back.

#include "tools/workload/exports/goal_export.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/workload/export_samples.h"
#include "tools/workload/exports/flow_export.h"
#include "tools/workload/jobs/goal_file.h"

namespace paceline::workload {
namespace {

using Catch::Matchers::Contains;

void check_goal(const MessagePlan& plan, std::uint32_t ranks) {
  const auto text = write_goal_plan(plan, ranks);
  REQUIRE(text.errors == ExportLines{});
  CAPTURE(text.value);
  const auto job = parse_goal(text.value, "g");
  REQUIRE(job.errors == ExportLines{});
  CHECK(job.value.ranks == ranks);
  std::uint64_t sends = 0, receives = 0, computes = 0, bytes = 0;
  std::int64_t computing = 0;
  for (const JobOp& op : job.value.ops) {
    sends += op.kind == JobOpKind::send ? 1 : 0;
    receives += op.kind == JobOpKind::receive ? 1 : 0;
    computes += op.kind == JobOpKind::compute ? 1 : 0;
    bytes += op.kind == JobOpKind::send ? op.bytes : 0;
    computing += op.duration.count;
  }
  CHECK(sends == flows_of(plan));
  CHECK(receives == sends);
  CHECK(computes == plan.messages.size() - sends);
  CHECK(bytes == bytes_of(plan));
  CHECK(job.value.waits.size() == waits_in(plan));
  std::int64_t planned = 0;
  for (const PlannedMessage& m : plan.messages) planned += m.gap.count;
  CHECK(computing == planned);
  // As a job it makes a message of every send, with the same order between them.
  std::vector<std::uint32_t> servers(ranks);
  std::iota(servers.begin(), servers.end(), 0U);
  CHECK(plan_job(job.value, servers, {}, 1 << 20).errors == ExportLines{});
}

TEST_CASE("exports: workloads as GOAL schedules", "[workload]") {
  for (const std::string& workload :
       {kRing, kAllToAll,
        std::string("kind = \"job\"\n[workload.job]\nbytes = \"80kB\"\niterations = 3\n"
                    "compute = \"12us\"\nchunk_bytes = \"8kB\"\nwindow = 2\nall_reduce = "
                    "\"double_tree\"\n"),
        kJob + "clear_to_send = true\n"}) {
    CAPTURE(workload);
    check_goal(plan_of_text(workload), 8);
  }
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    check_goal(random_plan(seed), 6);
  }
}

TEST_CASE("exports: a GOAL schedule with starts, gaps and computing", "[workload]") {
  MessagePlan plan;
  plan.messages = {sent(0, 1, 10), sent(0, 1, 20), computed(1, Picos{1'499'600}, 1),
                   sent(1, 0, 30, 2)};
  plan.messages[0].start = Picos{3'000'000};
  plan.messages[1].start = Picos{2'000'000};
  plan.messages[3].gap = Picos{4000};
  const auto text = write_goal_plan(plan, 2);
  REQUIRE(text.errors == ExportLines{});
  CHECK(text.value ==
        "num_ranks 2\n"
        "rank 0 {\n"
        "b1: calc 2000\n"
        "b2: calc 1000\n"
        "s0: send 10b to 1 tag 0\n"
        "s1: send 20b to 1 tag 1\n"
        "r3: recv 30b from 1 tag 0\n"
        "b2 requires b1\n"
        "s0 requires b2\n"
        "s1 requires b1\n"
        "}\n"
        "rank 1 {\n"
        "r0: recv 10b from 0 tag 0\n"
        "r1: recv 20b from 0 tag 1\n"
        "c2: calc 1500 cpu 1\n"
        "g3: calc 4 cpu 2\n"
        "s3: send 30b to 0 tag 0\n"
        "c2 requires r1\n"
        "g3 requires c2\n"
        "s3 requires g3\n"
        "}\n");
  CHECK(parse_goal(text.value, "g").errors == ExportLines{});
}

TEST_CASE("exports: flow lists", "[workload]") {
  const NodeNumbers numbers = NodeNumbers::star(8);
  const MessagePlan plan = plan_of_text(kIncast + "start_jitter = \"9us\"\n");
  const auto text = write_flow_plan(plan, numbers, {});
  REQUIRE(text.errors == ExportLines{});
  const auto flows = parse_hpcc_flows(text.value, "f", numbers);
  REQUIRE(flows.errors == ExportLines{});
  REQUIRE(flows.value.size() == 3);
  for (std::size_t i = 0; i < flows.value.size(); ++i) {
    const HpccFlow& f = flows.value[i];
    const PlannedMessage& m = plan.messages[i];
    CHECK(std::tuple(f.src, f.dst, f.bytes, f.start, f.priority_group) ==
          std::tuple(m.src, m.dst, m.bytes, m.start, m.traffic_class));
  }
  MessagePlan waiting = plan_of_text(kJob);
  const auto refused = write_flow_plan(waiting, numbers, {});
  REQUIRE(refused.errors.size() == 1);
  CHECK_THAT(refused.errors[0], Contains("--drop-waits"));
  const auto dropped = write_flow_plan(waiting, numbers, {.waits = true});
  REQUIRE(dropped.errors == ExportLines{});
  const auto back = parse_hpcc_flows(dropped.value, "f", numbers);
  REQUIRE(back.errors == ExportLines{});
  CHECK(back.value.size() == flows_of(waiting));
  waiting.messages.push_back(computed(0, Picos{1}));
  CHECK(write_flow_plan(waiting, numbers, {.waits = true}).errors.size() == 1);
  CHECK(write_flow_plan(waiting, numbers, {.computing = true, .waits = true}).ok());
}

}  // namespace
}  // namespace paceline::workload
