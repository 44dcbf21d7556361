#include "dataplane/port/capture/ring_captured_port.h"

#include <algorithm>
#include <array>

namespace paceline {

std::size_t RingCapturedPort::rx(std::span<Packet*> burst) {
  const std::size_t n = behind_.rx(burst);
  for (std::size_t i = 0; i < n; ++i) ring_.stage(now_, CaptureDirection::inbound, *burst[i]);
  if (n != 0) ring_.publish();
  return n;
}

// A packet that is taken is gone: copy it before, and show it only if it was taken.
std::size_t RingCapturedPort::tx(Picos now, std::uint8_t traffic_class,
                                 std::span<Packet* const> burst) {
  std::array<CaptureRingWriter::Mark, 65> marks;
  std::size_t done = 0;
  while (done < burst.size()) {
    const auto part = burst.subspan(done, std::min(burst.size() - done, marks.size() - 1));
    marks[0] = ring_.staged();
    for (std::size_t i = 0; i < part.size(); ++i) {
      ring_.stage(now, CaptureDirection::outbound, *part[i]);
      marks[i + 1] = ring_.staged();
    }
    const std::size_t taken = behind_.tx(now, traffic_class, part);
    ring_.publish(marks[taken]);
    done += taken;
    if (taken != part.size()) break;
  }
  return done;
}

}  // namespace paceline
