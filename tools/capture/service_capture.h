// A capture of a NIC instance that a running service owns: its frames come through a ring in shared
// memory (dataplane/port/capture/capture_ring.h), for which this process is never waited for.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/base/units.h"
#include "dataplane/port/capture/capture_ring.h"

namespace paceline::tools {

struct ServiceCaptureOptions {
  std::string socket;    // of programs; the control socket is beside it
  std::string how_else;  // " --name x": how others would name the service
  std::string nic;
  std::string file;
  std::uint64_t most_bytes = 0;    // of the file
  std::uint64_t most_packets = 0;  // 0: any number
  Picos duration = kNever;
  std::uint64_t ring_bytes = kUsualCaptureBytes;
  std::uint32_t snap = kMostCaptureSnap;
  bool quiet = false;
};

// Until one of its limits, Ctrl-C, or the service ends. The exit code.
int capture_of_service(const ServiceCaptureOptions& options);

}  // namespace paceline::tools
