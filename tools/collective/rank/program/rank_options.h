// The command line of paceline-rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/workload/schedules/schedule.h"

namespace paceline::rank {

struct RankOptions {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::uint32_t per_server = 1;
  std::string operation = "all_reduce";
  std::string schedule = "ring";
  std::vector<std::uint64_t> bytes;
  std::uint32_t iterations = 4;
  std::uint64_t chunk_bytes = 1 << 20;
  std::uint32_t window = 8;
  std::string meet;
  double patience = 60;
  bool plan = false;  // of a job, which the parent sends: all but rank, ranks and meet is unused
};

// What the command line asks for; an exit status if there is nothing to do, with errors printed.
struct RankCommand {
  RankOptions options;
  workload::Schedule schedule;
  std::optional<int> exit_code;
};
RankCommand read_rank_command(int argc, char** argv);

}  // namespace paceline::rank
