// What waking up costs by itself: sleeps until one absolute time after the other and does nothing
// in between, until it is told to end; then prints wake-ups and the processor time of each, in
// microseconds. `tests/bench/sampling_cost` runs it beside the daemon, whose looks begin so, too.
//
//   bare_wakeups INTERVAL_US
//
// Ends with the end of its standard input. Time is this process's own (CLOCK_PROCESS_CPUTIME_ID),
// without what it takes to start.
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double spent_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char** argv) {
  char* end = NULL;
  const long interval_us = argc == 2 ? strtol(argv[1], &end, 10) : 0;
  if (argc != 2 || *end != '\0' || interval_us < 1 || interval_us > 1000000) {
    fprintf(stderr, "usage: bare_wakeups INTERVAL_US   (1 to 1000000); ends with its input\n");
    return 2;
  }
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  struct pollfd input = {.fd = 0, .events = POLLIN};
  // Asked after its end once a second, so that a wake-up is one system call.
  const long per_second = 1000000 / interval_us;
  double asking_us = 0;
  const double begin_us = spent_us();
  long wakeups = 0;
  for (;;) {
    next.tv_nsec += interval_us % 1000000 * 1000;
    next.tv_sec += interval_us / 1000000 + next.tv_nsec / 1000000000;
    next.tv_nsec %= 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    ++wakeups;
    if (wakeups % per_second != 0) continue;
    const double before_us = spent_us();
    if (poll(&input, 1, 0) != 0) break;
    asking_us += spent_us() - before_us;
  }
  printf("%ld %.3f\n", wakeups, (spent_us() - begin_us - asking_us) / (double)wakeups);
  return 0;
}
