// One side of a connection as a program has it that speaks the attach protocol by hand: a session,
// a completion queue, a queue pair. Numbers of the verbs enums are written out: they are what the
// protocol holds.
#pragma once

#include <string>

#include "tests/support/attach_client.h"

namespace paceline::test {

struct RawEnd {
  AttachClient client;
  std::uint32_t pd = 0;
  ClientQueue cq;
  ClientPair pair;

  explicit RawEnd(const std::string& path) : client(path) {}

  // False when something was refused.
  bool make(const std::string& nic, attach::PairType type = attach::PairType::rc) {
    if (!client.connected() || !client.open(nic)) return false;
    pd = client.create_pd();
    return pd != 0 && cq.create(client, 64) && pair.create(client, wish(type)) == 0;
  }
  attach::CreateQpRequest wish(attach::PairType type) const { return pair_request(pd, cq, type); }
  bool modify(attach::QpValues values) {
    values.handle = pair.reply.handle;
    return client.ask(attach::Operation::modify_qp, values).ok();
  }
  // INIT, RTR, RTS; packet sequence numbers begin with `psn` on both sides.
  bool connect(std::uint32_t remote_qp, std::uint16_t remote_id, std::uint32_t psn) {
    attach::QpValues init;
    init.mask = 1U << 0 | 1U << 3 | 1U << 4 | 1U << 5;  // state, access, P_Key, port
    init.state = 1;
    init.port = 1;
    init.access = 0xF;
    attach::QpValues rtr;  // state, path, MTU, PSN, READs, RNR timer, destination
    rtr.mask = 1U << 0 | 1U << 7 | 1U << 8 | 1U << 12 | 1U << 15 | 1U << 17 | 1U << 20;
    rtr.state = 2;
    rtr.path_mtu = 3;
    rtr.dest_qp = remote_qp;
    rtr.rq_psn = psn;
    rtr.max_dest_rd_atomic = 4;
    rtr.min_rnr_timer = 12;
    rtr.path.destination_id = remote_id;
    rtr.path.port = 1;
    attach::QpValues rts;  // state, timeout, retries, RNR retries, READs, PSN
    rts.mask = 1U << 0 | 1U << 9 | 1U << 10 | 1U << 11 | 1U << 13 | 1U << 16;
    rts.state = 3;
    rts.timeout = 18;  // a second: the machine may be slow, the peer is not gone
    rts.retry_count = 7;
    rts.rnr_retry = 7;
    rts.sq_psn = psn;
    rts.max_rd_atomic = 4;
    return modify(init) && modify(rtr) && modify(rts);
  }
};

inline bool connect(RawEnd& a, RawEnd& b, std::uint32_t psn) {
  return a.connect(b.pair.reply.qp_number, b.client.info().local_id, psn) &&
         b.connect(a.pair.reply.qp_number, a.client.info().local_id, psn);
}

}  // namespace paceline::test
