/* Receiving halves that must not get far. Those with a WRONG_... defined are refused when they are loaded; what
 * the others do wrong while they run is a parameter's to say. 0 is right: it grants every sender a packet. */
#include <paceline/cc.h>
#include <string.h>

#ifndef PLUGIN_NAME
#error "PLUGIN_NAME"
#endif

enum fault { /* as in receiver_world_test.cc */
  NONE,
  SILENT,
  NOBODY,
  BEYOND,
  BACKWARDS,
  MANY,
  PORT,
  SENDER,
  GRANTS,
  ON_REQUEST,
  BUSY,
  ASLEEP,
  TINY,
  ALL,
  CONTEXT,
  RATE,
  FAULTS
};

static const struct paceline_cc_param kParams[] = {
    {"fault", "count", 0, 0, FAULTS - 1, 1, 0, "what goes wrong", "own"},
};

struct kept {
  uint64_t calls;
};

static enum fault fault_of(const void *derived) { return (enum fault)((const double *)derived)[0]; }

#ifdef WRONG_RULES
static void rules(const double *values, const struct paceline_cc_port *port, struct paceline_cc_grant_rules *r) {
  (void)values;
  (void)port;
  r->outstanding_bytes = 1;
}
#endif

static void on_request(void *state, const void *derived, const struct paceline_cc_sender *s, int64_t now_ns) {
  (void)state;
  (void)now_ns;
  if (fault_of(derived) == ON_REQUEST) memset(s->state, 0xFF, sizeof(struct kept) + 1);
}

#ifndef WRONG_ROUND
static void on_round(struct paceline_cc_round *r) {
  struct kept *port = r->state;
  const enum fault fault = fault_of(r->derived);
  const int late = ++port->calls > 20; /* at first all is well */
  uint64_t room = r->room_bytes;
  if (fault == SILENT && late) return;
  if (fault == PORT && late) port[1].calls = 1;
  if (fault == ASLEEP) r->next_ns = PACELINE_CC_NEVER;
  if (fault == BUSY) r->next_ns = 0;
  for (uint32_t i = 0; i < r->sender_count && r->grant_count < r->grant_most; ++i) {
    const struct paceline_cc_sender *s = r->senders[i];
    uint64_t bytes = s->wanted_bytes < 4178 ? s->wanted_bytes : 4178;
    uint32_t number = s->number;
    if (bytes == 0 || bytes > room) continue;
    room -= bytes;
    if (fault == NOBODY) number |= 1u << 31;
    if (fault == BEYOND) bytes = s->wanted_bytes + 1000000;
    if (fault == BACKWARDS) bytes = 0 - bytes;
    if (fault == TINY) bytes = 1;
    if (fault == ALL) bytes = s->wanted_bytes;
    if (fault == SENDER && late) ((struct kept *)s->state)[1].calls = 1;
    r->grants[r->grant_count++] = (struct paceline_cc_grant){number, 0, bytes};
  }
  if (fault == MANY) r->grant_count = 1000;
  if (fault == GRANTS && late) memset(r->grants, 0, (PACELINE_CC_GRANTS + 1) * sizeof *r->grants);
}
#endif

static void on_events(const struct paceline_cc_item *items, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    struct kept *s = items[i].state;
    const enum fault fault = fault_of(items[i].derived);
    items[i].decision->rate_bps = fault == RATE ? 0 : 100000000000u;
    if (++s->calls > 3 && fault == CONTEXT) s[1].calls = 1;
  }
}

static const struct paceline_cc_receiver kReceiver = {
#ifdef WRONG_TABLE
    .size = 16,
#else
    .size = sizeof(struct paceline_cc_receiver),
#endif
#ifdef WRONG_PORT_BYTES
    .port_bytes = PACELINE_CC_PORT_BYTES + 1,
#else
    .port_bytes = sizeof(struct kept),
#endif
#ifdef WRONG_SENDER_BYTES
    .sender_bytes = PACELINE_CC_SENDER_BYTES + 1,
#else
    .sender_bytes = sizeof(struct kept),
#endif
#ifdef WRONG_RULES
    .rules = rules,
#endif
    .on_request = on_request,
#ifndef WRONG_ROUND
    .on_round = on_round,
#endif
};

static const struct paceline_cc_algorithm kAlgorithm = {
    .size = sizeof(struct paceline_cc_algorithm),
    .abi_major = PACELINE_CC_ABI_MAJOR,
    .abi_minor = PACELINE_CC_ABI_MINOR,
    .name = PLUGIN_NAME,
    .summary = "a receiving half",
#ifdef WRONG_PER_QP
    .context = PACELINE_CC_PER_QP,
#else
    .context = PACELINE_CC_PER_PEER_CLASS,
#endif
    .echo = PACELINE_CC_ECHO_CNP,
#ifdef WRONG_CHANNEL
    .state_bytes = PACELINE_CC_CHANNEL_STATE_BYTES + 1,
#else
    .state_bytes = sizeof(struct kept),
#endif
    .param_count = 1,
    .param_size = sizeof(struct paceline_cc_param),
    .params = kParams,
    .on_events = on_events,
    .receiver = &kReceiver,
};

const struct paceline_cc_algorithm *paceline_cc_plugin(uint32_t host_abi) {
  (void)host_abi;
  return &kAlgorithm;
}
