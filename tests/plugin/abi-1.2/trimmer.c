/* Built against version 1.2 of the header, which lies beside this file and never changes: what was built
 * then must load and run in every later host of version 1. What was trimmed is what 1.2 added; a loss that
 * switches told of is taken less seriously than one that nobody saw. */
#include <paceline/cc.h>

#if PACELINE_CC_ABI_MAJOR != 1 || PACELINE_CC_ABI_MINOR != 2
#error "not the header of version 1.2"
#endif

struct state {
  uint64_t rate_bps;
  uint64_t trimmed;
};

static const struct paceline_cc_param kParams[] = {
    {"keep", "1", 0.5, 0.1, 0.9, 1, 0, "what a CNP or a loss leaves of the rate", "own"},
    {"keep_trimmed", "1", 0.8, 0.1, 0.99, 1, 0, "the same of a loss that was trimmed", "own"},
};

static void on_events(const struct paceline_cc_item *items, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    struct state *s = items[i].state;
    const double *values = items[i].derived;
    const struct paceline_cc_event *e = items[i].event;
    const uint64_t link = UINT64_C(100000000000);
    double keep = 1;
    if (e->signal == PACELINE_CC_START) s->rate_bps = link;
    if (e->signal == PACELINE_CC_CNP) keep = values[0];
    if (e->signal == PACELINE_CC_NACK) keep = e->trimmed_bytes != 0 ? values[1] : values[0];
    if (e->signal == PACELINE_CC_NACK) s->trimmed += e->trimmed_bytes;
    if (e->signal == PACELINE_CC_TICK) s->rate_bps += 100000000;
    s->rate_bps = (uint64_t)((double)s->rate_bps * keep);
    if (s->rate_bps > link) s->rate_bps = link;
    if (s->rate_bps < link / 1024) s->rate_bps = link / 1024;
    items[i].decision->rate_bps = s->rate_bps;
    items[i].decision->wake_at_ns = e->now_ns + 20000;
  }
}

static const struct paceline_cc_algorithm kAlgorithm = {
    .size = sizeof(struct paceline_cc_algorithm),
    .abi_major = PACELINE_CC_ABI_MAJOR,
    .abi_minor = PACELINE_CC_ABI_MINOR,
    .name = "trimmer",
    .summary = "of version 1.2",
    .context = PACELINE_CC_PER_QP,
    .echo = PACELINE_CC_ECHO_CNP,
    .wants = PACELINE_CC_WANT(PACELINE_CC_CNP) | PACELINE_CC_WANT(PACELINE_CC_NACK),
    .state_bytes = sizeof(struct state),
    .param_count = 2,
    .param_size = sizeof(struct paceline_cc_param),
    .params = kParams,
    .on_events = on_events,
};

const struct paceline_cc_algorithm *paceline_cc_plugin(uint32_t host_abi) {
  return host_abi >> 16 == 1 && (host_abi & 0xFFFF) >= 2 ? &kAlgorithm : 0;
}
