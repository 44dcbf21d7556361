// What queue pairs tell about their losses and paths, in virtual time and on a testbed alike.
#pragma once

#include <cstdint>
#include <vector>

#include "control/diagnosis/evidence.h"
#include "dataplane/config/scenario.h"
#include "dataplane/driver/traffic/fabric_ideal.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/topology.h"
#include "dataplane/telemetry/segment.h"

namespace paceline::tools {

// How often packets of the queue pair were found missing.
std::uint64_t losses_of(const config::Scenario& scenario, const telemetry::QueuePairRecord& record);

// The paths of queue pairs by the fabric's description: without failures.
class DescribedPaths {
 public:
  // Both must outlive this.
  DescribedPaths(const config::Scenario& scenario, const fabric::FabricSpec& spec)
      : scenario_(scenario), spec_(spec), topology_(spec), ideal_(scenario, spec, topology_) {}
  DescribedPaths(const DescribedPaths&) = delete;
  DescribedPaths& operator=(const DescribedPaths&) = delete;

  // Sets base_rtt_ns of a pair with src and dst and, if packets take one path, its paths.
  // `source_port`: of its packets; 0: not known. `hash_known`: switches choose among paths as
  // emulated ones do; else only a path without alternatives is known.
  void describe(std::uint16_t source_port, diagnosis::PairEvidence& pair,
                bool hash_known = true) const;

 private:
  std::vector<std::uint32_t> only_way(std::uint32_t from, std::uint32_t to) const;

  const config::Scenario& scenario_;
  const fabric::FabricSpec& spec_;
  fabric::Topology topology_;
  FabricIdeal ideal_;
};

}  // namespace paceline::tools
