/* equal: the port that receives gives every sender with demand an equal part of its rate. */
#include <paceline/cc_rates.h>

enum { LOAD, PARAMS };

static const struct paceline_cc_param kParams[PARAMS] = {
    {"load", "1", 0.95, 0.1, 1, 1, 0, "share of the link that is granted", "own"},
};

enum { LEASE_US = 100 };

struct derived {
  uint32_t capacity_mbps, packet_bytes;
  int64_t rtt_ns;
};

struct context {
  struct cc_lease lease;
  uint64_t backlog_bytes;
  int64_t ask_at_ns;
};

struct port {
  uint32_t rate_mbps; /* of each sender */
};

struct sender {
  uint16_t number;
};

static void derive(const double *values, const struct paceline_cc_port *port, void *out) {
  struct derived *d = out;
  d->capacity_mbps = (uint32_t)(values[LOAD] * (double)port->link_bps / 1e6);
  d->packet_bytes = port->full_packet_bytes ? port->full_packet_bytes : port->mtu_bytes + 82;
  d->rtt_ns = cc_rtt(port);
}

static void on_event(const struct paceline_cc_item *item) {
  struct context *c = item->state;
  const struct derived *d = item->derived;
  const struct paceline_cc_event *e = item->event;
  struct paceline_cc_decision *r = item->decision;
  const struct paceline_cc_rate_grant *g = e->signal == PACELINE_CC_GRANT ? e->rate_grant : 0;
  const int had = c->backlog_bytes != 0;
  c->backlog_bytes = e->backlog_bytes + e->backlog_bytes / 16;
  if (e->signal == PACELINE_CC_START) cc_release(&c->lease);
  if (cc_ends(&c->lease, e->now_ns)) c->lease.rate = 0;
  if (g && g->rate_mbps) {
    cc_take(&c->lease, g, e->now_ns);
    c->ask_at_ns = e->now_ns + c->lease.ns / 2;
  }
  const int has = c->backlog_bytes != 0;
  if (!has) c->lease.rate = 0;
  r->request = (uint8_t)(has != had || (has && e->now_ns >= c->ask_at_ns));
  if (r->request) c->ask_at_ns = e->now_ns + (c->lease.rate > 0 ? c->lease.ns / 2 : 4 * d->rtt_ns);
  r->rate_bps = (uint64_t)(c->lease.rate * 1e6);
  r->ceiling = c->lease.limit;
  r->wake_at_ns = has ? c->ask_at_ns : PACELINE_CC_NEVER;
  r->timed = (uint8_t)has;
}

static void on_events(const struct paceline_cc_item *items, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) on_event(&items[i]);
}

static void fill_request(const struct paceline_cc_item *item, struct paceline_cc_request *request) {
  const struct context *c = item->state;
  request->demand_bytes = c->backlog_bytes;
  request->grant_echo = c->lease.number;
}

static void on_request(struct paceline_cc_downlink *port, struct paceline_cc_channel *sender) {
  sender->listed = sender->request->demand_bytes != 0;
  sender->tell = 1;
  cc_look_at(port, port->now_ns);
}

static void on_downlink(struct paceline_cc_downlink *port) {
  const struct derived *d = port->derived;
  struct port *p = port->state;
  const uint32_t rate = port->channel_count ? d->capacity_mbps / port->channel_count : 0;
  const int changed = rate != p->rate_mbps;
  p->rate_mbps = rate;
  for (uint32_t i = 0; i < port->channel_count; ++i) port->channels[i]->tell = (uint8_t)changed;
}

static void fill_grant(struct paceline_cc_downlink *port, struct paceline_cc_channel *sender,
                       struct paceline_cc_rate_grant *grant) {
  const struct derived *d = port->derived;
  const struct port *p = port->state;
  struct sender *s = sender->state;
  const struct paceline_cc_request *r = sender->request;
  s->number = cc_number_after(s->number);
  grant->number = s->number;
  grant->lease_us = LEASE_US;
  grant->limit_total = cc_known_total(sender);
  if (!sender->listed || r->demand_bytes == 0 || p->rate_mbps == 0) return;
  grant->rate_mbps = p->rate_mbps;
  grant->limit_total +=
      (uint64_t)cc_bytes_in(p->rate_mbps, LEASE_US * INT64_C(1000) + 2 * d->rtt_ns) + 2 * d->packet_bytes;
}

static const struct paceline_cc_rates kRates = {
    .size = sizeof(struct paceline_cc_rates),
    .port_bytes = sizeof(struct port),
    .sender_bytes = sizeof(struct sender),
    .fill_request = fill_request,
    .on_request = on_request,
    .on_downlink = on_downlink,
    .fill_grant = fill_grant,
};

static const struct paceline_cc_algorithm kAlgorithm = {
    .size = sizeof(struct paceline_cc_algorithm),
    .abi_major = PACELINE_CC_ABI_MAJOR,
    .abi_minor = PACELINE_CC_ABI_MINOR,
    .name = "equal",
    .summary = "proactive: every sender is granted an equal part of the port's rate",
    .context = PACELINE_CC_PER_PEER_CLASS,
    .echo = PACELINE_CC_ECHO_CNP,
    .wants = PACELINE_CC_WANT(PACELINE_CC_MESSAGE) | PACELINE_CC_WANT(PACELINE_CC_IDLE) |
             PACELINE_CC_WANT(PACELINE_CC_NACK) | PACELINE_CC_WANT(PACELINE_CC_TIMEOUT),
    .state_bytes = sizeof(struct context),
    .derived_bytes = sizeof(struct derived),
    .param_count = PARAMS,
    .param_size = sizeof(struct paceline_cc_param),
    .params = kParams,
    .derive = derive,
    .on_events = on_events,
    .rates = &kRates,
};

const struct paceline_cc_algorithm *paceline_cc_plugin(uint32_t host_abi) {
  return cc_table_for(host_abi, &kAlgorithm);
}
