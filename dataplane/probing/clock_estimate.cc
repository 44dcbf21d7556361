#include "dataplane/probing/clock_estimate.h"

#include <algorithm>
#include <utility>

namespace paceline::probing {

namespace {

using Point = LowerHull::Point;

// Does not overflow, whatever time the other end claims.
double difference(Nanos a, Nanos b) {
  return static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(a.count) -
                                                       static_cast<std::uint64_t>(b.count)));
}
std::int64_t whole_difference(Nanos a, Nanos b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a.count) -
                                   static_cast<std::uint64_t>(b.count));
}
double beyond(Nanos a, Nanos b, std::int64_t base) {
  return difference(Nanos{whole_difference(a, b)}, Nanos{base});
}

}  // namespace

double ClockReading::offset_at(Nanos at) const {
  return static_cast<double>(base) + offset + drift * difference(at, origin);
}

double ClockReading::one_way_there(const ProbeTimes& times) const {
  return beyond(times.received, times.sent, base) - offset - drift * difference(times.sent, origin);
}

double ClockReading::one_way_back(const ProbeTimes& times) const {
  return offset + drift * difference(times.returned, origin) -
         beyond(times.answered, times.returned, base);
}

void ClockEstimate::restart(const ProbeTimes& times) {
  origin_ = times.sent;
  base_ = whole_difference(times.received, times.sent);
  above_ = below_ = above_before_ = below_before_ = {};
  stretch_begin_ = 0;
  probes_ = 0;
  contradictions_ = 0;
}

// The clock lies between the two bounds, and its distance from the middle is at most half of the
// excess of the round trip over the least one. Up to half of that least one more is tolerated, and
// at least a few microseconds: readings of busy hosts can be late.
bool ClockEstimate::contradicts(double x, double above, double below) const {
  const double round_trip = above - below;
  const double middle = (above + below) / 2 - (offset_ + drift_ * x);
  constexpr double kLate = 5'000;
  const double allowed = std::max(0.0, round_trip - gap_) / 2 + std::max(gap_ / 2, kLate);
  return middle > allowed || middle < -allowed;
}

void ClockEstimate::add(const ProbeTimes& times) {
  if (probes_ == 0) restart(times);
  const double sent = difference(times.sent, origin_);
  const double returned = difference(times.returned, origin_);
  const double above = beyond(times.received, times.sent, base_);
  const double below = beyond(times.answered, times.returned, base_);
  if (above < below) return;  // returned before it was sent: no clock shows that
  if (probes_ >= kTrusted && contradicts((sent + returned) / 2, above, below)) {
    if (++contradictions_ < kJumps) return;
    ++restarts_;
    restart(times);
    return add(times);
  }
  contradictions_ = 0;
  if (sent - stretch_begin_ > kStretch || above_.hull.corners().size() == kMostCorners ||
      below_.hull.corners().size() == kMostCorners) {
    above_before_ = std::exchange(above_, {});
    below_before_ = std::exchange(below_, {});
    stretch_begin_ = sent;
  }
  above_.add({sent, above});
  below_.add({returned, -below});
  ++probes_;
  solve();
}

void ClockEstimate::Bounds::add(LowerHull::Point p) {
  hull.add(p);
  sum_x += p.x;
  sum_y += p.y;
  ++count;
}

void ClockEstimate::Bounds::append(const Bounds& later) {
  for (const Point& p : later.hull.corners()) hull.add(p);
  sum_x += later.sum_x;
  sum_y += later.sum_y;
  count += later.count;
}

// Among all lines below the points, the one with the least sum of distances to them: it goes
// through the side of the hull below their mean. The mean distance says how much delay queues add.
// The least of many such delays is smaller in proportion to their number.
ClockEstimate::Slope ClockEstimate::slope_of(const Bounds& bounds) {
  const auto corners = bounds.hull.corners();
  if (corners.size() < 2) return {};
  const double span = corners.back().x - corners.front().x;
  const double x = bounds.sum_x / bounds.count;
  Slope out;
  out.value = std::clamp(bounds.hull.slope_at(x), -kMostDrift, kMostDrift);
  const Point touched = bounds.hull.touched(out.value);
  const double distance = bounds.sum_y / bounds.count - touched.y - out.value * (x - touched.x);
  constexpr double kReading = 1;  // ns: no reading is more exact
  const double error = (kReading + 4 * distance / bounds.count) / span;
  out.weight = 1 / (error * error);
  return out;
}

void ClockEstimate::solve() {
  Bounds above = above_before_;
  Bounds below = below_before_;
  above.append(above_);
  below.append(below_);
  const Slope there = slope_of(above);
  const Slope back = slope_of(below);
  constexpr double kBefore = 1 / (kUsualDrift * kUsualDrift);
  drift_ = (there.value * there.weight - back.value * back.weight) /
           (there.weight + back.weight + kBefore);
  const Point at_a = above.hull.touched(drift_);
  const Point at_b = below.hull.touched(-drift_);
  const double high = at_a.y - drift_ * at_a.x;
  const double low = -(at_b.y + drift_ * at_b.x);
  offset_ = (high + low) / 2;
  gap_ = std::max(0.0, high - low);
}

std::optional<ClockReading> ClockEstimate::reading() const {
  if (probes_ == 0) return std::nullopt;
  ClockReading out;
  out.origin = origin_;
  out.base = base_;
  out.offset = offset_;
  out.drift = drift_;
  out.least_one_way = gap_ / 2;
  out.probes = probes_;
  out.restarts = restarts_;
  return out;
}

}  // namespace paceline::probing
