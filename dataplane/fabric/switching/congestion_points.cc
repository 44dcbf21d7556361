#include "dataplane/fabric/switching/congestion_points.h"

#include <algorithm>

namespace paceline::fabric {

namespace {
constexpr std::uint64_t kSampleStream = 0xFAB5'0000'0000'0000;  // of the run's seed
constexpr double kJitter = 0.15;                                // either way
}  // namespace

void CongestionPoints::add(std::uint64_t set_point_bytes) {
  PortPoints& port = ports_.emplace_back();
  port.draw = Random(seed_, kSampleStream + ports_.size() - 1);
  port.set_point = static_cast<double>(set_point_bytes);
  for (Point& point : port.points) point.left = next_distance(port.draw, 0);
}

std::int64_t CongestionPoints::next_distance(Random& draw, std::uint8_t feedback) const {
  const int shorter = 1 + feedback / 8;  // 1 to 8 times
  const double mean = static_cast<double>(sample_bytes_) / shorter;
  return static_cast<std::int64_t>(mean * (1 - kJitter + 2 * kJitter * draw.uniform()));
}

bool CongestionPoints::sample(std::uint32_t egress, std::uint8_t traffic_class,
                              std::uint32_t packet_bytes, std::uint64_t queue_bytes,
                              NoticeMessage& out) {
  PortPoints& port = ports_[egress];
  Point& point = port.points[traffic_class];
  point.left -= packet_bytes;
  if (point.left > 0) return false;
  const auto queue = static_cast<std::int64_t>(queue_bytes);
  const double excess = static_cast<double>(queue) - port.set_point;
  const auto growth = static_cast<double>(queue - point.old_bytes);
  const double most = port.set_point * (1 + 2 * weight_);
  const double steps = (excess + weight_ * growth) / most * kMostFeedback;
  out.feedback = static_cast<std::uint8_t>(std::clamp<double>(steps, 0, kMostFeedback));
  out.traffic_class = traffic_class;
  out.excess_bytes = static_cast<std::int32_t>(std::clamp(excess, -1e9, 1e9));
  out.growth_bytes = static_cast<std::int32_t>(std::clamp(growth, -1e9, 1e9));
  point.old_bytes = queue;
  point.left = next_distance(port.draw, out.feedback);
  return true;
}

}  // namespace paceline::fabric
