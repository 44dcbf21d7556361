/* aimd without a host: one context, driven event by event. */
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

static _Alignas(16) unsigned char state[PACELINE_CC_STATE_BYTES];
static _Alignas(64) unsigned char derived[PACELINE_CC_DERIVED_BYTES];
static struct paceline_cc_decision decision;

static void deliver(const struct paceline_cc_algorithm *a, uint8_t signal, int64_t now_ns) {
  struct paceline_cc_event event = {.now_ns = now_ns, .signal = signal};
  struct paceline_cc_item item = {state, derived, &event, &decision};
  a->on_events(&item, 1);
}

int main(void) {
  const struct paceline_cc_algorithm *a =
      paceline_cc_plugin(PACELINE_CC_ABI_MAJOR << 16 | PACELINE_CC_ABI_MINOR);
  CHECK(a && strcmp(a->name, "aimd") == 0);
  CHECK(paceline_cc_plugin(UINT32_C(99) << 16) == 0);
  if (failures) return 1;

  const uint64_t link = UINT64_C(100000000000);
  const struct paceline_cc_port port = {sizeof port, 4096, link, 4178, 5000};
  double values[PACELINE_CC_PARAMS];
  for (uint32_t i = 0; i < a->param_count; ++i) values[i] = a->params[i].initial;
  a->derive(values, &port, derived);

  /* Begins at line rate, and has nothing to wait for. */
  deliver(a, PACELINE_CC_START, 0);
  CHECK(decision.rate_bps == link);
  CHECK(decision.wake_at_ns == PACELINE_CC_NEVER);

  /* A notification takes its share; a second one in the same period takes nothing. */
  deliver(a, PACELINE_CC_CNP, 30000);
  const uint64_t cut = decision.rate_bps;
  CHECK(cut > link * 69 / 100 && cut < link * 71 / 100);
  CHECK(decision.wake_at_ns == 50000);
  deliver(a, PACELINE_CC_CNP, 40000);
  CHECK(decision.rate_bps == cut);

  /* What was added meanwhile does not hide the next notification. */
  deliver(a, PACELINE_CC_TICK, 50000);
  CHECK(decision.rate_bps == cut + 100000000);
  deliver(a, PACELINE_CC_CNP, 55000);
  CHECK(decision.rate_bps < cut * 3 / 4);
  CHECK(decision.wake_at_ns == 75000);
  const uint64_t low = decision.rate_bps;

  /* Every period without one adds a step, also those that nobody looked at. */
  deliver(a, PACELINE_CC_TICK, 75000);
  CHECK(decision.rate_bps == low + 100000000);
  deliver(a, PACELINE_CC_TICK, 175000);
  CHECK(decision.rate_bps == low + 600000000);

  /* Never above the link, never below its thousandth. */
  deliver(a, PACELINE_CC_TICK, INT64_C(1000000000));
  CHECK(decision.rate_bps == link);
  for (int64_t i = 1; i <= 100; ++i) deliver(a, PACELINE_CC_CNP, INT64_C(1000000000) + i * 30000);
  CHECK(decision.rate_bps == link / 1000);
  return failures != 0;
}
