/* Hears nothing and sends at line rate for ever. No host can object, for each of its decisions is
 * within bounds: what a plug-in does to a network is for experiments and their guardrails to find. */
#include <paceline/cc.h>

struct derived {
  uint64_t link_bps;
};

static void derive(const double *values, const struct paceline_cc_port *port, void *out) {
  (void)values;
  ((struct derived *)out)->link_bps = port->link_bps;
}

static void on_events(const struct paceline_cc_item *items, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const struct derived *d = items[i].derived;
    items[i].decision->rate_bps = d->link_bps;
  }
}

static const struct paceline_cc_algorithm kAlgorithm = {
    .size = sizeof(struct paceline_cc_algorithm),
    .abi_major = PACELINE_CC_ABI_MAJOR,
    .abi_minor = PACELINE_CC_ABI_MINOR,
    .name = "blaster",
    .summary = "line rate whatever happens: for guardrails to catch",
    .context = PACELINE_CC_PER_QP,
    .echo = PACELINE_CC_ECHO_NONE,
    .derived_bytes = sizeof(struct derived),
    .derive = derive,
    .on_events = on_events,
};

const struct paceline_cc_algorithm *paceline_cc_plugin(uint32_t host_abi) {
  return host_abi >> 16 == PACELINE_CC_ABI_MAJOR ? &kAlgorithm : 0;
}
