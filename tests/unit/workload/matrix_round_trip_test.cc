// Plans written as matrices of htsim and read back: the same messages in an equivalent order.

#include <catch2/catch.hpp>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/workload/job_plan_samples.h"
#include "tests/unit/workload/matrix_samples.h"
#include "tests/unit/workload/schedule_samples.h"
#include "tools/workload/exports/matrix_export.h"
#include "tools/workload/job_plans/job_plan.h"
#include "tools/workload/matrix_plan.h"

namespace paceline::workload {
namespace {

using namespace matrix_samples;

// Collectives of all ranks, messages between two, and computing. An op waits for some that its rank
// issued before.
class RandomJob {
 public:
  explicit RandomJob(std::uint64_t seed) : random_(seed) {}

  Job draw() {
    job_ = job_plan_samples::job_of_all(2 + pick(4));
    const std::uint32_t steps = 1 + pick(4);
    for (std::uint32_t step = 0; step < steps; ++step) add_step(step);
    return std::move(job_);
  }

  CollectiveSettings settings() {
    CollectiveSettings settings;
    for (std::size_t op = 0; op < kCollectiveOps; ++op) {
      const auto names = schedule_names(static_cast<CollectiveOp>(op));
      settings.algorithms[op] = names[pick(names.size())];
    }
    settings.chunk_bytes = 1'000 + pick(60'000);
    settings.channels = 1 + pick(2);
    settings.window = 1 + pick(3);
    settings.queue_pairs = 1 + pick(2);
    return settings;
  }

 private:
  std::uint32_t pick(std::uint64_t n) { return static_cast<std::uint32_t>(random_.below(n)); }

  void add_step(std::uint32_t step) {
    const std::uint32_t rank = pick(job_.ranks);
    const std::uint64_t bytes = 1'000 + pick(50'000);
    const std::uint32_t kind = pick(4);
    if (kind == 0) {
      add({.kind = JobOpKind::compute, .rank = rank});
    } else if (kind == 1) {
      const std::uint32_t peer = (rank + 1 + pick(job_.ranks - 1)) % job_.ranks;
      add({.kind = JobOpKind::send, .rank = rank, .peer = peer, .tag = step, .bytes = bytes});
      add({.kind = JobOpKind::receive, .rank = peer, .peer = rank, .tag = step, .bytes = bytes});
    } else {
      using schedule_samples::kEveryOp;
      const CollectiveOp op = kEveryOp[pick(std::size(kEveryOp))];
      for (std::uint32_t r = 0; r < job_.ranks; ++r) {
        add({.kind = JobOpKind::collective, .rank = r, .op = op, .bytes = bytes});
      }
    }
  }

  void add(const JobOp& op) {
    const auto id = static_cast<std::uint32_t>(job_.ops.size());
    for (std::uint32_t other = 0; other < id; ++other) {
      if (job_.ops[other].rank == op.rank && pick(2) == 0) job_.waits.emplace_back(id, other);
    }
    job_.ops.push_back(op);
  }

  Random random_;
  Job job_;
};

// The plan's messages are those of the matrix, behind which come joins; and what is over when each
// begins is what is over there.
void check_read_back(const MessagePlan& plan, const std::string& text) {
  const HtsimMatrix matrix = matrix_of(text);
  auto read = plan_of_matrix(matrix, "m");
  REQUIRE(read.errors == ExportLines{});
  MessagePlan& back = read.value;
  CHECK_NOTHROW(mark_awaited(back));
  std::size_t at = 0;
  for (const PlannedMessage& m : plan.messages) {
    if (m.computes) continue;
    REQUIRE(at < back.messages.size());
    const PlannedMessage& b = back.messages[at++];
    CHECK_FALSE(b.computes);
    CHECK((b.src == m.src && b.dst == m.dst && b.bytes == m.bytes));
  }
  for (; at < back.messages.size(); ++at) CHECK(back.messages[at].computes);
  CHECK(over_in_plan(back) == over_in_matrix(matrix));
}

struct RoundTrips {
  std::uint32_t whole = 0;
  std::uint32_t loosened = 0;
  std::uint32_t joined = 0;

  void count(const MessagePlan& plan, std::uint32_t nodes) {
    if (flows_of(plan) == 0) return;
    const auto text = write_htsim_plan(plan, nodes, {.computing = true, .waits = true});
    if (!text.ok()) {
      CHECK_THAT(text.errors.front(), Catch::Matchers::Contains("a flow of htsim fires one"));
      return;
    }
    check_read_back(plan, text.value.text);
    if (text.value.dropped_waits > 0) {
      ++loosened;
      return;
    }
    ++whole;
    const auto back = plan_of_matrix(matrix_of(text.value.text), "m");
    CHECK(over_in_plan(back.value) == over_in_plan(plan));
    if (!back.value.joins.empty()) ++joined;
  }
};

TEST_CASE("matrices of random jobs are read back as the same plan", "[workload]") {
  RoundTrips trips;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    RandomJob random(seed);
    const Job job = random.draw();
    const auto plan =
        plan_job(job, job_plan_samples::servers_of(job.ranks, 1), random.settings(), 1'000);
    if (!plan.ok()) continue;  // an algorithm that these ranks cannot run
    trips.count(plan.value.plan, job.ranks);
  }
  CHECK(trips.whole > 30);
  CHECK(trips.joined > 10);
  CHECK(trips.loosened > 30);
}

TEST_CASE("matrices of random plans are read back as the same plan", "[workload]") {
  RoundTrips trips;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    trips.count(random_plan(seed), 6);
  }
  CHECK(trips.whole > 50);
  CHECK(trips.joined > 10);
  CHECK(trips.loosened > 10);
}

}  // namespace
}  // namespace paceline::workload
