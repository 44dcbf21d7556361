// The part of a job's plan that one rank runs: what it sends and computes, and what it receives.
// The parent extracts it from the whole plan and sends it in lines, because it may be large.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "dataplane/base/units.h"

namespace paceline::rank {

inline constexpr std::uint32_t kNoPlanMessage = 0xFFFF'FFFF;
// PlanSend::lane: any idle connection to the peer.
inline constexpr std::uint32_t kPooledLane = 0xFFFF'FFFF;
// A message is one work request, and its number travels as immediate data.
inline constexpr std::uint64_t kMostPlanMessageBytes = std::uint64_t{1} << 30;

// A message of the rank, or a time of computing.
struct PlanSend {
  std::uint32_t id = 0;  // of the whole plan
  std::uint32_t to = 0;
  std::uint64_t bytes = 0;
  Picos start{0};
  Picos gap{0};
  std::uint32_t lane = 0;  // messages of one peer and lane share a connection, in order
  std::uint64_t at = 0;    // in the receiver's memory
  std::uint8_t service_level = 0;
  bool computes = false;
  std::vector<std::uint32_t> after;  // ids: of arrivals, or of the rank's own
};

struct PlanArrival {
  std::uint32_t id = 0;
  std::uint32_t from = 0;
  std::uint64_t bytes = 0;
  std::uint32_t lane = 0;
  std::uint64_t at = 0;  // in the own memory
};

struct PlanPart {
  bool data = true;                   // else messages share memory, and only lengths are checked
  std::uint64_t receive_bytes = 0;    // memory for arrivals
  std::vector<PlanSend> sends;        // by id
  std::vector<PlanArrival> arrivals;  // by id
};

// Lines of at most some hundred kilobytes.
std::vector<nlohmann::json> part_lines(const PlanPart& part);

// Puts the lines together again. True: that was the last. Throws nlohmann::json::exception.
bool add_part_line(const nlohmann::json& line, PlanPart& part);

}  // namespace paceline::rank
