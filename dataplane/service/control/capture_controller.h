// Captures of NIC instances that clients of the control socket asked for: makes the memory, has the
// worker begin and end, and knows the owner of each. For the control thread.
//
// The ring is sealed so that only the service writes it, and its pages exist before the worker sees
// it. The reader's page is the only memory that a client writes, and the writer believes nothing in
// it that could do harm (port/capture/capture_ring_writer.h).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "dataplane/attach/shared_memory.h"
#include "dataplane/port/capture/capture_ring_writer.h"
#include "dataplane/service/protocol/control_request.h"
#include "dataplane/service/workers/service.h"

namespace paceline::service {

// The peer of a connection.
struct ControlClient {
  std::uint64_t number = 0;  // of the connection
  pid_t process = 0;
};

class CaptureController {
 public:
  static constexpr std::size_t kMostCaptures = 8;

  explicit CaptureController(Service& service);
  // Ends all; workers run, or have ended.
  ~CaptureController();
  CaptureController(const CaptureController&) = delete;
  CaptureController& operator=(const CaptureController&) = delete;

  struct Begun {
    std::vector<std::string> errors;
    int ring = -1;  // descriptors, the controller's
    int page = -1;
    std::size_t ring_bytes = 0;
    std::size_t page_bytes = 0;
  };
  Begun begin(const ControlClient& client, const ControlRequest& request);
  void end_all_of(const ControlClient& client);
  std::size_t running() const { return captures_.size(); }

 private:
  struct Capture;
  void end(Capture& capture);

  Service& service_;
  std::list<Capture> captures_;
};

}  // namespace paceline::service
