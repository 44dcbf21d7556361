#include "dataplane/driver/loop/run_loop.h"

#include <sys/prctl.h>

namespace paceline {

timespec to_timespec(Picos time) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t ns = to_nanos(time).count;
  timespec span{};
  span.tv_sec = static_cast<std::time_t>(ns / kSecond);
  span.tv_nsec = static_cast<long>(ns % kSecond);
  return span;
}

void LoopBody::sleep(Picos time) {
  const timespec span = to_timespec(time);
  nanosleep(&span, nullptr);
}

// Otherwise the kernel adds 50 us to every sleep. For this thread only; if it is refused, sleeps
// are longer by that much.
void RunLoop::begin_short_sleeps() { prctl(PR_SET_TIMERSLACK, 1000UL); }

}  // namespace paceline
