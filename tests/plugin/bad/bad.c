/* Plug-ins that must not get far: one of them for each WRONG_... that is defined. All but the first
 * few load; what they do wrong they do while they run. */
#include <paceline/cc.h>
#include <stdlib.h>

#ifndef PLUGIN_NAME
#error "PLUGIN_NAME"
#endif

#ifdef WRONG_SYMBOL
#define paceline_cc_plugin paceline_cc_no_plugin
const struct paceline_cc_algorithm *paceline_cc_no_plugin(uint32_t host_abi);
#endif

static const struct paceline_cc_param kParams[] = {
    {"gain", "1", 0.5, 0, 1, 1, 0, "unused", "own"},
#ifdef WRONG_RANGE
    {"reversed", "us", 5, 10, 1, 1, 0, "unused", "own"},
#endif
#ifdef WRONG_UNIT
    {"odd", "furlongs", 5, 1, 10, 1, 0, "unused", "own"},
#endif
#ifdef WRONG_TWICE
    {"gain", "1", 0.5, 0, 1, 1, 0, "unused", "own"},
#endif
};

struct state {
  double zero;
  uint64_t events;
};

#ifdef WRONG_DERIVE
static void derive(const double *values, const struct paceline_cc_port *port, void *out) {
  (void)values;
  ((uint64_t *)out)[0] = port->link_bps;
  ((uint64_t *)out)[1] = 1; /* of which the table does not speak */
}
#endif

#ifdef WRONG_LOOP
static void spin(volatile struct state *s) { s->zero = 0; }
#endif

#ifdef WRONG_DEEP
static uint64_t deeper(volatile struct state *s, uint64_t depth) {
  volatile uint64_t room[64];
  room[depth % 64] = s->events;
  return s->events == 0 ? depth : deeper(s, depth + 1) + room[depth % 64];
}
#endif

static void on_events(const struct paceline_cc_item *items, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    struct state *s = items[i].state;
    struct paceline_cc_decision *d = items[i].decision;
    if (items[i].event->signal == PACELINE_CC_START) d->rate_bps = 10000000000u;
    d->wake_bytes = 20000; /* to be asked often */
    ++s->events;
#ifdef WRONG_NAN
    double rate = 1e9 * (s->zero / s->zero);
    d->rate_bps = (uint64_t)rate; /* what a NaN becomes is up to the processor: 2^63, or 0 */
#endif
#ifdef WRONG_WINDOW
    d->window_bytes = (uint64_t)1 << 60;
#endif
#ifdef WRONG_OVERRUN
    if (s->events > 3) s[1].events = s->events;
#endif
#ifdef WRONG_STOP
    d->rate_bps = 0;
#endif
#ifdef WRONG_CRASH
    if (s->events > 3) *(volatile uint64_t *)(uintptr_t)(16 + s->zero) = s->events;
#endif
#ifdef WRONG_FAR /* beyond the guard word behind the state, and beyond what the host has there */
    if (s->events > 3) s[1024].events = s->events;
#endif
#ifdef WRONG_BEFORE
    if (s->events > 3) s[-1].events = s->events;
#endif
#ifdef WRONG_EVENT
    if (s->events > 3) ((struct paceline_cc_event *)items[i].event)->backlog_bytes = 0;
#endif
    /* Not where `cc check` calls it by itself: there less is sent between events. */
#ifdef WRONG_LATE
    if (items[i].event->sent_bytes > 5000) *(volatile uint64_t *)(uintptr_t)(16 + s->zero) = 1;
#endif
#ifdef WRONG_LOOP
    while (items[i].event->sent_bytes > 5000) spin(s);
#endif
#ifdef WRONG_EXIT
    if (s->events > 3) exit(0);
#endif
#ifdef WRONG_DEEP
    if (items[i].event->sent_bytes > 5000) d->wake_bytes = deeper(s, 1);
#endif
  }
}

#ifdef WRONG_OPENING /* its code runs while it is loaded */
__attribute__((constructor)) static void begin(void) {
  for (volatile uint64_t turns = 1; turns != 0;) turns = 1;
}
#endif

static const struct paceline_cc_algorithm kAlgorithm = {
    .size = sizeof(struct paceline_cc_algorithm),
#ifdef WRONG_VERSION
    .abi_major = PACELINE_CC_ABI_MAJOR,
    .abi_minor = PACELINE_CC_ABI_MINOR + 1,
#else
    .abi_major = PACELINE_CC_ABI_MAJOR,
    .abi_minor = PACELINE_CC_ABI_MINOR,
#endif
    .name = PLUGIN_NAME,
    .summary = "a plug-in that is wrong",
    .context = PACELINE_CC_PER_QP,
    .echo = PACELINE_CC_ECHO_CNP,
    .wants = PACELINE_CC_WANT(PACELINE_CC_CNP),
#ifdef WRONG_STATE
    .state_bytes = PACELINE_CC_STATE_BYTES + 1,
#elif defined WRONG_OVERRUN
    .state_bytes = sizeof(struct state) + 8, /* s[1].events is just behind */
#else
    .state_bytes = sizeof(struct state),
#endif
    .param_count = sizeof kParams / sizeof kParams[0],
    .param_size = sizeof(struct paceline_cc_param),
    .params = kParams,
#ifdef WRONG_DERIVE
    .derive = derive,
    .derived_bytes = 8,
#endif
    .on_events = on_events,
};

const struct paceline_cc_algorithm *paceline_cc_plugin(uint32_t host_abi) {
#ifdef WRONG_NULL
  if (host_abi != 0) return 0;
#endif
  (void)host_abi;
  return &kAlgorithm;
}
