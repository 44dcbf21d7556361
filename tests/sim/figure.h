// Setups of published figures: long flows between few hosts, watched for a stated time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/driver/virtual/virtual_world.h"

namespace paceline::simtest {

struct FigureFlow {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  double start_us = 0;
};

// What was seen every `interval` of a run of `length`.
struct Watched {
  std::vector<std::vector<std::uint64_t>> sent;  // payload bytes by host, without repeats
  std::vector<std::uint64_t> accepted;           // payload that the watched host took in its turn
  std::vector<std::uint64_t> arrived;            // wire bytes that the fabric has delivered
  std::vector<std::uint64_t> queue;              // towards the watched host
  fabric::NetworkStats stats;
  telemetry::EngineCounters counters;
  double interval_us = 0;

  std::size_t at(double us) const { return static_cast<std::size_t>(us / interval_us) - 1; }
  // Gb/s of payload that the watched host took between two times: what got through, once.
  double goodput(double from_us, double to_us) const;
  // Gb/s of a host's payload between two times.
  double rate(std::uint32_t host, double from_us, double to_us) const;
  std::vector<double> rates(const std::vector<std::uint32_t>& hosts, double from_us,
                            double to_us) const;
  // Mean and deviation of the queue, its least and its most.
  double queue_mean(double from_us, double to_us) const;
  double queue_deviation(double from_us, double to_us) const;
  std::uint64_t queue_least(double from_us, double to_us) const;
  std::uint64_t queue_most(double from_us, double to_us) const;
};

// `toml` as a scenario (its workload is ignored) with flows that never end. `links`: instead of its
// topology, among `hosts` and `switches`.
struct FigureWiring {
  std::uint32_t hosts = 0;
  std::uint32_t switches = 0;
  std::vector<config::LinkSpec> links;
};
// A host whose congestion control is replaced before its flows begin, as an operator would: at 1
// us.
struct FigureHost {
  std::uint32_t host = 0;
  config::CcConfig cc;
};
Watched watch_flows(const std::string& toml, const std::vector<FigureFlow>& flows,
                    std::uint32_t watched_host, double length_us, double interval_us,
                    const FigureWiring& wiring = {}, const std::vector<FigureHost>& unlike = {});

}  // namespace paceline::simtest
