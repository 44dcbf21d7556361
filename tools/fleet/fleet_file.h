// Fleet files: hosts behind pacelined, and the fabric between their NICs. All errors of a file are
// reported, each as "file:line:column: what, value, what is allowed".
//
//   [fabric], [transport]   as in a scenario; not needed by `paceline mesh`
//   [[host]]                name, url, token_file, ca; nics and places: which of its NICs stands
//                           at which place of the fabric
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/daemon/api/client/daemon_place.h"
#include "dataplane/config/scenario.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::tools {

struct FleetHost {
  std::string name;
  daemon::DaemonPlace daemon;
  std::string token_file;
  std::vector<std::string> nics;      // of the service, in the order of the fabric; empty: all
  std::vector<std::uint32_t> places;  // of them in the fabric; empty: see FabricPlaces
  std::string where;                  // of its table in the file
};

struct Fleet {
  std::uint32_t schema = 1;
  std::string name = "fleet";
  bool has_fabric = false;
  config::Scenario scenario;  // with a fabric
  std::vector<FleetHost> hosts;
};

// A hundred thousand queue pairs of a thousand hosts are some ten megabytes a look.
inline constexpr std::size_t kMostFleetHosts = 1024;

config::Read<Fleet> read_fleet_text(std::string_view text, const std::string& source,
                                    const std::string& folder,
                                    const config::ReaderOptions& options);
// With the tokens, whose files only the reader may be able to read.
config::Read<Fleet> read_fleet_file(const std::string& path, const config::ReaderOptions& options);

}  // namespace paceline::tools
