/* What plug-ins that agree on rates have in common: arithmetic of rates, totals and messages, what
 * a context was granted, and the division of a total among claims. Installed as
 * <paceline/cc_rates.h>; C11, C++. The interface is <paceline/cc.h>; this is compiled into the
 * plug-in, no host knows of it, and it may change between versions. Rates are Mb/s, times ns, sizes
 * wire bytes. */
#ifndef PACELINE_CC_RATES_H
#define PACELINE_CC_RATES_H

#include <paceline/cc.h>

typedef const struct paceline_cc_item cc_item;
typedef const struct paceline_cc_event cc_event;
typedef const struct paceline_cc_port cc_port;
typedef struct paceline_cc_decision cc_decision;
typedef struct paceline_cc_request cc_request;
typedef struct paceline_cc_rate_grant cc_grant;
typedef struct paceline_cc_want cc_want;
typedef struct paceline_cc_share cc_share;
typedef struct paceline_cc_uplink cc_uplink;
typedef struct paceline_cc_downlink cc_downlink;
typedef struct paceline_cc_channel cc_channel;

static inline double cc_lesser(double a, double b) { return a < b ? a : b; }
static inline double cc_greater(double a, double b) { return a > b ? a : b; }
static inline double cc_whole(double x) { return (double)(uint64_t)x; }
static inline int64_t cc_sooner(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t cc_later(int64_t a, int64_t b) { return a > b ? a : b; }

static inline uint64_t cc_higher(uint64_t a, uint64_t b) { return a > b ? a : b; }
/* By how much a total is beyond another one; 0: it is not. */
static inline double cc_beyond(uint64_t total, uint64_t other) {
  return total > other ? (double)(total - other) : 0;
}

static inline double cc_bytes_in(double rate, int64_t time) { return rate * (double)time / 8e3; }
static inline int64_t cc_time_of(double bytes, double rate) {
  return (int64_t)(bytes * 8e3 / rate);
}

/* Of a port. */
static inline int64_t cc_rtt(cc_port* port) {
  return port->base_rtt_ns ? port->base_rtt_ns : 10000;
}
static inline double cc_on_wire(cc_port* port, uint64_t payload) {
  const uint64_t packets = (payload + port->mtu_bytes - 1) / port->mtu_bytes;
  return (double)payload + (double)packets * (port->full_packet_bytes - port->mtu_bytes);
}

/* Of a context. */
static inline uint64_t cc_acknowledged(cc_event* event) {
  return event->sent_total - event->inflight_bytes;
}
/* When the request left that a grant answers. */
static inline int64_t cc_asked_at(cc_event* event) {
  return event->now_ns - (uint32_t)((uint32_t)event->now_ns - event->rate_grant->stamp_ns);
}

/* What a context may send without a grant: totals, zeroes at first. */
struct cc_starts {
  uint64_t from, to;
};
static inline void cc_give_start(struct cc_starts* s, cc_event* event) {
  if (s->to <= cc_acknowledged(event)) s->from = event->sent_total;
  s->to = cc_higher(s->to, event->sent_total) + event->share->start_bytes;
}
static inline double cc_unsent(const struct cc_starts* s, cc_event* event) {
  return cc_beyond(s->to, event->sent_total);
}
static inline double cc_unacknowledged(const struct cc_starts* s, cc_event* event) {
  return cc_beyond(s->to, cc_higher(s->from, cc_acknowledged(event)));
}

/* What a context was granted, as the fields of grants say. Begins with cc_release. */
struct cc_lease {
  double rate;               /* in force; whoever holds the lease may lower it */
  double next_rate;          /* from next_at on, which may be NEVER */
  int64_t next_at, taken_at; /* taken_at: when the number was new */
  int64_t ns;                /* how long the newest grant holds; 0: over */
  int64_t ends_at;
  uint64_t limit;  /* cap of sent_total */
  uint16_t number; /* of the newest grant; 0: none */
};

static inline void cc_release(struct cc_lease* lease) {
  lease->rate = 0;
  lease->next_at = PACELINE_CC_NEVER;
  lease->ns = 0;
  lease->limit = 0;
  lease->number = 0;
}

/* A rate of another number begins at once, or after the delay if it is higher. */
static inline void cc_take(struct cc_lease* lease, const cc_grant* grant, int64_t now) {
  const double before = lease->ns ? lease->rate : 0;
  if (!lease->ns || grant->number != lease->number) {
    const int waits = grant->rate_mbps > before && grant->delay_us > 0;
    lease->number = grant->number;
    lease->taken_at = now;
    lease->next_rate = grant->rate_mbps;
    lease->next_at = waits ? now + grant->delay_us * INT64_C(1000) : PACELINE_CC_NEVER;
    lease->rate = waits ? before : grant->rate_mbps;
  }
  lease->limit = cc_higher(lease->limit, grant->limit_total);
  lease->ns = grant->lease_us * INT64_C(1000);
  lease->ends_at = now + lease->ns;
}

/* Before anything else that happens at a time. 1: the lease is over; its rate stays. */
static inline int cc_ends(struct cc_lease* lease, int64_t now) {
  const int ends = lease->ns && now >= lease->ends_at;
  if (!ends && now >= lease->next_at) lease->rate = lease->next_rate;
  if (ends || now >= lease->next_at) lease->next_at = PACELINE_CC_NEVER;
  if (ends) lease->ns = 0;
  return ends;
}

/* Of a sender to a port: the total that it has sent or announced, and what of it is to arrive. */
static inline uint64_t cc_known_total(const cc_channel* sender) {
  const cc_request* r = sender->request;
  return cc_higher(cc_higher(r->sent_total, r->start_total), sender->received_total);
}
static inline double cc_left(const cc_channel* sender) {
  const cc_request* r = sender->request;
  return cc_beyond(r->sent_total + r->demand_bytes, sender->received_total);
}

/* Numbers of grants: they follow each other round and round. */
static inline uint16_t cc_number_after(uint16_t number) { return (uint16_t)(number % 65535 + 1); }
static inline int cc_number_before(uint16_t a, uint16_t b) { return (int16_t)(a - b) < 0; }

/* The next round of a port, as soon as one may be. */
static inline void cc_look_at(cc_downlink* port, int64_t at) {
  port->next_ns = cc_sooner(port->next_ns, cc_later(at, port->now_ns + 100));
}

/* A claim to a part of a total: `most` of it at most, and beside others by its weight. */
struct cc_claim {
  double most, weight;
  double part; /* the answer, in whole units */
  struct cc_claim* next;
};

/* Into a list by rising most / weight; of equals, who came first. */
static inline void cc_insert(struct cc_claim** first, struct cc_claim* claim) {
  while (*first && (*first)->most * claim->weight <= claim->most * (*first)->weight)
    first = &(*first)->next;
  claim->next = *first;
  *first = claim;
}

/* Divides a total max-min: parts are min(most, weight level). Returns the level at which they add
 * up to the total, if there is one. The list may have any order. */
static inline double cc_divide(struct cc_claim* first, double total) {
  double level = 0;
  for (double before = -1; level > before;) {
    double left = total, weights = 0;
    for (const struct cc_claim* c = first; c; c = c->next) {
      const int bound = c->most <= c->weight * level;
      left -= bound ? c->most : 0;
      weights += bound ? 0 : c->weight;
    }
    before = level;
    if (weights > 0) level = left / weights;
  }
  for (struct cc_claim* c = first; c; c = c->next)
    c->part = cc_whole(cc_lesser(c->most, c->weight * level));
  return level;
}

/* Answers what contexts ask to start with: a piece each in turn, `room` together. Returns the rest.
 */
static inline double cc_deal_starts(cc_uplink* uplink, double room, double piece) {
  for (double before = room + 1; room < before;) {
    before = room;
    for (uint32_t i = 0; i < uplink->context_count; ++i) {
      const struct paceline_cc_uplink_context* c = uplink->contexts[i];
      const double bytes = cc_lesser(piece, c->want->start_bytes - c->share->start_bytes);
      if (bytes > room) continue;
      c->share->start_bytes += (uint32_t)bytes;
      room -= bytes;
    }
  }
  return room;
}

/* What paceline_cc_plugin returns: the table, where the host is new enough. */
static inline const struct paceline_cc_algorithm* cc_table_for(
    uint32_t host_abi, const struct paceline_cc_algorithm* table) {
  const int fits = host_abi >> 16 == table->abi_major && (host_abi & 0xFFFF) >= table->abi_minor;
  return fits ? table : 0;
}

#endif
