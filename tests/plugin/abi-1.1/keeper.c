/* Built against version 1.1 of the header, which lies beside this file and never changes: what was built
 * then must load and run in every later host of version 1. Profiles are what 1.1 added. */
#include <paceline/cc.h>

#if PACELINE_CC_ABI_MAJOR != 1 || PACELINE_CC_ABI_MINOR != 1
#error "not the header of version 1.1"
#endif

struct derived {
  double keep;
  double step_mbps;
  uint64_t link_bps;
};

struct state {
  uint64_t rate_bps;
};

static const struct paceline_cc_param kParams[] = {
    {"keep", "1", 0.5, 0.1, 0.9, 1, 0, "what a CNP leaves of the rate", "own"},
    {"step_mbps", "Mb/s", 100, 1, 1e6, 1, 0, "added every 20 us", "own"},
};

static const struct paceline_cc_profile_value kGentle[] = {
    {"keep", 0.8, 0},
    {"step_mbps", 50, 100e9}, /* at 100 Gb/s; scales with the link */
};

static const struct paceline_cc_profile kProfiles[] = {
    {.name = "gentle", .source = "own", .values = kGentle, .value_count = 2},
};

static void derive(const double *values, const struct paceline_cc_port *port, void *out) {
  struct derived *d = out;
  d->keep = values[0];
  d->step_mbps = values[1];
  d->link_bps = port->link_bps;
}

static void on_events(const struct paceline_cc_item *items, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    struct state *s = items[i].state;
    const struct derived *d = items[i].derived;
    const struct paceline_cc_event *e = items[i].event;
    if (e->signal == PACELINE_CC_START) s->rate_bps = d->link_bps;
    if (e->signal == PACELINE_CC_CNP) s->rate_bps = (uint64_t)((double)s->rate_bps * d->keep);
    if (e->signal == PACELINE_CC_TICK) s->rate_bps += (uint64_t)(d->step_mbps * 1e6);
    if (s->rate_bps > d->link_bps) s->rate_bps = d->link_bps;
    if (s->rate_bps < d->link_bps / 1024) s->rate_bps = d->link_bps / 1024;
    items[i].decision->rate_bps = s->rate_bps;
    items[i].decision->wake_at_ns = e->now_ns + 20000;
  }
}

static const struct paceline_cc_algorithm kAlgorithm = {
    .size = sizeof(struct paceline_cc_algorithm),
    .abi_major = PACELINE_CC_ABI_MAJOR,
    .abi_minor = PACELINE_CC_ABI_MINOR,
    .name = "keeper",
    .summary = "of version 1.1",
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
    .profile_count = 1,
    .profiles = kProfiles,
};

const struct paceline_cc_algorithm *paceline_cc_plugin(uint32_t host_abi) {
  return host_abi >> 16 == 1 && (host_abi & 0xFFFF) >= 1 ? &kAlgorithm : 0;
}
