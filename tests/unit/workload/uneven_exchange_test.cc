// Uneven all-to-alls of jobs: the bytes of senders and receivers, draws, and what is refused.
#include "tools/workload/job_plans/uneven_exchange.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dataplane/config/scenario.h"
#include "tests/unit/workload/job_plan_samples.h"
#include "tests/unit/workload/training_samples.h"
#include "tools/workload/workload.h"

namespace paceline::workload::uneven_exchange_test {
namespace {

using namespace job_plan_samples;
using namespace training_samples;
using Lines = std::vector<std::string>;
using Op = CollectiveOp;
using Pair = std::pair<std::uint32_t, std::uint32_t>;
using PairBytes = std::map<Pair, std::uint64_t>;
using RankBytes = std::map<std::uint32_t, std::uint64_t>;

constexpr std::uint64_t kMost = 1 << 22;
constexpr std::uint64_t kWhole = std::uint64_t{1} << 40;  // a chunk that holds every cell

JobPlan planned(const Job& job, const CollectiveSettings& settings) {
  auto read = plan_job(job, servers_of(job.ranks, 1), settings, kMost);
  REQUIRE(read.errors == Lines{});
  return std::move(read.value);
}

// What ranks send to each other, by call; clear-to-sends do not count.
std::vector<PairBytes> bytes_by_call(const JobPlan& job) {
  std::vector<PairBytes> sums(job.calls.size());
  for (std::size_t id = job.spans.size(); id < job.plan.messages.size(); ++id) {
    const PlannedMessage& m = job.plan.messages[id];
    if (!m.computes && !is_clear_to_send(m)) sums.at(m.collective)[{m.src, m.dst}] += m.bytes;
  }
  return sums;
}

PairBytes bytes_of_call(const JobPlan& job, std::uint32_t call) {
  return bytes_by_call(job).at(call);
}

RankBytes sums_of(const PairBytes& bytes, bool by_receiver) {
  RankBytes sums;
  for (const auto& [pair, sum] : bytes) sums[by_receiver ? pair.second : pair.first] += sum;
  return sums;
}

PairBytes reversed(const PairBytes& bytes) {
  PairBytes out;
  for (const auto& [pair, sum] : bytes) out[{pair.second, pair.first}] = sum;
  return out;
}

PairBytes without_zeros(PairBytes bytes) {
  std::erase_if(bytes, [](const auto& entry) { return entry.second == 0; });
  return bytes;
}

Job job_of_draw(std::uint32_t ranks, std::uint64_t bytes, std::uint64_t draw, bool transposed) {
  Job job = job_of_calls(Op::all_to_all, ranks, bytes, 1);
  for (JobOp& op : job.ops) {
    op.draw = draw;
    op.transposed = transposed;
  }
  return job;
}

CollectiveSettings drawn_settings_of_parts(Random& random, std::string_view algorithm) {
  CollectiveSettings settings = settings_with(Op::all_to_all, algorithm);
  settings.skew = static_cast<double>(1 + random.below(4)) / 2;
  settings.seed = random.next();
  settings.chunk_bytes = std::uint64_t{1} << (11 + random.below(10));
  settings.channels = static_cast<std::uint32_t>(1 + random.below(3));
  settings.window = static_cast<std::uint32_t>(1 + random.below(3));
  settings.queue_pairs = static_cast<std::uint32_t>(1 + random.below(3));
  settings.clear_to_send = random.below(2) == 1;
  return settings;
}

TEST_CASE("uneven all-to-alls: a rank sends what it sends where blocks are even",
          "[workload][jobs]") {
  for (const std::string_view algorithm : {"nccl", "linear_shift", "pairwise_xor", "window"}) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      Random random(seed);
      const std::uint32_t ranks = 1U << (1 + random.below(4));
      const std::uint64_t bytes = 1 + random.below(seed % 3 == 0 ? 2 * ranks : 300'000);
      const std::uint64_t draw = random.below(3);
      const CollectiveSettings settings = drawn_settings_of_parts(random, algorithm);
      CAPTURE(algorithm, seed, ranks, bytes, draw, settings.skew, settings.chunk_bytes);
      // In one part: each part is cut into blocks by itself, to whole bytes.
      CollectiveSettings even = settings;
      even.skew = 0;
      even.chunk_bytes = kWhole;
      const PairBytes of_even =
          bytes_of_call(planned(job_of_draw(ranks, bytes, 0, false), even), 0);
      const JobPlan there = planned(job_of_draw(ranks, bytes, draw, false), settings);
      const PairBytes sent = bytes_of_call(there, 0);
      CHECK(sums_of(sent, false) == sums_of(of_even, false));
      const PairBytes back =
          bytes_of_call(planned(job_of_draw(ranks, bytes, draw, true), settings), 0);
      CHECK(back == reversed(sent));
      for (const PlannedMessage& m : there.plan.messages) {
        CHECK(m.bytes <= settings.chunk_bytes);
      }
      CollectiveSettings whole = settings_with(Op::all_to_all, "nccl");
      whole.skew = settings.skew;
      whole.seed = settings.seed;
      whole.chunk_bytes = kWhole;
      CHECK(bytes_of_call(planned(job_of_draw(ranks, bytes, draw, false), whole), 0) == sent);
      CHECK_NOTHROW([&] {
        MessagePlan plan = there.plan;
        mark_awaited(plan);
      }());
    }
  }
}

TEST_CASE("uneven all-to-alls: as many parts as the largest message takes", "[workload][jobs]") {
  CollectiveSettings settings;
  settings.skew = 2;
  settings.chunk_bytes = kWhole;
  const Job job = job_of_draw(8, 800'000, 0, false);
  std::uint64_t largest = 0;
  for (const auto& [pair, bytes] : bytes_of_call(planned(job, settings), 0)) {
    largest = std::max(largest, bytes);
  }
  CHECK(largest > 200'000);  // an even one has 100'000
  for (const std::uint64_t chunk : {largest, largest - 1, std::uint64_t{10'000}}) {
    CAPTURE(largest, chunk);
    settings.chunk_bytes = chunk;
    std::uint64_t messages = 0;
    for (const PlannedMessage& m : planned(job, settings).plan.messages) messages += !m.computes;
    CHECK(messages == 8 * 7 * ((largest + chunk - 1) / chunk));
  }
}

using Fields =
    std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint32_t, std::uint32_t>;

std::vector<Fields> fields_of(const JobPlan& job) {
  std::vector<Fields> fields;
  for (const PlannedMessage& m : job.plan.messages) {
    fields.emplace_back(m.src, m.dst, m.bytes, m.lane, m.after);
  }
  return fields;
}

TEST_CASE("uneven all-to-alls: without skew neither seed nor draws matter", "[workload][jobs]") {
  for (const std::uint64_t bytes : {7ULL, 1'000'003ULL}) {
    CollectiveSettings settings;
    settings.chunk_bytes = 10'000;
    const JobPlan plain = planned(job_of_calls(Op::all_to_all, 8, bytes, 1), settings);
    settings.seed = 77;
    const JobPlan drawn = planned(job_of_draw(8, bytes, 5, true), settings);
    CHECK(fields_of(drawn) == fields_of(plain));
    CHECK(drawn.plan.joins == plain.plan.joins);
  }
  CollectiveSettings other;
  const JobPlan plain = planned(job_of_calls(Op::all_reduce, 8, 1'000, 1), other);
  other.skew = 2;
  CHECK(fields_of(planned(job_of_calls(Op::all_reduce, 8, 1'000, 1), other)) == fields_of(plain));
}

config::Scenario scenario_of(std::string_view kind, std::uint32_t hosts, double skew) {
  constexpr std::uint64_t kPairBytes = 10'007;
  config::Scenario s;
  s.fabric.hosts = hosts;
  s.workload.kind = kind;
  s.workload.skew = skew;
  s.workload.message_bytes = kPairBytes;
  s.workload.job.operation = "all_to_all";
  s.workload.job.bytes = kPairBytes * hosts;
  s.workload.job.skew = skew;
  s.workload.job.chunk_bytes = 1 << 30;
  s.workload.job.iterations = 3;
  return s;
}

PairBytes bytes_of_plan(const MessagePlan& plan) {
  PairBytes sums;
  for (const PlannedMessage& m : plan.messages)
    CHECK(sums.emplace(Pair{m.src, m.dst}, m.bytes).second);
  return sums;
}

TEST_CASE("uneven all-to-alls: the first iteration is the workload all_to_all",
          "[workload][jobs]") {
  for (const double skew : {0.5, 1.0, 2.0, 8.0}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      CAPTURE(skew, seed);
      constexpr std::uint32_t kHosts = 12;
      config::Scenario job = scenario_of("job", kHosts, skew);
      const auto inputs = load_inputs(job);
      REQUIRE(inputs.errors == Lines{});
      const auto of_job = make_job_plan(job, inputs.value, seed);
      REQUIRE(of_job.errors == Lines{});
      const auto expected = make_plan(scenario_of("all_to_all", kHosts, skew), {}, seed);
      REQUIRE(expected.errors == Lines{});
      const PairBytes first = without_zeros(bytes_of_call(of_job.value, 0));
      CHECK(first == bytes_of_plan(expected.value));
      const PairBytes second = without_zeros(bytes_of_call(of_job.value, 1));
      CHECK(second != first);
      CHECK(without_zeros(bytes_of_call(of_job.value, 2)) != second);
    }
  }
}

TEST_CASE("uneven all-to-alls: jobs of files have no draws", "[workload][jobs]") {
  config::Scenario job = scenario_of("job", 4, 2);
  const auto inputs = load_inputs(job);
  REQUIRE(inputs.errors == Lines{});
  job.workload.job.format = "simai";
  const auto read = make_job_plan(job, inputs.value, 1);
  REQUIRE(read.errors == Lines{});
  for (const auto& [pair, bytes] : bytes_of_call(read.value, 0)) CHECK(bytes == 10'007);
}

// The ops of a rank's all-to-alls, by draw.
std::map<std::uint64_t, std::vector<const JobOp*>> exchanges_of(const Job& job,
                                                                std::uint32_t rank) {
  std::map<std::uint64_t, std::vector<const JobOp*>> exchanges;
  for (const JobOp& op : job.ops) {
    if (op.kind != JobOpKind::collective || op.op != Op::all_to_all || op.rank != rank) continue;
    exchanges[op.draw].push_back(&op);
  }
  return exchanges;
}

TEST_CASE("training jobs: dispatch and combine of a layer share a draw", "[workload][jobs]") {
  using Use = std::pair<std::string, bool>;
  const std::vector<Use> expected{{"expert: dispatch", false},
                                  {"expert: combine", true},
                                  {"expert: combine", false},
                                  {"expert: dispatch", true}};
  int jobs = 0;
  for (std::uint64_t seed = 400; seed < 440; ++seed) {
    TrainingSettings settings = drawn_settings(seed);
    if (settings.by.expert == 1) continue;
    settings.iterations = 2;
    settings.merge_layers = 1;
    CAPTURE(seed, settings.by.expert, settings.by.pipeline, settings.by.chunks);
    const Job job = training_job_of(settings);
    std::set<std::uint64_t> draws;
    for (std::uint32_t rank = 0; rank < job.ranks; ++rank) {
      for (const auto& [draw, ops] : exchanges_of(job, rank)) {
        std::vector<Use> uses;
        for (const JobOp* op : ops) uses.emplace_back(job.names.at(op->name), op->transposed);
        CHECK(uses == expected);
        draws.insert(draw);
      }
    }
    CHECK(draws.size() == 2 * settings.step.micro_batches * settings.model.expert_layers);
    ++jobs;
  }
  CHECK(jobs >= 10);
}

TEST_CASE("training jobs: tokens come back from where they went", "[workload][jobs]") {
  int jobs = 0;
  for (std::uint64_t seed = 500; seed < 540 && jobs < 8; ++seed) {
    const TrainingSettings training = drawn_settings(seed);
    if (training.by.expert == 1) continue;
    CAPTURE(seed, training.by.expert);
    const Job job = training_job_of(training);
    CollectiveSettings settings;
    settings.chunk_bytes = kWhole;
    const std::vector<PairBytes> even = bytes_by_call(planned(job, settings));
    settings.skew = 1;
    settings.seed = seed;
    const JobPlan uneven = planned(job, settings);
    const std::vector<PairBytes> bytes = bytes_by_call(uneven);
    // By group and draw: what the call that is not transposed sends.
    std::map<std::pair<std::uint32_t, std::uint64_t>, PairBytes> there;
    for (std::uint32_t call = 0; call < uneven.calls.size(); ++call) {
      const JobOp& op = job.ops[uneven.calls[call].ops[0]];
      const PairBytes& sent = bytes[call];
      const PairBytes& of_even = even[call];
      if (op.op != Op::all_to_all) {
        CHECK(sent == of_even);
        continue;
      }
      CHECK(sums_of(sent, op.transposed) == sums_of(of_even, false));
      const PairBytes out = op.transposed ? reversed(sent) : sent;
      const auto [at, added] = there.try_emplace({op.group, op.draw}, out);
      if (!added) CHECK(at->second == out);
    }
    CHECK(!there.empty());
    ++jobs;
  }
  CHECK(jobs == 8);
}

Lines errors_of_plan(const Job& job, const CollectiveSettings& settings,
                     std::uint32_t per_server = 1, std::uint64_t most = kMost) {
  return plan_job(job, servers_of(job.ranks, per_server), settings, most).errors;
}

const std::string kNotDirect =
    " does not send each block straight to its receiver in one message; allowed with skew are "
    "\"nccl\", \"linear_shift\", \"pairwise_xor\" or \"window\"";

TEST_CASE("uneven all-to-alls: schedules that pass blocks on are refused", "[workload][jobs]") {
  for (const std::string algorithm : {"bruck", "pxn", "pxn_batched"}) {
    CollectiveSettings settings = settings_with(Op::all_to_all, algorithm);
    const Job job = job_of_draw(8, 8'000, 0, false);
    CHECK(errors_of_plan(job, settings, 2) == Lines{});
    settings.skew = 1.5;
    CHECK(errors_of_plan(job, settings, 2) ==
          Lines{"workload.job.skew = 1.5: workload.job.all_to_all = \"" + algorithm + "\"" +
                kNotDirect});
  }
}

TEST_CASE("uneven all-to-alls: a custom schedule must be direct", "[workload][jobs]") {
  const Lines refused{"workload.job.skew = 1: the all_to_all of workload.job.schedule_file" +
                      kNotDirect};
  for (const std::string_view algorithm : {"bruck", "linear_shift"}) {
    const auto schedule = make_schedule(Op::all_to_all, algorithm, {8, 1});
    REQUIRE(schedule.errors == Lines{});
    CollectiveSettings settings;
    settings.custom = &schedule.value;
    settings.skew = 1;
    CAPTURE(algorithm);
    CHECK(errors_of_plan(job_of_draw(8, 8'000, 0, false), settings) ==
          (algorithm == "bruck" ? refused : Lines{}));
  }
}

TEST_CASE("uneven all-to-alls: ranks that disagree, and sizes that do not fit",
          "[workload][jobs]") {
  const Lines disagree{
      "rank 0 (all_to_all of 8 B) and rank 1 (all_to_all of 8 B) are one call: expected the same "
      "draw and direction"};
  Job draw = job_of_draw(2, 8, 1, false);
  draw.ops[1].draw = 2;
  CHECK(errors_of_plan(draw, {}) == disagree);
  Job direction = job_of_draw(2, 8, 1, false);
  direction.ops[1].transposed = true;
  CHECK(errors_of_plan(direction, {}) == disagree);

  CollectiveSettings settings;
  settings.skew = 1;
  settings.chunk_bytes = std::uint64_t{1} << 50;
  CHECK(errors_of_plan(job_of_draw(2, std::uint64_t{1} << 53, 0, false), settings) == Lines{});
  CHECK(errors_of_plan(job_of_draw(2, (std::uint64_t{1} << 53) + 1, 0, false), settings) ==
        Lines{"rank 0 (all_to_all of 9007199254740993 B): with workload.job.skew, at most "
              "9007199254740992 B fit"});
  // 2 ranks send each other 500 B: 50 parts of 2 messages and 2 ends.
  settings.chunk_bytes = 10;
  CHECK(errors_of_plan(job_of_draw(2, 1'000, 0, false), settings, 1, 202) == Lines{});
  CHECK(errors_of_plan(job_of_draw(2, 1'000, 0, false), settings, 1, 201) ==
        Lines{"rank 0 (all_to_all of 1000 B): about 200 messages: at most 201 fit; larger chunks "
              "make fewer"});
}

}  // namespace
}  // namespace paceline::workload::uneven_exchange_test
