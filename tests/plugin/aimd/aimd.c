/* aimd: additive increase, multiplicative decrease on congestion notification packets. */
#include <paceline/cc.h>

enum { DECREASE, STEP, PERIOD, PARAMS };

static const struct paceline_cc_param kParams[PARAMS] = {
    {"decrease", "1", 0.7, 0.1, 0.99, 1, 0, "what a notification leaves of the rate", "own"},
    {"step_mbps", "Mb/s", 100, 1, 10000, 1, 0, "added in each period without one", "own"},
    {"period_us", "us", 20, 1, 10000, 1, 0, "least time between two decreases, and between two increases", "own"},
};

struct derived { /* of one port and parameter set: constant */
  double decrease;
  uint64_t step_bps, floor_bps, link_bps;
  int64_t period_ns;
};

struct state { /* of one context; zeroes before START */
  uint64_t rate_bps;
  int64_t cut_at;   /* last decrease */
  int64_t grown_at; /* end of the last period that was added for, or last decrease */
};

static void derive(const double *values, const struct paceline_cc_port *port, void *out) {
  struct derived *d = out;
  d->decrease = values[DECREASE];
  d->step_bps = (uint64_t)(values[STEP] * 1e6);
  d->period_ns = (int64_t)(values[PERIOD] * 1e3);
  d->link_bps = port->link_bps;
  d->floor_bps = port->link_bps / 1000;
}

static void on_event(struct state *s, const struct derived *d, const struct paceline_cc_event *e,
                     struct paceline_cc_decision *out) {
  if (e->signal == PACELINE_CC_START) {
    s->rate_bps = d->link_bps;
    if (e->handover && e->handover->rate_bps && e->handover->rate_bps < s->rate_bps)
      s->rate_bps = e->handover->rate_bps; /* begin no faster than who was here before */
    s->cut_at = e->now_ns - d->period_ns; /* the first notification counts */
    s->grown_at = e->now_ns;
  }
  if (e->signal == PACELINE_CC_CNP && e->now_ns - s->cut_at >= d->period_ns) {
    s->rate_bps = (uint64_t)((double)s->rate_bps * d->decrease);
    s->cut_at = s->grown_at = e->now_ns;
  }
  int64_t periods = (e->now_ns - s->grown_at) / d->period_ns;
  s->rate_bps += d->step_bps * (uint64_t)periods;
  s->grown_at += periods * d->period_ns;
  if (s->rate_bps > d->link_bps) s->rate_bps = d->link_bps;
  if (s->rate_bps < d->floor_bps) s->rate_bps = d->floor_bps;
  out->rate_bps = s->rate_bps;
  out->wake_at_ns = s->rate_bps < d->link_bps ? s->grown_at + d->period_ns : PACELINE_CC_NEVER;
}

static void on_events(const struct paceline_cc_item *items, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    on_event(items[i].state, items[i].derived, items[i].event, items[i].decision);
}

static const struct paceline_cc_algorithm kAlgorithm = {
    .size = sizeof(struct paceline_cc_algorithm),
    .abi_major = PACELINE_CC_ABI_MAJOR,
    .abi_minor = PACELINE_CC_ABI_MINOR,
    .name = "aimd",
    .summary = "additive increase, multiplicative decrease on CNPs",
    .context = PACELINE_CC_PER_QP,
    .echo = PACELINE_CC_ECHO_CNP,
    .wants = PACELINE_CC_WANT(PACELINE_CC_CNP),
    .state_bytes = sizeof(struct state),
    .derived_bytes = sizeof(struct derived),
    .param_count = PARAMS,
    .param_size = sizeof(struct paceline_cc_param),
    .params = kParams,
    .derive = derive,
    .on_events = on_events,
};

const struct paceline_cc_algorithm *paceline_cc_plugin(uint32_t host_abi) {
  return host_abi >> 16 == PACELINE_CC_ABI_MAJOR ? &kAlgorithm : 0;
}
