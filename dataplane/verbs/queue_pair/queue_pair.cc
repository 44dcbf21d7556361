// Queue pairs: created and destroyed. queue_pair_state.cc has what happens in between.
#include "dataplane/verbs/queue_pair/queue_pair.h"

#include <pthread.h>

#include <memory>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/completion/completion_queue.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/operations.h"
#include "dataplane/verbs/queue_pair/domain.h"

namespace paceline::verbs {

namespace {

bool power_of_two(std::uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }

int map_queues(QueuePair& pair, attach::Message& reply, const attach::CreateQpReply& made) {
  if (reply.descriptors.size() != 1) return EPROTO;
  const attach::WorkQueueShape send{made.send_slots, made.send_stride};
  const attach::WorkQueueShape receive{made.receive_slots, made.receive_stride};
  const bool receives = made.receive_offset != 0;
  std::size_t bytes = send.bytes();
  if (!power_of_two(send.slots) || made.send_requests > send.slots ||
      send.stride < attach::send_queue_shape(1, made.send_segments, made.inline_bytes).stride) {
    return EPROTO;
  }
  if (receives) {
    if (!power_of_two(receive.slots) || made.receive_requests > receive.slots ||
        receive.stride < attach::receive_queue_shape(1, made.receive_segments).stride ||
        made.receive_offset < bytes) {
      return EPROTO;
    }
    bytes = made.receive_offset + receive.bytes();
  }
  if (!pair.memory.open(std::move(reply.descriptors[0]), bytes, true)) return errno;
  pair.memory.close_descriptor();
  pair.send.memory = pair.memory.data();
  pair.send.shape = send;
  pair.send.requests = made.send_requests;
  pair.send.segments = made.send_segments;
  pair.send.inline_bytes = made.inline_bytes;
  pair.send.doorbell = made.doorbell;
  if (receives) {
    pair.receive.memory = pair.memory.data() + made.receive_offset;
    pair.receive.shape = receive;
    pair.receive.requests = made.receive_requests;
    pair.receive.segments = made.receive_segments;
    pair.receive.doorbell = made.doorbell;
  }
  pair.cap = {made.send_requests, made.receive_requests, made.send_segments, made.receive_segments,
              made.inline_bytes};
  return 0;
}

int check(const Context& c, const ibv_pd* pd, const ibv_qp_init_attr& attr) {
  const attach::NicLimits& limits = c.nic.limits;
  const bool sends_only = attr.qp_type == IBV_QPT_XRC_SEND;
  if (attr.qp_type != IBV_QPT_RC && attr.qp_type != IBV_QPT_UC && attr.qp_type != IBV_QPT_UD &&
      !sends_only) {
    return EOPNOTSUPP;
  }
  const ibv_context* const context = pd->context;
  if (attr.send_cq == nullptr || attr.send_cq->context != context) return EINVAL;
  if (!sends_only) {
    if (attr.recv_cq == nullptr || attr.recv_cq->context != context) return EINVAL;
    if (attr.srq != nullptr && attr.srq->context != context) return EINVAL;
  }
  const ibv_qp_cap& cap = attr.cap;
  const bool own = attr.srq == nullptr && !sends_only;
  if (cap.max_send_wr > limits.requests || cap.max_send_sge > limits.segments) return EINVAL;
  if (own && (cap.max_recv_wr > limits.requests || cap.max_recv_sge > limits.segments)) {
    return EINVAL;
  }
  return cap.max_inline_data > limits.inline_bytes ? EINVAL : 0;
}

attach::CreateQpRequest request_for(const ibv_pd& pd, const ibv_qp_init_attr& attr) {
  attach::CreateQpRequest q;
  q.pd = pd.handle;
  q.send_cq = attr.send_cq->handle;
  q.send_requests = attr.cap.max_send_wr;
  q.send_segments = attr.cap.max_send_sge;
  if (attr.qp_type != IBV_QPT_XRC_SEND) {
    q.receive_cq = attr.recv_cq->handle;
    q.srq = attr.srq == nullptr ? 0 : attr.srq->handle;
    q.receive_requests = attr.srq == nullptr ? attr.cap.max_recv_wr : 0;
    q.receive_segments = attr.srq == nullptr ? attr.cap.max_recv_sge : 0;
  }
  q.inline_bytes = attr.cap.max_inline_data;
  q.type = static_cast<attach::PairType>(attr.qp_type);
  return q;
}

// From now on its completions are recognized.
void join(ibv_cq* cq, QueuePair& pair) {
  CompletionQueue& queue = CompletionQueue::of(cq);
  const std::lock_guard hold(queue.lock);
  queue.pairs.add(pair.base().qp_num, &pair);
}

void describe(QueuePair& pair, ibv_context* context, ibv_pd* pd, const ibv_qp_init_attr& attr,
              const attach::CreateQpReply& made) {
  ibv_qp& qp = pair.base();
  qp.context = context;
  qp.qp_context = attr.qp_context;
  qp.pd = pd;
  qp.send_cq = attr.send_cq;
  qp.recv_cq = attr.recv_cq;
  qp.srq = attr.srq;
  qp.handle = made.handle;
  qp.qp_num = made.qp_number;
  qp.state = IBV_QPS_RESET;
  qp.qp_type = attr.qp_type;
  ::pthread_mutex_init(&qp.mutex, nullptr);
  ::pthread_cond_init(&qp.cond, nullptr);
  pair.all_signaled = attr.sq_sig_all != 0;
}

// An XRC queue pair for receiving, made or opened: it has neither queues nor a protection domain.
template <class Request>
QueuePair* make_target(ibv_context* context, attach::Operation operation, const Request& request,
                       void* qp_context) {
  Context& c = Context::of(context);
  auto pair = std::make_unique<QueuePair>();
  pair->context = &c;
  {
    const std::lock_guard hold(c.objects);
    c.queue_pairs.reserve(c.queue_pairs.size() + 1);
  }
  attach::CreateQpReply made;
  if (const int error = c.session.ask(operation, request, made); error != 0) return refuse(error);
  ibv_qp_init_attr attr{};
  attr.qp_context = qp_context;
  attr.qp_type = IBV_QPT_XRC_RECV;
  describe(*pair, context, nullptr, attr, made);
  const std::lock_guard hold(c.objects);
  c.queue_pairs.push_back(pair.get());
  return pair.release();
}

ibv_qp* make_target(ibv_context* context, ibv_qp_init_attr_ex& attr) {
  if (attr.comp_mask != IBV_QP_INIT_ATTR_XRCD || attr.xrcd == nullptr ||
      attr.xrcd->context != context) {
    return refuse(EINVAL);
  }
  attach::CreateQpRequest request;
  request.type = attach::PairType::xrc_receive;
  request.domain = Domain::of(attr.xrcd).handle;
  QueuePair* const pair =
      make_target(context, attach::Operation::create_qp, request, attr.qp_context);
  if (pair == nullptr) return nullptr;
  attr.cap = {};
  return &pair->base();
}

ibv_qp* open_target(ibv_context* context, const ibv_qp_open_attr& attr) {
  constexpr std::uint32_t kNeeded =
      IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  if ((attr.comp_mask & ~std::uint32_t{IBV_QP_OPEN_ATTR_CONTEXT}) != kNeeded ||
      attr.qp_type != IBV_QPT_XRC_RECV || attr.xrcd == nullptr || attr.xrcd->context != context) {
    return refuse(EINVAL);
  }
  const bool has_context = (attr.comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0;
  QueuePair* const pair =
      make_target(context, attach::Operation::open_qp,
                  attach::OpenQpRequest{Domain::of(attr.xrcd).handle, attr.qp_num},
                  has_context ? attr.qp_context : nullptr);
  return pair == nullptr ? nullptr : &pair->base();
}

QueuePair* make_pair(ibv_pd* pd, ibv_qp_init_attr& attr) {
  Context& c = Context::of(pd->context);
  if (const int error = check(c, pd, attr); error != 0) return refuse(error);
  if (attr.qp_type == IBV_QPT_XRC_SEND) {  // what programs leave there says nothing
    attr.recv_cq = nullptr;
    attr.srq = nullptr;
  }
  auto pair = std::make_unique<QueuePair>();
  pair->context = &c;
  {
    const std::lock_guard hold(c.objects);
    c.queue_pairs.reserve(c.queue_pairs.size() + 1);
  }
  attach::Message reply;
  int error = c.session.ask(attach::Operation::create_qp, request_for(*pd, attr), reply);
  if (error != 0) return refuse(error);
  const auto made = reply.as<attach::CreateQpReply>();
  error = map_queues(*pair, reply, made);
  if (error != 0) {
    c.session.drop(attach::Operation::destroy_qp, made.handle);
    return refuse(error);
  }
  describe(*pair, pd->context, pd, attr, made);
  if (c.faults != nullptr) pair->faults = c.faults->for_pair(attr.qp_type == IBV_QPT_RC);
  attr.cap = pair->cap;
  join(attr.send_cq, *pair);
  if (attr.recv_cq != nullptr && attr.recv_cq != attr.send_cq) join(attr.recv_cq, *pair);
  const std::lock_guard hold(c.objects);
  c.queue_pairs.push_back(pair.get());
  return pair.release();
}

ibv_qp* make_extended_pair(ibv_context* context, ibv_qp_init_attr_ex& attr) {
  constexpr std::uint32_t kMask =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if (attr.qp_type == IBV_QPT_XRC_RECV) return make_target(context, attr);
  if ((attr.comp_mask & ~kMask) != 0) return refuse(EOPNOTSUPP);
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr.pd == nullptr ||
      attr.pd->context != context) {
    return refuse(EINVAL);
  }
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attr.create_flags != 0) {
    return refuse(EOPNOTSUPP);
  }
  const bool operations = (attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  // A program calls whatever it was promised, so refuse operations that do not exist.
  if (operations && (attr.send_ops_flags & ~send_operations_of(attr.qp_type)) != 0) {
    return refuse(EOPNOTSUPP);
  }
  ibv_qp_init_attr plain{attr.qp_context, attr.send_cq, attr.recv_cq,   attr.srq,
                         attr.cap,        attr.qp_type, attr.sq_sig_all};
  QueuePair* const pair = make_pair(attr.pd, plain);
  if (pair == nullptr) return nullptr;
  attr.cap = plain.cap;
  if (operations) {
    // All operations of the type: a program does not call those that it did not ask for.
    pair->send_operations = send_operations_of(attr.qp_type);
    set_post_functions(pair->qp);
  }
  return &pair->base();
}

int destroy_pair(QueuePair* pair) {
  Context& c = *pair->context;
  ibv_qp& qp = pair->base();
  if (pair->faults != nullptr) c.faults->alarm().cancel(pair);
  const int error = c.session.drop(attach::Operation::destroy_qp, qp.handle);
  if (error != 0 && error != EIO) return error;
  drop_completions(qp, true);
  {
    const std::lock_guard hold(c.objects);
    forget(c.queue_pairs, pair);
  }
  if (!c.presence.forked()) {
    ::pthread_mutex_lock(&qp.mutex);
    while (qp.events_completed != pair->async_reported) ::pthread_cond_wait(&qp.cond, &qp.mutex);
    ::pthread_mutex_unlock(&qp.mutex);
  }
  ::pthread_cond_destroy(&qp.cond);
  ::pthread_mutex_destroy(&qp.mutex);
  delete pair;
  return 0;
}

}  // namespace

ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) noexcept {
  return guarded(static_cast<ibv_qp*>(nullptr), [&] { return open_target(context, *attr); });
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) noexcept {
  return guarded(static_cast<ibv_qp*>(nullptr), [&] { return make_extended_pair(context, *attr); });
}

}  // namespace paceline::verbs

using paceline::verbs::QueuePair;

PACELINE_VERBS_EXPORT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* qp_init_attr) {
  return paceline::verbs::guarded(static_cast<ibv_qp*>(nullptr), [&]() -> ibv_qp* {
    QueuePair* const pair = paceline::verbs::make_pair(pd, *qp_init_attr);
    return pair == nullptr ? nullptr : &pair->base();
  });
}

PACELINE_VERBS_EXPORT int ibv_destroy_qp(ibv_qp* qp) {
  using namespace paceline::verbs;
  return result(guarded(ENOMEM, [&] { return destroy_pair(&QueuePair::of(qp)); }));
}

// Null for a queue pair that was made without asking for the operations.
PACELINE_VERBS_EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  QueuePair& pair = QueuePair::of(qp);
  return pair.send_operations == 0 ? nullptr : &pair.qp;
}
