// Requests of an inference service as a job: bytes, order, and what waits for what.
#include "tools/workload/inference/inference_job.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/workload/inference_samples.h"
#include "tests/unit/workload/job_plan_samples.h"
#include "tools/workload/job_plans/job_plan.h"

namespace paceline::workload::inference_job_test {
namespace {

using Lines = std::vector<std::string>;
using inference_samples::add_request;
using inference_samples::random_trace;
using inference_samples::requests_path;

constexpr std::uint64_t kMany = 1'000'000;

const std::string& name_of(const Job& job, const JobOp& op) { return job.names[op.name]; }

TEST_CASE("inference jobs: bytes of a published trace", "[workload][inference]") {
  const auto trace = read_request_trace(requests_path("mooncake_conversation_400.jsonl"));
  REQUIRE(trace.errors == Lines{});
  const InferenceSettings settings{.prefill_ranks = 5,
                                   .decode_ranks = 3,
                                   .layers = 10,
                                   .layers_per_transfer = 4,
                                   .kv_bytes = 1'000,
                                   .tokens_per_second = 20'000};
  const auto read = job_of_inference(trace.value, settings);
  REQUIRE(read.errors == Lines{});
  const Job& job = read.value;
  std::uint64_t cache = 0, reused = 0, fetched = 0;
  for (const JobOp& op : job.ops) {
    if (op.kind != JobOpKind::send) continue;
    (name_of(job, op) == "KV cache" ? cache : reused) += op.bytes;
    CHECK(op.rank < 5);
    CHECK((op.peer < 5) == (name_of(job, op) == "KV reuse"));
  }
  for (const PrefillTurn& turn : plan_prefill(trace.value, settings)) fetched += turn.fetched();
  CHECK(cache == 5'710'530ULL * 10 * 1'000);
  CHECK(reused == fetched * 10 * 1'000);
  CHECK(fetched > 0);
  CHECK(job.requests.size() == 400);
  // Layers 0 to 3, 4 to 7, 8 and 9 of 6,758 tokens.
  const JobRequest& first = job.requests[0];
  REQUIRE(first.receives == 3);
  for (std::uint32_t part = 0; part < 3; ++part) {
    const JobOp& receive = job.ops[first.first_receive + part];
    CHECK(receive.kind == JobOpKind::receive);
    CHECK(receive.rank == 5);
    CHECK(receive.bytes == 6'758'000ULL * (part == 2 ? 2 : 4));
  }
}

TEST_CASE("inference jobs: a rank computes one request after the other", "[workload][inference]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    const RequestTrace trace = random_trace(seed, 60);
    const InferenceSettings settings{.prefill_ranks = 3,
                                     .decode_ranks = 2,
                                     .layers = 6,
                                     .layers_per_transfer = static_cast<std::uint32_t>(seed),
                                     .tokens_per_second = 3'000};
    const auto read = job_of_inference(trace, settings);
    REQUIRE(read.errors == Lines{});
    const Job& job = read.value;
    const auto turns = plan_prefill(trace, settings);
    const auto waits_for = [&job](std::uint32_t op, std::uint32_t before) {
      return std::binary_search(job.waits.begin(), job.waits.end(), std::pair(op, before));
    };
    std::map<std::uint32_t, std::uint32_t> last;  // by rank: the computing before
    std::map<std::uint32_t, Picos> computed;      // by rank
    for (std::uint32_t id = 0; id < job.ops.size(); ++id) {
      const JobOp& op = job.ops[id];
      if (op.kind != JobOpKind::compute) continue;
      if (const auto before = last.find(op.rank); before != last.end()) {
        CHECK(waits_for(id, before->second));
      }
      last[op.rank] = id;
      computed[op.rank] += op.duration;
      // What has been computed is sent.
      REQUIRE(job.ops[id + 1].kind == JobOpKind::send);
      CHECK(waits_for(id + 1, id));
    }
    for (const PrefillTurn& turn : turns) computed[turn.prefill] += turn.begin - turn.end;
    for (const auto& [rank, left] : computed) CHECK(left == Picos{0});
    // It has an end, in an order that every request's arrival bounds.
    const auto servers = job_plan_samples::servers_of(5, 1);
    const auto plan = plan_job(job, servers, {}, kMany);
    REQUIRE(plan.errors == Lines{});
    for (std::uint32_t i = 0; i < turns.size(); ++i) {
      const std::uint32_t head = plan.value.spans[job.requests[i].first_receive].begin;
      CHECK(plan.value.plan.messages[head].start == turns[i].arrival);
    }
  }
}

TEST_CASE("inference jobs: what is fetched waits for the rank that has it, and is waited for",
          "[workload][inference]") {
  RequestTrace trace;
  add_request(trace, 0, {1, 2});
  add_request(trace, 0, {3});
  add_request(trace, 9 * kTicksPerSecond, {1, 4});  // rank 1, as its queue ended first
  const auto read = job_of_inference(
      trace, {.prefill_ranks = 2, .layers = 2, .kv_bytes = 10, .tokens_per_second = kBlockTokens});
  REQUIRE(read.errors == Lines{});
  const Job& job = read.value;
  // Each request computes twice, sends twice and receives twice. Before the last: send, receive.
  REQUIRE(job.ops.size() == 3 * 6 + 2);
  const JobOp& send = job.ops[12];
  CHECK(send.kind == JobOpKind::send);
  CHECK(std::pair(send.rank, send.peer) == std::pair(0U, 1U));
  CHECK(send.bytes == 512 * 10 * 2);
  CHECK(send.start == Picos{9'000'000'000'000});
  using Waits = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  CHECK(job.waits == Waits{{1, 0},
                           {2, 0},
                           {3, 2},
                           {7, 6},
                           {8, 6},
                           {9, 8},
                           {12, 2},
                           {14, 8},
                           {14, 13},
                           {15, 14},
                           {16, 14},
                           {17, 16}});
}

TEST_CASE("inference jobs: too many operations", "[workload][inference]") {
  RequestTrace trace;
  for (int i = 0; i < 6'000; ++i) add_request(trace, 0, {1});
  CHECK(job_of_inference(trace, {.layers = 1'000, .tokens_per_second = 1'000'000}).errors ==
        Lines{"workload.job.inference.layers_per_transfer = 1: 18000000 operations of 6000 "
              "requests: at most 16777216 fit; more layers in a transfer make fewer"});
}

}  // namespace
}  // namespace paceline::workload::inference_job_test
