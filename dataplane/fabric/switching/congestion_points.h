// Where switches sample what is queued and say how congested the queue is: the congestion point of
// quantised congestion notification (IEEE 802.1Qau; Alizadeh et al., "Data center transport
// mechanisms: congestion control theory and IEEE standardization", Allerton 2008). One for every
// class of every port.
//
// A packet is sampled every so many bytes, some more or less at random so that flows do not fall
// into step. Then, with the set point Q, the queue q, and q0 as it was at the last sample:
//   F = (q - Q) + w (q - q0), of at most Q (1 + 2 w)
// and the feedback is F in 63 steps of that. The more of it, the shorter the way to the next
// sample: `sample_bytes` over 1 to 8. A queue of so many bytes can cause no more notices than that.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/base/protocol/control_messages.h"
#include "dataplane/base/units.h"
#include "dataplane/fabric/topology/fabric_spec.h"

namespace paceline::fabric {

class CongestionPoints {
 public:
  explicit CongestionPoints(const FabricSpec& spec)
      : weight_(spec.notice.weight), sample_bytes_(spec.notice.sample_bytes), seed_(spec.seed) {}

  // Adds those of the next egress port; call it in the order of port numbers.
  void add(std::uint64_t set_point_bytes);

  // A packet has joined a queue, which has `queue_bytes` with it. True: it is sampled, and `out`
  // says what of; all but the packet's destination. Feedback 0: there is nothing to tell.
  bool sample(std::uint32_t egress, std::uint8_t traffic_class, std::uint32_t packet_bytes,
              std::uint64_t queue_bytes, NoticeMessage& out);

  // Replaces the points of a port by those of `other`.
  void take_over(const CongestionPoints& other, std::uint32_t egress) {
    ports_[egress] = other.ports_[egress];
  }

 private:
  struct Point {
    std::int64_t left = 0;       // bytes until the next sample
    std::int64_t old_bytes = 0;  // the queue at the last one
  };
  struct PortPoints {
    Random draw{0};
    double set_point = 0;
    std::array<Point, kTrafficClasses> points{};
  };

  std::int64_t next_distance(Random& draw, std::uint8_t feedback) const;

  std::vector<PortPoints> ports_;
  double weight_;
  std::uint64_t sample_bytes_;
  std::uint64_t seed_;
};

}  // namespace paceline::fabric
