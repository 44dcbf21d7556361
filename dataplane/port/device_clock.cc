#include "dataplane/port/device_clock.h"

#include <algorithm>

namespace paceline {

namespace {

__extension__ using Wide = __int128;

constexpr Picos kShortestBase = picos_from_micros(8'000);
constexpr Picos kFirstInterval = picos_from_micros(1'000);
constexpr Picos kInterval = picos_from_micros(10'000);
// How far a clock's rate may drift while it is not read: crystals 100 ppm, and as much by a servo.
constexpr std::int64_t kDriftPpb = 200'000;
constexpr std::int64_t kBillion = 1'000'000'000;
// Covers errors beyond the widths of pairs.
constexpr Picos kSlack = picos_from_micros(1);
// Picoseconds per tick at 100 GHz and at 10 kHz, times 2^32.
constexpr std::uint64_t kLeastRate = std::uint64_t{10} << 32;
constexpr std::uint64_t kMostRate = std::uint64_t{100'000'000} << 32;

Picos magnitude(Picos t) { return t.count < 0 ? Picos{-t.count} : t; }
Picos part(Picos time, std::int64_t ppb) {
  return Picos{static_cast<std::int64_t>(Wide(time.count) * ppb / kBillion)};
}
// From b to a; either may be the later one.
std::int64_t ticks_between(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a - b);
}

}  // namespace

Picos DeviceClock::convert(std::uint64_t ticks) const {
  const Point& anchor = newest();
  const Wide away = (Wide(ticks_between(ticks, anchor.ticks)) * Wide(rate_)) >> 32;
  // An hour: times farther away will be refused.
  constexpr std::int64_t kFar = 3600 * std::int64_t{1'000'000'000'000};
  const Wide bounded = std::clamp<Wide>(away, -kFar, kFar);
  return anchor.at + Picos{static_cast<std::int64_t>(bounded)};
}

// The largest error of a time at this distance from the latest pair.
Picos DeviceClock::doubt(Picos away) const {
  return newest().half + kSlack + part(magnitude(away), rate_ppb_ + kDriftPpb);
}

double DeviceClock::frequency() const {
  constexpr double kPicos = 1e12;
  constexpr double kOne = 4294967296.0;  // 2^32
  return ready_ ? kPicos * kOne / static_cast<double>(rate_) : 0;
}

bool DeviceClock::explains(const Point& point) const {
  const Picos error = magnitude(convert(point.ticks) - point.at);
  return error <= doubt(point.at - newest().at) + point.half;
}

void DeviceClock::restart() {
  ++counters_.jumps;
  forget();
}

void DeviceClock::forget() {
  first_ = 0;
  count_ = 0;
  ready_ = false;
  last_ = Picos{-1};
  refused_ = 0;
  next_pair_ = Picos{0};
}

void DeviceClock::pair(const ClockPair& pair) {
  const Picos width = pair.after - pair.before;
  next_pair_ = pair.after + (ready_ ? kInterval : kFirstInterval);
  if (width > kMostWidth || width.count < 0) {
    ++counters_.pairs_refused;
    return;
  }
  const Point point{pair.ticks, pair.before + width / 2, width / 2};
  if (count_ != 0 && ticks_between(point.ticks, newest().ticks) <= 0 &&
      point.at - newest().at < kFirstInterval) {
    ++counters_.pairs_refused;  // too soon for a slow clock to have moved
    return;
  }
  if (count_ != 0 && ticks_between(point.ticks, newest().ticks) <= 0) restart();
  if (ready_ && !explains(point)) restart();
  add(point);
  ++counters_.pairs;
}

void DeviceClock::add(const Point& point) {
  points_[(first_ + count_) % kPoints] = point;
  if (count_ < kPoints) {
    ++count_;
  } else {
    first_ = (first_ + 1) % kPoints;
  }
  const Point& oldest = points_[first_];
  const Picos base = point.at - oldest.at;
  if (base < kShortestBase) return;
  const std::int64_t ticks = ticks_between(point.ticks, oldest.ticks);
  const Wide rate = (Wide(base.count) << 32) / ticks;
  if (rate < Wide(kLeastRate) || rate > Wide(kMostRate)) {
    restart();
    return;
  }
  rate_ = static_cast<std::uint64_t>(rate);
  rate_ppb_ =
      static_cast<std::int64_t>(Wide((point.half + oldest.half).count) * kBillion / base.count);
  if (ready_) return;
  // The line goes through all of them, or the clock was set in between.
  ready_ = std::all_of(points_.begin(), points_.begin() + static_cast<std::ptrdiff_t>(count_),
                       [this](const Point& p) { return explains(p); });
  if (!ready_) restart();
}

std::optional<Picos> DeviceClock::refuse(std::uint64_t& reason) {
  ++reason;
  // Several in a row, not one stray packet: the clock was set since the last pair.
  if (++refused_ == kMostRefused) restart();
  return std::nullopt;
}

std::optional<Picos> DeviceClock::time_of(std::uint64_t ticks, Picos emptied, Picos now) {
  if (!ready_) {
    ++counters_.not_ready;
    return std::nullopt;
  }
  Picos at = convert(ticks);
  const Picos doubt = this->doubt(at - newest().at);
  if (at > now + doubt) return refuse(counters_.too_late);
  if (at + kHandOver + doubt < emptied) return refuse(counters_.too_early);
  refused_ = 0;
  at = earlier(at, now);
  // A new pair may move all times by a little.
  if (last_.count >= 0) {
    at = ticks_between(ticks, last_ticks_) >= 0 ? later(at, last_) : earlier(at, last_);
  }
  last_ = at;
  last_ticks_ = ticks;
  ++counters_.stamps;
  return at;
}

}  // namespace paceline
