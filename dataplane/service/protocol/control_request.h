// Requests of the control protocol (control_protocol.h) as values: parsed and checked without a
// service. What depends on the service, names of NICs and values of parameters, is checked by who
// carries them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
};

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
