// Topologies and flow lists in the text formats of the HPCC simulator
// (alibaba-edu/High-Precision-Congestion-Control, simulation/mix and traffic_gen/README.md).
//
//   topology   nodes switches links
//              the switches' node numbers, on one line
//              a b rate delay error_rate         one line per full-duplex link
//   flows      count
//              src dst pg dport bytes start_seconds
//
// Nodes are numbered freely there; here hosts are 0 .. h-1 and switches follow, each in the order
// of the file's numbers. After the last line may come a blank line and notes, as in that project's
// own examples; a further line that begins like a number is an error, and so is a missing one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/config/scenario.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::workload {

// The numbers that a file uses for its nodes.
class NodeNumbers {
 public:
  NodeNumbers() = default;
  // Both sorted, without repetition.
  NodeNumbers(std::vector<std::uint32_t> hosts, std::vector<std::uint32_t> switches)
      : hosts_(std::move(hosts)), switches_(std::move(switches)) {}

  // Hosts that are NICs of servers, numbered server by server in the file and rail by rail here,
  // and their ports, one after the other (config::FabricConfig::endpoints).
  void set_servers(std::uint32_t nics, std::uint32_t ports) {
    nics_ = nics;
    ports_ = ports;
  }

  // The star without a topology file: hosts 0 .. hosts-1; no flow can name the switch.
  static NodeNumbers star(std::uint32_t hosts);

  std::uint32_t hosts() const { return static_cast<std::uint32_t>(hosts_.size()); }
  std::uint32_t switches() const { return static_cast<std::uint32_t>(switches_.size()); }
  std::uint32_t nodes() const { return hosts() + switches(); }
  std::uint32_t endpoints() const { return hosts() * ports_; }

  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  std::uint32_t host_index(std::uint32_t number) const;  // kNone: not a host
  std::uint32_t node_index(std::uint32_t number) const;  // switches after all ports of hosts
  std::uint32_t number(std::uint32_t node_index) const;
  // Hosts in the order of their numbers are the ranks of a workload.
  std::uint32_t rank(std::uint32_t number) const;  // kNone: not a host
  std::uint32_t number_of_rank(std::uint32_t rank) const { return hosts_[rank]; }

 private:
  std::vector<std::uint32_t> hosts_;
  std::vector<std::uint32_t> switches_;
  std::uint32_t nics_ = 1;
  std::uint32_t ports_ = 1;
};

struct HpccTopology {
  NodeNumbers numbers;
  std::vector<config::LinkSpec> links;  // by node index
};

// Besides the syntax: every host has exactly one link, to a switch, and every host reaches every
// other; rates and delays are above 0.
config::Read<HpccTopology> parse_hpcc_topology(std::string_view text, const std::string& source);
config::Read<HpccTopology> read_hpcc_topology(const std::string& path);
std::string write_hpcc_topology(const HpccTopology& topology);

struct HpccFlow {
  std::uint32_t src = 0;  // ranks
  std::uint32_t dst = 0;
  std::uint8_t priority_group = 3;  // the traffic class
  std::uint16_t dst_port = 100;     // kept for writing; queue pairs need none
  std::uint64_t bytes = 0;
  Picos start{0};  // exactly the decimal of the file
  friend bool operator==(const HpccFlow&, const HpccFlow&) = default;
};

config::Read<std::vector<HpccFlow>> parse_hpcc_flows(std::string_view text,
                                                     const std::string& source,
                                                     const NodeNumbers& numbers);
config::Read<std::vector<HpccFlow>> read_hpcc_flows(const std::string& path,
                                                    const NodeNumbers& numbers);
std::string write_hpcc_flows(const std::vector<HpccFlow>& flows, const NodeNumbers& numbers);

}  // namespace paceline::workload
