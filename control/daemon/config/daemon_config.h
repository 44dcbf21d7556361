// The file of pacelined (configs/pacelined.toml) as a typed struct. docs/daemon.md lists the keys
// that may change while the daemon runs; fixed_changes() finds changes to the others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::daemon {

// [dataplane]: the service that is supervised or attached to.
struct DataplaneConfig {
  std::string testbed;           // empty: attach only
  std::string socket;            // where programs attach; the control socket is beside it
  std::string program;           // empty: paceline-dataplane beside pacelined, or in PATH
  std::string log;               // of the service that is started; empty: in the state folder
  std::vector<std::string> set;  // KEY=VALUE for the testbed
  bool end_with_daemon = false;
  friend bool operator==(const DataplaneConfig&, const DataplaneConfig&) = default;
};

// [telemetry]
struct TelemetryConfig {
  Picos interval = picos_from_micros(10'000);
  Picos fine_span = picos_from_micros(60'000'000);
  std::uint32_t stalled_after = 50;  // intervals
  friend bool operator==(const TelemetryConfig&, const TelemetryConfig&) = default;
};

// [api]
struct ApiConfig {
  std::string socket;  // empty: pacelined.sock in the runtime folder
  std::string group;
  bool world_readable = false;
  std::string address;  // empty: no TCP
  std::uint32_t port = 0;
  std::string certificate;
  std::string key;
  std::string tokens;
  std::uint32_t metrics_port = 0;  // on the loopback interface; 0: none
  friend bool operator==(const ApiConfig&, const ApiConfig&) = default;
};

// [daemon]
struct ProcessConfig {
  std::string state;  // folder of what must last; empty: see docs/daemon.md
  std::string user;   // to become once all is open; empty: stay
  std::string log_level = "info";
  friend bool operator==(const ProcessConfig&, const ProcessConfig&) = default;
};

// [tuner]: control/tuner/online on the NICs of the service, all as one.
struct TunerConfig {
  std::string mode = "off";  // until PUT /v1/tuner says otherwise
  std::string presets;       // folder with ALGORITHM.toml; empty: none
  std::string kill_switch;   // a file; empty: "tuner-stop" in the state folder
  Picos block = picos_from_micros(500'000);
  Picos wash = picos_from_micros(100'000);
  Picos learn = picos_from_micros(1'000'000);
  Picos guard = picos_from_micros(100'000);
  Picos hold = picos_from_micros(30'000'000);
  double explore_share = 0.05;
  std::uint64_t queue_limit = 0;  // bytes; 0: none
  Picos delay_limit{0};           // 0: none
  double pause_limit = 0.001;
  friend bool operator==(const TunerConfig&, const TunerConfig&) = default;
};

struct DaemonConfig {
  std::uint32_t schema = 1;
  ProcessConfig daemon;
  DataplaneConfig dataplane;
  TelemetryConfig telemetry;
  ApiConfig api;
  TunerConfig tuner;
};

// All errors, each with file, line and column. `source` names the text in them; relative names of
// files start at `folder`.
config::Read<DaemonConfig> read_daemon_text(std::string_view text, const std::string& source,
                                            const std::string& folder);
config::Read<DaemonConfig> read_daemon_file(const std::string& path);

// Keys that differ and cannot change while the daemon runs.
std::vector<std::string> fixed_changes(const DaemonConfig& from, const DaemonConfig& to);

// The reference of docs/daemon.md.
std::string daemon_reference_markdown();

}  // namespace paceline::daemon
