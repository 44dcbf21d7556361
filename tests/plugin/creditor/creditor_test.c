/* creditor without a host: a port with senders that are told about by hand. */
#include <paceline/cc.h>
#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(what)                                                \
  do {                                                             \
    if (!(what)) {                                                 \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);   \
      ++failures;                                                  \
    }                                                              \
  } while (0)

enum { SENDERS = 3, PACKET = 4178 };

static _Alignas(64) unsigned char derived[PACELINE_CC_CHANNEL_DERIVED_BYTES];
static _Alignas(16) unsigned char port_state[PACELINE_CC_PORT_BYTES];
static _Alignas(16) unsigned char sender_state[SENDERS][PACELINE_CC_SENDER_BYTES];
static struct paceline_cc_sender senders[SENDERS];
static struct paceline_cc_grant grants[PACELINE_CC_GRANTS];

/* Grants of one round; what they grant is wanted no more, and on its way. */
static uint32_t round_at(const struct paceline_cc_receiver *r, int64_t now_ns) {
  const struct paceline_cc_sender *list[SENDERS];
  struct paceline_cc_round round = {.now_ns = now_ns, .next_ns = now_ns + 334};
  for (uint32_t i = 0; i < SENDERS; ++i) {
    list[i] = &senders[i];
    round.outstanding_bytes += senders[i].outstanding_bytes;
  }
  round.state = port_state;
  round.derived = derived;
  round.senders = list;
  round.sender_count = SENDERS;
  round.room_bytes = UINT64_C(1000000);
  round.grant_most = PACELINE_CC_GRANTS;
  round.grants = grants;
  r->on_round(&round);
  CHECK(round.grant_count <= round.grant_most);
  for (uint32_t i = 0; i < round.grant_count; ++i) {
    struct paceline_cc_sender *s = &senders[grants[i].sender];
    CHECK(grants[i].bytes > 0 && grants[i].bytes <= s->wanted_bytes);
    s->wanted_bytes -= grants[i].bytes;
    s->outstanding_bytes += grants[i].bytes;
  }
  return round.grant_count;
}

static void arrive(uint32_t sender, uint32_t marks) {
  senders[sender].received_bytes += senders[sender].outstanding_bytes;
  senders[sender].marked_packets += marks;
  senders[sender].outstanding_bytes = 0;
}

int main(void) {
  const struct paceline_cc_algorithm *a =
      paceline_cc_plugin(PACELINE_CC_ABI_MAJOR << 16 | PACELINE_CC_ABI_MINOR);
  CHECK(a && strcmp(a->name, "creditor") == 0);
  CHECK(paceline_cc_plugin(UINT32_C(99) << 16) == 0);
  CHECK(a && a->receiver && a->receiver->on_round);
  if (failures) return 1;
  const struct paceline_cc_receiver *r = a->receiver;

  /* 100 Gb/s and 5 us: 62,500 bytes a round trip, and a bucket of one and a half of them. */
  const struct paceline_cc_port port = {sizeof port, 4096, UINT64_C(100000000000), PACKET, 5000};
  double values[PACELINE_CC_PARAMS];
  for (uint32_t i = 0; i < a->param_count; ++i) values[i] = a->params[i].initial;
  a->derive(values, &port, derived);
  struct paceline_cc_grant_rules rules = {.size = sizeof rules, .start_bytes = 62500};
  r->rules(values, &port, &rules);
  CHECK(rules.start_message_bytes == 62500);

  for (uint32_t i = 0; i < SENDERS; ++i) {
    senders[i].number = i;
    senders[i].state = sender_state[i];
    senders[i].wanted_bytes = 10000000;
  }
  /* In turns, a packet each, until the bucket is full: it takes 23 of them, the last beyond it. */
  int64_t now = 0;
  CHECK(round_at(r, now) == SENDERS);
  CHECK(grants[0].sender == 0 && grants[1].sender == 1 && grants[2].sender == 2);
  uint32_t granted = SENDERS;
  for (int i = 0; i < 20; ++i) granted += round_at(r, now += 334);
  CHECK(granted == 23);

  /* One that keeps what it has is passed over; with marks it gets a smaller window. */
  arrive(0, 0);
  CHECK(round_at(r, now += 334) > 0);
  for (int i = 0; i < 20; ++i) round_at(r, now += 334);
  const uint64_t before = senders[0].outstanding_bytes;
  CHECK(before <= 62500 + PACKET);
  for (int i = 0; i < 8; ++i) {
    for (uint32_t s = 0; s < SENDERS; ++s) arrive(s, s == 0);
    for (int n = 0; n < 30; ++n) round_at(r, now += 334);
  }
  CHECK(senders[0].outstanding_bytes < senders[1].outstanding_bytes);
  CHECK(senders[0].outstanding_bytes >= PACKET);

  /* What is wanted is all that is granted. */
  for (uint32_t i = 0; i < SENDERS; ++i) {
    arrive(i, 0);
    senders[i].wanted_bytes = 100;
  }
  CHECK(round_at(r, now += 334) == SENDERS);
  CHECK(round_at(r, now += 334) == 0);

  /* The sending half paces. */
  struct paceline_cc_event event = {.signal = PACELINE_CC_START};
  struct paceline_cc_decision decision = {0};
  struct paceline_cc_item item = {0, derived, &event, &decision};
  a->on_events(&item, 1);
  CHECK(decision.rate_bps == UINT64_C(100000000000));
  return failures != 0;
}
