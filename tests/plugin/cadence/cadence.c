/* cadence_c: Cadence, as docs/algorithms/cadence.md states its law. The numbers in comments are
 * the law's lines. Rates are whole Mb/s, sizes wire bytes, times ns. */
#include <paceline/cc_rates.h>

enum { ETA, SMALL, A_MAX, LITTLE, HYSTERESIS, LEASE, PATH, FALLBACK, PROBES, PARAMS };

static const struct paceline_cc_param kParams[PARAMS] = {
    {"eta", "1", 0.998, 0.8, 1, 1, 0, "share of the link that grants add up to", "own"},
    {"small_message", "1", 0.75, 0, 4, 1, 0, "BDPs of a message that waits for nobody", "own"},
    {"a_max", "count", 128, 1, 4096, 1, 0, "channels granted at the same time", "own"},
    {"little_weight", "1", 3, 1, 8, 1, 0, "of who has little left beside who has much", "own"},
    {"hysteresis", "1", 0.04, 0, 0.5, 1, 0, "change of a share that is worth a GRANT", "own"},
    {"lease_min", "us", 100, 10, 10000, 1, 0, "shortest lease", "own"},
    {"path_target", "1", 4, 0, 64, 1, 0, "round trips of delay on the path; 0: any", "own"},
    {"r_fallback", "1", 0.0078125, 0.0001, 1, 1, 0, "share of the link without a lease", "own"},
    {"probe_limit", "count", 8, 1, 64, 1, 0, "REQUESTs in vain before the fallback", "own"},
};

struct derived { /* of one port and parameter set: constant */
  double p[PARAMS];
  double link, granted, fallback, bdp, small, packet; /* C, eta C, R_fb, B, s, a full packet */
  int64_t rtt, path_target, turn;                     /* T, D, of line 40 */
  struct paceline_cc_port port;
};

typedef const struct derived constants;

struct context {         /* the sender of a channel; zeroes before START. Times may be NEVER */
  struct cc_lease lease; /* its rate: G, its limit: L */
  struct cc_starts starts;
  double start_asked;      /* and not answered */
  double path, share, cap; /* P, S */
  int64_t control_rtt, path_at, cut_at;
  int64_t halves_at, asks_at, ahead_at, gave_up_at; /* ahead_at: not before, on line 7 */
  int32_t repeats;                                  /* of a REQUEST without an answer */
  uint16_t degree;
  uint8_t wants, request, fallback; /* wants: it asked for a grant, and has not given up */
};

struct uplink {   /* a port that sends */
  double started; /* bytes of starts that count against the next ones */
  int64_t started_at, shares_at;
};

struct uplink_context {
  struct cc_claim claim;
  int64_t told_at;
  double told; /* cap that the receiver knows; 0: none */
};

enum turn { ABSENT, HELD, ACTIVE, TURNS };

struct port {                               /* that receives */
  int64_t shares_at, shares_after, turn_at; /* when shares are found next, and not before */
  uint32_t turns[TURNS];
};

struct sender {                                        /* the receiving end of a channel */
  struct cc_claim claim;                               /* its part is the share */
  cc_channel* channel;                                 /* as long as a call lasts */
  int64_t since, told_at, begins_at, lease, lease_end; /* since: of its turn */
  int64_t com_until;                                   /* lease of the GRANT before a decrease */
  double grant, com, cap;
  uint16_t number; /* of the newest GRANT */
  uint8_t turn;
};

static void derive(const double* values, cc_port* port, void* out) {
  struct derived* d = out;
  for (int i = 0; i < PARAMS; ++i) d->p[i] = values[i];
  d->port = *port;
  d->rtt = cc_rtt(port);
  d->link = (double)port->link_bps / 1e6;
  d->packet = port->full_packet_bytes;
  d->bdp = cc_bytes_in(d->link, d->rtt);
  d->granted = cc_whole(values[ETA] * d->link);
  d->fallback = cc_greater(1, values[FALLBACK] * d->link);
  d->small = values[SMALL] * d->bdp;
  d->path_target = (int64_t)(values[PATH] > 0 ? values[PATH] * (double)d->rtt : 1e18);
  d->turn = cc_later(64 * d->rtt, cc_time_of(136 * values[A_MAX], d->link / 300));
}

/* w, where another one has `most` left. */
static double weight(constants* d, double left, double most) {
  return most >= 16 * d->bdp && left < 4 * d->bdp ? d->p[LITTLE] : 1;
}

/* --- sender of a channel --- */

static double to_send(constants* d, cc_event* e) { return cc_on_wire(&d->port, e->backlog_bytes); }

static int64_t control_rtt(const struct context* s, constants* d) { /* 20: T' */
  return cc_later(d->rtt, s->control_rtt);
}

static void ask(struct context* s, constants* d, int64_t now) { /* 13 */
  const int64_t first = (s->fallback ? 8 : 2) * d->rtt;
  const int64_t doublings = cc_later(s->repeats - (s->fallback ? 0 : 4), 0);
  const int64_t retry = cc_sooner(first << cc_sooner(doublings, 20), cc_later(first, 1000000));
  s->asks_at = now + (s->lease.ns ? cc_later(s->lease.ns / 2, d->rtt) : retry);
  s->request = 1;
}

static void give_up(struct context* s, int64_t now) {
  cc_release(&s->lease);
  s->halves_at = PACELINE_CC_NEVER;
  s->gave_up_at = now;
}

static double start_of(const struct context* s, constants* d, double x, uint32_t n) {
  double u = cc_lesser(x, d->bdp);
  if (x > d->small && n != 1 && n != 2 && s->degree != 1) { /* 3 */
    const double bytes = cc_greater(n ? d->bdp / n : 0, d->small * d->small * d->small / (x * x));
    u = cc_whole(bytes / d->packet) * d->packet;
  }
  return s->degree > 1 ? cc_lesser(u, cc_greater(d->bdp / s->degree, d->packet)) : u; /* 4 */
}

static void new_work(struct context* s, constants* d, cc_event* e) {
  const double left = to_send(d, e), m = cc_on_wire(&d->port, e->message_bytes);
  const double given = cc_unacknowledged(&s->starts, e);
  if (e->hint_degree != 0) s->degree = e->hint_degree;
  s->start_asked = 0;
  if (left <= 0 || s->fallback) return;
  if (s->lease.number == 0) {
    const double x = left + PACELINE_CC_MESSAGE_EXTRA + given - cc_unsent(&s->starts, e); /* 2 */
    s->start_asked = cc_whole(cc_greater(0, start_of(s, d, x, e->peers) - given));        /* 5 */
  } else if (s->lease.ns && m <= d->small && left > m && e->now_ns >= s->ahead_at) {
    s->start_asked = cc_whole(cc_lesser(2 * m + PACELINE_CC_MESSAGE_EXTRA, d->bdp)); /* 7, 8 */
  }
}

static void on_share(struct context* s, constants* d, cc_event* e) {
  const cc_share* share = e->share;
  s->share = share->rate_mbps;
  s->cap = share->cap_mbps;
  if (share->announce && s->wants) ask(s, d, e->now_ns); /* 23 */
  if (!share->answers_start || s->start_asked == 0) return;
  s->start_asked = 0;
  cc_give_start(&s->starts, e);
  if (share->start_bytes == 0) return;
  s->ahead_at = e->now_ns + 8 * d->rtt;
  if (s->lease.number == 0) return;
  s->lease.limit += share->start_bytes; /* 8 */
  ask(s, d, e->now_ns);
}

/* Wants a grant, or needs it no more, and says so. */
static void heed_backlog(struct context* s, constants* d, cc_event* e) {
  const double left = to_send(d, e);
  const int uncovered = s->start_asked == 0 && left > cc_unsent(&s->starts, e); /* 6 */
  const uint8_t wants = left > 0 && (s->wants || uncovered);
  if (left == 0) s->start_asked = 0;
  if (wants == s->wants) return;
  if (!wants) give_up(s, e->now_ns); /* 12 */
  s->wants = wants;
  s->repeats = 0;
  ask(s, d, e->now_ns);
}

static void on_grant(struct context* s, constants* d, cc_event* e) {
  const cc_grant* g = e->rate_grant;
  const int64_t now = e->now_ns, asked_at = cc_asked_at(e);
  const int ends = g->rate_mbps == 0 && !g->hold, over = s->lease.number && !s->lease.ns;
  const int again = s->lease.ns && g->number == s->lease.number;
  if (s->lease.number && cc_number_before(g->number, s->lease.number)) return; /* 9 */
  if (g->round_trip_ns != 0)                                                   /* 20 */
    s->control_rtt += (g->round_trip_ns - s->control_rtt) / (s->control_rtt ? 4 : 1);
  if (asked_at < s->gave_up_at) return; /* 9 */
  s->repeats = 0;
  if (!s->wants) { /* 12 */
    if (!ends && s->asks_at == PACELINE_CC_NEVER) ask(s, d, now);
    if (ends) s->asks_at = PACELINE_CC_NEVER;
    return;
  }
  if (ends && !g->revoke) return;
  const int less = s->lease.ns && g->rate_mbps < s->lease.rate;
  const int says = ends || s->fallback || over || (again ? asked_at < s->lease.taken_at : less);
  if (ends) {
    give_up(s, now);
  } else {
    cc_take(&s->lease, g, now); /* 10 */
    s->halves_at = s->lease.ends_at;
  }
  s->fallback = 0; /* 15 */
  ask(s, d, now);
  s->request = (uint8_t)says; /* 11 */
}

/* --- its path: what no grant knows of --- */

static void set_path(struct context* s, constants* d, double rate, int64_t now) {
  const double packet_in_8 = d->packet * 1e3 / (double)d->rtt;
  const double least = cc_greater(d->link / 1024, packet_in_8);
  s->path = cc_whole(cc_lesser(cc_greater(rate, least), d->link));
  s->path_at = s->cut_at = now;
}

/* 16 to 18: a packet that was sent so long ago found it congested. */
static void slow_path(struct context* s, constants* d, int64_t now, int64_t ago) {
  const double rate = s->lease.rate > 0 ? cc_lesser(s->lease.rate, s->path) : s->path;
  if (now - ago >= s->cut_at) set_path(s, d, 7 * rate / 10, now);
}

static void on_ack(struct context* s, constants* d, cc_event* e) {
  const int64_t queued = e->rtt_ns - control_rtt(s, d);
  if (s->fallback || e->rtt_ns == 0) return;
  if (queued > d->path_target) slow_path(s, d, e->now_ns, e->rtt_ns);
  if (queued > 0) s->path_at = e->now_ns; /* 19: without */
}

static void grow_path(struct context* s, constants* d, int64_t now) { /* 19 */
  const double basis = s->lease.rate > 0 ? s->lease.rate : d->link;
  for (; s->path < d->link && now >= s->path_at + d->rtt; s->path_at += d->rtt) {
    s->path = cc_whole(s->path + basis / 20 + 1);
    if (s->path >= 1.25 * basis) s->path = d->link;
  }
}

/* --- its clock and its answers --- */

static void begin(struct context* s, constants* d, cc_event* e) {
  give_up(s, e->now_ns);
  s->asks_at = PACELINE_CC_NEVER;
  s->path = s->share = s->cap = d->link;
  s->cut_at = e->now_ns - d->rtt;
  if (e->handover && e->handover->rate_bps)
    set_path(s, d, (double)e->handover->rate_bps / 1e6, e->now_ns);
}

static void pass_time(struct context* s, constants* d, int64_t now) {
  double* rate = &s->lease.rate;
  const int due = now >= s->asks_at;
  if (cc_ends(&s->lease, now)) ask(s, d, now); /* 14 */
  for (; now >= s->halves_at; s->halves_at += d->rtt)
    if (*rate > d->fallback) *rate = cc_whole(cc_greater(*rate / 2, d->fallback));
  grow_path(s, d, now);
  if (!due) return;
  if (!s->lease.ns) s->repeats++;
  const int in_vain = s->repeats > d->p[PROBES];
  if (in_vain && !s->fallback && *rate <= d->fallback) { /* 12, 15 */
    give_up(s, now);
    s->fallback = s->wants;
    s->repeats = 0;
  }
  s->asks_at = PACELINE_CC_NEVER;
  if (s->wants || !in_vain) ask(s, d, now);
}

static void decide(const struct context* s, constants* d, cc_event* e, cc_decision* out) {
  const int starts =
      !s->fallback && (s->lease.number == 0 || s->lease.ns) && cc_unsent(&s->starts, e) > 0; /* 5 */
  const double start_rate =
      s->degree > 1 ? cc_greater(d->granted / s->degree, d->link / 1024) : d->link;
  const double own =
      starts ? cc_greater(start_rate, s->lease.rate) : cc_lesser(s->lease.rate, s->share);
  const double rate = cc_lesser(s->fallback ? d->fallback : own, s->path); /* 1 */
  const double slack = cc_lesser(2 * d->packet, cc_bytes_in(rate, d->rtt) / 2);
  const double window = cc_greater(d->packet, cc_bytes_in(rate, control_rtt(s, d)) + slack);
  const int64_t grows_at = s->path < d->link ? s->path_at + d->rtt : PACELINE_CC_NEVER;
  const int64_t next =
      cc_sooner(cc_sooner(s->asks_at, grows_at), cc_sooner(s->lease.next_at, s->halves_at));
  out->rate_bps = (uint64_t)((rate < 1 && next == PACELINE_CC_NEVER ? 1 : rate) * 1e6);
  out->window_bytes = starts || s->fallback ? PACELINE_CC_UNLIMITED : (uint64_t)window;
  out->ceiling = s->fallback ? PACELINE_CC_UNLIMITED : cc_higher(s->lease.limit, s->starts.to);
  out->wake_bytes = starts ? s->starts.to - e->sent_total : PACELINE_CC_UNLIMITED;
  out->wake_at_ns = cc_later(next, e->now_ns + 100); /* the host's least */
  out->timed = next != PACELINE_CC_NEVER;
  out->urgent = (uint8_t)starts;
  out->request = s->request;
  out->fallback = s->fallback;
}

static void on_event(struct context* s, constants* d, cc_event* e) {
  const uint8_t what = e->signal;
  s->request = 0;
  if (what == PACELINE_CC_START) begin(s, d, e);
  pass_time(s, d, e->now_ns);
  if (what == PACELINE_CC_START || what == PACELINE_CC_MESSAGE) new_work(s, d, e);
  if (what == PACELINE_CC_NACK || what == PACELINE_CC_TIMEOUT) {
    slow_path(s, d, e->now_ns, d->rtt);
    if (!s->wants) new_work(s, d, e);
  }
  if (what == PACELINE_CC_ACK) on_ack(s, d, e);
  if (what == PACELINE_CC_SHARE) on_share(s, d, e);
  if (what == PACELINE_CC_GRANT) on_grant(s, d, e);
  heed_backlog(s, d, e);
}

static void on_events(cc_item* items, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    on_event(items[i].state, items[i].derived, items[i].event);
    decide(items[i].state, items[i].derived, items[i].event, items[i].decision);
  }
}

static void fill_request(cc_item* item, cc_request* r) {
  const struct context* s = item->state;
  const double left = cc_greater(1, to_send(item->derived, item->event));
  r->start_total = cc_higher(s->starts.to, r->sent_total);
  r->demand_bytes = s->wants ? (uint64_t)left : 0;
  r->cap_mbps = (uint32_t)cc_greater(1, s->cap); /* 22 */
  r->grant_echo = s->lease.number;
  r->degree = s->degree;
}

static void fill_want(cc_item* item, cc_want* want) {
  const struct context* s = item->state;
  const double left = to_send(item->derived, item->event);
  const double grant = s->lease.next_at < PACELINE_CC_NEVER ? s->lease.next_rate : s->lease.rate;
  want->left_bytes = (uint64_t)left;
  want->limit_mbps = (uint32_t)cc_lesser(grant, s->path);
  want->start_bytes = (uint32_t)s->start_asked;
  want->asks_start = s->start_asked > 0;
  want->active = left > (s->lease.number ? 0 : cc_unsent(&s->starts, item->event) + s->start_asked);
  want->awaits_grant = s->lease.number == 0 && !s->fallback;
}

/* --- uplink of a host --- */

static struct cc_claim* claims_on(const cc_uplink* u, constants* d) {
  struct cc_claim* first = 0;
  double most = 0;
  for (uint32_t i = 0; i < u->context_count; ++i) {
    const cc_want* want = u->contexts[i]->want;
    if (want->active) most = cc_greater(most, (double)want->left_bytes);
  }
  for (uint32_t i = 0; i < u->context_count; ++i) {
    const cc_want* want = u->contexts[i]->want;
    struct cc_claim* c = u->contexts[i]->state;
    c->most = want->awaits_grant ? d->link : want->limit_mbps; /* 21 */
    c->weight = weight(d, (double)want->left_bytes, most);
    if (want->active) cc_insert(&first, c);
  }
  return first;
}

static void share_out(const cc_uplink* u, constants* d) {
  struct cc_claim* first = claims_on(u, d);
  const double level = cc_divide(first, 0.98 * d->link);
  for (uint32_t i = 0; i < u->context_count; ++i) {
    const cc_want* want = u->contexts[i]->want;
    cc_share* share = u->contexts[i]->share;
    struct uplink_context* s = u->contexts[i]->state;
    const double grant = s->claim.most, mine = s->claim.weight * level;
    share->rate_mbps = (uint32_t)(want->active && grant > mine ? mine : d->link); /* 21 */
    s->claim.most = d->link;
    cc_divide(first, 0.98 * d->link);
    s->claim.most = grant;
    const double cap = want->active ? s->claim.part : d->link; /* 22 */
    const double top = cc_greater(cap, s->told), low = cc_lesser(cap, s->told);
    share->announce = want->active && !want->awaits_grant && top - low > top / 8 &&
                      low < 1.25 * grant && u->now_ns >= s->told_at + d->rtt; /* 23 */
    if (share->announce || want->asks_start) s->told_at = u->now_ns;
    if (share->announce || want->asks_start || s->told == 0) s->told = cap;
    share->cap_mbps = (uint32_t)s->told;
    u->contexts[i]->tell = 1;
  }
}

static void on_uplink(cc_uplink* u) {
  constants* d = u->derived;
  struct uplink* s = u->state;
  const double over = cc_bytes_in(d->link, u->now_ns - s->started_at);
  if (u->now_ns >= s->shares_at) { /* not at every start */
    share_out(u, d);
    s->shares_at = u->now_ns + d->rtt / 4;
  }
  const double room = d->bdp - cc_greater(0, s->started - over);
  s->started = d->bdp - cc_deal_starts(u, room, d->packet); /* 24 */
  s->started_at = u->now_ns;
  u->rest_ns = s->shares_at;
}

/* --- receiver of a port --- */

static struct sender* owner(struct cc_claim* c) { return (struct sender*)c; } /* its first member */
static struct sender* sender_of(const cc_downlink* p, uint32_t i) { return p->channels[i]->state; }

static void share_at(cc_downlink* p, int64_t at) {
  struct port* port = p->state;
  port->shares_at = cc_sooner(port->shares_at, at);
  cc_look_at(p, cc_later(port->shares_at, port->shares_after));
}

static void set_grant(struct sender* s, double grant) {
  if (grant < s->grant) s->com_until = cc_later(s->com_until, s->lease_end);
  s->grant = grant;
  s->com = cc_greater(s->com, grant); /* 35 */
  s->number = cc_number_after(s->number);
  s->begins_at = 0;
  s->channel->tell = 1;
}

static void take_turn(cc_downlink* p, struct sender* s, enum turn turn) {
  struct port* port = p->state;
  port->turns[s->turn]--;
  port->turns[turn]++;
  s->turn = (uint8_t)turn;
  s->since = p->now_ns;
}

static void forget(cc_downlink* p, struct sender* s) {
  take_turn(p, s, ABSENT);
  *s = (struct sender){.channel = s->channel, .number = s->number};
  set_grant(s, 0);
  s->channel->listed = 0;
}

static void on_request(cc_downlink* p, cc_channel* c) {
  constants* d = p->derived;
  const cc_request* r = c->request;
  const struct port* port = p->state;
  struct sender* s = c->state;
  if (c->fresh) s->number = r->grant_echo;
  s->channel = c;
  s->cap = r->cap_mbps;
  share_at(p, p->now_ns);
  if (r->demand_bytes == 0) {
    forget(p, s);
  } else if (s->turn == ABSENT) {
    take_turn(p, s, port->turns[ACTIVE] < d->p[A_MAX] && port->turns[HELD] == 0 ? ACTIVE : HELD);
    if (s->turn == HELD) set_grant(s, 0); /* 40 */
    s->lease = 0;
  } else if (r->grant_echo == s->number) {
    s->com = s->grant; /* 35 */
    s->com_until = 0;
  } else if (s->lease != 0 && p->now_ns > s->told_at + d->rtt * 3 / 2) {
    c->tell = 1; /* 38: the newest GRANT has been lost */
  }
}

/* Whose turn began first, before a time. */
static struct sender* first_of(const cc_downlink* p, enum turn turn, int64_t before) {
  struct sender* first = 0;
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    struct sender* s = sender_of(p, i);
    if (s->turn == turn && s->since < (first ? first->since : before)) first = s;
  }
  return first;
}

static void change_turns(cc_downlink* p, constants* d) { /* 40 */
  struct port* port = p->state;
  const int due = p->now_ns >= port->turn_at;
  double swaps = due ? cc_greater(1, cc_whole(d->p[A_MAX] / 2)) : 0;
  for (struct sender* next; (next = first_of(p, HELD, p->now_ns)); take_turn(p, next, ACTIVE)) {
    if (port->turns[ACTIVE] < d->p[A_MAX]) continue;
    struct sender* rests = first_of(p, ACTIVE, p->now_ns - d->turn + 1);
    if (!rests || swaps-- < 1) break;
    take_turn(p, rests, HELD);
    set_grant(rests, 0);
  }
  if (port->turns[HELD] == 0) return;
  if (due) port->turn_at = p->now_ns + d->turn;
  share_at(p, port->turn_at);
}

static int64_t again_at(constants* d, const struct sender* s) { /* 38 */
  return s->told_at + (s->com > s->grant ? d->rtt * 3 / 2 : s->lease / 2);
}

/* 38, 39: a GRANT again, or the end of who is silent. */
static void keep(cc_downlink* p, constants* d, struct sender* s) {
  const int64_t now = p->now_ns, heard_at = s->channel->heard_at_ns;
  const int lives = now < heard_at + cc_later(s->lease / 2, 8 * d->rtt);
  if (s->lease == 0) return;                                     /* nothing said yet */
  if (!lives && now >= s->lease_end && s->grant > d->fallback) { /* 39 */
    set_grant(s, cc_whole(d->fallback));
    share_at(p, now);
  }
  if (now >= cc_later(s->lease_end, heard_at + 2 * s->lease)) {
    forget(p, s);
    share_at(p, now);
    return;
  }
  for (; s->com > s->grant && now >= s->com_until + d->rtt; s->com_until += d->rtt) {
    const double least = cc_greater(s->grant, cc_lesser(s->com, d->fallback));
    s->com = cc_whole(cc_greater(s->com / 2, least));
    share_at(p, now);
  }
  if (lives && now >= again_at(d, s) && (s->grant > 0 || s->turn == HELD)) s->channel->tell = 1;
  cc_look_at(p, lives ? again_at(d, s) : now + d->rtt * 5 / 4);
}

static struct cc_claim* find_shares(const cc_downlink* p, constants* d) { /* 25 */
  struct cc_claim* first = 0;
  double most = 0;
  for (uint32_t i = 0; i < p->channel_count; ++i)
    if (sender_of(p, i)->turn == ACTIVE) most = cc_greater(most, cc_left(p->channels[i]));
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    struct sender* s = sender_of(p, i);
    s->claim.most = s->turn == ACTIVE ? cc_lesser(s->cap, d->link) : 0;
    s->claim.weight = weight(d, cc_left(s->channel), most);
    cc_insert(&first, &s->claim);
  }
  cc_divide(first, d->granted);
  return first;
}

/* What others need is taken back: their rates rise when the echoes have come. */
static void lower_grants(constants* d, struct cc_claim* first) {
  double wanted = 0, left = d->granted;
  int starves = 0;
  for (struct cc_claim* c = first; c; c = c->next) {
    const struct sender* s = owner(c);
    const int more = c->part > (1 + d->p[HYSTERESIS]) * s->grant && c->part > s->com;
    wanted += more ? c->part - s->com : 0; /* 26 */
    starves |= 2 * s->com < c->part;
    left -= s->grant;
  }
  if (wanted <= left) return;                        /* 27 */
  for (struct cc_claim* c = first; c; c = c->next) { /* 28, 29 */
    const double least = (starves ? 1 : 1 - d->p[HYSTERESIS]) * owner(c)->grant;
    if (c->part < cc_whole(least)) set_grant(owner(c), c->part);
  }
}

static void raise_grants(cc_downlink* p, constants* d, struct cc_claim* first) {
  double room = d->granted;
  int64_t delay = 0;
  for (struct cc_claim* c = first; c; c = c->next) room -= owner(c)->com; /* 30 */
  room = cc_greater(room, 0);
  for (struct cc_claim* c = first; c; c = c->next) { /* 31 */
    struct sender* s = owner(c);
    const double to = cc_lesser(c->part, s->com + room);
    if (s->grant > 0 || c->part == 0) continue;
    if (2 * to >= c->part) {
      room -= cc_greater(0, to - s->com);
      set_grant(s, to);
      s->begins_at = p->now_ns + cc_sooner(delay, 16 * d->rtt); /* 32 */
    } else {
      share_at(p, p->now_ns + d->rtt);
    }
    delay += cc_time_of(d->packet, d->granted);
  }
  for (struct cc_claim* c = first; c; c = c->next) { /* 33 */
    struct sender* s = owner(c);
    const int64_t ready = s->told_at + 2 * d->rtt;
    const double to = cc_lesser(c->part, s->com + room), by = to - s->grant;
    if (s->grant == 0 || to <= (1 + d->p[HYSTERESIS]) * s->grant) continue;
    if (p->now_ns < ready && by < d->link / 8 && by < s->grant) { /* 34 */
      share_at(p, ready);
    } else {
      room -= cc_greater(0, to - s->com);
      set_grant(s, to);
    }
  }
}

static void on_downlink(cc_downlink* p) {
  constants* d = p->derived;
  struct port* port = p->state;
  port->turns[HELD] = port->turns[ACTIVE] = 0;
  for (uint32_t i = 0; i < p->channel_count; ++i) {
    struct sender* s = sender_of(p, i);
    s->channel = p->channels[i];
    port->turns[s->turn]++;
  }
  for (uint32_t i = 0; i < p->channel_count; ++i) keep(p, d, sender_of(p, i));
  share_at(p, PACELINE_CC_NEVER);
  if (p->now_ns < cc_later(port->shares_at, port->shares_after)) return;
  port->shares_after = p->now_ns + d->rtt / 4;
  port->shares_at = PACELINE_CC_NEVER;
  change_turns(p, d);
  struct cc_claim* first = find_shares(p, d);
  lower_grants(d, first);
  raise_grants(p, d, first);
}

static void fill_grant(cc_downlink* p, cc_channel* c, cc_grant* g) {
  constants* d = p->derived;
  struct sender* s = c->state;
  const uint32_t active = ((struct port*)p->state)->turns[ACTIVE];
  const int64_t all = cc_time_of(136.0 * active, d->link / 300);
  const int64_t packets = s->grant > 0 ? cc_time_of(8 * d->packet, s->grant) : 0;
  const int64_t least = cc_later((int64_t)(d->p[LEASE] * 1e3), 4 * cc_later(2 * d->rtt, all));
  s->lease = (cc_later(least, packets) + 999) / 1000 * 1000; /* 37 */
  s->told_at = p->now_ns;
  s->lease_end = p->now_ns + s->lease + d->rtt;
  g->number = s->number;
  g->rate_mbps = (uint32_t)s->grant;
  g->lease_us = (uint32_t)(s->lease / 1000);
  g->delay_us = (uint32_t)(cc_later(s->begins_at - p->now_ns, 0) / 1000);
  g->limit_total = cc_known_total(c); /* 36 */
  if (s->grant > 0)
    g->limit_total += (uint64_t)(cc_bytes_in(s->grant, s->lease + 2 * d->rtt) + 2 * d->packet);
  g->hold = s->turn == HELD;
  g->revoke = s->turn == ABSENT && c->request->demand_bytes != 0; /* 39 */
  if (s->turn != ABSENT) cc_look_at(p, again_at(d, s));
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
             PACELINE_CC_WANT(PACELINE_CC_IDLE),
    .state_bytes = sizeof(struct context),
    .derived_bytes = sizeof(struct derived),
    .param_count = PARAMS,
    .param_size = sizeof(struct paceline_cc_param),
    .params = kParams,
    .derive = derive,
    .on_events = on_events,
    .rates = &kRates};

const struct paceline_cc_algorithm* paceline_cc_plugin(uint32_t host_abi) {
  return cc_table_for(host_abi, &kAlgorithm);
}
