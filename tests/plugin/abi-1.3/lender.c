/* Built against version 1.3 of the header, which lies beside this file and never changes: what was built
 * then must load and run in every later host of version 1. The receiving half is what 1.3 added: it lends every
 * sender in turn a few packets. */
#include <paceline/cc.h>

#if PACELINE_CC_ABI_MAJOR != 1 || PACELINE_CC_ABI_MINOR != 3
#error "not the header of version 1.3"
#endif

struct port {
  uint32_t turn;
};

static const struct paceline_cc_param kParams[] = {
    {"packets", "count", 8, 1, 64, 1, 0, "that a sender is lent at a time", "own"},
};

static void on_round(struct paceline_cc_round *round) {
  const uint64_t most = 4178 * (uint64_t)((const double *)round->derived)[0];
  struct port *port = round->state;
  uint64_t room = round->room_bytes;
  for (uint32_t i = 0; i < round->sender_count && round->grant_count < round->grant_most; ++i) {
    const struct paceline_cc_sender *s = round->senders[(port->turn + i) % round->sender_count];
    uint64_t bytes = s->wanted_bytes < most ? s->wanted_bytes : most;
    if (bytes == 0 || bytes > room || s->outstanding_bytes >= most) continue;
    round->grants[round->grant_count++] = (struct paceline_cc_grant){s->number, 0, bytes};
    room -= bytes;
  }
  ++port->turn;
}

static const struct paceline_cc_receiver kReceiver = {
    .size = sizeof(struct paceline_cc_receiver),
    .port_bytes = sizeof(struct port),
    .on_round = on_round,
};

static const struct paceline_cc_algorithm kAlgorithm = {
    .size = sizeof(struct paceline_cc_algorithm),
    .abi_major = PACELINE_CC_ABI_MAJOR,
    .abi_minor = PACELINE_CC_ABI_MINOR,
    .name = "lender",
    .summary = "of version 1.3",
    .context = PACELINE_CC_PER_PEER_CLASS,
    .echo = PACELINE_CC_ECHO_CNP,
    .param_count = 1,
    .param_size = sizeof(struct paceline_cc_param),
    .params = kParams,
    .receiver = &kReceiver,
};

const struct paceline_cc_algorithm *paceline_cc_plugin(uint32_t host_abi) {
  return host_abi >> 16 == 1 && (host_abi & 0xFFFF) >= 3 ? &kAlgorithm : 0;
}
