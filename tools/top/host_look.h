// Looks at a running service: finds its telemetry segment by the control socket and reads it.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/attach/shared_memory.h"
#include "dataplane/telemetry/segment_reader.h"
#include "tools/top/host_sample.h"

namespace paceline::tools {

class HostLook {
 public:
  // `control_socket`: of the service. Returns an error, or an empty text; `code`: its errno, if
  // any.
  std::string open(const std::string& control_socket, int& code);
  // Reads the current sample. Returns an error, or an empty text.
  std::string take(HostSample& out);
  // When the service began; after open().
  std::uint64_t start_unix_ns() const { return reader_.header().service_start_unix_ns; }

 private:
  attach::SharedMemory memory_;
  telemetry::SegmentReader reader_;
};

}  // namespace paceline::tools
