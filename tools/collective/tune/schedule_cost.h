// The cost of a schedule by a model of latency and bandwidth. Its transfers, placed on NICs, are
// counted round by round, and the longest chain of them is the time of one part. Parts follow one
// another as closely as the busiest port, the busiest NVLink or the window allows.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/workload/schedules/schedule.h"

namespace paceline::tools {

// Seconds per message, and per byte of it, between NICs and over NVLink.
struct SendCost {
  double alpha = 0;
  double beta = 0;
  double nvlink_alpha = 0;
  double nvlink_beta = 0;
};

// Seconds, by cause.
struct CostSplit {
  double latency = 0;    // of messages between NICs
  double bandwidth = 0;  // of NICs and of the links between switches
  double nvlink = 0;
  double total() const { return latency + bandwidth + nvlink; }
};

// How a collective is cut.
struct PartCut {
  std::uint64_t bytes = 0;  // of a rank's whole buffer
  std::uint64_t parts = 1;
  std::uint64_t under_way = 1;  // parts in flight at a time
};

// A schedule with a round for each transfer: the length of the longest chain of transfers before
// it.
struct PlacedSchedule {
  workload::Schedule schedule;
  std::vector<std::uint32_t> nics;     // by rank
  std::vector<std::uint32_t> servers;  // by rank
  std::vector<std::uint32_t> rounds;   // by transfer
  std::uint32_t round_count = 0;

  bool inside(const workload::Transfer& t) const { return servers[t.from] == servers[t.to]; }
  // Share of the whole buffer that a transfer carries.
  double share(const workload::Transfer& t) const {
    return static_cast<double>(t.pieces) / static_cast<double>(schedule.blocks);
  }
};

PlacedSchedule place_schedule(workload::Schedule schedule, std::vector<std::uint32_t> nics,
                              std::vector<std::uint32_t> servers);

// The load of the busiest port of a fabric, in buffers at the rate of a NIC (fabric_load.h).
struct PortLoads {
  std::vector<double> rounds;
  double all = 0;             // rounds together
  std::vector<double> paths;  // by transfer: how much slower than a NIC its way is
};

class ScheduleCost {
 public:
  ScheduleCost(const PlacedSchedule& placed, const PortLoads& ports);

  CostSplit estimate(const PartCut& cut, const SendCost& cost) const;

  std::uint32_t rounds() const { return rounds_; }
  // Messages between NICs that follow one another, in the chain that has most of them.
  std::uint32_t network_rounds() const { return network_rounds_; }
  // The load of the busiest port, in buffers.
  double port_share() const { return port_share_; }

 private:
  struct Step {
    bool free = false;    // within a rank
    bool inside = false;  // over NVLink
    double share = 0;     // of the buffer, with what it shares its NIC or port with
    std::uint32_t first_wait = 0;
    std::uint32_t waits = 0;
  };

  CostSplit part(double bytes, const SendCost& cost) const;

  std::vector<Step> steps_;
  std::vector<std::uint32_t> waits_;
  std::uint32_t rounds_ = 0;
  std::uint32_t network_rounds_ = 0;
  double port_share_ = 0;
  double nvlink_share_ = 0;  // of the busiest GPU
};

}  // namespace paceline::tools
