// Connection matrices of htsim (ultraethernet/uet-htsim, htsim/sim/datacenter/connection_matrix.cpp
// and connection_matrices/*.cm).
//
//   header   Nodes N, Connections C, Triggers T, Failures F: one a line, before all others
//   flow     a->b { id I | start TIME | trigger T | size BYTES | send_done_trigger T |
//                   recv_done_trigger T | prio P | msg [M] }
//   trigger  trigger id T oneshot|multishot|barrier [count K]
//   failure  failure switch_type TOR|AGG|CORE switch_id S link_id L
//
// Lines with `msg` and one id are messages of one connection, in the order of the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::workload {

struct HtsimFlow {
  std::uint32_t src = 0;
  std::uint32_t dst = 0;
  std::uint32_t id = 0;  // 0: none
  std::uint32_t line = 0;
  std::uint64_t bytes = 0;
  Picos start{0};
  std::uint32_t trigger = 0;    // what starts it; 0: its start
  std::uint32_t send_done = 0;  // trigger when the sender has every acknowledgement; 0: none
  std::uint32_t recv_done = 0;  // trigger when the receiver has every byte; 0: none
  bool message = false;         // of a connection that is used again
};

enum class HtsimTriggerKind : std::uint8_t { oneshot, multishot, barrier };

struct HtsimTrigger {
  std::uint32_t id = 0;
  std::uint32_t line = 0;
  std::uint32_t count = 0;  // of a barrier: firings that it waits for
  HtsimTriggerKind kind = HtsimTriggerKind::oneshot;
};

struct HtsimMatrix {
  std::uint32_t nodes = 0;
  std::vector<HtsimFlow> flows;
  std::vector<HtsimTrigger> triggers;   // by id
  std::vector<std::uint32_t> failures;  // lines of links that do not work
};

// unit: of the starts, "ps" or "us". Their loader takes picoseconds; older files and files for
// connections that are used again mean microseconds. "": ps, and an error where that is unlikely,
// all starts being below 1000 and not all 0. Besides the syntax: the counts of the header, every
// trigger that is named is declared, no connection has two pairs of nodes.
config::Read<HtsimMatrix> parse_htsim_matrix(std::string_view text, const std::string& source,
                                             std::string_view unit);

config::Read<HtsimMatrix> read_htsim_matrix(const std::string& path, std::string_view unit);

}  // namespace paceline::workload
