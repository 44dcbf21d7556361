// A port that shows a capture ring everything that passes the port behind it, and changes nothing
// else: received packets, and sent packets that the port took. It stands in front of a port only
// while there is a capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/port/capture/capture_ring_writer.h"
#include "dataplane/port/capture/watched_port.h"

namespace paceline {

class RingCapturedPort final : public WatchedPort {
 public:
  // Both arguments must outlive it.
  RingCapturedPort(Port& behind, CaptureRingWriter& ring) : WatchedPort(behind), ring_(ring) {}

  Port& behind() { return behind_; }
  CaptureRingWriter& ring() { return ring_; }

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;

 private:
  CaptureRingWriter& ring_;
};

}  // namespace paceline
