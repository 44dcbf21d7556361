/* aimd: additive increase, multiplicative decrease on congestion notification packets. */
#include <paceline/cc.h>

enum { DECREASE, STEP, PERIOD, PARAMS };
static const struct paceline_cc_param kParams[PARAMS] = {
    {"decrease", "1", 0.7, 0.1, 0.99, 1, 0, "what a notification leaves of the rate", "own"},
    {"step_mbps", "Mb/s", 100, 1, 10000, 1, 0, "added in each period without one", "own"},
    {"period_us", "us", 20, 1, 10000, 1, 0, "least time between two changes of a kind", "own"},
};

struct derived { /* of one port and parameter set: constant */
  double decrease, step_bps, link_bps;
  int64_t period_ns;
};
struct state { /* of one context; zeroes before START */
  double rate_bps;
  int64_t cut_at, grown_at; /* last decrease; end of the last period that counted */
};

static void derive(const double *values, const struct paceline_cc_port *port, void *out) {
  struct derived *d = out;
  *d = (struct derived){values[DECREASE], values[STEP] * 1e6, (double)port->link_bps,
                        (int64_t)(values[PERIOD] * 1e3)};
}

static void on_event(struct state *s, const struct derived *d, const struct paceline_cc_event *e,
                     struct paceline_cc_decision *out) {
  if (e->signal == PACELINE_CC_START) { /* no faster than who was here before */
    s->rate_bps = e->handover && e->handover->rate_bps ? (double)e->handover->rate_bps : d->link_bps;
    s->cut_at = e->now_ns - d->period_ns; /* the first notification counts */
    s->grown_at = e->now_ns;
  } else if (e->signal == PACELINE_CC_CNP && e->now_ns - s->cut_at >= d->period_ns) {
    s->rate_bps *= d->decrease;
    s->cut_at = s->grown_at = e->now_ns;
  }
  int64_t periods = (e->now_ns - s->grown_at) / d->period_ns;
  s->grown_at += periods * d->period_ns;
  s->rate_bps += d->step_bps * (double)periods;
  if (s->rate_bps > d->link_bps) s->rate_bps = d->link_bps;
  if (s->rate_bps < d->link_bps / 1000) s->rate_bps = d->link_bps / 1000;
  out->rate_bps = (uint64_t)s->rate_bps;
  out->wake_at_ns = s->rate_bps < d->link_bps ? s->grown_at + d->period_ns : PACELINE_CC_NEVER;
}

static void on_events(const struct paceline_cc_item *items, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    on_event(items[i].state, items[i].derived, items[i].event, items[i].decision);
}

static const struct paceline_cc_algorithm kAlgorithm = {
    .size = sizeof kAlgorithm, .abi_major = PACELINE_CC_ABI_MAJOR, .abi_minor = PACELINE_CC_ABI_MINOR,
    .name = "aimd", .summary = "additive increase, multiplicative decrease on CNPs",
    .context = PACELINE_CC_PER_QP, .echo = PACELINE_CC_ECHO_CNP,
    .wants = PACELINE_CC_WANT(PACELINE_CC_CNP), .derive = derive, .on_events = on_events,
    .state_bytes = sizeof(struct state), .derived_bytes = sizeof(struct derived),
    .params = kParams, .param_count = PARAMS, .param_size = sizeof *kParams,
};
const struct paceline_cc_algorithm *paceline_cc_plugin(uint32_t host_abi) {
  return host_abi >> 16 == PACELINE_CC_ABI_MAJOR ? &kAlgorithm : 0;
}
