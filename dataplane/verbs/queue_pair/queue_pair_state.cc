// ibv_modify_qp, ibv_query_qp and other queries of existing queue pairs. The service holds the
// state and the rules; ibv_qp::state follows the changes that the program asked for.
#include <mutex>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/completion/completion_queue.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/operations.h"
#include "dataplane/verbs/queue_pair/address_vector.h"
#include "dataplane/verbs/queue_pair/queue_pair.h"

namespace paceline::verbs {

namespace {

constexpr int kKnownMask = (IBV_QP_DEST_QPN << 1) - 1;  // all but the rate limit

attach::QpValues values_of(const ibv_qp& qp, const ibv_qp_attr& attr, int mask) {
  attach::QpValues v;
  v.handle = qp.handle;
  v.mask = static_cast<std::uint32_t>(mask);
  v.state = static_cast<std::uint32_t>(attr.qp_state);
  v.current_state = static_cast<std::uint32_t>(attr.cur_qp_state);
  v.path_mtu = static_cast<std::uint32_t>(attr.path_mtu);
  v.qkey = attr.qkey;
  v.rq_psn = attr.rq_psn;
  v.sq_psn = attr.sq_psn;
  v.dest_qp = attr.dest_qp_num;
  // Programs pass the flags of their regions, some of which do not concern queue pairs.
  constexpr unsigned kOfRegions =
      IBV_ACCESS_ON_DEMAND | IBV_ACCESS_MW_BIND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;
  v.access = attr.qp_access_flags & ~kOfRegions;
  v.rate_limit_kbps = attr.rate_limit;
  v.pkey_index = attr.pkey_index;
  v.drain_notify = attr.en_sqd_async_notify;
  v.max_rd_atomic = attr.max_rd_atomic;
  v.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  v.min_rnr_timer = attr.min_rnr_timer;
  v.port = attr.port_num;
  v.timeout = attr.timeout;
  v.retry_count = attr.retry_cnt;
  v.rnr_retry = attr.rnr_retry;
  v.path_migration = static_cast<std::uint8_t>(attr.path_mig_state);
  if ((mask & IBV_QP_AV) != 0) v.path = address_vector(attr.ah_attr);
  return v;
}

ibv_qp_attr attributes_of(const QueuePair& pair, const attach::QpValues& v) {
  ibv_qp_attr a{};
  a.qp_state = static_cast<ibv_qp_state>(v.state);
  a.cur_qp_state = static_cast<ibv_qp_state>(v.state);
  a.path_mtu = static_cast<ibv_mtu>(v.path_mtu);
  a.path_mig_state = static_cast<ibv_mig_state>(v.path_migration);
  a.qkey = v.qkey;
  a.rq_psn = v.rq_psn;
  a.sq_psn = v.sq_psn;
  a.dest_qp_num = v.dest_qp;
  a.qp_access_flags = v.access;
  a.cap = pair.cap;
  a.ah_attr = address_attributes(v.path);
  a.pkey_index = v.pkey_index;
  a.en_sqd_async_notify = v.drain_notify;
  a.sq_draining = v.draining;
  a.max_rd_atomic = v.max_rd_atomic;
  a.max_dest_rd_atomic = v.max_dest_rd_atomic;
  a.min_rnr_timer = v.min_rnr_timer;
  a.port_num = v.port;
  a.timeout = v.timeout;
  a.retry_cnt = v.retry_count;
  a.rnr_retry = v.rnr_retry;
  a.rate_limit = v.rate_limit_kbps;
  return a;
}

// The service has discarded the queued requests, and starts at the tails.
void empty_queue(WorkQueue& queue) {
  if (queue.memory == nullptr) return;
  const std::lock_guard hold(queue.lock);
  queue.retired.store(queue.tail, std::memory_order_release);
}

void after_reset(QueuePair& pair) {
  drop_completions(pair.base(), false);
  empty_queue(pair.send);
  empty_queue(pair.receive);
}

int modify(QueuePair& pair, const ibv_qp_attr& attr, int mask) {
  if ((mask & ~(kKnownMask | IBV_QP_RATE_LIMIT)) != 0) return EINVAL;
  // As the device capabilities say: queues do not grow, paths do not migrate.
  if ((mask & (IBV_QP_CAP | IBV_QP_ALT_PATH)) != 0) return EINVAL;
  ibv_qp& qp = pair.base();
  const bool ends = attr.qp_state == IBV_QPS_RESET || attr.qp_state == IBV_QPS_ERR;
  if (pair.faults != nullptr && (mask & IBV_QP_STATE) != 0 && ends) {
    pair.faults->release_all(pair.send.header().tail);
    pair.context->ring(pair.send.doorbell);
  }
  const int error =
      pair.context->session.tell(attach::Operation::modify_qp, values_of(qp, attr, mask));
  if (error != 0) return error;
  if ((mask & IBV_QP_STATE) == 0) return 0;
  if (attr.qp_state == IBV_QPS_RESET) after_reset(pair);
  qp.state = attr.qp_state;
  return 0;
}

int query(QueuePair& pair, ibv_qp_attr& attr, ibv_qp_init_attr* init) {
  ibv_qp& qp = pair.base();
  attach::QpValues values;
  const int error = pair.context->session.ask(attach::Operation::query_qp,
                                              attach::HandleBody{qp.handle, 0}, values);
  if (error != 0) return error;
  attr = attributes_of(pair, values);
  // An error may have moved it since the program last did.
  qp.state = attr.qp_state;
  if (init != nullptr) {
    *init = {qp.qp_context,
             qp.send_cq,
             qp.recv_cq,
             qp.srq,
             pair.cap,
             qp.qp_type,
             pair.all_signaled ? 1 : 0};
  }
  return 0;
}

int multicast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid, attach::Operation operation) {
  if (qp->qp_type != IBV_QPT_UD || gid == nullptr) return EINVAL;
  attach::MulticastRequest request;
  request.handle = qp->handle;
  request.local_id = lid;
  std::memcpy(request.group.data(), gid->raw, request.group.size());
  return guarded(ENOMEM, [&] { return Context::of(qp->context).session.tell(operation, request); });
}

}  // namespace

int modify_qp_rate_limit(ibv_qp* qp, ibv_qp_rate_limit_attr* attr) noexcept {
  if (attr->comp_mask != 0) return result(EINVAL);
  const attach::RateRequest request{qp->handle, attr->rate_limit, attr->max_burst_sz,
                                    attr->typical_pkt_sz};
  return result(guarded(ENOMEM, [&] {
    return Context::of(qp->context).session.tell(attach::Operation::limit_rate, request);
  }));
}

}  // namespace paceline::verbs

using paceline::verbs::QueuePair;

PACELINE_VERBS_EXPORT int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask) {
  using namespace paceline::verbs;
  return result(guarded(ENOMEM, [&] { return modify(QueuePair::of(qp), *attr, attr_mask); }));
}

PACELINE_VERBS_EXPORT int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int /*attr_mask*/,
                                       ibv_qp_init_attr* init_attr) {
  using namespace paceline::verbs;
  return result(guarded(ENOMEM, [&] { return query(QueuePair::of(qp), *attr, init_attr); }));
}

// Packets of a message may overtake one another on the way to memory when some are lost.
PACELINE_VERBS_EXPORT int ibv_query_qp_data_in_order(ibv_qp* /*qp*/, ibv_wr_opcode /*op*/,
                                                     std::uint32_t /*flags*/) {
  return 0;
}

PACELINE_VERBS_EXPORT int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  using namespace paceline::verbs;
  return result(multicast(qp, gid, lid, paceline::attach::Operation::attach_multicast));
}

PACELINE_VERBS_EXPORT int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  using namespace paceline::verbs;
  return result(multicast(qp, gid, lid, paceline::attach::Operation::detach_multicast));
}
