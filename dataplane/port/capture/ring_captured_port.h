// A port that shows a capture ring all that passes the port behind it, and changes nothing else:
// what is received, and what is given to send and taken. It is put in front of a port while there
// is a capture, and is not there otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/port/capture/capture_ring_writer.h"
#include "dataplane/port/capture/watched_port.h"

namespace paceline {

class RingCapturedPort final : public WatchedPort {
 public:
  // Both outlive it.
  RingCapturedPort(Port& behind, CaptureRingWriter& ring) : WatchedPort(behind), ring_(ring) {}

  Port& behind() { return behind_; }
  CaptureRingWriter& ring() { return ring_; }

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;

 private:
  CaptureRingWriter& ring_;
};

}  // namespace paceline
