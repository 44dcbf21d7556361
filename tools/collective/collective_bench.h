// Collectives of several sizes by several schedules, in virtual time: the table that nccl-tests
// prints.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/config/scenario.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::tools {

struct BenchPlan {
  config::Scenario scenario;  // of kind "job"; its operation, size and schedule are replaced
  std::string operation;
  std::vector<std::string> schedules;
  std::vector<std::uint64_t> sizes;
  std::uint32_t iterations = 4;  // counted; one before them is not
};

struct BenchRow {
  std::uint64_t bytes = 0;
  std::string schedule;
  std::string problem;          // the reason if there are no figures
  double took_us = 0;           // mean of the counted iterations
  double ideal_us = 0;          // 0: not known
  double algorithm_gbytes = 0;  // GB/s of a rank's buffer
  double bus_gbytes = 0;
  std::uint64_t drops = 0;
  bool best = false;          // of its size
  std::optional<bool> right;  // the data, where there is any
};

struct BenchProgress {
  std::uint32_t done = 0;
  std::uint32_t all = 0;
  std::string what;
  double share = 0;  // the finished share of the current run
};

// Errors: what makes every run impossible. Ends early, with the rows so far, once `stop` is set.
config::Read<std::vector<BenchRow>> run_bench(
    const BenchPlan& plan, const std::atomic<bool>& stop,
    const std::function<void(const BenchProgress&)>& progress);

// The schedules that can serve this many ranks, of which `per_server` share a server.
std::vector<std::string> possible_schedules(const std::string& operation, std::uint32_t ranks,
                                            std::uint32_t per_server);

// Marks the fastest of each size.
void mark_best(std::vector<BenchRow>& rows);

std::string bench_table(const std::vector<BenchRow>& rows);
nlohmann::ordered_json bench_json_rows(const std::vector<BenchRow>& rows);

std::string bench_text(const BenchPlan& plan, const std::vector<BenchRow>& rows);
std::string bench_json(const BenchPlan& plan, const std::vector<BenchRow>& rows);

}  // namespace paceline::tools
