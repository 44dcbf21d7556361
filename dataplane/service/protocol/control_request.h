// Requests of the control protocol (control_protocol.h) as values: parsed and checked without a
// service. The code that carries them out checks what depends on the service: names of NICs and
// values of parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/config/congestion_change.h"
#include "dataplane/config/link_fault.h"
#include "dataplane/port/capture/capture_ring.h"
#include "dataplane/service/protocol/guard_limits.h"

namespace paceline::service {

enum class ControlOp : std::uint8_t {
  hello,
  telemetry,
  status,
  parameters,
  configure,
  trial,
  use_arm,
  renew,
  end_trial,
  trials,
  guard,
  clear_guard,
  load_plugin,
  plugins,
  capture,
  fault,
  take_away,
  probe_open,
  probe_begin,
  probes,
};

// A wrong clock, to test the comparison of clocks.
struct ClockFault {
  std::string nic;
  double offset_ns = 0;
  double drift_ppb = 0;
  double jump_ns = 0;
  double jump_after_us = 0;
};
struct ProbeTarget {
  std::string address;
  std::uint32_t qp_number = 0;
  std::uint32_t qkey = 0;
};
struct ProbeRequest {
  std::vector<ClockFault> clocks;
  std::uint32_t session = 0;
  std::vector<ProbeTarget> peers;
  double rate = 20;       // probes a second of a pair of NICs, at most
  double share = 0.0005;  // of a link's rate, at most
  std::uint32_t paths = 1;
  std::uint32_t traffic_class = kDefaultDataClass;
};
inline constexpr double kMostProbeShare = 0.01;
inline constexpr std::uint32_t kMostProbePaths = 64;
inline constexpr std::uint32_t kMostProbePeers = 512;

struct ControlRequest {
  std::uint64_t id = 0;
  ControlOp op = ControlOp::hello;
  std::optional<std::vector<std::string>> nics;  // nothing: all
  config::CongestionChange change;
  bool dry_run = false;
  std::string name;                                // of a trial
  std::vector<std::vector<std::string>> clusters;  // of a trial, instead of nics; empty: none
  std::vector<std::uint8_t> arms;                  // of use_arm, by cluster; empty: one for all
  std::string path;                                // of a plug-in
  std::string nic;                                 // to capture
  std::uint64_t ring_bytes = kUsualCaptureBytes;
  std::uint32_t snap = kMostCaptureSnap;
  std::vector<config::LinkFault> faults;
  ProbeRequest probe;
  GuardLimits guard;
  std::uint32_t hold_ms = 0;
  std::uint8_t arm = 0;
  std::uint8_t epoch = 0;
  bool renew = true;
  bool keep_candidate = false;
};

inline constexpr std::uint32_t kLeastHoldMs = 500;
inline constexpr std::uint32_t kMostHoldMs = 3'600'000;

struct ParsedControl {
  ControlRequest request;           // with any error only its id is of use
  std::vector<std::string> errors;  // a sentence each, all there are
};

ParsedControl parse_control(std::string_view text);

}  // namespace paceline::service
