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
  int64_t rtt, packet_time, control_time; /* T; between two packets, two GRANTs of a port */
  int64_t lease_min, path_target;         /* path_target: D */
  uint32_t a_max, probes, mtu;            /* mtu: payload of a packet */
};

typedef const struct paceline_cc_event event;
typedef const struct derived constants;
typedef struct paceline_cc_downlink downlink;
typedef struct paceline_cc_channel channel;

struct claim { /* to a part of what is shared out */
  double most, weight;
  struct claim* next; /* as long as a call lasts */
};

struct context { /* the sender of a channel; zeroes before START. Times may be NEVER */
  double path;   /* P */
  int64_t control_rtt, lease, lease_end, halves_at, begins_at, asks_at;
  int64_t path_at, cut_at, started_at, taken_at, gave_up_at;
  uint64_t limit, start_from, start_to;                /* totals; limit: L */
  uint32_t grant, next_grant, share, cap, start_asked; /* grant: G, share: S */
  uint32_t repeats;                                    /* of a REQUEST without an answer */
  uint16_t number, degree;                             /* number: of the GRANT in force, 0: none */
  uint8_t wants, request, fallback; /* wants: it asked for a grant, and has not given up */
};

struct uplink { /* a port that sends */
  int64_t started_at;
  double started; /* bytes of starts that count against the next ones */
};

struct uplink_context {
  struct claim claim;
  int64_t told_at;
  double told; /* cap that the receiver knows; 0: none */
};

enum turn { ABSENT, HELD, ACTIVE, TURNS };

struct port {                               /* that receives */
  int64_t shares_at, shares_after, turn_at; /* when shares are found next, and not before */
  uint32_t unconfirmed;                     /* decreases */
  uint32_t turns[TURNS];
};

struct sender { /* the receiving end of a channel */
  struct claim claim;
  channel* channel;                                   /* as long as a call lasts */
  int64_t since, heard_at, told_at, lease, lease_end; /* since: of its turn */
  int64_t com_until;                                  /* lease of the GRANT before a decrease */
  uint64_t arrived;
  uint32_t share, grant, com, cap, delay_us;
  uint16_t number; /* of the newest GRANT */
  uint8_t turn, revoked;
};

static double lesser(double a, double b) { return a < b ? a : b; }
static double greater(double a, double b) { return a > b ? a : b; }
static int64_t sooner(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }
static double bytes_in(double rate, int64_t time) { return rate * (double)time / 8e3; }
static int64_t time_of(double bytes, double rate) { return (int64_t)(bytes * 8e3 / rate); }

/* Beyond the headers of full packets: a start that is to cover a message has room for it. */
static const double kExtra = PACELINE_CC_MESSAGE_EXTRA;

static double on_wire(constants* d, uint64_t payload) {
  return (double)payload + (double)((payload + d->mtu - 1) / d->mtu) * d->head;
}

static void derive(const double* v, const struct paceline_cc_port* port, void* out) {
  const double link = (double)port->link_bps / 1e6, packet = port->full_packet_bytes;
  const int64_t rtt = port->base_rtt_ns ? port->base_rtt_ns : 10000;
  const double bdp = bytes_in(link, rtt), granted = (double)(uint64_t)(v[ETA] * link);
  const double path_target = v[PATH] > 0 ? v[PATH] * (double)rtt : 1e18;
  *(struct derived*)out = (struct derived){link,
                                           granted,
                                           greater(1, v[FALLBACK] * link),
                                           bdp,
                                           v[SMALL] * bdp,
                                           packet,
                                           packet - port->mtu_bytes,
                                           v[KAPPA],
                                           v[LITTLE],
                                           v[HYSTERESIS],
                                           rtt,
                                           time_of(packet, granted),
                                           time_of(136, 0.01 * link / 3),
                                           (int64_t)(v[LEASE] * 1e3),
                                           (int64_t)path_target,
                                           (uint32_t)v[A_MAX],
                                           (uint32_t)v[PROBES],
                                           port->mtu_bytes};
}

/* --- sharing --- */

static int has_much(constants* d, double left) { return left >= 16 * d->bdp; }

static double weight(constants* d, double left, int with_much) { /* w */
  return with_much && left < 4 * d->bdp ? d->little : 1;
}

static double part(const struct claim* c, double level) {
  return lesser(c->most, c->weight * level);
}

/* The level at which all parts add up to the total. */
static double water_level(const struct claim* first, double total) {
  double level = 0;
  for (double before = -1; level > before;) {
    double left = total, weights = 0;
    for (const struct claim* c = first; c; c = c->next) {
      const int bound = c->most <= c->weight * level;
      left -= bound ? c->most : 0;
      weights += bound ? 0 : c->weight;
    }
    before = level;
    if (weights > 0) level = left / weights;
  }
  return level;
}

/* --- sender of a channel --- */

static uint64_t acknowledged(event* e) { return e->sent_total - e->inflight_bytes; }

static int leased(const struct context* s, int64_t now) { return s->number && now < s->lease_end; }

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
  const double first = (s->fallback ? 8 : 2) * (double)d->rtt, most = greater(first, 1e6);
  double wait = first;
  for (uint32_t i = s->fallback ? 0 : 4; i < s->repeats && wait < most; ++i)
    wait = lesser(2 * wait, most);
  s->asks_at = now + (leased(s, now) ? later(s->lease / 2, d->rtt) : (int64_t)wait);
  s->request = 1;
}

/* Wants a grant, or needs it no more, and says so. */
static void turn_to(struct context* s, constants* d, int64_t now, uint8_t wants) {
  if (s->wants == wants) return;
  s->wants = wants;
  s->repeats = 0;
  ask(s, d, now);
}

static double start_of(const struct context* s, constants* d, double x, uint32_t n) {
  double u = lesser(x, d->bdp);
  if (x > d->small && n != 1 && n != 2) { /* 3 */
    const double all = n ? d->kappa * d->bdp / n : 0;
    const double packets = greater(all, d->small * d->small * d->small / (x * x)) / d->packet;
    u = (double)(uint64_t)packets * d->packet;
  }
  return s->degree > 1 ? lesser(u, greater(d->bdp / s->degree, d->packet)) : u; /* 4 */
}

static void new_work(struct context* s, constants* d, event* e) {
  const double left = on_wire(d, e->backlog_bytes), m = on_wire(d, e->message_bytes);
  double start = 0;
  if (e->hint_degree != 0) s->degree = e->hint_degree;
  if (left <= 0 || s->fallback) return;
  if (s->number == 0) {
    const double x = left + kExtra + starts_in(s, acknowledged(e), e->sent_total);   /* 2 */
    start = start_of(s, d, x, e->peers) - starts_in(s, acknowledged(e), UINT64_MAX); /* 5 */
    if (start < 1) turn_to(s, d, e->now_ns, 1);                                      /* 6 */
  } else if (leased(s, e->now_ns) && s->grant < 0.875 * d->granted && m <= d->small && left > m &&
             e->now_ns >= s->started_at + 8 * d->rtt) {
    start = lesser(2 * m + kExtra, d->bdp); /* 7, 8 */
  }
  s->start_asked = (uint32_t)greater(start, 0);
}

static void begin_start(struct context* s, constants* d, event* e) {
  const uint32_t bytes = e->share->start_bytes;
  if (s->start_to <= acknowledged(e)) s->start_from = e->sent_total;
  if (s->start_to < e->sent_total) s->start_to = e->sent_total;
  s->start_to += bytes;
  s->start_asked = 0;
  if (bytes > 0) s->started_at = e->now_ns;
  if (s->number == 0 &&
      on_wire(d, e->backlog_bytes) + kExtra > (double)(s->start_to - e->sent_total))
    turn_to(s, d, e->now_ns, 1); /* 6 */
  if (s->number == 0 || bytes == 0) return;
  s->limit += bytes; /* 8 */
  ask(s, d, e->now_ns);
}

static void on_share(struct context* s, constants* d, event* e) {
  s->share = e->share->rate_mbps;
  s->cap = e->share->cap_mbps;
  if (e->share->answers_start && s->start_asked) begin_start(s, d, e);
  if (e->share->announce && s->wants) ask(s, d, e->now_ns); /* 23 */
}

static void give_up(struct context* s, int64_t now) {
  s->grant = s->number = 0;
  s->limit = 0;
  s->begins_at = s->halves_at = PACELINE_CC_NEVER;
  s->gave_up_at = now;
}

static void on_idle(struct context* s, constants* d, int64_t now) { /* 12 */
  s->start_asked = 0;
  if (s->wants) give_up(s, now);
  turn_to(s, d, now, 0);
}

static void obey(struct context* s, const struct paceline_cc_rate_grant* g, int64_t now) { /* 10 */
  const uint32_t before = leased(s, now) ? s->grant : 0;
  s->number = g->number;
  s->next_grant = g->rate_mbps;
  const int waits = g->rate_mbps > before && g->delay_us > 0;
  s->begins_at = waits ? now + (int64_t)g->delay_us * 1000 : PACELINE_CC_NEVER;
  s->grant = waits ? before : g->rate_mbps;
  s->taken_at = now;
  if (g->rate_mbps < before) s->request = 1; /* 11 */
}

static void on_grant(struct context* s, constants* d, event* e) {
  const struct paceline_cc_rate_grant* g = e->rate_grant;
  const int64_t now = e->now_ns, asked_at = now - (uint32_t)((uint32_t)now - g->stamp_ns);
  const int again = leased(s, now) && g->number == s->number;
  if (s->number != 0 && (int16_t)(g->number - s->number) < 0) return; /* 9 */
  if (g->round_trip_ns != 0)                                          /* 20 */
    s->control_rtt += (g->round_trip_ns - s->control_rtt) / (s->control_rtt ? 4 : 1);
  if (asked_at < s->gave_up_at) return; /* 9 */
  s->repeats = 0;
  if (g->rate_mbps == 0 && !g->hold) { /* 12: confirms */
    if (!s->wants) s->asks_at = PACELINE_CC_NEVER;
    if (!s->wants || !g->revoke) return;
    give_up(s, now);
    s->request = 1;
  } else if (!s->wants) {
    if (s->asks_at == PACELINE_CC_NEVER) ask(s, d, now); /* this one does not know of it */
    return;
  } else {
    s->request = s->fallback || (s->number && !leased(s, now)) || (again && asked_at < s->taken_at);
    if (!again) obey(s, g, now);
    if (g->limit_total > s->limit) s->limit = g->limit_total;
    s->lease = (int64_t)g->lease_us * 1000;
    s->lease_end = s->halves_at = now + s->lease;
  }
  const uint8_t says = s->request;
  s->fallback = 0; /* 15 */
  ask(s, d, now);
  s->request = says;
}

/* --- its path: what no grant knows of --- */

static void slow_path(struct context* s, constants* d, double rate, int64_t now) {
  const double packet_in_8 = d->packet * 1e3 / (double)d->rtt;
  s->path = lesser(greater(rate, greater(d->link / 1024, packet_in_8)), d->link);
  s->path_at = s->cut_at = now;
}

static void on_ack(struct context* s, constants* d, event* e) {
  const int64_t queued = (int64_t)e->rtt_ns - control_rtt(s, d), above = queued - d->path_target;
  if (s->fallback || e->rtt_ns == 0) return;
  if (above <= 0 || e->now_ns - e->rtt_ns < s->cut_at) { /* 17 */
    if (queued > 0) s->path_at = e->now_ns;              /* 19: without */
    return;
  }
  const double rate = s->grant ? lesser(s->grant, s->path) : s->path;
  slow_path(s, d, rate * (1 - lesser(0.8 * (double)above / e->rtt_ns, 0.5)), e->now_ns); /* 16 */
}

static void on_loss(struct context* s, constants* d, event* e) { /* 18 */
  if (e->signal == PACELINE_CC_TIMEOUT)
    slow_path(s, d, s->path / 2, e->now_ns);
  else if (e->now_ns >= s->cut_at + d->rtt)
    slow_path(s, d, s->path * 0.7, e->now_ns);
  if (!s->wants) new_work(s, d, e);
}

static void grow_path(struct context* s, constants* d, int64_t now) { /* 19 */
  const double basis = s->grant ? s->grant : d->link;
  for (; s->path < d->link && now >= s->path_at + d->rtt; s->path_at += d->rtt) {
    s->path += basis / 20;
    if (s->path >= 1.25 * basis) s->path = d->link;
  }
}

/* --- its clock and its answers --- */

static void begin(struct context* s, constants* d, event* e) {
  s->path = d->link;
  s->share = s->cap = (uint32_t)d->link;
  s->cut_at = e->now_ns - d->rtt;
  s->started_at = e->now_ns - 8 * d->rtt;
  s->gave_up_at = e->now_ns;
  s->asks_at = s->begins_at = s->halves_at = PACELINE_CC_NEVER;
  if (e->handover && e->handover->rate_bps)
    slow_path(s, d, (double)e->handover->rate_bps / 1e6, e->now_ns);
}

static void pass_time(struct context* s, constants* d, int64_t now) {
  const int due = now >= s->asks_at;
  if (now >= s->halves_at && s->halves_at == s->lease_end) { /* 14 */
    s->begins_at = PACELINE_CC_NEVER;
    s->repeats = 0;
    ask(s, d, now);
  }
  if (now >= s->begins_at) { /* 10 */
    s->grant = s->next_grant;
    s->begins_at = PACELINE_CC_NEVER;
  }
  for (; now >= s->halves_at; s->halves_at += d->rtt)
    if (s->grant > d->fallback) s->grant = (uint32_t)greater(s->grant / 2, d->fallback);
  grow_path(s, d, now);
  if (!due) return;
  if (!leased(s, now)) s->repeats++;
  if (s->wants && !s->fallback && s->repeats > d->probes && s->grant <= d->fallback) { /* 15 */
    give_up(s, now);
    s->fallback = 1;
    s->repeats = 0;
  }
  ask(s, d, now);
}

static void decide(const struct context* s, constants* d, event* e,
                   struct paceline_cc_decision* out) {
  const int may_start = !s->fallback && (s->number == 0 || leased(s, e->now_ns));
  const int starts = may_start && s->start_to > e->sent_total; /* 5 */
  const double start_rate =
      s->degree > 1 ? greater(d->granted / s->degree, d->link / 1024) : d->link;
  const double own = starts ? greater(start_rate, s->grant) : lesser(s->grant, s->share);
  const double unbound = s->fallback ? d->fallback : own;
  const double rate = lesser(unbound, s->path); /* 1 */
  const double slack = lesser(2 * d->packet, bytes_in(rate, d->rtt) / 2);
  const double window = greater(d->packet, bytes_in(rate, control_rtt(s, d)) + slack);
  const int64_t due = sooner(s->asks_at, sooner(s->begins_at, s->halves_at));
  out->rate_bps = (uint64_t)((rate < 1 && due == PACELINE_CC_NEVER ? 1 : rate) * 1e6);
  out->window_bytes = starts || s->fallback ? PACELINE_CC_UNLIMITED : (uint64_t)window;
  out->ceiling = s->number && s->limit > s->start_to ? s->limit : s->start_to;
  if (s->fallback) out->ceiling = PACELINE_CC_UNLIMITED;
  out->wake_bytes = starts ? s->start_to - e->sent_total : PACELINE_CC_UNLIMITED;
  const int64_t next = s->path < d->link ? sooner(due, s->path_at + d->rtt) : due;
  out->wake_at_ns = later(next, e->now_ns + 100); /* the host's least */
  out->timed = due != PACELINE_CC_NEVER;
  out->urgent = starts != 0;
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
  if (what == PACELINE_CC_ACK) on_ack(s, d, e);
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
  r->cap_mbps = (uint32_t)greater(1, lesser(s->cap, 1.25 * s->path));
  r->grant_echo = s->number;
  r->degree = s->degree;
}

static void fill_want(const struct paceline_cc_item* item, struct paceline_cc_want* want) {
  const struct context* s = item->state;
  const double left = on_wire(item->derived, item->event->backlog_bytes);
  const double starts = starts_in(s, item->event->sent_total, UINT64_MAX) + s->start_asked;
  const double grant = s->begins_at < PACELINE_CC_NEVER ? s->next_grant : s->grant;
  want->left_bytes = (uint64_t)left;
  want->limit_mbps = (uint32_t)lesser(grant, s->path);
  want->start_bytes = s->start_asked;
  want->asks_start = s->start_asked > 0;
  want->active = left > (s->number ? 0 : starts);
  want->awaits_grant = s->number == 0 && !s->fallback;
  want->weight = 1;
}

/* --- uplink of a host --- */

static struct claim* link_contexts(struct paceline_cc_uplink* u, constants* d) {
  struct claim* first = 0;
  int much = 0;
  for (uint32_t i = 0; i < u->context_count; ++i) {
    const struct paceline_cc_want* want = u->contexts[i]->want;
    much |= want->active && has_much(d, (double)want->left_bytes);
  }
  for (uint32_t i = 0; i < u->context_count; ++i) {
    const struct paceline_cc_want* want = u->contexts[i]->want;
    struct claim* c = u->contexts[i]->state;
    c->most = want->awaits_grant ? d->link : want->limit_mbps; /* 21 */
    c->weight = weight(d, (double)want->left_bytes, much);
    c->next = first;
    if (want->active) first = c;
  }
  return first;
}

static void share_out(struct paceline_cc_uplink* u, constants* d) {
  const struct claim* first = link_contexts(u, d);
  const double level = water_level(first, 0.98 * d->link);
  for (uint32_t i = 0; i < u->context_count; ++i) {
    const struct paceline_cc_want* want = u->contexts[i]->want;
    struct uplink_context* s = u->contexts[i]->state;
    struct paceline_cc_share* share = u->contexts[i]->share;
    const double grant = s->claim.most, mine = s->claim.weight * level;
    share->rate_mbps = (uint32_t)(want->active && grant > mine ? mine : d->link); /* 21 */
    s->claim.most = d->link;
    const double cap =
        want->active ? part(&s->claim, water_level(first, 0.98 * d->link)) : d->link; /* 22 */
    s->claim.most = grant;
    const double top = greater(cap, s->told), low = lesser(cap, s->told); /* 23 */
    share->announce = want->active && !want->awaits_grant && top - low > top / 8 &&
                      low < 1.25 * grant && u->now_ns >= s->told_at + d->rtt;
    if (share->announce || want->asks_start) s->told_at = u->now_ns;
    if (share->announce || want->asks_start || s->told == 0) s->told = cap;
    share->cap_mbps = (uint32_t)s->told;
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
  constants* d = u->derived;
  share_out(u, d);
  give_starts(u, d);
  u->rest_ns = u->now_ns + d->rtt / 4;
}

/* --- receiver of a port --- */

static struct sender* owner(struct claim* c) { return (struct sender*)c; } /* its first member */
static struct sender* sender_of(const downlink* p, uint32_t i) { return p->channels[i]->state; }

static void look_at(downlink* p, int64_t at) {
  p->next_ns = sooner(p->next_ns, later(at, p->now_ns + 100));
}

static void share_at(downlink* p, int64_t at) {
  struct port* port = p->state;
  port->shares_at = sooner(port->shares_at, later(at, port->shares_after));
  look_at(p, port->shares_at);
}

static void set_grant(channel* c, double grant) {
  struct sender* s = c->state;
  if (grant < s->grant) s->com_until = later(s->com_until, s->lease_end);
  s->grant = (uint32_t)grant;
  if (s->com < s->grant) s->com = s->grant; /* 35 */
  s->number = (uint16_t)(s->number % 65535 + 1);
  s->delay_us = 0;
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
  set_grant(c, 0);
  c->listed = 0;
}

static void on_request(downlink* p, channel* c) {
  constants* d = p->derived;
  const struct paceline_cc_request* r = c->request;
  const struct port* port = p->state;
  struct sender* s = c->state;
  const int obeys = r->grant_echo != 0 && r->grant_echo == s->number;
  if (c->fresh) s->number = r->grant_echo;
  s->heard_at = p->now_ns;
  s->cap = r->cap_mbps;
  share_at(p, p->now_ns);
  if (r->demand_bytes == 0) {
    forget(p, c, 0);
  } else if (s->turn == ABSENT) {
    take_turn(p, s, port->turns[ACTIVE] < d->a_max && port->turns[HELD] == 0 ? ACTIVE : HELD);
    if (s->turn == HELD) set_grant(c, 0); /* 40 */
  } else if (obeys) {
    s->com = s->grant; /* 35 */
    s->com_until = 0;
  } else if (s->lease != 0 && p->now_ns > s->told_at + d->rtt * 3 / 2) {
    c->tell = 1; /* the newest GRANT has been lost */
  }
}

/* Whose turn began first, before a time. */
static channel* first_of(downlink* p, enum turn turn, int64_t before) {
  channel* first = 0;
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    if (sender_of(p, i)->turn != turn || sender_of(p, i)->since >= before) continue;
    before = sender_of(p, i)->since;
    first = p->channels[i];
  }
  return first;
}

static void change_turns(downlink* p, constants* d) { /* 40 */
  struct port* port = p->state;
  const uint32_t half = d->a_max > 1 ? d->a_max / 2 : 1;
  const int64_t long_ago = p->now_ns - 64 * d->rtt + 1;
  channel *next = 0, *rests = 0;
  while (port->turns[ACTIVE] < d->a_max && (next = first_of(p, HELD, PACELINE_CC_NEVER)))
    take_turn(p, next->state, ACTIVE);
  if (port->turns[HELD] == 0) return;
  for (uint32_t i = 0; i < half && p->now_ns >= port->turn_at; ++i) {
    if (!(next = first_of(p, HELD, p->now_ns)) || !(rests = first_of(p, ACTIVE, long_ago))) break;
    take_turn(p, next->state, ACTIVE);
    take_turn(p, rests->state, HELD);
    set_grant(rests, 0);
  }
  if (p->now_ns >= port->turn_at) port->turn_at = p->now_ns + 64 * d->rtt;
  share_at(p, port->turn_at);
}

static int64_t again_at(const downlink* p, const struct sender* s) { /* 38 */
  constants* d = p->derived;
  const struct port* port = p->state;
  const int64_t together = port->unconfirmed * time_of(136, d->link / 8);
  return s->told_at + (s->com > s->grant ? later(d->rtt * 5 / 4, together) : s->lease / 2);
}

/* 38, 39: a GRANT again, or the end of who is silent. */
static void keep(downlink* p, channel* c) {
  constants* d = p->derived;
  struct sender* s = c->state;
  const int64_t now = p->now_ns;
  if (s->arrived != c->received_total) s->heard_at = now;
  s->arrived = c->received_total;
  if (s->lease == 0) return; /* nothing said yet */
  const int lives = now < s->heard_at + later(s->lease / 2, 8 * d->rtt);
  if (!lives && now >= s->lease_end && s->grant > d->fallback) { /* 39 */
    set_grant(c, d->fallback);
    share_at(p, now);
  }
  if (now >= later(s->lease_end, s->heard_at + 2 * s->lease)) {
    forget(p, c, 1);
    share_at(p, now);
    return;
  }
  for (; s->com > s->grant && now >= s->com_until + d->rtt; s->com_until += d->rtt) {
    s->com = (uint32_t)greater(s->com / 2, greater(s->grant, lesser(s->com, d->fallback)));
    share_at(p, now);
  }
  if (lives && now >= again_at(p, s) && (s->grant > 0 || s->turn == HELD)) c->tell = 1;
  look_at(p, lives ? again_at(p, s) : now + d->rtt * 5 / 4);
}

static double left_of(const channel* c) { /* of what it has announced, to arrive */
  const uint64_t end = c->request->sent_total + c->request->demand_bytes;
  return end > c->received_total ? (double)(end - c->received_total) : 0;
}

/* By rising cap / weight; callers insert by rising number. */
static void insert(struct claim** first, struct claim* c) {
  while (*first && (*first)->most * c->weight <= c->most * (*first)->weight)
    first = &(*first)->next;
  c->next = *first;
  *first = c;
}

static struct claim* find_shares(downlink* p, constants* d) { /* 25 */
  struct claim* first = 0;
  int much = 0;
  for (uint32_t i = 0; i < p->channel_count; ++i)
    much |= sender_of(p, i)->turn == ACTIVE && has_much(d, left_of(p->channels[i]));
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    struct sender* s = sender_of(p, i);
    s->channel = p->channels[i];
    s->share = 0;
    s->claim.most = greater(lesser(s->cap, d->link), (uint32_t)(d->link / 1024));
    s->claim.weight = weight(d, left_of(s->channel), much);
    if (s->turn == ACTIVE) insert(&first, &s->claim);
  }
  const double level = water_level(first, d->granted);
  for (struct claim* c = first; c; c = c->next) owner(c)->share = (uint32_t)part(c, level);
  return first;
}

/* What others need is taken back: their rates rise when the echoes have come. */
static void lower_grants(downlink* p, constants* d) {
  double wanted = 0, left = d->granted;
  int starves = 0;
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    const struct sender* s = sender_of(p, i);
    const int more = s->share > (1 + d->hysteresis) * s->grant && s->share > s->com;
    wanted += more ? s->share - s->com : 0; /* 26 */
    starves |= 2 * s->com < s->share;
    left -= s->grant;
  }
  if (wanted <= left) return; /* 27 */
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    const struct sender* s = sender_of(p, i);
    const uint32_t least = (uint32_t)((starves ? 1 : 1 - d->hysteresis) * s->grant); /* 28, 29 */
    if (s->turn == ACTIVE && s->share < least) set_grant(p->channels[i], s->share);
  }
}

static void give(struct sender* s, double grant, double* room) {
  *room += s->com;
  set_grant(s->channel, grant);
  *room -= s->com;
}

static void raise_grants(downlink* p, constants* d, struct claim* first) {
  double room = d->granted;
  int64_t delay = 0;
  for (uint32_t i = 0; i < p->channel_count; ++i) room -= sender_of(p, i)->com; /* 30 */
  room = greater(room, 0);
  for (struct claim* c = first; c; c = c->next) { /* 31 */
    struct sender* s = owner(c);
    const double to = lesser(s->share, s->com + room);
    if (s->grant > 0 || s->share == 0) continue;
    if (2 * to >= s->share) {
      give(s, to, &room);
      s->delay_us = (uint32_t)(sooner(delay, 16 * d->rtt) / 1000); /* 32 */
    } else {
      share_at(p, p->now_ns + d->rtt);
    }
    delay += d->packet_time;
  }
  for (struct claim* c = first; c; c = c->next) { /* 33 */
    struct sender* s = owner(c);
    const int64_t ready = s->told_at + 2 * d->rtt;
    const double to = lesser(s->share, s->com + room), by = to - s->grant;
    if (s->grant == 0 || to <= (1 + d->hysteresis) * s->grant) continue;
    if (p->now_ns < ready && by < d->link / 8 && by < s->grant) { /* 34 */
      share_at(p, ready);
    } else {
      give(s, to, &room);
    }
  }
}

static void on_downlink(downlink* p) {
  constants* d = p->derived;
  struct port* port = p->state;
  port->turns[HELD] = port->turns[ACTIVE] = port->unconfirmed = 0;
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    const struct sender* s = sender_of(p, i);
    port->turns[s->turn]++;
    port->unconfirmed += s->com > s->grant;
  }
  for (uint32_t i = 0; i < p->channel_count; ++i) keep(p, p->channels[i]);
  look_at(p, port->shares_at);
  if (p->now_ns < port->shares_at) return;
  port->shares_after = p->now_ns + d->rtt / 4;
  port->shares_at = PACELINE_CC_NEVER;
  change_turns(p, d);
  struct claim* first = find_shares(p, d);
  lower_grants(p, d);
  raise_grants(p, d, first);
}

static void fill_grant(downlink* p, channel* c, struct paceline_cc_rate_grant* g) {
  constants* d = p->derived;
  const struct paceline_cc_request* r = c->request;
  struct sender* s = c->state;
  const int64_t others = ((struct port*)p->state)->turns[ACTIVE] * d->control_time;
  const int64_t packets = s->grant ? time_of(8 * d->packet, s->grant) : 0;
  const int64_t lease = later(4 * later(2 * d->rtt, others), packets); /* 37 */
  uint64_t known = r->sent_total > r->start_total ? r->sent_total : r->start_total;
  if (known < c->received_total) known = c->received_total;
  s->lease = (later(d->lease_min, lease) + 999) / 1000 * 1000;
  s->told_at = p->now_ns;
  s->lease_end = p->now_ns + s->lease + d->rtt;
  g->number = s->number;
  g->rate_mbps = s->grant;
  g->lease_us = (uint32_t)(s->lease / 1000);
  g->delay_us = s->delay_us;
  g->limit_total = known; /* 36 */
  if (s->grant)
    g->limit_total += (uint64_t)(bytes_in(s->grant, s->lease + 2 * d->rtt) + 2 * d->packet);
  g->hold = s->turn == HELD;
  g->revoke = s->revoked;
  s->delay_us = s->revoked = 0;
  if (s->turn != ABSENT) look_at(p, again_at(p, s));
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
