// The lower convex hull of points that come from left to right: all that a line below them can
// touch.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace paceline::probing {

class LowerHull {
 public:
  struct Point {
    double x = 0;
    double y = 0;
  };

  // A point that is not to the right of all earlier ones is ignored.
  void add(Point p) {
    if (!corners_.empty() && p.x <= corners_.back().x) return;
    while (corners_.size() > 1 && !turns_left(corners_[corners_.size() - 2], corners_.back(), p)) {
      corners_.pop_back();
    }
    corners_.push_back(p);
  }
  void clear() { corners_.clear(); }
  std::span<const Point> corners() const { return corners_; }

  // The slope of the side above or below x, which lies between the outermost corners; 0 if there is
  // none.
  double slope_at(double x) const {
    for (std::size_t i = 1; i < corners_.size(); ++i) {
      const Point& a = corners_[i - 1];
      const Point& b = corners_[i];
      if (x <= b.x || i + 1 == corners_.size()) return (b.y - a.y) / (b.x - a.x);
    }
    return 0;
  }

  // The corner that a line of this slope touches from below.
  Point touched(double slope) const {
    Point least{0, std::numeric_limits<double>::infinity()};
    for (const Point& p : corners_) {
      if (p.y - slope * p.x < least.y - slope * least.x) least = p;
    }
    return least;
  }

 private:
  static bool turns_left(Point a, Point b, Point c) {
    return (b.x - a.x) * (c.y - a.y) > (b.y - a.y) * (c.x - a.x);
  }

  std::vector<Point> corners_;
};

}  // namespace paceline::probing
