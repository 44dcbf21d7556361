#include "dataplane/driver/clock/tsc_clock.h"

#include <ctime>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace paceline {

namespace {

constexpr unsigned kFractionBits = 32;
constexpr std::uint64_t kPicosPerNano = 1000;

#if defined(__x86_64__)
std::uint64_t read_ticks() { return __rdtsc(); }

bool has_invariant_tsc() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(0x8000'0007, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1U << 8)) != 0;
}
#else
std::uint64_t read_ticks() { return 0; }
bool has_invariant_tsc() { return false; }
#endif

struct Sample {
  std::uint64_t ticks;
  std::int64_t ns;
};

// Counter and clock at the same moment: of several tries the one with the narrowest bracket, so
// that an interrupt in between does not count.
Sample sample_both() {
  constexpr int kTries = 32;
  Sample best{};
  std::uint64_t narrowest = ~std::uint64_t{0};
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t before = read_ticks();
    const std::int64_t ns = raw_monotonic_time().count;
    const std::uint64_t width = read_ticks() - before;
    if (width < narrowest) {
      narrowest = width;
      best = {before + width / 2, ns};
    }
  }
  return best;
}

void sleep_for(Nanos span) {
  timespec left{};
  left.tv_sec = static_cast<std::time_t>(span.count / 1'000'000'000);
  left.tv_nsec = static_cast<long>(span.count % 1'000'000'000);
  while (nanosleep(&left, &left) != 0) {
  }
}

}  // namespace

Nanos raw_monotonic_time() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return {std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec};
}

TscClock TscClock::calibrated(Nanos span, bool allow_tsc) {
  TscClock clock;
  if (allow_tsc && has_invariant_tsc()) {
    const Sample first = sample_both();
    sleep_for(span);
    const Sample last = sample_both();
    if (last.ticks > first.ticks && last.ns > first.ns) {
      __extension__ using Wide = unsigned __int128;
      const Wide picos = Wide(static_cast<std::uint64_t>(last.ns - first.ns)) * kPicosPerNano;
      clock.picos_per_tick_ =
          static_cast<std::uint64_t>((picos << kFractionBits) / (last.ticks - first.ticks));
      clock.origin_ = last.ticks;
      clock.source_ = Source::tsc;
      return clock;
    }
  }
  clock.picos_per_tick_ = kPicosPerNano << kFractionBits;
  clock.origin_ = static_cast<std::uint64_t>(raw_monotonic_time().count);
  return clock;
}

Picos TscClock::now() const {
  const std::uint64_t ticks = source_ == Source::tsc
                                  ? read_ticks()
                                  : static_cast<std::uint64_t>(raw_monotonic_time().count);
  // Another core's counter may be a few ticks behind the one that was calibrated on.
  if (ticks <= origin_) return {0};
  __extension__ using Wide = unsigned __int128;
  return {static_cast<std::int64_t>(Wide(ticks - origin_) * picos_per_tick_ >> kFractionBits)};
}

double TscClock::frequency() const {
  return 1e12 * static_cast<double>(std::uint64_t{1} << kFractionBits) /
         static_cast<double>(picos_per_tick_);
}

}  // namespace paceline
