// Collectives as messages: every byte of the schedule in every part, messages that fit in a chunk,
// and waits that keep the window.
#include "tools/workload/job_plans/job_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/workload/job_plan_samples.h"
#include "tests/unit/workload/schedule_samples.h"

namespace paceline::workload::job_plan_test {
namespace {

using namespace job_plan_samples;
using namespace schedule_samples;
using Bytes = std::vector<std::uint64_t>;
using Op = CollectiveOp;

constexpr std::uint64_t kMost = 1 << 24;

template <std::size_t N>
std::uint64_t one_of(Random& random, const std::uint64_t (&values)[N]) {
  return values[random.below(N)];
}

// A collective of n ranks and how it is to be run.
struct PlanCase {
  Op op = Op::all_reduce;
  std::string_view algorithm;
  std::uint32_t ranks = 2;
  std::uint32_t per_server = 1;
  std::uint64_t bytes = 1;
  CollectiveSettings settings;
  Schedule schedule;

  std::uint32_t most_pieces() const {
    std::uint32_t most = 0;
    for (const Transfer& t : schedule.transfers) {
      if (t.from != t.to) most = std::max(most, t.pieces);
    }
    return most;
  }
};

// The settings are drawn; chunks grow until the plan is small.
PlanCase drawn_case(Op op, std::string_view algorithm, std::uint32_t ranks, std::uint64_t bytes,
                    Random& random) {
  PlanCase c;
  c.op = op;
  c.algorithm = algorithm;
  c.ranks = ranks;
  c.bytes = bytes;
  c.settings = settings_with(op, algorithm);
  const auto divisors = servers_to_try("two_level_ring", ranks);
  c.per_server = divisors[random.below(divisors.size())];
  c.settings.channels = static_cast<std::uint32_t>(1 + random.below(3));
  c.settings.window = static_cast<std::uint32_t>(1 + random.below(3));
  c.settings.queue_pairs = static_cast<std::uint32_t>(1 + random.below(3));
  c.settings.clear_to_send = random.below(2) == 1;
  c.settings.step_overhead = random.below(2) == 1 ? Picos{4'200'000} : Picos{0};
  c.settings.chunk_bytes = one_of(random, {1, 7, 1'000, 4'096, 65'536, 1 << 20});
  if (algorithm == "pat") c.settings.aggregation = 1U << random.below(3);
  if (algorithm == "window") c.settings.peers = static_cast<std::uint32_t>(random.below(4));
  c.schedule = built(op, algorithm, {ranks, c.per_server},
                     {.aggregation = c.settings.aggregation,
                      .window = c.settings.peers,
                      .in_turn = c.settings.step_overhead > Picos{0}});
  while (bytes / c.schedule.blocks * c.schedule.transfers.size() >
         3'000 * std::max<std::uint64_t>(1, c.settings.chunk_bytes / c.most_pieces())) {
    c.settings.chunk_bytes *= 2;
  }
  return c;
}

// A plan of one call in its pieces: after the ops' own messages come the parts, each with the
// transfers, then what clears them to be sent, then the ends of its ranks; at last the op's ends.
class PlannedCase {
 public:
  explicit PlannedCase(const PlanCase& c) : case_(c) {
    auto read = plan_job(job_of_calls(c.op, c.ranks, c.bytes, 1), servers_of(c.ranks, c.per_server),
                         c.settings, kMost);
    REQUIRE(read.errors == std::vector<std::string>{});
    job = std::move(read.value);
    for (const Transfer& t : c.schedule.transfers) {
      if (c.settings.clear_to_send && t.from / c.per_server != t.to / c.per_server) ++clears_;
    }
    const std::size_t rest = messages().size() - std::size_t{2} * c.ranks;
    const std::size_t each = c.schedule.transfers.size() + clears_ + c.ranks;
    REQUIRE(rest % each == 0);
    parts = static_cast<std::uint32_t>(rest / each);
  }

  const std::vector<PlannedMessage>& messages() const { return job.plan.messages; }
  std::uint32_t first_of(std::uint32_t part) const { return first_of_case() + part * size(); }
  std::uint32_t clears_of(std::uint32_t part) const { return first_of(part) + transfers(); }
  std::uint32_t ends_of(std::uint32_t part) const { return first_of(part + 1) - case_.ranks; }
  std::uint64_t bytes_of(std::uint32_t part) const {
    return (part + 1) * case_.bytes / parts - part * case_.bytes / parts;
  }

  JobPlan job;
  std::uint32_t parts = 0;

 private:
  std::uint32_t first_of_case() const { return case_.ranks; }
  std::uint32_t transfers() const {
    return static_cast<std::uint32_t>(case_.schedule.transfers.size());
  }
  std::uint32_t size() const { return transfers() + clears_ + case_.ranks; }

  const PlanCase& case_;
  std::uint32_t clears_ = 0;
};

void check_bytes(const PlanCase& c, const PlannedCase& planned) {
  Bytes sent(c.ranks), expected(c.ranks);
  for (std::uint32_t part = 0; part < planned.parts; ++part) {
    const Bytes of_part = bytes_sent(c.schedule, planned.bytes_of(part));
    for (std::uint32_t rank = 0; rank < c.ranks; ++rank) expected[rank] += of_part[rank];
  }
  std::uint64_t across = 0, clears = 0, most = 0, other_gaps = 0;
  for (const PlannedMessage& m : planned.messages()) {
    if (m.computes) continue;
    if (is_clear_to_send(m)) {
      ++clears;
      CHECK((m.bytes == 64 && m.src / c.per_server != m.dst / c.per_server));
      continue;
    }
    sent[m.src] += m.bytes;
    if (m.gap != c.settings.step_overhead) ++other_gaps;
    most = std::max(most, m.bytes);
    if (m.src / c.per_server != m.dst / c.per_server) ++across;
  }
  CHECK(sent == expected);
  CHECK(other_gaps == 0);
  CHECK(clears == (c.settings.clear_to_send ? across : 0));
  // A message has at least a byte of every block that the schedule sends in one.
  CHECK(most <= std::max<std::uint64_t>(c.settings.chunk_bytes, c.most_pieces()));
  if (c.bytes <= c.settings.chunk_bytes / c.most_pieces()) CHECK(planned.parts == 1);
}

// For the algorithms that send no byte twice to a rank, whatever the parts.
std::uint64_t bytes_of_all_ranks(Op op, std::uint32_t n, std::uint64_t bytes) {
  return (op == Op::all_reduce ? 2 : 1) * (n - 1) * bytes;
}
bool sends_the_least(std::string_view algorithm, Op op) {
  return algorithm != "recursive_doubling" && algorithm != "scatter_all_gather" &&
         !algorithm.starts_with("pxn") && (algorithm != "bruck" || op == Op::all_gather);
}

void check_lanes(const PlanCase& c, const PlannedCase& planned) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::set<std::uint32_t>> lanes;
  for (const PlannedMessage& m : planned.messages()) {
    if (m.computes) continue;
    const std::uint32_t lane = m.lane & ~kClearToSendBit;
    CHECK(lane < c.settings.channels * (is_clear_to_send(m) ? 1 : c.settings.queue_pairs));
    if (!is_clear_to_send(m)) lanes[{m.src, m.dst}].insert(lane);
  }
  for (const auto& [pair, used] : lanes) {
    CHECK(used.size() <= c.settings.channels * c.settings.queue_pairs);
  }
}

// An op ends after all that its rank sends and receives, which is after the op has begun.
void check_span(const PlanCase& c, const PlannedCase& planned, const GraphOrder& order) {
  std::vector<std::uint32_t> late(c.ranks);
  std::vector<std::vector<bool>> before_end;
  for (std::uint32_t rank = 0; rank < c.ranks; ++rank) {
    const JobPlan::Span& span = planned.job.spans[rank];
    CHECK(span.begin == rank);
    CHECK(planned.messages()[span.end].src == rank);
    before_end.push_back(order.all_before(span.end));
    CHECK(before_end[rank][span.begin]);
  }
  for (std::uint32_t id = 0; id < planned.messages().size(); ++id) {
    const PlannedMessage& m = planned.messages()[id];
    if (m.computes) continue;
    if (!before_end[m.src][id]) ++late[m.src];
    if (!before_end[m.dst][id]) ++late[m.dst];
  }
  CHECK(late == std::vector<std::uint32_t>(c.ranks));
}

// Only after the end of part p does a rank begin part p + window, or the op's own after its begin.
void check_window(const PlanCase& c, const PlannedCase& planned, const GraphOrder& order) {
  const std::uint32_t window = c.settings.window * c.settings.channels;
  const auto begins_after = [&](std::uint32_t id, std::uint32_t rank, std::uint32_t part) -> bool {
    const std::uint32_t gate = part < window ? rank : planned.ends_of(part - window) + rank;
    return order.all_before(id)[gate];
  };
  std::uint32_t early = 0, unfinished = 0;
  for (std::uint32_t part = 0; part < planned.parts; ++part) {
    std::vector<std::vector<bool>> before_end;
    for (std::uint32_t rank = 0; rank < c.ranks; ++rank) {
      before_end.push_back(order.all_before(planned.ends_of(part) + rank));
    }
    for (std::uint32_t id = planned.first_of(part); id < planned.ends_of(part); ++id) {
      const PlannedMessage& m = planned.messages()[id];
      if (!begins_after(id, m.src, part)) ++early;
      const bool cleared = c.settings.clear_to_send && !is_clear_to_send(m) &&
                           m.src / c.per_server != m.dst / c.per_server;
      if (cleared && !begins_after(id, m.dst, part)) ++early;
      if (!before_end[m.src][id] || !before_end[m.dst][id]) ++unfinished;
    }
  }
  CHECK(early == 0);
  CHECK(unfinished == 0);
  if (planned.parts < 2 || window < 2) return;
  // The second part does not wait for the end of the first.
  std::uint32_t free = 0;
  for (std::uint32_t id = planned.first_of(1); id < planned.clears_of(1); ++id) {
    if (!order.all_before(id)[planned.ends_of(0) + planned.messages()[id].src]) ++free;
  }
  CHECK(free > 0);
}

void check_case(const PlanCase& c) {
  CAPTURE(to_string(c.op), c.algorithm, c.ranks, c.per_server, c.bytes, c.settings.chunk_bytes,
          c.settings.channels, c.settings.window, c.settings.queue_pairs, c.settings.clear_to_send,
          c.settings.step_overhead.count, c.settings.aggregation, c.settings.peers);
  PlannedCase planned(c);
  check_bytes(c, planned);
  check_lanes(c, planned);
  CHECK_NOTHROW(mark_awaited(planned.job.plan));
  const GraphOrder order(planned.job.plan);
  check_span(c, planned, order);
  if (planned.messages().size() <= 500) check_window(c, planned, order);
}

TEST_CASE("job plans: every schedule in parts, with drawn settings", "[workload][jobs]") {
  std::vector<std::uint32_t> groups{32};
  for (std::uint32_t n = 2; n <= 17; ++n) groups.push_back(n);
  for (const Op op : kEveryOp) {
    for (const std::string_view algorithm : schedule_names(op)) {
      for (const std::uint32_t n : groups) {
        if (needs_power_of_two(algorithm) && !is_power_of_two(n)) continue;
        const std::uint64_t seed = n;
        CAPTURE(seed);
        Random random(seed);
        for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{n} - 1, std::uint64_t{n},
                                          std::uint64_t{1'000'003}, std::uint64_t{5'000'000}}) {
          check_case(drawn_case(op, algorithm, n, bytes, random));
        }
      }
    }
  }
}

TEST_CASE("job plans: all ranks together send what the operation takes", "[workload][jobs]") {
  for (const Op op : kEveryOp) {
    for (const std::string_view algorithm : schedule_names(op)) {
      if (!sends_the_least(algorithm, op)) continue;
      for (const std::uint32_t n : {2U, 8U, 13U}) {
        if (needs_power_of_two(algorithm) && !is_power_of_two(n)) continue;
        CollectiveSettings settings = settings_with(op, algorithm);
        settings.chunk_bytes = 10'000;
        constexpr std::uint64_t kBytes = 1'000'003;
        const auto read =
            plan_job(job_of_calls(op, n, kBytes, 2), servers_of(n, 1), settings, kMost);
        CAPTURE(to_string(op), algorithm, n);
        REQUIRE(read.errors == std::vector<std::string>{});
        std::uint64_t sent = 0;
        for (const PlannedMessage& m : read.value.plan.messages) sent += m.computes ? 0 : m.bytes;
        CHECK(sent == 2 * bytes_of_all_ranks(op, n, kBytes));
        CHECK(read.value.calls.size() == 2);
      }
    }
  }
}

TEST_CASE("job plans: a call of one rank or of no bytes ends where it begins", "[workload][jobs]") {
  for (const std::uint64_t bytes : {0U, 100U}) {
    const std::uint32_t ranks = bytes == 0 ? 3 : 1;
    const auto read =
        plan_job(job_of_calls(Op::all_reduce, ranks, bytes, 1), servers_of(ranks, 1), {}, kMost);
    REQUIRE(read.errors == std::vector<std::string>{});
    for (const PlannedMessage& m : read.value.plan.messages) CHECK(m.computes);
    for (const JobPlan::Span& span : read.value.spans) CHECK(span.begin == span.end);
  }
}

TEST_CASE("job plans: receives take the sends that fit, in their order", "[workload][jobs]") {
  Job job = job_of_all(3);
  const auto send = [&job](std::uint32_t from, std::uint32_t tag, std::uint64_t bytes) {
    job.ops.push_back(
        {.kind = JobOpKind::send, .rank = from, .peer = 2, .tag = tag, .bytes = bytes});
  };
  const auto receive = [&job](std::uint32_t from, std::uint32_t tag, std::uint64_t bytes) {
    job.ops.push_back(
        {.kind = JobOpKind::receive, .rank = 2, .peer = from, .tag = tag, .bytes = bytes});
  };
  send(0, 5, 10);  // op 0
  send(0, 5, 20);
  send(0, 6, 30);
  send(1, 5, 40);
  receive(kAnyRank, kAnyTag, 40);  // op 4: what the others leave
  receive(0, 6, 30);
  receive(0, 5, 10);
  receive(0, 5, 20);
  const auto read = plan_job(job, servers_of(3, 1), {}, kMost);
  REQUIRE(read.errors == std::vector<std::string>{});
  const GraphOrder order(read.value.plan);
  const std::pair<std::uint32_t, std::uint32_t> matches[] = {{4, 3}, {5, 2}, {6, 0}, {7, 1}};
  for (const auto& [receives, sends] : matches) {
    const std::vector<bool> before = order.all_before(read.value.spans[receives].end);
    CAPTURE(receives, sends);
    for (std::uint32_t id = 0; id < 4; ++id) CHECK(before[id] == (id == sends));
    CHECK(before[receives]);
  }
}

}  // namespace
}  // namespace paceline::workload::job_plan_test
