/* creditor: both halves. The receiver hands out credit: what is on its way to the port stays within a bucket,
 * what is of one sender within a window that marks make smaller. The sender paces what it was granted. */
#include <paceline/cc.h>

enum { BUCKET, WINDOW, CUT, PACE, PARAMS };

static const struct paceline_cc_param kParams[PARAMS] = {
    {"bucket", "1", 1.5, 1, 16, 1, 0, "round trips' worth of bytes on their way to a port", "SIRD: B"},
    {"window", "1", 1, 0.25, 16, 1, 0, "the same of one sender, at most", "SIRD: SB"},
    {"cut", "1", 0.7, 0.1, 0.99, 1, 0, "what marks leave of a sender's window", "own"},
    {"pace", "1", 1, 0.5, 1, 1, 0, "share of the link at which granted bytes leave", "own"},
};

struct derived { /* of one port and parameter set: constant */
  double cut;
  uint64_t bucket, most, packet, rate_bps; /* bytes, but for the last */
};

struct port { /* what the receiver keeps of a port; zeroes at first */
  uint64_t turn;
};

struct sender { /* and of each sender to it */
  uint64_t window; /* 0: not granted yet */
  uint64_t turn;   /* of its last grant */
  uint64_t looked_at;
  uint32_t marked;
};

static uint64_t bdp(const struct paceline_cc_port *port) {
  const uint32_t rtt = port->base_rtt_ns ? port->base_rtt_ns : 10000;
  return (uint64_t)((double)port->link_bps / 8e9 * rtt);
}

static uint64_t at_least(uint64_t value, uint64_t least) { return value < least ? least : value; }

static void derive(const double *values, const struct paceline_cc_port *port, void *out) {
  struct derived *d = out;
  d->packet = at_least(port->full_packet_bytes, port->mtu_bytes + 82);
  d->bucket = at_least((uint64_t)(values[BUCKET] * (double)bdp(port)), d->packet);
  d->most = at_least((uint64_t)(values[WINDOW] * (double)bdp(port)), d->packet);
  d->cut = values[CUT];
  d->rate_bps = (uint64_t)(values[PACE] * (double)port->link_bps);
}

static void rules(const double *values, const struct paceline_cc_port *port, struct paceline_cc_grant_rules *r) {
  (void)values;
  (void)port;
  r->start_message_bytes = r->start_bytes; /* longer messages wait for credit */
}

/* Once a window has come in: marks make the next one smaller. */
static void heed_marks(struct sender *s, const struct derived *d, const struct paceline_cc_sender *v) {
  if (s->window == 0) s->window = d->most;
  if (v->received_bytes - s->looked_at < s->window) return;
  s->window = v->marked_packets != s->marked ? (uint64_t)((double)s->window * d->cut) : s->window + d->packet;
  s->window = at_least(s->window > d->most ? d->most : s->window, d->packet);
  s->looked_at = v->received_bytes;
  s->marked = v->marked_packets;
}

/* Whose turn was longest ago, of those that may have more and have had nothing in this round. */
static const struct paceline_cc_sender *pick(const struct paceline_cc_round *r, uint64_t turn) {
  const struct paceline_cc_sender *best = 0;
  for (uint32_t i = 0; i < r->sender_count; ++i) {
    const struct paceline_cc_sender *v = r->senders[i];
    const struct sender *s = v->state, *b = best ? best->state : 0;
    if (v->wanted_bytes == 0 || v->outstanding_bytes >= s->window || s->turn > turn) continue;
    if (!b || s->turn < b->turn || (s->turn == b->turn && v->number < best->number)) best = v;
  }
  return best;
}

static void on_round(struct paceline_cc_round *r) {
  struct port *port = r->state;
  const struct derived *d = r->derived;
  const uint64_t turn = port->turn;
  uint64_t under_way = r->outstanding_bytes;
  for (uint32_t i = 0; i < r->sender_count; ++i) heed_marks(r->senders[i]->state, d, r->senders[i]);
  while (under_way < d->bucket && r->grant_count < r->grant_most) {
    const struct paceline_cc_sender *next = pick(r, turn);
    if (!next) return;
    const uint64_t bytes = next->wanted_bytes < d->packet ? next->wanted_bytes : d->packet;
    r->grants[r->grant_count++] = (struct paceline_cc_grant){next->number, 0, bytes};
    ((struct sender *)next->state)->turn = ++port->turn;
    under_way += d->packet;
  }
}

static void on_events(const struct paceline_cc_item *items, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const struct derived *d = items[i].derived;
    items[i].decision->rate_bps = d->rate_bps;
  }
}

static const struct paceline_cc_receiver kReceiver = {
    .size = sizeof(struct paceline_cc_receiver),
    .port_bytes = sizeof(struct port),
    .sender_bytes = sizeof(struct sender),
    .rules = rules,
    .on_round = on_round,
};

static const struct paceline_cc_algorithm kAlgorithm = {
    .size = sizeof(struct paceline_cc_algorithm),
    .abi_major = PACELINE_CC_ABI_MAJOR,
    .abi_minor = PACELINE_CC_ABI_MINOR,
    .name = "creditor",
    .summary = "proactive: the receiver hands out credit, marks make windows smaller",
    .context = PACELINE_CC_PER_PEER_CLASS,
    .echo = PACELINE_CC_ECHO_CNP, /* for the fallback; the receiver counts marks itself */
    .derived_bytes = sizeof(struct derived),
    .param_count = PARAMS,
    .param_size = sizeof(struct paceline_cc_param),
    .params = kParams,
    .derive = derive,
    .on_events = on_events,
    .receiver = &kReceiver,
};

const struct paceline_cc_algorithm *paceline_cc_plugin(uint32_t host_abi) {
  if (host_abi >> 16 != PACELINE_CC_ABI_MAJOR || (host_abi & 0xFFFF) < PACELINE_CC_ABI_MINOR) return 0;
  return &kAlgorithm;
}
