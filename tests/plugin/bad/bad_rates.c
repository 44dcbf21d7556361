/* Rates that must not get far: `equal` with one fault. Those with a WRONG_... defined are refused when they are
 * loaded; what the others do wrong while they run is a parameter's to say, and 0 is right. */
#include <paceline/cc.h>
#include <string.h>

static const struct paceline_cc_algorithm *equal_plugin(uint32_t host_abi);
#define paceline_cc_plugin equal_plugin
#include "../equal/equal.c"
#undef paceline_cc_plugin

#ifndef PLUGIN_NAME
#error "PLUGIN_NAME"
#endif

enum { FAULT = PARAMS, BAD_PARAMS };
enum fault { /* as in rates_world_test.cc */
  NONE,
  SILENT,
  PORT,
  SENDER,
  SENDER_IN_ROUND,
  IN_GRANT,
  RATE,
  LEASE,
  LONG_LEASE,
  NUMBER,
  LIMIT,
  HOLD,
  BUSY,
  CONTEXT,
  FLAGS,
  STUCK,
  UPLINK,
  UPLINK_CONTEXT,
  SHARE,
  START,
  FAULTS
};

static const struct paceline_cc_param kBadParams[BAD_PARAMS] = {
    {"load", "1", 0.95, 0.1, 1, 1, 0, "share of the link that is granted", "own"},
    {"fault", "count", 0, 0, FAULTS - 1, 1, 0, "what goes wrong", "own"},
};

struct bad_derived {
  struct derived good;
  enum fault fault;
};

static enum fault fault_of(const void *derived) { return ((const struct bad_derived *)derived)->fault; }

/* At first all is well. */
static int late(int64_t now_ns) { return now_ns > 20000; }

static void spoil(void *state, uint32_t bytes) { memset((char *)state + bytes, 0xFF, 1); }

static void bad_derive(const double *values, const struct paceline_cc_port *port, void *out) {
  struct bad_derived *d = out;
  derive(values, port, &d->good);
  d->fault = (enum fault)values[FAULT];
}

static void bad_on_events(const struct paceline_cc_item *items, uint32_t count) {
  on_events(items, count);
  for (uint32_t i = 0; i < count; ++i) {
    struct paceline_cc_decision *r = items[i].decision;
    const enum fault fault = fault_of(items[i].derived);
    if (!late(items[i].event->now_ns)) continue;
    if (fault == CONTEXT) spoil(items[i].state, (sizeof(struct context) + 7) / 8 * 8);
    if (fault == FLAGS) r->request = 7;
    if (fault != STUCK) continue;
    r->rate_bps = r->request = r->timed = 0;
    r->wake_at_ns = PACELINE_CC_NEVER;
  }
}

static void bad_fill_request(const struct paceline_cc_item *item, struct paceline_cc_request *request) {
  fill_request(item, request);
  if (fault_of(item->derived) == START) request->start_total = UINT64_MAX;
}

static void fill_want(const struct paceline_cc_item *item, struct paceline_cc_want *want) {
  const struct context *c = item->state;
  want->left_bytes = c->backlog_bytes;
  want->limit_mbps = (uint32_t)c->lease.rate;
  want->active = c->backlog_bytes != 0;
  want->weight = 1;
}

#ifndef WRONG_UPLINK
static void on_uplink(struct paceline_cc_uplink *uplink) {
  const enum fault fault = fault_of(uplink->derived);
  uplink->next_ns = uplink->now_ns + 10000;
  if (!late(uplink->now_ns)) return;
  if (fault == UPLINK) spoil(uplink->state, sizeof(uint64_t));
  for (uint32_t i = 0; i < uplink->context_count; ++i) {
    if (fault == UPLINK_CONTEXT) spoil(uplink->contexts[i]->state, sizeof(uint64_t));
    if (fault == SHARE) uplink->contexts[i]->share->rate_mbps = UINT32_MAX / 2;
  }
}
#endif

static void bad_on_request(struct paceline_cc_downlink *port, struct paceline_cc_channel *sender) {
  const enum fault fault = fault_of(port->derived);
  on_request(port, sender);
#ifdef WRONG_REACH
  ((volatile char *)sender->state)[-64] = 1;
#endif
  if (!late(port->now_ns)) return;
  if (fault == SENDER) spoil(sender->state, sizeof(struct sender));
  if (fault == BUSY) port->next_ns = 0;
  if (fault == SILENT) sender->tell = 0;
}

static void bad_on_downlink(struct paceline_cc_downlink *port) {
  const enum fault fault = fault_of(port->derived);
  on_downlink(port);
  if (!late(port->now_ns)) return;
  if (fault == PORT) spoil(port->state, sizeof(struct port));
  for (uint32_t i = 0; i < port->channel_count; ++i) {
    if (fault == SILENT) port->channels[i]->tell = 0;
    if (fault == SENDER_IN_ROUND) spoil(port->channels[i]->state, sizeof(struct sender));
  }
}

#ifndef WRONG_GRANT
static void bad_fill_grant(struct paceline_cc_downlink *port, struct paceline_cc_channel *sender,
                           struct paceline_cc_rate_grant *grant) {
  const enum fault fault = fault_of(port->derived);
  fill_grant(port, sender, grant);
  if (!late(port->now_ns)) return;
  if (fault == IN_GRANT) spoil(sender->state, sizeof(struct sender));
  if (fault == RATE) grant->rate_mbps = UINT32_MAX;
  if (fault == LEASE) grant->lease_us = 0;
  if (fault == LONG_LEASE) grant->lease_us = 11000000;
  if (fault == NUMBER) grant->number = 0;
  if (fault == LIMIT) grant->limit_total = UINT64_MAX;
  if (fault == HOLD) grant->hold = 1;
}
#endif

static const struct paceline_cc_rates kBadRates = {
#ifdef WRONG_TABLE
    .size = 16,
#else
    .size = sizeof(struct paceline_cc_rates),
#endif
#ifdef WRONG_UPLINK_BYTES
    .uplink_bytes = PACELINE_CC_PORT_BYTES + 1,
#else
    .uplink_bytes = sizeof(uint64_t),
#endif
#ifdef WRONG_CONTEXT_BYTES
    .uplink_context_bytes = PACELINE_CC_UPLINK_BYTES + 1,
#else
    .uplink_context_bytes = sizeof(uint64_t),
#endif
#ifdef WRONG_PORT_BYTES
    .port_bytes = PACELINE_CC_PORT_BYTES + 1,
#else
    .port_bytes = sizeof(struct port),
#endif
#ifdef WRONG_SENDER_BYTES
    .sender_bytes = PACELINE_CC_SENDER_BYTES + 1,
#else
    .sender_bytes = sizeof(struct sender),
#endif
    .fill_request = bad_fill_request,
    .fill_want = fill_want,
#ifndef WRONG_UPLINK
    .on_uplink = on_uplink,
#endif
    .on_request = bad_on_request,
    .on_downlink = bad_on_downlink,
#ifndef WRONG_GRANT
    .fill_grant = bad_fill_grant,
#endif
};

#ifdef WRONG_BOTH
static void on_round(struct paceline_cc_round *round) { (void)round; }

static const struct paceline_cc_receiver kReceiver = {
    .size = sizeof(struct paceline_cc_receiver),
    .on_round = on_round,
};
#endif

static const struct paceline_cc_algorithm kBad = {
    .size = sizeof(struct paceline_cc_algorithm),
    .abi_major = PACELINE_CC_ABI_MAJOR,
    .abi_minor = PACELINE_CC_ABI_MINOR,
    .name = PLUGIN_NAME,
    .summary = "rates",
#ifdef WRONG_PER_QP
    .context = PACELINE_CC_PER_QP,
#else
    .context = PACELINE_CC_PER_PEER_CLASS,
#endif
    .echo = PACELINE_CC_ECHO_CNP,
    .wants = PACELINE_CC_WANT(PACELINE_CC_MESSAGE) | PACELINE_CC_WANT(PACELINE_CC_IDLE),
#ifdef WRONG_STATE
    .state_bytes = PACELINE_CC_RATES_STATE_BYTES + 1,
#else
    .state_bytes = sizeof(struct context),
#endif
    .derived_bytes = sizeof(struct bad_derived),
    .param_count = BAD_PARAMS,
    .param_size = sizeof(struct paceline_cc_param),
    .params = kBadParams,
    .derive = bad_derive,
    .on_events = bad_on_events,
#ifdef WRONG_BOTH
    .receiver = &kReceiver,
#endif
    .rates = &kBadRates,
};

const struct paceline_cc_algorithm *paceline_cc_plugin(uint32_t host_abi) {
  (void)equal_plugin(host_abi);
  return &kBad;
}
