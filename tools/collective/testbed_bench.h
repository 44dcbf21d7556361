// Collectives with data between the NICs of a running testbed: one process a rank, over verbs.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"
#include "tools/collective/collective_bench.h"

namespace paceline::tools {

struct TestbedPlan {
  std::string testbed;
  std::string operation;
  std::vector<std::string> schedules;
  std::vector<std::uint64_t> sizes;
  std::uint32_t iterations = 4;
  std::uint32_t per_server = 1;
  std::uint64_t chunk_bytes = 1 << 20;
  std::uint32_t window = 8;
  std::vector<std::string> nics;  // of the ranks
};

struct TestbedRows {
  std::vector<BenchRow> rows;
  std::vector<std::string> failures;  // ranks that failed, wrong elements
};

// Errors: what makes every run impossible. Ends early, with the rows so far, once `stop` is set.
config::Read<TestbedRows> run_testbed_bench(
    const TestbedPlan& plan, const std::atomic<bool>& stop,
    const std::function<void(const BenchProgress&)>& progress);

std::string testbed_text(const TestbedPlan& plan, const std::vector<BenchRow>& rows);
std::string testbed_json(const TestbedPlan& plan, const std::vector<BenchRow>& rows);

}  // namespace paceline::tools
