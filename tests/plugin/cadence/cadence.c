/* cadence_c: Cadence, as docs/algorithms/cadence.md states its law. The numbers in comments are
 * the law's lines. Rates are Mb/s, sizes wire bytes, times ns. */
#include <paceline/cc.h>

enum { ETA, SMALL, KAPPA, A_MAX, LITTLE, HYSTERESIS, LEASE, PATH, FALLBACK, PROBES, PARAMS };

static const struct paceline_cc_param kParams[PARAMS] = {
    {"eta", "1", 0.998, 0.8, 1, 1, 0, "share of the link that grants add up to", "own"},
    {"small_message", "1", 0.75, 0, 4, 1, 0, "BDPs of a message that waits for nobody", "own"},
    {"kappa", "1", 1, 0.25, 2, 1, 0, "BDPs that all peers start with, of longer ones", "own"},
    {"a_max", "count", 128, 1, 4096, 1, 0, "channels granted at the same time", "own"},
    {"little_weight", "1", 3, 1, 8, 1, 0, "of who has little left beside who has much", "own"},
    {"hysteresis", "1", 0.04, 0, 0.5, 1, 0, "change of a share that is worth a GRANT", "own"},
    {"lease_min", "us", 100, 10, 10000, 1, 0, "shortest lease", "own"},
    {"path_target", "1", 4, 0, 64, 1, 0, "round trips of delay on the path; 0: any", "own"},
    {"r_fallback", "1", 0.0078125, 0.0001, 1, 1, 0, "share of the link without a lease", "own"},
    {"probe_limit", "count", 8, 1, 64, 1, 0, "REQUESTs in vain before the fallback", "own"},
};

struct derived {                   /* of one port and parameter set: constant */
  double link, granted, fallback;  /* rates: C, eta C, R_fb */
  double bdp, small, packet, head; /* bytes: B, s, a full packet, what of it is no payload */
  double kappa, little, hysteresis;
  int64_t rtt, packet_time, control_time; /* T; a packet's and a REQUEST's at C */
  int64_t lease_min, path_target;         /* path_target: D */
  uint32_t a_max, probes, mtu;            /* mtu: payload of a packet */
};

struct claim { /* to a part of what is shared out */
  double most, weight;
  struct claim* next; /* as long as a call lasts */
};

struct context { /* the sender of a channel; zeroes before START. Times may be NEVER */
  double path;   /* P */
  int64_t control_rtt, lease, lease_end, begins_at, halves_at, asks_at;
  int64_t path_at, nak_at, helped_at, gave_up_at;
  uint64_t limit, start_from, start_to, cut_at;        /* totals; limit: L */
  uint32_t grant, next_grant, share, cap, start_asked; /* grant: G, share: S */
  uint32_t unanswered;
  uint16_t number, degree;          /* number: of the GRANT in force, 0: none */
  uint8_t wants, request, fallback; /* wants: it has asked for a grant and not given up */
};

struct uplink { /* a port that sends */
  int64_t shared_until, started_at;
  double started; /* bytes of starts that count against the next ones */
};

struct uplink_context {
  struct claim claim;
  int64_t told_at;
  double told; /* cap that was announced; 0: none */
};

enum turn { ABSENT, HELD, ACTIVE, TURNS };

struct port { /* that receives */
  int64_t round_after, turn_at, begins_at;
  uint32_t turns[TURNS];
};

struct sender { /* the receiving end of a channel */
  struct claim claim;
  int64_t since, told_at, lease, begins_at, raised_at, halved_at; /* since: of its turn */
  uint32_t share, grant, com, cap;
  uint16_t number, agreed;            /* newest GRANT; first one of the same rate */
  uint8_t turn, much, fresh, revoked; /* fresh: no GRANT has said this rate */
};

typedef const struct paceline_cc_event event;
typedef const struct derived constants;
typedef struct paceline_cc_downlink downlink;
typedef struct paceline_cc_channel channel;

static double lesser(double a, double b) { return a < b ? a : b; }
static double greater(double a, double b) { return a > b ? a : b; }
static int64_t sooner(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }
static double bytes_in(double rate, int64_t time) { return rate * (double)time / 8e3; }
static int64_t time_of(double bytes, double rate) { return (int64_t)(bytes * 8e3 / rate); }
static int newer(uint16_t a, uint16_t b) { return b == 0 || (int16_t)(a - b) > 0; }

static double on_wire(constants* d, uint64_t payload) {
  return (double)payload + (double)((payload + d->mtu - 1) / d->mtu) * d->head;
}

static void derive(const double* v, const struct paceline_cc_port* port, void* out) {
  struct derived* d = out;
  const double link = (double)port->link_bps / 1e6, packet = port->full_packet_bytes;
  const int64_t rtt = port->base_rtt_ns ? port->base_rtt_ns : 10000;
  const double bdp = bytes_in(link, rtt);
  const double path_target = v[PATH] > 0 ? v[PATH] * (double)rtt : 1e18;
  *d = (struct derived){link,
                        v[ETA] * link,
                        greater(1, v[FALLBACK] * link),
                        bdp,
                        v[SMALL] * bdp,
                        packet,
                        packet - port->mtu_bytes,
                        v[KAPPA],
                        v[LITTLE],
                        v[HYSTERESIS],
                        rtt,
                        time_of(packet, link),
                        time_of(130, link),
                        (int64_t)(v[LEASE] * 1e3),
                        (int64_t)path_target,
                        (uint32_t)v[A_MAX],
                        (uint32_t)v[PROBES],
                        port->mtu_bytes};
}

/* --- sharing --- */

static int has_much(constants* d, double left) { return left >= 16 * d->bdp; }

static double weight(constants* d, double left, uint32_t with_much) { /* w */
  return with_much > 0 && left < 4 * d->bdp ? d->little : 1;
}

static double part(const struct claim* c, double level) {
  return lesser(c->most, c->weight * level);
}

/* The level at which all parts add up to the total. */
static double water_level(const struct claim* first, double total) {
  double level = 0;
  for (double before = -1; level > before;) {
    double left = total, weights = 0;
    for (const struct claim* c = first; c; c = c->next)
      if (c->most <= c->weight * level)
        left -= c->most;
      else
        weights += c->weight;
    before = level;
    if (weights > 0) level = left / weights;
  }
  return level;
}

/* --- sender of a channel --- */

static uint64_t acknowledged(event* e) { return e->sent_total - e->inflight_bytes; }

/* Bytes of starts from one total to another. */
static double starts_in(const struct context* s, uint64_t from, uint64_t to) {
  if (from < s->start_from) from = s->start_from;
  if (to > s->start_to) to = s->start_to;
  return to > from ? (double)(to - from) : 0;
}

static int64_t control_rtt(const struct context* s, constants* d) { /* 20: T' */
  return later(d->rtt, s->control_rtt);
}

static void ask(struct context* s, constants* d, int64_t now) { /* 13 */
  const double twice = 2.0 * (double)d->rtt, most = greater(twice, 1e6);
  double wait = twice;
  for (uint32_t i = 4; i <= s->unanswered && wait < most; ++i) wait = lesser(2 * wait, most);
  s->asks_at = now + (s->number && now < s->lease_end ? s->lease / 2 : (int64_t)wait);
  s->unanswered++;
  s->request = 1;
}

/* Wants a grant, or needs it no more, and says so. */
static void turn_to(struct context* s, constants* d, int64_t now, uint8_t wants) {
  if (s->wants == wants) return;
  s->wants = wants;
  s->unanswered = 0;
  ask(s, d, now);
}

static double start_of(const struct context* s, constants* d, double x, uint32_t n) {
  double u = lesser(x, d->bdp);
  if (x > d->small && n != 1 && n != 2) { /* 3 */
    const double all = n ? d->kappa * d->bdp / n : 0;
    const double packets = greater(all, d->small * d->small * d->small / (x * x)) / d->packet;
    u = lesser(x, (double)(uint64_t)packets * d->packet);
  }
  return s->degree ? lesser(u, d->bdp / s->degree) : u; /* 4 */
}

/* 7, 8: of a short message behind others. */
static double beside_grant(struct context* s, constants* d, event* e) {
  const double m = on_wire(d, e->message_bytes);
  if (m > d->small || e->backlog_bytes <= e->message_bytes || s->grant >= 0.875 * d->granted ||
      e->now_ns < s->helped_at + 8 * d->rtt)
    return 0;
  s->helped_at = e->now_ns;
  return 2 * m;
}

static void new_work(struct context* s, constants* d, event* e) {
  const double left = on_wire(d, e->backlog_bytes) + e->lost_bytes;
  double start;
  if (e->signal != PACELINE_CC_NACK && e->signal != PACELINE_CC_TIMEOUT) s->degree = e->hint_degree;
  if (s->grant == 0) {
    const double x = left + starts_in(s, acknowledged(e), e->sent_total);            /* 2 */
    start = start_of(s, d, x, e->peers) - starts_in(s, acknowledged(e), UINT64_MAX); /* 5 */
  } else {
    start = beside_grant(s, d, e);
  }
  s->start_asked = (uint32_t)greater(0, lesser(start, left));
  if (s->start_asked == 0 && left > 0) turn_to(s, d, e->now_ns, 1); /* 6 */
}

static void begin_start(struct context* s, constants* d, event* e) {
  if (s->start_to <= acknowledged(e)) s->start_from = e->sent_total;
  if (s->start_to < e->sent_total) s->start_to = e->sent_total;
  s->start_to += e->share->start_bytes;
  s->start_asked = 0;
  if (on_wire(d, e->backlog_bytes) > (double)(s->start_to - e->sent_total))
    turn_to(s, d, e->now_ns, 1); /* 6 */
}

static void on_share(struct context* s, constants* d, event* e) {
  s->share = e->share->rate_mbps;
  s->cap = e->share->cap_mbps;
  if (e->share->answers_start && s->start_asked) begin_start(s, d, e);
  if (e->share->announce && s->wants) ask(s, d, e->now_ns); /* 23 */
}

static void drop_grant(struct context* s) {
  s->grant = s->number = 0;
  s->begins_at = s->halves_at = PACELINE_CC_NEVER;
}

static void on_idle(struct context* s, constants* d, int64_t now) { /* 12 */
  drop_grant(s);
  if (s->wants) s->gave_up_at = now;
  turn_to(s, d, now, 0);
}

static void obey(struct context* s, constants* d, const struct paceline_cc_rate_grant* g,
                 int64_t now) {
  const uint32_t before = s->grant;
  s->number = g->number;
  s->next_grant = g->rate_mbps; /* 10 */
  s->begins_at = g->rate_mbps > before ? now + (int64_t)g->delay_us * 1000 : now;
  if (s->begins_at == now) s->grant = g->rate_mbps;
  if (g->limit_total > s->limit) s->limit = g->limit_total;
  s->lease = (int64_t)g->lease_us * 1000;
  s->lease_end = s->halves_at = now + s->lease;
  s->asks_at = now + s->lease / 2;
  if (s->grant < before) ask(s, d, now); /* 11 */
}

static void on_grant(struct context* s, constants* d, event* e) {
  const struct paceline_cc_rate_grant* g = e->rate_grant;
  const int64_t asked_at = e->now_ns - (uint32_t)((uint32_t)e->now_ns - g->stamp_ns);
  if (!newer(g->number, s->number) || asked_at < s->gave_up_at) return; /* 9 */
  if (g->round_trip_ns != 0)                                            /* 20 */
    s->control_rtt += (g->round_trip_ns - s->control_rtt) / (s->control_rtt ? 8 : 1);
  s->unanswered = 0;
  s->fallback = 0; /* 15 */
  if (g->rate_mbps > 0 || g->hold) {
    if (s->wants) obey(s, d, g, e->now_ns);
  } else if (!s->wants) { /* 12: confirmed */
    s->asks_at = PACELINE_CC_NEVER;
  } else if (g->revoke) {
    drop_grant(s);
    ask(s, d, e->now_ns);
  }
}

static void slow_path(struct context* s, constants* d, double rate, int64_t now) {
  s->path = greater(rate, d->fallback);
  s->path_at = now;
}

static void on_ack(struct context* s, constants* d, event* e) {
  const int64_t above = (int64_t)e->rtt_ns - control_rtt(s, d) - d->path_target;
  if (above <= 0 || acknowledged(e) <= s->cut_at) return;
  const double rate = s->grant ? lesser(s->grant, s->path) : s->path;
  slow_path(s, d, rate * (1 - lesser(0.8 * (double)above / e->rtt_ns, 0.5)), e->now_ns); /* 16 */
  s->cut_at = e->sent_total;                                                             /* 17 */
}

static void on_loss(struct context* s, constants* d, event* e) { /* 18 */
  if (e->signal == PACELINE_CC_TIMEOUT) {
    slow_path(s, d, s->path / 2, e->now_ns);
  } else if (e->now_ns >= s->nak_at + d->rtt) {
    slow_path(s, d, s->path * 0.7, e->now_ns);
    s->nak_at = e->now_ns;
  }
  if (s->grant == 0) new_work(s, d, e);
}

static void begin(struct context* s, constants* d, event* e) {
  const double before = e->handover ? (double)e->handover->rate_bps / 1e6 : 0;
  s->path = before > 0 ? lesser(before, d->link) : d->link;
  s->share = s->cap = (uint32_t)d->link;
  s->path_at = s->gave_up_at = e->now_ns;
  s->nak_at = e->now_ns - d->rtt;
  s->helped_at = e->now_ns - 8 * d->rtt;
  s->asks_at = s->begins_at = s->halves_at = PACELINE_CC_NEVER;
}

static void pass_time(struct context* s, constants* d, int64_t now) {
  for (; s->path < d->link && now >= s->path_at + d->rtt; s->path_at += d->rtt) { /* 19 */
    s->path += s->grant / 20.0;
    if (s->path >= 1.25 * s->grant) s->path = d->link;
  }
  if (now >= s->begins_at) { /* 10 */
    s->grant = s->next_grant;
    s->begins_at = PACELINE_CC_NEVER;
  }
  if (now >= s->lease_end && s->halves_at == s->lease_end) ask(s, d, now); /* 14 */
  for (; now >= s->halves_at; s->halves_at += d->rtt)
    if (s->grant > d->fallback) s->grant = (uint32_t)greater(s->grant / 2, d->fallback);
  if (now < s->asks_at) return;
  if (s->wants && s->unanswered >= d->probes && s->grant <= d->fallback) s->fallback = 1; /* 15 */
  ask(s, d, now);
}

static void decide(const struct context* s, constants* d, event* e,
                   struct paceline_cc_decision* out) {
  const int starts = s->start_to > e->sent_total;
  const double start_rate = s->degree ? d->granted / s->degree : d->link;
  const double unbound = starts ? start_rate : lesser(s->grant, s->share);
  const double rate = greater(1, lesser(unbound, s->path)); /* 1, 5 */
  const double slack = lesser(2 * d->packet, bytes_in(rate, d->rtt) / 2);
  const double window = greater(d->packet, bytes_in(rate, control_rtt(s, d)) + slack);
  const int64_t due = sooner(s->asks_at, sooner(s->begins_at, s->halves_at));
  out->rate_bps = (uint64_t)(rate * 1e6);
  out->window_bytes = starts ? PACELINE_CC_UNLIMITED : (uint64_t)window;
  out->ceiling = s->grant && s->limit > s->start_to ? s->limit : s->start_to;
  if (s->fallback) out->window_bytes = out->ceiling = PACELINE_CC_UNLIMITED;
  out->wake_at_ns = s->path < d->link ? sooner(due, s->path_at + d->rtt) : due;
  out->timed = due != PACELINE_CC_NEVER;
  out->request = s->request;
  out->fallback = s->fallback;
}

static void on_event(struct context* s, constants* d, event* e) {
  const uint8_t what = e->signal;
  s->request = 0;
  if (what == PACELINE_CC_START) begin(s, d, e);
  pass_time(s, d, e->now_ns);
  if (what == PACELINE_CC_START || what == PACELINE_CC_MESSAGE) new_work(s, d, e);
  if (what == PACELINE_CC_NACK || what == PACELINE_CC_TIMEOUT) on_loss(s, d, e);
  if (what == PACELINE_CC_ACK && e->rtt_ns) on_ack(s, d, e);
  if (what == PACELINE_CC_SHARE) on_share(s, d, e);
  if (what == PACELINE_CC_GRANT) on_grant(s, d, e);
  if (what == PACELINE_CC_IDLE) on_idle(s, d, e->now_ns);
}

static void on_events(const struct paceline_cc_item* items, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    on_event(items[i].state, items[i].derived, items[i].event);
    decide(items[i].state, items[i].derived, items[i].event, items[i].decision);
  }
}

static void fill_request(const struct paceline_cc_item* item, struct paceline_cc_request* r) {
  const struct context* s = item->state;
  const double left = greater(1, on_wire(item->derived, item->event->backlog_bytes));
  if (s->start_to > r->sent_total) r->start_total = s->start_to;
  r->demand_bytes = s->wants ? (uint64_t)left : 0;
  r->cap_mbps = s->cap;
  r->grant_echo = s->number;
  r->degree = s->degree;
}

static void fill_want(const struct paceline_cc_item* item, struct paceline_cc_want* want) {
  const struct context* s = item->state;
  want->left_bytes = (uint64_t)on_wire(item->derived, item->event->backlog_bytes);
  want->limit_mbps = s->grant;
  want->start_bytes = s->start_asked;
  want->asks_start = s->start_asked > 0;
  want->active = want->left_bytes > 0;
  want->awaits_grant = s->number == 0;
  want->weight = 1;
}

/* --- uplink of a host --- */

static struct claim* link_contexts(struct paceline_cc_uplink* u, constants* d) {
  struct claim* first = 0;
  uint32_t much = 0;
  for (uint32_t i = 0; i < u->context_count; ++i)
    much += u->contexts[i]->want->active && has_much(d, (double)u->contexts[i]->want->left_bytes);
  for (uint32_t i = 0; i < u->context_count; ++i) {
    const struct paceline_cc_want* want = u->contexts[i]->want;
    struct claim* c = u->contexts[i]->state;
    *c = (struct claim){want->awaits_grant ? d->link : want->limit_mbps,
                        weight(d, (double)want->left_bytes, much), first};
    if (want->active) first = c;
  }
  return first;
}

static void share_out(struct paceline_cc_uplink* u, constants* d) {
  const struct claim* first = link_contexts(u, d);
  const double level = water_level(first, 0.98 * d->link);
  for (uint32_t i = 0; i < u->context_count; ++i) {
    struct uplink_context* s = u->contexts[i]->state;
    struct paceline_cc_share* share = u->contexts[i]->share;
    const double grant = s->claim.most, old = s->told > 0 ? s->told : d->link;
    share->rate_mbps = (uint32_t)part(&s->claim, level); /* 21 */
    s->claim.most = d->link;                             /* 22 */
    share->cap_mbps = (uint32_t)part(&s->claim, water_level(first, 0.98 * d->link));
    s->claim.most = grant;
    share->announce = greater(share->cap_mbps - old, old - share->cap_mbps) >= old / 8 && /* 23 */
                      lesser(share->cap_mbps, old) < 1.25 * grant &&
                      u->now_ns >= s->told_at + d->rtt;
    if (share->announce) s->told = share->cap_mbps;
    if (share->announce) s->told_at = u->now_ns;
    u->contexts[i]->tell = 1;
  }
}

static void give_starts(struct paceline_cc_uplink* u, constants* d) { /* 24 */
  struct uplink* s = u->state;
  s->started = greater(0, s->started - bytes_in(d->link, u->now_ns - s->started_at));
  s->started_at = u->now_ns;
  for (uint32_t i = 0; i < u->context_count; ++i) u->contexts[i]->share->start_bytes = 0;
  for (int given = 1; given;) {
    given = 0;
    for (uint32_t i = 0; i < u->context_count; ++i) {
      struct paceline_cc_share* share = u->contexts[i]->share;
      const double asked = u->contexts[i]->want->start_bytes;
      const double piece = lesser(d->packet, asked - share->start_bytes);
      if (piece <= 0 || s->started + piece > d->bdp) continue;
      share->start_bytes += (uint32_t)piece;
      s->started += piece;
      given = 1;
    }
  }
}

static void on_uplink(struct paceline_cc_uplink* u) {
  struct uplink* s = u->state;
  constants* d = u->derived;
  if (u->now_ns >= s->shared_until) {
    share_out(u, d);
    s->shared_until = u->now_ns + d->rtt / 4;
  } else {
    u->next_ns = s->shared_until;
  }
  u->rest_ns = s->shared_until;
  give_starts(u, d);
}

/* --- receiver of a port --- */

static void round_at(downlink* p, int64_t at) {
  const struct port* port = p->state;
  const int64_t least = later(port->round_after, p->now_ns + 100);
  p->next_ns = sooner(p->next_ns, later(at, least));
}

static void set_grant(channel* c, double grant) {
  struct sender* s = c->state;
  s->grant = (uint32_t)grant;
  if (s->com < s->grant) s->com = s->grant; /* 35 */
  s->fresh = 1;
  c->tell = 1;
}

static void take_turn(downlink* p, struct sender* s, enum turn turn) {
  struct port* port = p->state;
  port->turns[s->turn]--;
  port->turns[turn]++;
  s->turn = (uint8_t)turn;
  s->since = p->now_ns;
}

static void forget(downlink* p, channel* c, uint8_t revoked) {
  struct sender* s = c->state;
  take_turn(p, s, ABSENT);
  *s = (struct sender){.number = s->number, .revoked = revoked};
  c->listed = 0;
  c->tell = 1;
}

static int obeys(const struct sender* s, uint16_t echo) {
  return !s->fresh && echo != 0 && !newer(s->agreed, echo);
}

static void on_request(downlink* p, channel* c) {
  constants* d = p->derived;
  struct sender* s = c->state;
  const struct port* port = p->state;
  const int much = has_much(d, (double)c->request->demand_bytes);
  int news = s->cap != c->request->cap_mbps || s->much != much || s->turn == ABSENT;
  if (c->fresh) s->number = c->request->grant_echo;
  if (c->request->demand_bytes == 0) {
    forget(p, c, 0);
  } else if (s->turn == ABSENT) {
    take_turn(p, s, port->turns[ACTIVE] < d->a_max ? ACTIVE : HELD);
    if (s->turn == HELD) set_grant(c, 0);        /* 40 */
  } else if (obeys(s, c->request->grant_echo)) { /* 35 */
    news |= s->com != s->grant;
    s->com = s->grant;
  } else if (s->told_at && p->now_ns >= s->told_at + d->rtt) {
    c->tell = 1; /* the newest GRANT has been lost */
  }
  s->cap = c->request->cap_mbps;
  s->much = (uint8_t)much;
  if (news || s->turn == ABSENT) round_at(p, p->now_ns);
}

/* Whose turn began first. */
static channel* first_of(downlink* p, enum turn turn) {
  channel* best = 0;
  int64_t since = PACELINE_CC_NEVER;
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    const struct sender* s = p->channels[i]->state;
    if (s->turn != turn || s->since >= since) continue;
    since = s->since;
    best = p->channels[i];
  }
  return best;
}

static void change_turns(downlink* p, constants* d) { /* 40 */
  struct port* port = p->state;
  while (port->turns[HELD] > 0 && port->turns[ACTIVE] < d->a_max)
    take_turn(p, first_of(p, HELD)->state, ACTIVE);
  const uint32_t waiting = port->turns[HELD], most = (d->a_max + 1) / 2;
  if (waiting == 0 || p->now_ns >= port->turn_at) {
    for (uint32_t i = 0; i < waiting && i < most; ++i) {
      channel *next = first_of(p, HELD), *rests = first_of(p, ACTIVE);
      take_turn(p, next->state, ACTIVE);
      take_turn(p, rests->state, HELD);
      set_grant(rests, 0);
    }
    port->turn_at = p->now_ns + 64 * d->rtt;
  }
  if (waiting > 0) round_at(p, port->turn_at);
}

/* 38, 39: a GRANT again, or the end of who is silent. */
static void keep(downlink* p, channel* c) {
  constants* d = p->derived;
  struct sender* s = c->state;
  const int64_t now = p->now_ns, lease_end = s->told_at + s->lease;
  const int64_t again = s->com > s->grant ? s->told_at + d->rtt * 5 / 4 : PACELINE_CC_NEVER;
  if (s->lease == 0) return;             /* nothing said yet */
  if (now < c->heard_at_ns + s->lease) { /* 38 */
    const int64_t due = sooner(again, s->told_at + s->lease / 2);
    if (now >= due)
      c->tell = 1;
    else
      round_at(p, due);
  } else if (now >= lease_end + s->lease) {
    forget(p, c, 1);
  } else if (now >= lease_end) { /* 39 */
    if (s->halved_at < lease_end) s->halved_at = lease_end;
    if (s->grant > d->fallback) {
      s->grant = (uint32_t)d->fallback;
      s->fresh = 1;
    }
    for (; now >= s->halved_at + d->rtt; s->halved_at += d->rtt)
      if (s->com > s->grant) s->com = (uint32_t)greater(s->com / 2, s->grant);
    round_at(p, s->com > s->grant ? s->halved_at + d->rtt : lease_end + s->lease);
  } else {
    round_at(p, lease_end);
  }
}

static void find_shares(downlink* p, constants* d) { /* 25 */
  struct claim* first = 0;
  uint32_t much = 0;
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    const struct sender* s = p->channels[i]->state;
    much += s->turn == ACTIVE && s->much;
  }
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    struct sender* s = p->channels[i]->state;
    const double left = (double)p->channels[i]->request->demand_bytes;
    s->claim = (struct claim){greater(s->cap, d->link / 1024), weight(d, left, much), first};
    if (s->turn == ACTIVE) first = &s->claim;
  }
  const double level = water_level(first, d->granted);
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    struct sender* s = p->channels[i]->state;
    s->share = s->turn == ACTIVE ? (uint32_t)part(&s->claim, level) : 0;
  }
}

/* What is taken back for those who get more, of which the sum of com falls later. */
static void lower_grants(downlink* p, constants* d) {
  double wanted = 0, left = d->granted;
  int starving = 0;
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    const struct sender* s = p->channels[i]->state;
    left -= s->grant;
    starving |= 2 * s->grant < s->share; /* 29 */
    if (s->share > (1 + d->hysteresis) * s->grant && s->share > s->com)
      wanted += s->share - s->com; /* 26 */
  }
  if (wanted <= left) return; /* 27 */
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    const struct sender* s = p->channels[i]->state;
    const double least = (starving ? 1 : 1 - d->hysteresis) * s->grant; /* 28, 29 */
    if (s->share < least) set_grant(p->channels[i], s->share);
  }
}

static void give(channel* c, double grant, double* room) {
  struct sender* s = c->state;
  *room += s->com;
  set_grant(c, grant);
  *room -= s->com;
}

static void raise_grants(downlink* p, constants* d) {
  struct port* port = p->state;
  double room = d->granted; /* 30 */
  for (uint32_t i = 0; i < p->channel_count; ++i)
    room -= ((struct sender*)p->channels[i]->state)->com;
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    struct sender* s = p->channels[i]->state;
    if (s->grant > 0 || s->share == 0) continue;
    if (2 * room < s->share) { /* 31 */
      round_at(p, p->now_ns + d->rtt);
      continue;
    }
    give(p->channels[i], lesser(s->share, room), &room);
    port->begins_at = later(port->begins_at + d->packet_time, p->now_ns); /* 32 */
    s->begins_at = port->begins_at = sooner(port->begins_at, p->now_ns + 16 * d->rtt);
  }
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    struct sender* s = p->channels[i]->state;
    const double to = lesser(s->share, s->com + room), by = to - s->grant; /* 33 */
    if (s->grant == 0 || s->share <= (1 + d->hysteresis) * s->grant || by <= 0) continue;
    if (p->now_ns < s->raised_at + 2 * d->rtt && by < d->link / 8 && by < s->grant) { /* 34 */
      round_at(p, s->raised_at + 2 * d->rtt);
      continue;
    }
    give(p->channels[i], to, &room);
    s->raised_at = p->now_ns;
  }
}

static void on_downlink(downlink* p) {
  constants* d = p->derived;
  struct port* port = p->state;
  port->round_after = p->now_ns + d->rtt / 4;
  port->turns[HELD] = port->turns[ACTIVE] = 0;
  for (uint32_t i = 0; i < p->channel_count; ++i)
    port->turns[((struct sender*)p->channels[i]->state)->turn]++;
  change_turns(p, d);
  for (uint32_t i = 0; i < p->channel_count; ++i) keep(p, p->channels[i]);
  find_shares(p, d);
  lower_grants(p, d);
  raise_grants(p, d);
}

static void fill_grant(downlink* p, channel* c, struct paceline_cc_rate_grant* g) {
  constants* d = p->derived;
  const struct paceline_cc_request* r = c->request;
  struct sender* s = c->state;
  const int64_t active = ((struct port*)p->state)->turns[ACTIVE];
  const int64_t packets = s->grant ? time_of(8 * d->packet, s->grant) : 0;
  const int64_t refresh = later(2 * d->rtt, active * d->control_time);
  uint64_t known = r->sent_total > r->start_total ? r->sent_total : r->start_total;
  if (known < c->received_total) known = c->received_total;
  s->number = (uint16_t)(s->number % 65535 + 1);
  if (s->fresh) s->agreed = s->number;
  s->fresh = 0;
  s->told_at = p->now_ns;
  s->lease = later(d->lease_min, later(4 * refresh, packets)); /* 37 */
  g->number = s->number;
  g->rate_mbps = s->grant;
  g->lease_us = (uint32_t)(s->lease / 1000);
  g->delay_us = s->begins_at > p->now_ns ? (uint32_t)((s->begins_at - p->now_ns) / 1000) : 0;
  g->limit_total =
      known + (uint64_t)(bytes_in(s->grant, s->lease + 2 * d->rtt) + 2 * d->packet); /* 36 */
  g->hold = s->turn == HELD;
  g->revoke = s->revoked;
}

static const struct paceline_cc_rates kRates = {sizeof kRates,
                                                sizeof(struct uplink),
                                                sizeof(struct uplink_context),
                                                sizeof(struct port),
                                                sizeof(struct sender),
                                                0,
                                                fill_request,
                                                fill_want,
                                                on_uplink,
                                                on_request,
                                                on_downlink,
                                                fill_grant};

static const struct paceline_cc_algorithm kAlgorithm = {
    .size = sizeof(struct paceline_cc_algorithm),
    .abi_major = PACELINE_CC_ABI_MAJOR,
    .abi_minor = PACELINE_CC_ABI_MINOR,
    .name = "cadence_c",
    .summary = "proactive: the port that receives agrees with its senders on rates",
    .context = PACELINE_CC_PER_PEER_CLASS,
    .echo = PACELINE_CC_ECHO_CNP, /* for the fallback */
    .wants = PACELINE_CC_WANT(PACELINE_CC_ACK) | PACELINE_CC_WANT(PACELINE_CC_NACK) |
             PACELINE_CC_WANT(PACELINE_CC_TIMEOUT) | PACELINE_CC_WANT(PACELINE_CC_MESSAGE) |
             PACELINE_CC_WANT(PACELINE_CC_IDLE) | PACELINE_CC_WANT(PACELINE_CC_GRANT) |
             PACELINE_CC_WANT(PACELINE_CC_SHARE),
    .state_bytes = sizeof(struct context),
    .derived_bytes = sizeof(struct derived),
    .param_count = PARAMS,
    .param_size = sizeof(struct paceline_cc_param),
    .params = kParams,
    .derive = derive,
    .on_events = on_events,
    .rates = &kRates};

const struct paceline_cc_algorithm* paceline_cc_plugin(uint32_t host_abi) {
  if (host_abi >> 16 != PACELINE_CC_ABI_MAJOR || (host_abi & 0xFFFF) < PACELINE_CC_ABI_MINOR)
    return 0;
  return &kAlgorithm;
}
