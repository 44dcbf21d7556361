#include "dataplane/driver/virtual/real_time_run.h"

#include <utility>

namespace paceline {

namespace {

// World time between two calls of the progress callback.
constexpr Picos kProgress = picos_from_micros(250'000);
// Without work the thread wakes this often, to look at the stop flag.
constexpr Picos kLongestWait = picos_from_micros(50'000);

}  // namespace

RealTimeRun::RealTimeRun(WorldPart& part, Options options)
    : part_(part), options_(std::move(options)) {
  report_.stop_threshold = options_.real_time.stop_threshold;
  report_.tolerance = options_.real_time.tolerance;
  report_.on_stop = options_.real_time.on_stop;
}

// One reading of the clock, as the world's time. What lies between it and the time for which it was
// wanted is work, or a stop of the host.
Picos RealTimeRun::read_clock() {
  const RealTimeOptions& real_time = options_.real_time;
  Picos now = real_time.clock->now() - origin_ - held_;
  const Picos gap = now - wanted_;
  if (gap <= real_time.stop_threshold) return later(now, now_);
  if (real_time.on_stop == OnStop::hold) {
    held_ += gap;
    now = wanted_;
  }
  ++report_.stop_count;
  report_.stopped += gap;
  report_.longest_stop = later(report_.longest_stop, gap);
  if (report_.stops.size() < RealTimeReport::kMostStops) report_.stops.push_back({wanted_, now});
  return now;
}

// Somebody had something to do at `due`, and does it only now.
void RealTimeRun::account_lateness(Picos due) {
  report_.lateness_ns.record(static_cast<std::uint64_t>(to_nanos(now_ - due).count));
  const Picos from = later(due + report_.tolerance, late_until_);
  if (from >= now_) return;
  report_.late += now_ - from;
  late_until_ = now_;
}

void RealTimeRun::poll_hosts() {
  // Polling a host makes no other one due at once: it would be found in the next turn.
  for (const WorldPart::DueHost& due : part_.due_hosts()) {
    account_lateness(due.at);
    part_.poll_due_host(due.host, now_);
  }
  part_.clear_due_hosts();
}

RealTimeRun::End RealTimeRun::run() {
  WallClock& clock = *options_.real_time.clock;
  const Picos over = saturating_add(options_.duration, Picos{1});
  Picos next_sample = options_.sample ? options_.sample_interval : kNever;
  Picos next_progress = kProgress;
  End end = End::completed;
  origin_ = clock.now();
  while (part_.finished().size() < options_.messages) {
    const Picos next = part_.wheel().next_time();
    if (next == kNever) {
      end = End::stalled;
      break;
    }
    const Picos wanted = earlier(earlier(next, over), earlier(next_sample, now_ + kLongestWait));
    if (wanted > now_) {
      const Picos before = clock.now();
      const Picos until = origin_ + held_ + wanted;
      clock.wait(until);
      report_.waited += later(until - before, Picos{0});  // without the time that it took longer
      wanted_ = later(wanted, wanted_);
    }
    now_ = read_clock();
    wanted_ = now_;
    ++report_.turns;
    if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) {
      end = End::stopped;
      break;
    }
    if (options_.max_hops != 0 && part_.network().stats().hops > options_.max_hops) {
      end = End::hop_limit;
      break;
    }
    const bool last = now_ > options_.duration;
    if (last) now_ = options_.duration;
    for (; next_sample <= now_; next_sample += options_.sample_interval) {
      part_.catch_up(next_sample);
      options_.sample(next_sample);
    }
    part_.catch_up(now_ + Picos{1});
    poll_hosts();
    if (last) {
      end = End::duration;
      break;
    }
    if (options_.progress && now_ >= next_progress) {
      options_.progress(part_.bytes_done());
      next_progress = now_ + kProgress;
    }
  }
  report_.elapsed = clock.now() - origin_;
  return end;
}

}  // namespace paceline
