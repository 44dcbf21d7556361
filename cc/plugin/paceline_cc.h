/* The interface of congestion-control plug-ins, version 1.4. Installed as <paceline/cc.h>; C11,
 * C++.
 *
 * A plug-in is a shared object that exports one function, paceline_cc_plugin, which returns a table
 * (struct paceline_cc_algorithm): a name, parameters, and a function that takes events and answers
 * with decisions. Since 1.3 it may have a second half, which decides for a receiving port which
 * sender may send how much (struct paceline_cc_receiver). Since 1.4 its contexts and receiving
 * ports may agree on rates instead (struct paceline_cc_rates). docs/plugins.md explains all three;
 * `paceline cc new NAME` writes a plug-in to start from, also with --receiver or --rates.
 *
 * Memory. The host owns all of it: the state of each context (state_bytes, aligned to 16, zeroed
 * before PACELINE_CC_START), the parameters derived for each port (derived_bytes), events and
 * decisions, and the states of ports and senders of a receiving half. A plug-in frees nothing, need
 * not allocate, and keeps no pointer from a call beyond that call. The host may move a state by
 * copying it.
 *
 * Threads. Calls for one context never overlap. Different threads serve contexts of different ports
 * at the same time: a plug-in has no writable globals.
 *
 * Time. Every event carries the time. A plug-in reads no clock and draws no randomness of its own,
 * so that a run in virtual time repeats to the last bit.
 *
 * Versions. Within a major version structs only grow at their end, and no field changes its
 * meaning. The minor version grows with every addition. A host accepts plug-ins of its own major
 * version that were built against its own minor version or an older one. Structs are passed by
 * pointer, never in arrays whose stride could change; parameters are an array, and the table has
 * its stride, param_size. */
#ifndef PACELINE_CC_H
#define PACELINE_CC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PACELINE_CC_ABI_MAJOR 1
#define PACELINE_CC_ABI_MINOR 4

/* Limits of what a plug-in may ask for. */
#define PACELINE_CC_STATE_BYTES 240   /* per context; 256 with the host's guard */
#define PACELINE_CC_DERIVED_BYTES 384 /* per port and parameter set */
#define PACELINE_CC_PARAMS 48
#define PACELINE_CC_PROFILES 16 /* since 1.1 */
/* With a receiving half, since 1.3. The rest of a context is the host's channel to the receiver. */
#define PACELINE_CC_CHANNEL_STATE_BYTES 80    /* instead of PACELINE_CC_STATE_BYTES */
#define PACELINE_CC_CHANNEL_DERIVED_BYTES 256 /* instead of PACELINE_CC_DERIVED_BYTES */
#define PACELINE_CC_PORT_BYTES 4096           /* of a receiving half, per port */
#define PACELINE_CC_SENDER_BYTES 256          /* per sender to it */
#define PACELINE_CC_GRANTS 16                 /* of one round */
/* With rates, since 1.4: per context; port and sender as with a receiving half. */
#define PACELINE_CC_RATES_STATE_BYTES 208
#define PACELINE_CC_UPLINK_BYTES 256 /* of each context, in the memory of the port that sends */

#define PACELINE_CC_UNLIMITED UINT64_MAX
#define PACELINE_CC_NEVER INT64_MAX
#define PACELINE_CC_NO_CAP UINT32_MAX /* of rates in Mb/s; since 1.4 */
/* Most header bytes of a message beyond those of its full packets: a ceiling or a start that is to
 * cover a whole message has room for them. Since 1.4. */
#define PACELINE_CC_MESSAGE_EXTRA 32

/* What happened. Every context gets START and TICK, and the signals in paceline_cc_algorithm's
 * `wants`. */
enum paceline_cc_signal {
  PACELINE_CC_START = 0,      /* the context begins, or takes over a connection: see handover */
  PACELINE_CC_ACK = 1,        /* acked_bytes newly acknowledged; rtt_ns if there is a sample */
  PACELINE_CC_NACK = 2,       /* the receiver saw a gap; lost_bytes go out again */
  PACELINE_CC_TIMEOUT = 3,    /* the retransmission timer expired */
  PACELINE_CC_CNP = 4,        /* congestion notification packet */
  PACELINE_CC_GRANT = 5,      /* rate_grant; since 1.4, with rates */
  PACELINE_CC_MESSAGE = 7,    /* new work was posted: message_bytes */
  PACELINE_CC_IDLE = 8,       /* the last byte of the backlog was sent */
  PACELINE_CC_TICK = 9,       /* wake_at_ns or wake_bytes was reached */
  PACELINE_CC_PORT_DOWN = 10, /* no host sends these two */
  PACELINE_CC_PORT_UP = 11,
  PACELINE_CC_SHARE = 12 /* share; since 1.4, with on_uplink */
};
#define PACELINE_CC_WANT(signal) (UINT32_C(1) << (signal))
/* Since 1.2. In `wants`, beside signals: data packets collect records of switches, and ACK and NACK
 * bring them (telemetry). Such a plug-in runs only on fabrics with such switches. */
#define PACELINE_CC_WANT_TELEMETRY (UINT32_C(1) << 31)
#define PACELINE_CC_HOPS 5

/* State of a live connection, from the algorithm before this one; a rate of 0: there is none.
 * Begin no faster than that rate. */
struct paceline_cc_handover {
  uint64_t rate_bps;
  uint32_t srtt_ns;
  uint32_t min_rtt_ns;
  uint64_t inflight_bytes;
};

/* The link by which a packet left a switch, at that time. Counters wrap: use differences. Since
 * 1.2. */
struct paceline_cc_hop {
  uint32_t rate_mbps;   /* of the link */
  uint32_t queue_bytes; /* left in the queue */
  uint32_t sent_bytes;  /* by this link before the packet, modulo 2^30 */
  uint32_t time_ns;     /* modulo 2^24 */
};

/* Since 1.2. Does not grow. */
struct paceline_cc_telemetry {
  uint16_t hops; /* at most PACELINE_CC_HOPS, in the order of the path */
  uint16_t path; /* another value means other links */
  struct paceline_cc_hop hop[PACELINE_CC_HOPS];
};

/* Bytes are wire bytes, except backlog_bytes and message_bytes, which are payload. */
struct paceline_cc_event {
  int64_t now_ns;
  uint64_t sent_total;     /* by this context since it began, retransmissions included */
  uint64_t backlog_bytes;  /* posted and not yet sent */
  uint64_t inflight_bytes; /* sent and not yet acknowledged */
  uint64_t sent_bytes;     /* since the previous event */
  uint64_t message_bytes;  /* MESSAGE */
  uint32_t acked_bytes;
  uint32_t marked_bytes; /* of acked_bytes, those that arrived with an ECN mark (echo XACK only) */
  uint32_t lost_bytes;
  uint32_t rtt_ns;        /* 0: no sample with this event */
  uint32_t host_delay_ns; /* part of rtt_ns that passed in the far host */
  uint32_t hint_collective;
  uint16_t hint_degree;
  uint16_t hint_kind;
  uint8_t signal; /* enum paceline_cc_signal */
  uint8_t reserved_bytes[3];
  const struct paceline_cc_rate_grant* rate_grant; /* GRANT; since 1.4, with rates */
  const void* reserved;
  const struct paceline_cc_share* share;       /* SHARE; since 1.4, with rates */
  const struct paceline_cc_handover* handover; /* START; may be NULL */
  /* Since 1.2. ACK and NACK: records of the packet that was answered; NULL: none. */
  const struct paceline_cc_telemetry* telemetry;
  uint32_t trimmed_bytes; /* of lost_bytes, those that switches trimmed; since 1.2 */
  uint32_t peers; /* with rates, since 1.4: about how many have connections to the receiver; 0:
                     unknown */
};

/* The bound that limits sending; telemetry has the share of time of each. */
enum paceline_cc_limiter { PACELINE_CC_LIMIT_PATH = 3, PACELINE_CC_LIMIT_WINDOW = 4 };

/* The answer. A call finds the decision in force and may change any field; at START each field has
 * the value that its comment begins with. A wake-up that is due is cleared before the call. */
struct paceline_cc_decision {
  uint64_t rate_bps; /* 0 at START: must be set. 0 later: do not send, until wake_at with timed */
  uint64_t window_bytes; /* UNLIMITED; cap of inflight_bytes, at least one MTU */
  uint64_t ceiling;      /* UNLIMITED; with rates: cap of sent_total; otherwise leave it */
  int64_t wake_at_ns;    /* NEVER; TICK no later than the first send after this */
  uint64_t wake_bytes;   /* UNLIMITED; TICK once so many bytes were sent since the last event */
  uint16_t path;         /* 0; the path to use, if there are several */
  uint8_t limiter;       /* PATH */
  uint8_t request;  /* 0 in every call; with rates, 1: send a request now; otherwise leave it */
  uint8_t fallback; /* 0; with rates, 1: the fallback algorithm decides, until it is 0 again */
  uint8_t urgent;   /* 0; 1: due packets go before those of contexts without it */
  uint8_t timed;    /* 0; 1: TICK at wake_at_ns even when nothing is sent (100 ns ahead or more) */
  uint8_t reserved;
};

/* What parameters are derived from. */
struct paceline_cc_port {
  uint32_t size;      /* of this struct, in the host */
  uint32_t mtu_bytes; /* payload of a full packet */
  uint64_t link_bps;
  uint32_t full_packet_bytes; /* on the wire */
  uint32_t base_rtt_ns;       /* unloaded round trip of a full packet and its ACK */
};

/* One event of one context. */
struct paceline_cc_item {
  void* state;
  const void*
      derived; /* output of `derive`; without it the values, as doubles, in the table's order */
  const struct paceline_cc_event* event;
  struct paceline_cc_decision* decision;
};

/* Units the host knows: "us", "ns", "Mb/s", "bytes" (whole), "count" (whole), "flag" (0 or 1),
 * "packets", "1". Names: [a-z][a-z0-9_]*, 31 characters. min <= initial <= max, all finite. */
struct paceline_cc_param {
  const char* name;
  const char* unit;
  double initial;
  double min;
  double max;
  uint32_t live; /* 1: may change while connections run */
  uint32_t reserved;
  const char* meaning;
  const char* source; /* paper and section, or "own" */
};

/* One value of a profile. per_bps other than 0: the value is for that link rate and scales with it.
 */
struct paceline_cc_profile_value {
  const char* name;
  double value;
  double per_bps;
};

/* A named set of values; other parameters have their initial values. `default` always exists.
 * Since 1.1. Profiles and their values are arrays: these two structs do not grow. */
struct paceline_cc_profile {
  const char* name; /* like a parameter's, or with '-' */
  const char* source;
  const struct paceline_cc_profile_value* values;
  uint32_t value_count;
  uint32_t reserved;
};

/* --- the receiving half, since 1.3 ---
 *
 * Senders tell a port what they have to send, and send what they were granted. The host does both
 * for all of them, including losses and late arrivals. The plug-in decides which sender is granted
 * how many bytes, and when. Bytes are wire bytes. */

/* Limits for every sender and for the port. The call finds the host's own values. */
struct paceline_cc_grant_rules {
  uint32_t size;        /* of this struct, in the host */
  uint32_t start_bytes; /* 1 BDP; bytes of a message that leave without a grant, and the most such
                           bytes of a sender at a time; 0 to 64 BDP */
  uint64_t start_message_bytes; /* UNLIMITED; longer messages wait for a grant */
  uint64_t outstanding_bytes;   /* 16 BDP; most bytes on their way to the port that are granted; a
                                   packet to 64 BDP */
  uint32_t reclaim_ns; /* 200 us; bytes that were sent and do not arrive for so long count as
                          arrived; 10 us to 1 s */
  uint32_t reserved;
};

/* A sender to the port, as it is at the time of the call. */
struct paceline_cc_sender {
  uint32_t number;            /* names it in a grant; never changes while the sender is known */
  uint32_t received_packets;  /* of data, in all; wraps */
  uint32_t marked_packets;    /* of these with an ECN mark; wraps */
  uint32_t reserved;          /* 0 */
  uint64_t received_bytes;    /* in all */
  uint64_t wanted_bytes;      /* asked for, and neither granted nor sent */
  uint64_t outstanding_bytes; /* granted or announced, and not arrived; while more is wanted, only
                                 whole packets, because the sender cannot use the rest */
  int64_t wanting_since_ns;   /* since when wanted_bytes is not 0 */
  int64_t heard_at_ns;        /* when its newest request came */
  void* state;                /* sender_bytes, aligned to 16; zeroed before its first request */
};

/* Lets a sender send so many bytes more: at least a packet, or all that it wants. */
struct paceline_cc_grant {
  uint32_t sender;   /* its number */
  uint32_t reserved; /* 0 */
  uint64_t bytes;
};

/* A round of a port: the senders, the bytes on their way, and the answer, the grants. */
struct paceline_cc_round {
  int64_t now_ns;
  void* state;                                     /* port_bytes, aligned to 16 */
  const void* derived;                             /* as in paceline_cc_item */
  const struct paceline_cc_sender* const* senders; /* those with bytes wanted or outstanding, in no
                                                      particular order */
  uint64_t outstanding_bytes;                      /* of all senders */
  uint64_t room_bytes;                             /* that the rules still allow */
  uint32_t sender_count;
  uint32_t grant_most;              /* 1 to PACELINE_CC_GRANTS */
  struct paceline_cc_grant* grants; /* the answer: grant_count of them */
  uint32_t grant_count;             /* 0 */
  uint32_t reserved;
  int64_t next_ns; /* a packet's time from now; time of the next round, unless a request comes
                      first: at least a packet's time and 100 ns ahead, at most four round trips */
};

struct paceline_cc_receiver {
  uint32_t size;         /* sizeof(struct paceline_cc_receiver) */
  uint32_t port_bytes;   /* state of a port */
  uint32_t sender_bytes; /* state of each sender to it */
  uint32_t reserved;

  /* Once per port and parameter set, as `derive`. Optional: without it the host's values hold. */
  void (*rules)(const double* values, const struct paceline_cc_port* port,
                struct paceline_cc_grant_rules* rules);

  /* A port begins; its state is zeroes. Optional. */
  void (*start)(void* state, const void* derived);

  /* A sender's request has arrived; a round follows. Optional. */
  void (*on_request)(void* state, const void* derived, const struct paceline_cc_sender* sender,
                     int64_t now_ns);

  /* Called as long as a sender wants bytes that are not granted. */
  void (*on_round)(struct paceline_cc_round* round);
};

/* --- rates, since 1.4 ---
 *
 * The contexts of a sending port exchange messages with receiving ports. A context asks (a
 * request); the port answers with a rate that holds for a time (a grant). A sending port may share
 * its uplink among its contexts. The host carries the messages, which may get lost, counts arriving
 * data, and keeps memory and timers. It drops requests that are repeated or late, and delivers
 * grants in the order of arrival. Bytes are wire bytes of data, rates Mb/s, totals count since the
 * context began, retransmissions included. <paceline/cc_rates.h> has arithmetic for such plug-ins.
 */

/* From a context to the receiving port. The call finds sent_total and start_total = sent_total,
 * cap_mbps = NO_CAP, and stamp_ns; the rest is 0. */
struct paceline_cc_request {
  uint64_t sent_total;
  uint64_t start_total;  /* the total up to which it sends without a grant */
  uint64_t demand_bytes; /* to be sent from now on; 0: it needs no grant any more */
  uint32_t cap_mbps;     /* the most that it can use */
  uint32_t stamp_ns;     /* the sender's clock, modulo 2^32; comes back with grants */
  uint16_t grant_echo;   /* number of the grant in force; 0: none */
  uint16_t degree;       /* senders at a time, if the work says so; 0: unknown */
  uint32_t reserved;
};

/* From the port to a context. The call finds stamp_ns; the rest is 0. */
struct paceline_cc_rate_grant {
  uint64_t limit_total; /* sent_total must stay within it */
  uint32_t rate_mbps;
  uint32_t lease_us;      /* for how long the rate holds */
  uint32_t delay_us;      /* until the rate begins */
  uint32_t stamp_ns;      /* of the newest request before it */
  uint32_t round_trip_ns; /* of the context: from that request to this grant, less the time at the
                             port; 0: unknown. Set by the host on arrival */
  uint16_t number;        /* 1 to 65535, then 1 again; the algorithm counts it */
  uint8_t hold;           /* 1: wait for your turn; the rate is 0 */
  uint8_t revoke;         /* 1: the port has forgotten you; ask again */
};

/* What a context wants of the uplink. The call finds zeroes. */
struct paceline_cc_want {
  uint64_t left_bytes;  /* to be sent */
  uint32_t limit_mbps;  /* the rate that it may send at, apart from the uplink */
  uint32_t start_bytes; /* that it asks to send without a grant */
  uint8_t active;       /* 1: takes part in sharing */
  uint8_t asks_start;   /* 1: waits for an answer about start_bytes; a round follows at once */
  uint8_t awaits_grant; /* 1: active, and limit_mbps is not known yet */
  uint8_t weight;
  uint32_t reserved;
};

/* The port's answer to a context. A round finds the newest one; the link rate at first, and again
 * after the context was inactive. NO_CAP means the link rate. */
struct paceline_cc_share {
  uint32_t rate_mbps;    /* its share */
  uint32_t cap_mbps;     /* what its share would be with a larger grant */
  uint32_t start_bytes;  /* 0; further bytes that it may send without a grant */
  uint8_t answers_start; /* set by the host: start_bytes is the answer, even when it is 0 */
  uint8_t announce;      /* 0; 1: tell the receiver the new cap now */
  uint8_t reserved[2];
};

struct paceline_cc_uplink_context {
  uint32_t number; /* never changes while the context exists */
  uint8_t tell;    /* 0; 1: deliver the share (SHARE); always done after asks_start */
  uint8_t reserved[3];
  const struct paceline_cc_want* want;
  struct paceline_cc_share* share;
  void* state; /* uplink_context_bytes, aligned to 16; zeroed when the context begins */
};

/* A round of the uplink. It runs after a context's want has changed (left_bytes: in magnitude), but
 * not before the last round's rest_ns, unless a context has asks_start; and at the last round's
 * next_ns. */
struct paceline_cc_uplink {
  int64_t now_ns;
  void* state; /* uplink_bytes, aligned to 16 */
  const void* derived;
  struct paceline_cc_uplink_context* const* contexts; /* active, or asking; by number */
  uint32_t context_count;
  uint32_t reserved;
  int64_t rest_ns; /* now; no round before, except by asks_start */
  int64_t next_ns; /* NEVER; a round even if nothing changes */
};

/* A sender to the receiving port. */
struct paceline_cc_channel {
  uint32_t number;           /* never changes while the sender is known */
  uint32_t received_packets; /* since the port knows the sender; wraps */
  uint32_t marked_packets;   /* of these with an ECN mark; wraps */
  uint8_t fresh;             /* 1: its first request; state is zeroes. On request only */
  uint8_t listed;            /* 1; 0: rounds leave it out, until its next request */
  uint8_t tell;              /* 0; 1: send it a grant: fill_grant follows */
  uint8_t reserved;
  uint64_t received_total; /* the part of sent_total that has arrived */
  int64_t heard_at_ns;     /* when its newest request came, or a call first saw newer data */
  const struct paceline_cc_request* request; /* the newest */
  void* state;                               /* sender_bytes, aligned to 16 */
};

/* The receiving port, at the time of a call. */
struct paceline_cc_downlink {
  int64_t now_ns;
  void* state; /* port_bytes, aligned to 16 */
  const void* derived;
  struct paceline_cc_channel* const* channels; /* rounds: those listed, by number; else NULL */
  uint32_t channel_count;
  uint32_t gone;   /* rounds: senders that left since the last one */
  int64_t next_ns; /* the next round, 100 ns ahead at least. Rounds find NEVER; other calls find the
                      time that is set and may make it earlier */
};

struct paceline_cc_rates {
  uint32_t size;                 /* sizeof(struct paceline_cc_rates) */
  uint32_t uplink_bytes;         /* state of a sending port, PACELINE_CC_PORT_BYTES at most */
  uint32_t uplink_context_bytes; /* of each of its contexts; PACELINE_CC_UPLINK_BYTES at most */
  uint32_t port_bytes;           /* state of a receiving port; PACELINE_CC_PORT_BYTES at most */
  uint32_t sender_bytes;         /* of each sender to it; PACELINE_CC_SENDER_BYTES at most */
  uint32_t reserved;

  /* Fills in a request, after a decision (the item's) with `request`. */
  void (*fill_request)(const struct paceline_cc_item* item, struct paceline_cc_request* request);

  /* Called after every event. NULL if on_uplink is NULL. */
  void (*fill_want)(const struct paceline_cc_item* item, struct paceline_cc_want* want);

  /* Shares the uplink. Optional: without it every share is the link rate. */
  void (*on_uplink)(struct paceline_cc_uplink* uplink);

  /* A request has arrived. */
  void (*on_request)(struct paceline_cc_downlink* port, struct paceline_cc_channel* sender);

  /* A round: at next_ns, and after a listed sender left or parameters changed. */
  void (*on_downlink)(struct paceline_cc_downlink* port);

  /* Fills in a grant that leaves now. */
  void (*fill_grant)(struct paceline_cc_downlink* port, struct paceline_cc_channel* sender,
                     struct paceline_cc_rate_grant* grant);
};

enum paceline_cc_context { PACELINE_CC_PER_QP = 0, PACELINE_CC_PER_PEER_CLASS = 1 };
enum paceline_cc_echo {
  PACELINE_CC_ECHO_NONE = 0,
  PACELINE_CC_ECHO_CNP = 1,
  PACELINE_CC_ECHO_XACK = 2
};

struct paceline_cc_algorithm {
  uint32_t size; /* sizeof(struct paceline_cc_algorithm) */
  uint16_t abi_major;
  uint16_t abi_minor;
  const char* name; /* like a parameter's; not that of a built-in algorithm */
  const char* summary;
  uint32_t context; /* what one context serves */
  uint32_t echo;    /* how the receiver echoes ECN marks */
  uint32_t wants;   /* PACELINE_CC_WANT of signals, added up */
  uint32_t state_bytes;
  uint32_t derived_bytes; /* 0 without `derive` */
  uint32_t param_count;
  uint32_t param_size; /* sizeof(struct paceline_cc_param) */
  uint32_t reserved;
  const struct paceline_cc_param* params;

  /* Derives constants of one port from values within their ranges. Off the hot path. Optional. */
  void (*derive)(const double* values, const struct paceline_cc_port* port, void* derived);

  /* The algorithm: answers `count` events, each of another context, in this order. Must return
   * within a microsecond or so per event. With a receiver it is optional: without it, granted bytes
   * leave at line rate; with it, rate and window apply to granted bytes, and events that the host's
   * channel takes but `wants` does not have come as TICK. */
  void (*on_events)(const struct paceline_cc_item* items, uint32_t count);

  /* Since 1.1. */
  uint32_t profile_count;
  uint32_t reserved_1;
  const struct paceline_cc_profile* profiles;

  /* Since 1.3. NULL: the algorithm has no receiving half. With one, context is PER_PEER_CLASS. */
  const struct paceline_cc_receiver* receiver;

  /* Since 1.4. NULL: no rates. Either this or `receiver`; with it context is PER_PEER_CLASS, and
   * on_events gets GRANT and SHARE, too. */
  const struct paceline_cc_rates* rates;
};

#if defined(__GNUC__)
#define PACELINE_CC_EXPORT __attribute__((visibility("default")))
#else
#define PACELINE_CC_EXPORT
#endif

/* The one symbol that is looked up. host_abi: major version << 16 | minor version of the host.
 * NULL: this plug-in cannot run there. The table lives as long as the process. */
PACELINE_CC_EXPORT const struct paceline_cc_algorithm* paceline_cc_plugin(uint32_t host_abi);

#ifdef __cplusplus
}
#endif

#endif
