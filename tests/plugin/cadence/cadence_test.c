/* cadence_c without a host: contexts and a port that exchange requests and grants by hand. */
#include <paceline/cc.h>
#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(what)                                              \
  do {                                                           \
    if (!(what)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
      ++failures;                                                \
    }                                                            \
  } while (0)

enum { SENDERS = 3, PACKET = 4178, RTT = 5000, LINK_MBPS = 100000, MESSAGE = 10000000 };

struct peer {
  _Alignas(16) unsigned char context[PACELINE_CC_RATES_STATE_BYTES];
  _Alignas(16) unsigned char in_uplink[PACELINE_CC_UPLINK_BYTES];
  _Alignas(16) unsigned char sender[PACELINE_CC_SENDER_BYTES];
  struct paceline_cc_decision decision;
  struct paceline_cc_request request;
  struct paceline_cc_channel channel;
};

static const struct paceline_cc_algorithm* law;
static _Alignas(64) unsigned char constants[PACELINE_CC_DERIVED_BYTES];
static _Alignas(16) unsigned char uplink_state[PACELINE_CC_PORT_BYTES];
static _Alignas(16) unsigned char port_state[PACELINE_CC_PORT_BYTES];
static struct peer peers[SENDERS];
static int64_t now;

static struct paceline_cc_event event_at(uint8_t signal, uint64_t backlog) {
  return (struct paceline_cc_event){
      .now_ns = now, .signal = signal, .backlog_bytes = backlog, .peers = SENDERS};
}

/* Delivers an event; what the context asks for is left in its peer's request. */
static void deliver(struct peer* p, const struct paceline_cc_event* event) {
  const struct paceline_cc_item item = {p->context, constants, event, &p->decision};
  p->decision.request = 0;
  law->on_events(&item, 1);
  if (!p->decision.request) return;
  p->request = (struct paceline_cc_request){.sent_total = event->sent_total,
                                            .start_total = event->sent_total,
                                            .cap_mbps = PACELINE_CC_NO_CAP,
                                            .stamp_ns = (uint32_t)now};
  law->rates->fill_request(&item, &p->request);
}

static void begin(struct peer* p, uint32_t number) {
  const struct paceline_cc_event start = event_at(PACELINE_CC_START, 0);
  p->decision = (struct paceline_cc_decision){.window_bytes = PACELINE_CC_UNLIMITED,
                                              .ceiling = PACELINE_CC_UNLIMITED,
                                              .wake_at_ns = PACELINE_CC_NEVER,
                                              .wake_bytes = PACELINE_CC_UNLIMITED};
  p->channel.number = number;
  p->channel.request = &p->request;
  p->channel.state = p->sender;
  deliver(p, &start);
}

/* A message is posted, and the uplink answers what may leave without a grant. */
static uint32_t start_message(struct peer* p, uint64_t bytes) {
  struct paceline_cc_event posted = event_at(PACELINE_CC_MESSAGE, bytes);
  posted.message_bytes = bytes;
  deliver(p, &posted);
  const struct paceline_cc_item item = {p->context, constants, &posted, &p->decision};
  struct paceline_cc_want want = {0};
  law->rates->fill_want(&item, &want);
  struct paceline_cc_share share = {.rate_mbps = LINK_MBPS, .cap_mbps = LINK_MBPS};
  struct paceline_cc_uplink_context context = {
      .want = &want, .share = &share, .state = p->in_uplink};
  struct paceline_cc_uplink_context* contexts[] = {&context};
  struct paceline_cc_uplink uplink = {.now_ns = now,
                                      .state = uplink_state,
                                      .derived = constants,
                                      .contexts = contexts,
                                      .context_count = 1,
                                      .rest_ns = now,
                                      .next_ns = PACELINE_CC_NEVER};
  law->rates->on_uplink(&uplink);
  CHECK(share.start_bytes <= want.start_bytes);
  share.answers_start = want.asks_start;
  posted = event_at(PACELINE_CC_SHARE, bytes);
  posted.share = &share;
  deliver(p, &posted);
  return share.start_bytes;
}

static struct paceline_cc_downlink port(void) {
  return (struct paceline_cc_downlink){
      .now_ns = now, .state = port_state, .derived = constants, .next_ns = PACELINE_CC_NEVER};
}

static void receive(struct peer* p) {
  struct paceline_cc_downlink at = port();
  p->channel.fresh = p->channel.heard_at_ns == 0;
  p->channel.listed = 1;
  p->channel.heard_at_ns = now;
  law->rates->on_request(&at, &p->channel);
}

static void round_of_port(void) {
  struct paceline_cc_channel* listed[SENDERS];
  struct paceline_cc_downlink at = port();
  for (uint32_t i = 0; i < SENDERS; ++i)
    if (peers[i].channel.listed) listed[at.channel_count++] = &peers[i].channel;
  at.channels = listed;
  law->rates->on_downlink(&at);
}

/* Sends the grant that the port wants to send, if any. Returns its rate. */
static uint32_t answer(struct peer* p) {
  if (!p->channel.tell) return 0;
  struct paceline_cc_downlink at = port();
  struct paceline_cc_rate_grant grant = {.stamp_ns = p->request.stamp_ns};
  law->rates->fill_grant(&at, &p->channel, &grant);
  p->channel.tell = 0;
  struct paceline_cc_event e = event_at(PACELINE_CC_GRANT, MESSAGE);
  e.rate_grant = &grant;
  deliver(p, &e);
  CHECK(grant.number != 0);
  CHECK(grant.rate_mbps == 0 || grant.lease_us >= 100);
  return grant.rate_mbps;
}

int main(void) {
  law = paceline_cc_plugin(PACELINE_CC_ABI_MAJOR << 16 | PACELINE_CC_ABI_MINOR);
  CHECK(law && strcmp(law->name, "cadence_c") == 0);
  CHECK(paceline_cc_plugin(UINT32_C(99) << 16) == 0);
  CHECK(law && law->rates);
  if (failures) return 1;
  const struct paceline_cc_port facts = {sizeof facts, 4096, LINK_MBPS * UINT64_C(1000000), PACKET,
                                         RTT};
  double values[PACELINE_CC_PARAMS];
  for (uint32_t i = 0; i < law->param_count; ++i) values[i] = law->params[i].initial;
  law->derive(values, &facts, constants);

  /* A short message waits for nobody. */
  now = 1000000;
  begin(&peers[0], 0);
  CHECK(start_message(&peers[0], 1000) >= 1000);
  CHECK(!peers[0].decision.request);
  CHECK(peers[0].decision.ceiling >= 1000);

  /* Long ones ask, and the port grants each of them a rate; all of them fit the link. */
  uint32_t rates[SENDERS] = {0};
  memset(peers, 0, sizeof peers);
  memset(uplink_state, 0, sizeof uplink_state);
  for (uint32_t i = 0; i < SENDERS; ++i) begin(&peers[i], i);
  for (uint32_t i = 0; i < SENDERS; ++i) {
    start_message(&peers[i], MESSAGE);
    CHECK(peers[i].request.demand_bytes > MESSAGE);
    receive(&peers[i]);
  }
  for (int n = 0; n < 200; ++n) {
    now += RTT;
    round_of_port();
    uint64_t sum = 0;
    for (uint32_t i = 0; i < SENDERS; ++i) {
      const uint32_t rate = answer(&peers[i]);
      if (rate) rates[i] = rate;
      if (peers[i].decision.request) receive(&peers[i]);
      sum += rates[i];
    }
    CHECK(sum <= LINK_MBPS);
  }
  for (uint32_t i = 0; i < SENDERS; ++i) CHECK(rates[i] > LINK_MBPS / 4);

  /* The backlog is gone: the sender gives the grant up, and the port takes it back. */
  const struct paceline_cc_event idle = event_at(PACELINE_CC_IDLE, 0);
  deliver(&peers[0], &idle);
  CHECK(peers[0].decision.request && peers[0].request.demand_bytes == 0);
  receive(&peers[0]);
  CHECK(!peers[0].channel.listed);
  CHECK(answer(&peers[0]) == 0);
  return failures != 0;
}
