#include "dataplane/driver/virtual/real_time.h"

#include <algorithm>

namespace paceline {

double RealTimeReport::late_share() const {
  if (elapsed.count <= 0) return 0;
  return static_cast<double>(late.count) / static_cast<double>(elapsed.count);
}

bool RealTimeReport::stopped_within(Picos begin, Picos end) const {
  const auto first =
      std::lower_bound(stops.begin(), stops.end(), begin,
                       [](const HostStop& stop, Picos time) { return stop.end < time; });
  return first != stops.end() && first->begin < end;
}

}  // namespace paceline
