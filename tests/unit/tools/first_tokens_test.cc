// Requests of an inference service as they run: one at a time at each prefill rank, and the time to
// their first tokens.

#include "tools/run/first_tokens.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/tools/job_runs.h"
#include "tools/run/job_text.h"

namespace paceline::tools::first_tokens_test {
namespace {

using namespace job_runs;
using Catch::Matchers::Contains;
using experiment::Metric;
using workload::JobOpKind;

std::string requests_of_trace(const std::string& settings) {
  return "format = \"inference\"\nfile = \"" + std::string(PACELINE_SOURCE_DIR) +
         "/tests/unit/workload/requests/mooncake_conversation_400.jsonl\"\n"
         "[workload.job.inference]\ntokens_per_second = 1000000\nlayers = 2\n" +
         settings;
}

// 6,758 tokens take 6,758 us, and their 13.516 MB 1,081.28 us at 100 Gb/s, without headers.
TEST_CASE("first tokens: the time of one request", "[jobs]") {
  const std::string two_nics = "hosts = 2\nrate = \"100Gb/s\"\n";
  const auto mean_of = [&](const std::string& transfers) {
    const PreparedScenario scenario = prepared_job(
        requests_of_trace("kv_bytes = 1000\nrequests = 1\nlayers_per_transfer = " + transfers),
        two_nics);
    const FirstTokens first = run_job(scenario).job->first_tokens;
    CHECK(first.requests == 1);
    CHECK(first.p50_us == first.mean_us);
    CHECK(first.p99_us == first.mean_us);
    return first.mean_us;
  };
  const double layer_wise = mean_of("1\n");
  CHECK(layer_wise > 6'758 + 540.64);
  CHECK(layer_wise < 6'758 + 1.15 * 540.64 + 20);
  const double at_the_end = mean_of("2\n");
  CHECK(at_the_end > 6'758 + 1'081.28);
  CHECK(at_the_end < 6'758 + 1.15 * 1'081.28 + 20);
}

TEST_CASE("first tokens: prefill ranks compute one request at a time", "[jobs]") {
  const PreparedScenario scenario = prepared_job(
      requests_of_trace("kv_bytes = 100\nrequests = 400\nprefill_nics = 5\ntime_scale = 200\n"));
  const workload::Job& job = scenario.inputs.job;
  const ScenarioRun run = run_job(scenario);
  const JobReport& report = *run.job;
  std::map<std::uint32_t, Picos> until;  // by rank
  std::uint32_t fetches = 0;
  for (std::size_t id = 0; id < job.ops.size(); ++id) {
    const workload::JobOp& op = job.ops[id];
    CHECK(report.ops[id].begin >= op.start);
    if (job.names[op.name] == "KV reuse") ++fetches;
    if (op.kind != JobOpKind::compute) continue;
    CHECK(op.rank < 5);
    CHECK(report.ops[id].begin >= until[op.rank]);
    CHECK(report.ops[id].end - report.ops[id].begin == op.duration);
    until[op.rank] = report.ops[id].end;
  }
  CHECK(fetches > 0);
  // What the decode ranks received last, by request: the tag of its receives.
  std::map<std::uint32_t, std::pair<Picos, Picos>> requests;
  for (std::size_t id = 0; id < job.ops.size(); ++id) {
    const workload::JobOp& op = job.ops[id];
    if (op.kind != JobOpKind::receive || op.rank < 5) continue;
    auto& [arrival, end] = requests[op.tag];
    arrival = op.start;
    end = later(end, report.ops[id].end);
  }
  std::vector<double> times;
  double sum = 0;
  for (const auto& [tag, request] : requests) {
    times.push_back(static_cast<double>((request.second - request.first).count) / 1e6);
    sum += times.back();
  }
  std::sort(times.begin(), times.end());
  REQUIRE(times.size() == 400);
  CHECK(report.first_tokens.requests == 400);
  CHECK(report.first_tokens.mean_us == Approx(sum / 400));
  CHECK(report.first_tokens.p50_us == times[199]);
  CHECK(report.first_tokens.p99_us == times[395]);
  CHECK(run.result.metrics[Metric::first_token_p50_us] == times[199]);
  CHECK(run.result.metrics[Metric::first_token_p99_us] == times[395]);
  CHECK_THAT(job_text(report), Contains("requests   400, to the first token: mean "));
  CHECK(job_json(report).at("first_token").at("p99_us") == times[395]);
  // The chain that determined the end begins when a request arrives.
  REQUIRE_FALSE(report.path.steps.empty());
  CHECK(report.path.steps.back().end == report.took);
  for (std::size_t i = 1; i < report.path.steps.size(); ++i) {
    CHECK(report.path.steps[i].begin == report.path.steps[i - 1].end);
  }
}

TEST_CASE("first tokens: a job without requests has no such metric", "[jobs]") {
  const ScenarioRun run = run_job(prepared_job("bytes = \"64KiB\"\n"));
  CHECK(run.result.metrics[Metric::job_time_us] > 0);
  CHECK(std::isnan(run.result.metrics[Metric::first_token_p50_us]));
  CHECK(std::isnan(run.result.metrics[Metric::first_token_p99_us]));
}

}  // namespace
}  // namespace paceline::tools::first_tokens_test
