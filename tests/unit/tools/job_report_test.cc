// The report of a job: times of ranks that add up, who is named as holding up the others, the
// critical path, and bandwidths that the NICs can carry.

#include "tools/run/job_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/tools/job_runs.h"
#include "tests/unit/workload/job_plan_samples.h"
#include "tools/run/job_text.h"

namespace paceline::tools::job_report_test {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;
using workload::JobOpKind;
using workload::JobPlan;
using Lines = std::vector<std::string>;

using namespace job_runs;

const std::string kJobs = std::string(PACELINE_SOURCE_DIR) + "/tests/unit/workload/jobs/";

JobPlan plan_of_job(const PreparedScenario& scenario) {
  auto read = make_job_plan(scenario.scenario, scenario.inputs, kSeed);
  REQUIRE(read.errors == Lines{});
  return std::move(read.value);
}

void check_parts(const JobReport& report) {
  CHECK(report.took > Picos{0});
  double limited = 0;
  REQUIRE(report.limited.has_value());
  for (const double share : *report.limited) limited += share;
  CHECK(limited == Approx(1));
  CHECK((*report.limited)[static_cast<std::size_t>(cc::Limiter::application)] == 0);
  for (const RankTime& rank : report.ranks) {
    CHECK(rank.computing + rank.waiting + rank.communicating + rank.idle == report.took);
    for (const Picos part : {rank.computing, rank.waiting, rank.communicating, rank.idle}) {
      CHECK(part >= Picos{0});
    }
  }
}

// Its steps follow one another without a gap, each waits for the one before it, and their ends are
// those that the world's own list of messages has.
void check_path(const PreparedScenario& scenario, const ScenarioRun& run) {
  const JobPlan job = plan_of_job(scenario);
  const workload::job_plan_samples::GraphOrder order(job.plan);
  std::map<std::uint32_t, const FlowRow*> flows;
  for (const FlowRow& row : run.flows) flows[row.message] = &row;
  const CriticalPath& path = run.job->path;
  REQUIRE_FALSE(path.steps.empty());
  Picos sums{0};
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    const PathStep& step = path.steps[i];
    const PlannedMessage& m = job.plan.messages[step.message];
    CAPTURE(i, step.message, m.src, m.dst);
    sums += step.end - step.begin;
    CHECK(step.end > step.begin);
    if (i > 0) {
      CHECK(step.begin == path.steps[i - 1].end);
      CHECK(order.all_before(step.message)[path.steps[i - 1].message]);
    }
    if (m.computes) {
      CHECK(step.end - step.begin == m.gap);
    } else {
      const FlowRow& row = *flows.at(step.message);
      CHECK(step.begin == row.start);
      CHECK(step.end <= row.start + row.fct);  // the sender learns of an arrival later
    }
  }
  CHECK(sums == path.computing + path.network + path.nvlink);
  CHECK(path.steps.front().begin + sums == run.job->took);
  CHECK(path.steps.back().end == run.job->took);
}

TEST_CASE("job report: a rank that computes longer is named, and no NIC", "[jobs]") {
  // Not recursive doubling: its ranks leave a call so far apart that another may enter the next
  // last.
  for (const std::string schedule :
       {"ring", "two_level_ring", "double_tree", "halving_doubling_near", "halving_doubling_far"}) {
    const PreparedScenario scenario = prepared_job(
        "bytes = \"1MiB\"\niterations = 4\ncompute = \"100us\"\nstraggler = 3\n"
        "straggler_factor = 2\nall_reduce = \"" +
        schedule + "\"\n");
    const ScenarioRun run = run_job(scenario);
    const JobReport& report = *run.job;
    CAPTURE(schedule);
    check_parts(report);
    check_path(scenario, run);
    INFO(job_text(report));
    REQUIRE(report.stragglers.size() == 1);
    const Straggler& late = report.stragglers[0];
    CHECK(late.kind == Straggler::Kind::rank);
    CHECK(late.number == 3);
    CHECK(late.computing == 2);
    CHECK(late.waited_by == 1);
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
      CHECK(report.ranks[rank].computing == picos_from_micros(rank == 3 ? 800 : 400));
      // The others wait for it 100 us, less what they are late from the call before.
      const Picos waits = report.ranks[rank].waiting;
      if (rank == 3) {
        CHECK(waits == Picos{0});
      } else {
        CHECK(waits > picos_from_micros(350));
      }
    }
    for (const CollectiveTime& call : report.calls) CHECK(call.last_rank == 3);
    CHECK_THAT(job_text(report),
               Contains("straggler  rank 3 computes 2.00 times as long") && !Contains("slow NIC"));
  }
}

TEST_CASE("job report: what storage traffic costs a job, with a class of its own and without",
          "[jobs]") {
  const std::string job = "bytes = \"4MiB\"\niterations = 3\n";
  const auto dataset = [](int traffic_class) {
    return fmt::format(
        "[workload.background]\nkind = \"dataset\"\nbytes = \"10000001B\"\nstorage_nics = 2\n"
        "message_bytes = \"1MiB\"\ntraffic_class = {}\n",
        traffic_class);
  };
  const auto took = [&](const std::string& nics, const std::string& more) {
    const ScenarioRun run =
        run_job(prepared_job(job, "hosts = " + nics + "\nrate = \"100Gb/s\"\n", more));
    check_parts(*run.job);
    CHECK(run.job->ranks.size() == 8);
    CHECK(run.job->background.bytes == (more.empty() ? 0 : 80'000'008));
    const bool told = job_text(*run.job).find("background ") != std::string::npos;
    CHECK(told == !more.empty());
    std::uint64_t of_storage = 0;
    for (const FlowRow& row : run.flows) {
      if (row.src >= 8) of_storage += row.bytes;
    }
    CHECK(of_storage == run.job->background.bytes);
    return static_cast<double>(run.job->took.count);
  };
  const double alone = took("8", "");
  const double own_class = took("10", dataset(1));
  const double same_class = took("10", dataset(3));
  CAPTURE(alone, own_class, same_class);
  CHECK(own_class < 1.05 * alone);
  CHECK(same_class > 1.1 * alone);
}

TEST_CASE("job report: storage sends training data to every rank", "[jobs]") {
  const ScenarioRun run = run_job(
      prepared_job("bytes = \"1MiB\"\n", "hosts = 6\nrate = \"100Gb/s\"\n",
                   "[workload.background]\nkind = \"dataset\"\nbytes = \"3MiB\"\nstorage_nics = 2\n"
                   "message_bytes = \"256KiB\"\noutstanding = 2\nstart = \"10us\"\n"));
  std::map<std::uint32_t, std::uint64_t> received;
  for (const FlowRow& row : run.flows) {
    if (row.src < 4) continue;
    received[row.dst] += row.bytes;
    CHECK(row.start >= picos_from_micros(10));
  }
  CHECK(received == std::map<std::uint32_t, std::uint64_t>{
                        {0, 3 << 20}, {1, 3 << 20}, {2, 3 << 20}, {3, 3 << 20}});
}

TEST_CASE("job report: a NIC whose link is slow is named, and no rank", "[jobs]") {
  std::vector<std::pair<std::string, std::string>> schedules;  // operation and name
  for (const auto op : {workload::CollectiveOp::all_reduce, workload::CollectiveOp::all_to_all}) {
    for (const std::string_view name : workload::schedule_names(op)) {
      schedules.emplace_back(to_string(op), name);
    }
  }
  for (const auto& [operation, name] : schedules) {
    for (const std::string chunk : {"64KiB", "1MiB"}) {
      const PreparedScenario scenario = prepared_job(
          fmt::format(
              "operation = \"{0}\"\n{0} = \"{1}\"\nbytes = \"1MiB\"\nchunk_bytes = \"{2}\"\n"
              "iterations = 3\ncompute = \"10us\"\n",
              operation, name, chunk),
          kEightNics,
          "[[event]]\nat = \"0us\"\nlink = \"host5\"\naction = \"rate\"\nrate = \"25Gb/s\"\n");
      const ScenarioRun run = run_job(scenario);
      const std::string text = job_text(*run.job);
      CAPTURE(operation, name, chunk, text);
      check_parts(*run.job);
      check_path(scenario, run);
      REQUIRE(run.job->stragglers.size() == 1);
      const Straggler& slow = run.job->stragglers[0];
      CHECK(slow.kind == Straggler::Kind::nic);
      CHECK(slow.number == 5);
      CHECK(std::max(slow.pace.sent, slow.pace.received) > 1.5);
      CHECK_THAT(text, Contains("slow NIC   NIC 5") && !Contains("straggler"));
    }
  }
}

TEST_CASE("job report: nobody is named where all are alike", "[jobs]") {
  for (std::size_t i = 0; i < workload::kCollectiveOps; ++i) {
    const auto op = static_cast<workload::CollectiveOp>(i);
    for (const std::string_view name : workload::schedule_names(op)) {
      const PreparedScenario scenario = prepared_job(fmt::format(
          "operation = \"{0}\"\n{0} = \"{1}\"\nbytes = \"1MiB\"\nchunk_bytes = \"64KiB\"\n"
          "iterations = 3\ncompute = \"50us\"\njitter = 0.01\n",
          to_string(op), name));
      const ScenarioRun run = run_job(scenario);
      CAPTURE(to_string(op), name, job_text(*run.job));
      check_parts(*run.job);
      check_path(scenario, run);
      CHECK(run.job->stragglers.empty());
    }
  }
}

TEST_CASE("job report: no schedule of an all-reduce has more than the rate of a NIC", "[jobs]") {
  for (const std::string_view name : workload::schedule_names(workload::CollectiveOp::all_reduce)) {
    const PreparedScenario scenario = prepared_job(
        "bytes = \"2MiB\"\nchunk_bytes = \"64KiB\"\n"
        "all_reduce = \"" +
        std::string(name) + "\"\n");
    const ScenarioRun run = run_job(scenario);
    CAPTURE(name);
    REQUIRE(run.job->kinds.size() == 1);
    CHECK(run.job->kinds[0].bus_gbytes <= 12.5);
    CHECK(run.job->kinds[0].bus_gbytes > 0);
    const CollectiveTime& call = run.job->calls[0];
    const double seconds = static_cast<double>((call.end - call.last_entry).count) / 1e12;
    CHECK(run.job->kinds[0].bus_gbytes ==
          Approx(2'097'152 / seconds * 2 * 7 / 8 / 1e9).epsilon(1e-9));
    CHECK(call.took() >= call.ideal);
  }
}

TEST_CASE("job report: a large ring all-reduce runs close to the rate of the NICs", "[jobs]") {
  const ScenarioRun run = run_job(prepared_job("bytes = \"64MiB\"\n"));
  const CollectiveTime& call = run.job->calls.at(0);
  const double efficiency =
      static_cast<double>(call.ideal.count) / static_cast<double>(call.took().count);
  CHECK(efficiency >= 0.95);
  CHECK(efficiency <= 1);
  CHECK(run.result.metrics[experiment::Metric::collective_efficiency] == Approx(efficiency));
}

TEST_CASE("job report: computing and then a collective take what both take", "[jobs]") {
  const std::string bytes = "bytes = \"1MiB\"\n";
  const Picos alone = run_job(prepared_job(bytes)).job->took;
  const ScenarioRun both = run_job(prepared_job(bytes + "iterations = 3\ncompute = \"200us\"\n"));
  const auto expected = static_cast<double>(3 * (picos_from_micros(200) + alone).count);
  CHECK(static_cast<double>(both.job->took.count) == Approx(expected).epsilon(0.01));
}

TEST_CASE("job report: the trace has an event for each op", "[jobs]") {
  const PreparedScenario scenario =
      prepared_job("bytes = \"256KiB\"\niterations = 2\ncompute = \"20us\"\n");
  const ScenarioRun run = run_job(scenario);
  const Json trace = Json::parse(job_trace(scenario.inputs.job, *run.job));
  std::map<std::string, std::size_t> events;
  std::map<std::uint32_t, double> computing;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") {
      ++events["names"];
      continue;
    }
    CHECK(event["ph"] == "X");
    ++events[event["name"]];
    CHECK(event["dur"] > 0);
    const double end = event["ts"].get<double>() + event["dur"].get<double>();
    CHECK(end <= static_cast<double>(run.job->took.count) / 1e6 + 1e-6);
    if (event["name"] == "compute") {
      computing[event["pid"]] += event["dur"].get<double>();
      CHECK(event["tid"] == 0);
    } else {
      CHECK(event["args"]["bytes"] == 262'144);
    }
  }
  CHECK(events == std::map<std::string, std::size_t>{
                      {"names", 8}, {"compute", 8 * 2}, {"all_reduce", 8 * 2}});
  for (std::uint32_t rank = 0; rank < 8; ++rank) CHECK(computing[rank] == Approx(40));

  const Json json = Json::parse(job_json(*run.job).dump());
  CHECK(json["took_ps"] == run.job->took.count);
  CHECK(json["ranks"].size() == 8);
  REQUIRE(json["collectives"].size() == 1);
  CHECK(json["collectives"][0]["calls"] == 2);
  CHECK(json["stragglers"].empty());
}

TEST_CASE("job report: the binomial tree of a GOAL file", "[jobs]") {
  const PreparedScenario scenario = prepared_job(
      "format = \"goal\"\nfile = \"" + kJobs + "goal/binary_tree_32.goal\"\n", "hosts = 32\n");
  const ScenarioRun run = run_job(scenario);
  check_parts(*run.job);
  check_path(scenario, run);
  CHECK(run.flows.size() == 31);
  CHECK(run.job->calls.empty());
  CHECK(run.job->stragglers.empty());
  // Depth 5.
  CHECK(run.job->path.steps.size() == 5);
  const Json trace = Json::parse(job_trace(scenario.inputs.job, *run.job));
  CHECK(trace["traceEvents"].size() == 32 + 31 + 31);

  auto few = config::read_scenario_text(
      "[fabric]\nhosts = 16\n[workload]\nkind = \"job\"\n[workload.job]\nformat = \"goal\"\n"
      "file = \"" +
          kJobs + "goal/binary_tree_32.goal\"\n",
      "test", ".", {cc::algorithms(), {}});
  REQUIRE(few.errors == Lines{});
  CHECK(prepare(std::move(few.value)).errors ==
        Lines{kJobs + "goal/binary_tree_32.goal: 32 ranks: the fabric has 16 NICs"});
}

// The trace sums for 7 us in each step of its first half, which is left out; a rank waits for its
// own acknowledgement before the next step, which a slow link makes small.
TEST_CASE("job report: a ring of Chakra traces takes the time of a ring all-reduce", "[jobs]") {
  const std::string slow = "hosts = 8\nrate = \"10Gb/s\"\ndelay = \"100ns\"\n";
  const PreparedScenario chakra =
      prepared_job("format = \"chakra\"\nfile = \"" + kJobs +
                       "chakra/custom_ring_allreduce_8\"\ncompute_scale = 0\n",
                   slow);
  const ScenarioRun trace = run_job(chakra);
  check_parts(*trace.job);
  check_path(chakra, trace);
  CHECK(trace.flows.size() == 8 * 14);
  const ScenarioRun ring = run_job(prepared_job("bytes = \"1MiB\"\n", slow));
  CHECK(static_cast<double>(trace.job->took.count) ==
        Approx(static_cast<double>(ring.job->took.count)).epsilon(0.02));
}

TEST_CASE("job report: two threads make the same run", "[jobs][threads]") {
  const PreparedScenario scenario = prepared_job(
      "bytes = \"1MiB\"\niterations = 2\ncompute = \"10us\"\njitter = 0.1\nqueue_pairs = 2\n",
      "topology = \"leaf_spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n");
  const ScenarioRun one = run_job(scenario);
  const ScenarioRun two = run_job(scenario, 2);
  CHECK(two.one_thread_because.empty());
  CHECK(two.result.trace_hash == one.result.trace_hash);
  CHECK(two.job->took == one.job->took);
}

}  // namespace
}  // namespace paceline::tools::job_report_test
