// A topology file of [fabric]: in the format of the HPCC simulator (hpcc_format.h) or of SimAI's
// topology generator (aliyun/SimAI, inputs/topo/gen_Topo_Template.py).
//
//   SimAI   nodes gpus_per_server nvswitches switches links gpu_type
//           ids of all NVLink switches, then of all other switches, on one line
//           a b rate delay error_rate                  one line per full-duplex link
//
// There GPUs are 0 .. g-1, server by server. A GPU is a host here; its links to switches are the
// ports of its NIC, in the order of the lines. NVLink is not part of the fabric.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/config/scenario.h"
#include "dataplane/config/toml/diagnostics.h"
#include "tools/workload/files/hpcc_format.h"

namespace paceline::workload {

struct TopologyFile {
  NodeNumbers numbers;
  std::vector<config::LinkSpec> links;  // by node index
  std::uint32_t nics = 1;               // of a server
  std::uint32_t ports = 1;              // of a NIC
  // NVLink, left out of `links`.
  std::uint32_t nvswitches = 0;
  std::uint32_t nvlinks = 0;
  Rate nvlink_rate{};  // of the first
  Picos nvlink_delay{};
};

// By the number of words of the first line: three or six.
config::Read<TopologyFile> parse_topology_file(std::string_view text, const std::string& source);
config::Read<TopologyFile> read_topology_file(const std::string& path);

config::Read<TopologyFile> parse_simai_topology(std::string_view text, const std::string& source);

}  // namespace paceline::workload
