// How far another host's clock is ahead of ours, and how fast it drifts, from probes and their
// answers. Nothing arrives before it was sent. So a probe (sent by our clock, received by theirs)
// bounds the offset from above, and an answer bounds it from below. The least delays bound it best,
// and queues only add to delays: a line is fitted below all points of the first kind and one above
// all of the second (least delays as in S. Moon, P. Skelly and D. Towsley, "Estimation and removal
// of clock skew from network delay measurements", INFOCOM 1999; both directions at once as in Y.
// Geng et al., "Exploiting a natural network effect for scalable, fine-grained clock
// synchronization", NSDI 2018). The lines are parallel; their slope is that of the direction with
// fewer queues. The clock is taken to be halfway between them, which is exact if the least delays
// of both directions are equal. Reads no clock; a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/probing/lower_hull.h"

namespace paceline::probing {

// Four readings of clocks: ours, theirs, theirs, ours.
struct ProbeTimes {
  Nanos sent{};
  Nanos received{};
  Nanos answered{};
  Nanos returned{};
};

// A line through time: what their clock shows less what ours shows.
struct ClockReading {
  Nanos origin{};            // by our clock
  std::int64_t base = 0;     // ns, at the origin
  double offset = 0;         // ns beyond that, at the origin
  double drift = 0;          // per ns of our clock
  double least_one_way = 0;  // ns: half of the least round trip; no clock is further off than that
  std::uint64_t probes = 0;  // that it rests on
  std::uint64_t restarts = 0;

  // In ns; `at` by our clock.
  double offset_at(Nanos at) const;
  // The delay of a packet from us to them, in ns, and of one from them to us.
  double one_way_there(const ProbeTimes& times) const;
  double one_way_back(const ProbeTimes& times) const;
};

class ClockEstimate {
 public:
  // The largest drift a clock is taken to have.
  static constexpr double kMostDrift = 500e-6;
  // Before anything is known: two quartz clocks differ by about that.
  static constexpr double kUsualDrift = 100e-6;

  // Probes must come in the order in which they were sent; others are ignored.
  void add(const ProbeTimes& times);
  // Nothing before the first probe.
  std::optional<ClockReading> reading() const;
  // How often a clock was set; probes before that no longer count.
  std::uint64_t restarts() const { return restarts_; }

 private:
  // Two stretches of this length are kept: the one that grows, and the one before.
  static constexpr double kStretch = 8e9;
  static constexpr std::size_t kMostCorners = 256;
  // The clock was set if no delay explains this many probes in a row.
  static constexpr unsigned kJumps = 3;
  static constexpr std::uint64_t kTrusted = 16;  // probes before set clocks are looked for

  // Bounds on the offset from one direction's probes, in ns from origin and base.
  struct Bounds {
    LowerHull hull;
    double sum_x = 0;
    double sum_y = 0;
    double count = 0;

    void add(LowerHull::Point p);
    void append(const Bounds& later);
  };
  struct Slope {
    double value = 0;
    double weight = 0;  // one over its variance
  };

  void restart(const ProbeTimes& times);
  void solve();
  static Slope slope_of(const Bounds& bounds);
  bool contradicts(double x, double above, double below) const;

  Nanos origin_{};
  std::int64_t base_ = 0;
  // `above`: their time of receipt less our time of sending. `below`: from the answer, with the
  // sign changed so that it is a bound from above, too.
  Bounds above_;
  Bounds below_;
  Bounds above_before_;
  Bounds below_before_;
  double stretch_begin_ = 0;
  double offset_ = 0;
  double drift_ = 0;
  double gap_ = 0;
  std::uint64_t probes_ = 0;
  std::uint64_t restarts_ = 0;
  unsigned contradictions_ = 0;
};

}  // namespace paceline::probing
