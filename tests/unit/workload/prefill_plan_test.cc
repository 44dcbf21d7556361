// Queues of prefill ranks, and what becomes of blocks that are somewhere already.
#include "tools/workload/inference/prefill_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/workload/inference_samples.h"

namespace paceline::workload::prefill_plan_test {
namespace {

using Lines = std::vector<std::string>;
using inference_samples::add_request;
using inference_samples::random_trace;
using inference_samples::requests_path;

constexpr std::int64_t kPicosOfOneSecond = 1'000'000'000'000;

// A block takes a second.
const InferenceSettings kBlockASecond{
    .prefill_ranks = 2, .decode_ranks = 3, .tokens_per_second = kBlockTokens};

TEST_CASE("prefill: the rank that is free first, and decode ranks in turn",
          "[workload][inference]") {
  RequestTrace trace;
  add_request(trace, 0, {1, 2, 3});              // rank 0 until 3 s
  add_request(trace, 0, {4});                    // rank 1 until 1 s
  add_request(trace, 0, {5, 6});                 // rank 1 until 3 s
  add_request(trace, 2 * kTicksPerSecond, {7});  // both until 3 s: rank 0, from 3 s on
  add_request(trace, 9 * kTicksPerSecond, {8});  // rank 1 has waited for work longer
  const auto turns = plan_prefill(trace, kBlockASecond);
  std::vector<std::uint32_t> prefill, decode;
  std::vector<std::int64_t> begin, end;  // seconds
  for (const PrefillTurn& turn : turns) {
    prefill.push_back(turn.prefill);
    decode.push_back(turn.decode);
    begin.push_back(turn.begin.count / kPicosOfOneSecond);
    end.push_back(turn.end.count / kPicosOfOneSecond);
  }
  CHECK(prefill == std::vector<std::uint32_t>{0, 1, 1, 0, 1});
  CHECK(decode == std::vector<std::uint32_t>{2, 3, 4, 2, 3});
  CHECK(begin == std::vector<std::int64_t>{0, 0, 1, 3, 9});
  CHECK(end == std::vector<std::int64_t>{3, 1, 3, 4, 10});
}

TEST_CASE("prefill: blocks are kept, fetched or computed", "[workload][inference]") {
  RequestTrace trace;
  add_request(trace, 0, {1, 2});                       // rank 0 until 2 s
  add_request(trace, 0, {1, 3, 4});                    // rank 1: rank 0 does not have 1 yet
  add_request(trace, 5 * kTicksPerSecond, {1, 2, 5});  // rank 0 has 1 and 2
  add_request(trace, 5 * kTicksPerSecond, {1, 2, 6});  // rank 1 has 1, and rank 0 has 2
  add_request(trace, 9 * kTicksPerSecond, {1, 2});     // all but the last token
  const auto turns = plan_prefill(trace, kBlockASecond);
  const auto tokens = [&turns](std::size_t i) {
    return std::vector<std::uint64_t>{turns[i].computed, turns[i].kept, turns[i].fetched()};
  };
  using Tokens = std::vector<std::uint64_t>;
  CHECK(tokens(0) == Tokens{1'024, 0, 0});
  CHECK(tokens(1) == Tokens{1'536, 0, 0});
  CHECK(turns[2].prefill == 0);
  CHECK(tokens(2) == Tokens{512, 1'024, 0});
  CHECK(turns[3].prefill == 1);
  CHECK(tokens(3) == Tokens{512, 512, 512});
  REQUIRE(turns[3].fetches.size() == 1);
  CHECK(turns[3].fetches[0].from == 0);
  CHECK(turns[3].fetches[0].request == 0);
  CHECK(tokens(4) == Tokens{1, 1'023, 0});
  InferenceSettings forgetful = kBlockASecond;
  forgetful.reuse = false;
  for (const PrefillTurn& turn : plan_prefill(trace, forgetful)) {
    CHECK(turn.kept + turn.fetched() == 0);
  }
}

// A rank alone keeps whatever came before.
TEST_CASE("prefill: one rank keeps every block of a published trace that came before",
          "[workload][inference]") {
  const auto read = read_request_trace(requests_path("mooncake_conversation_400.jsonl"));
  REQUIRE(read.errors == Lines{});
  std::set<std::uint64_t> seen;
  std::uint64_t blocks = 0, tokens = 0;
  for (const TraceRequest& request : read.value.requests) {
    std::uint64_t rest = request.input;
    for (const std::uint64_t block : read.value.blocks_of(request)) {
      const std::uint64_t of_block = std::min<std::uint64_t>(rest, 512);
      rest -= of_block;
      if (seen.insert(block).second) continue;
      ++blocks;
      tokens += of_block - (rest == 0 ? 1 : 0);
    }
  }
  CHECK(blocks == 11'349 - 9'821);
  std::uint64_t kept = 0, computed = 0;
  for (const PrefillTurn& turn : plan_prefill(read.value, {})) {
    kept += turn.kept;
    computed += turn.computed;
    CHECK(turn.fetches.empty());
  }
  CHECK(kept == tokens);
  CHECK(kept + computed == 5'710'530);
}

// Each turn against the queues and blocks as they are, looked up the slow way.
TEST_CASE("prefill: turns of random traces obey the rules", "[workload][inference]") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    const RequestTrace trace = random_trace(seed, 120);
    const auto ranks = static_cast<std::uint32_t>(1 + seed % 5);
    const InferenceSettings settings{
        .prefill_ranks = ranks, .decode_ranks = 2, .tokens_per_second = 3'000, .time_scale = 1.5};
    const auto turns = plan_prefill(trace, settings);
    REQUIRE(turns.size() == trace.requests.size());
    std::vector<Picos> free(ranks);
    std::uint64_t kept = 0, fetched = 0;
    for (std::size_t i = 0; i < turns.size(); ++i) {
      const PrefillTurn& turn = turns[i];
      const TraceRequest& request = trace.requests[i];
      CHECK(turn.prefill == std::min_element(free.begin(), free.end()) - free.begin());
      CHECK(turn.begin == later(turn.arrival, free[turn.prefill]));
      CHECK(std::abs(static_cast<double>(turn.end.count - turn.begin.count) -
                     static_cast<double>(turn.computed) * 1e12 / 3'000) < 2);
      free[turn.prefill] = turn.end;
      CHECK(turn.computed >= 1);
      CHECK(turn.computed + turn.kept + turn.fetched() == request.input);
      kept += turn.kept;
      fetched += turn.fetched();
      std::uint64_t rest = request.input, here = 0, elsewhere = 0;
      for (const std::uint64_t block : trace.blocks_of(request)) {
        const std::uint64_t tokens = std::min<std::uint64_t>(rest, 512);
        rest -= tokens;
        bool at_rank = false, at_other = false;
        for (std::size_t k = 0; k < i; ++k) {
          const auto had = trace.blocks_of(trace.requests[k]);
          if (std::find(had.begin(), had.end(), block) == had.end()) continue;
          at_rank = at_rank || turns[k].prefill == turn.prefill;
          at_other = at_other || turns[k].end <= turn.begin;
        }
        if (at_rank) here += tokens - (rest == 0 ? 1 : 0);
        if (!at_rank && at_other) elsewhere += tokens - (rest == 0 ? 1 : 0);
      }
      CHECK(turn.kept == here);
      CHECK(turn.fetched() == elsewhere);
      for (const BlockFetch& fetch : turn.fetches) {
        CHECK(fetch.from != turn.prefill);
        CHECK(turns[fetch.request].prefill == fetch.from);
        CHECK(turns[fetch.request].end <= turn.begin);
      }
    }
    CHECK(kept > 0);
    CHECK((ranks == 1) == (fetched == 0));
  }
}

TEST_CASE("prefill: settings that do not fit", "[workload][inference]") {
  RequestTrace trace;
  add_request(trace, 0, std::vector<std::uint64_t>(2'048));
  add_request(trace, 3'000 * kTicksPerSecond, {1});
  InferenceSettings settings;
  settings.tokens_per_second = 1;
  CHECK(inference_errors(trace, settings) ==
        Lines{"workload.job.inference.tokens_per_second = 1: all prompts take 1.05e+06 s: at most "
              "1e+06 s fit"});
  settings = {.kv_bytes = 1 << 20, .tokens_per_second = 1'000};
  settings.layers = 1'024;
  settings.requests = 3;
  settings.time_scale = 0.001;
  // 2048 blocks of 512 tokens, 2^30 B each.
  CHECK(inference_errors(trace, settings) ==
        Lines{"workload.job.inference.requests = 3: the trace has 2",
              "workload.job.inference.time_scale = 0.001: the last request comes after 3e+06 s: at "
              "most 1e+06 s fit",
              "workload.job.inference.kv_bytes = 1048576: 1.13e+15 B of the longest prompt: at "
              "most 1e+15 B fit"});
}

}  // namespace
}  // namespace paceline::workload::prefill_plan_test
