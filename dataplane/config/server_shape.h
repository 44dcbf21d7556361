// How the NICs of a fabric belong to servers and rails.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/config/scenario.h"

namespace paceline::config {

// A rail is the NICs of the same index of all servers. NIC number = rail * servers + server.
struct ServerShape {
  std::uint32_t servers = 1;
  std::uint32_t nics = 1;  // of a server

  std::uint32_t all_nics() const { return servers * nics; }
  std::uint32_t server_of(std::uint32_t nic) const { return nic % servers; }
  std::uint32_t rail_of(std::uint32_t nic) const { return nic / servers; }
  std::uint32_t nic_number(std::uint32_t server, std::uint32_t rail) const {
    return rail * servers + server;
  }
  bool same_server(std::uint32_t a, std::uint32_t b) const {
    return nics > 1 && server_of(a) == server_of(b);
  }
};

inline ServerShape server_shape(const FabricConfig& fabric) {
  return {fabric.hosts / fabric.nics, fabric.nics};
}

// The NICs that workload.background leaves for the ranks of a job.
std::uint32_t job_ranks(const Scenario& scenario);

// What is wrong with workload.background.storage_nics, or "". The number of hosts is known.
std::string storage_error(const Scenario& scenario);

}  // namespace paceline::config
