/* Built against version 1.0 of the header, which lies beside this file and never changes: what was built
 * then must load and run in every later host of version 1. Uses all that there was. */
#include <paceline/cc.h>

#if PACELINE_CC_ABI_MAJOR != 1 || PACELINE_CC_ABI_MINOR != 0
#error "not the header of version 1.0"
#endif

struct derived {
  double keep;
  uint64_t link_bps;
};

struct state {
  uint64_t rate_bps;
  uint64_t events;
};

static const struct paceline_cc_param kParams[] = {
    {"keep", "1", 0.5, 0.1, 0.9, 1, 0, "what a CNP leaves of the rate", "own"},
    {"unused_bytes", "bytes", 4096, 0, 1e6, 0, 0, "a second one, to see the table's stride", "own"},
};

static void derive(const double *values, const struct paceline_cc_port *port, void *out) {
  struct derived *d = out;
  d->keep = values[0];
  d->link_bps = port->link_bps;
}

static void on_events(const struct paceline_cc_item *items, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    struct state *s = items[i].state;
    const struct derived *d = items[i].derived;
    const struct paceline_cc_event *e = items[i].event;
    struct paceline_cc_decision *out = items[i].decision;
    if (e->signal == PACELINE_CC_START) s->rate_bps = d->link_bps;
    if (e->signal == PACELINE_CC_CNP) s->rate_bps = (uint64_t)((double)s->rate_bps * d->keep);
    if (e->signal == PACELINE_CC_TICK) s->rate_bps += d->link_bps / 64;
    if (s->rate_bps > d->link_bps) s->rate_bps = d->link_bps;
    if (s->rate_bps < d->link_bps / 1024) s->rate_bps = d->link_bps / 1024;
    ++s->events;
    out->rate_bps = s->rate_bps;
    out->wake_at_ns = e->now_ns + 20000;
    out->limiter = PACELINE_CC_LIMIT_PATH;
  }
}

static const struct paceline_cc_algorithm kAlgorithm = {
    .size = sizeof(struct paceline_cc_algorithm),
    .abi_major = PACELINE_CC_ABI_MAJOR,
    .abi_minor = PACELINE_CC_ABI_MINOR,
    .name = "halver",
    .summary = "of version 1.0",
    .context = PACELINE_CC_PER_QP,
    .echo = PACELINE_CC_ECHO_CNP,
    .wants = PACELINE_CC_WANT(PACELINE_CC_CNP),
    .state_bytes = sizeof(struct state),
    .derived_bytes = sizeof(struct derived),
    .param_count = 2,
    .param_size = sizeof(struct paceline_cc_param),
    .params = kParams,
    .derive = derive,
    .on_events = on_events,
};

const struct paceline_cc_algorithm *paceline_cc_plugin(uint32_t host_abi) {
  return host_abi >> 16 == 1 ? &kAlgorithm : 0;
}
