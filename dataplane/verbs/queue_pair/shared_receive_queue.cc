#include "dataplane/verbs/queue_pair/shared_receive_queue.h"

#include <pthread.h>

#include <memory>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/operations.h"
#include "dataplane/verbs/queue_pair/domain.h"

namespace paceline::verbs {

namespace {

int map_queue(SharedReceiveQueue& srq, attach::Message& reply, const attach::SrqReply& made) {
  const attach::WorkQueueShape shape{made.slots, made.stride};
  if (reply.descriptors.size() != 1 || made.slots == 0 || (made.slots & (made.slots - 1)) != 0 ||
      made.requests > made.slots ||
      made.stride < attach::receive_queue_shape(1, made.segments).stride) {
    return EPROTO;
  }
  if (!srq.memory.open(std::move(reply.descriptors[0]), shape.bytes(), true)) return errno;
  srq.memory.close_descriptor();
  WorkQueue& q = srq.queue;
  q.memory = srq.memory.data();
  q.shape = shape;
  q.requests = made.requests;
  q.segments = made.segments;
  q.doorbell = made.doorbell;
  q.shared = true;
  return 0;
}

// An XRC queue is in a domain and has a completion queue. For other queues both are null.
struct Home {
  ibv_xrcd* domain = nullptr;
  ibv_cq* cq = nullptr;
};

ibv_srq* make_srq(ibv_pd* pd, void* srq_context, ibv_srq_attr& attr, const Home& home = {}) {
  Context& c = Context::of(pd->context);
  const attach::NicLimits& limits = c.nic.limits;
  if (attr.max_wr == 0 || attr.max_wr > limits.requests || attr.max_sge > limits.segments) {
    return refuse(EINVAL);
  }
  auto srq = std::make_unique<SharedReceiveQueue>();
  srq->context = &c;
  {
    const std::lock_guard hold(c.objects);
    c.shared_receive_queues.reserve(c.shared_receive_queues.size() + 1);
  }
  // The limit at creation is not an armed one (ibv_create_srq(3)).
  attach::CreateSrqRequest request;
  request.pd = pd->handle;
  request.requests = attr.max_wr;
  request.segments = attr.max_sge == 0 ? 1 : attr.max_sge;
  if (home.domain != nullptr) {
    request.domain = Domain::of(home.domain).handle;
    request.cq = home.cq->handle;
  }
  attach::Message reply;
  int error = c.session.ask(attach::Operation::create_srq, request, reply);
  if (error != 0) return refuse(error);
  const auto made = reply.as<attach::SrqReply>();
  error = map_queue(*srq, reply, made);
  if (error != 0) {
    c.session.drop(attach::Operation::destroy_srq, made.handle);
    return refuse(error);
  }
  attr.max_wr = made.requests;
  attr.max_sge = made.segments;
  srq->number = made.number;
  ibv_srq& s = srq->srq;
  s.context = pd->context;
  s.srq_context = srq_context;
  s.pd = pd;
  s.handle = made.handle;
  ::pthread_mutex_init(&s.mutex, nullptr);
  ::pthread_cond_init(&s.cond, nullptr);
  const std::lock_guard hold(c.objects);
  c.shared_receive_queues.push_back(srq.get());
  return &srq.release()->srq;
}

int modify(SharedReceiveQueue& srq, const ibv_srq_attr& attr, int mask) {
  Context& c = *srq.context;
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return EINVAL;
  const attach::ModifySrqRequest request{srq.srq.handle, static_cast<std::uint32_t>(mask),
                                         attr.max_wr, attr.srq_limit};
  if ((mask & IBV_SRQ_MAX_WR) == 0) {
    return c.session.tell(attach::Operation::modify_srq, request);
  }
  // No thread may post meanwhile: the service has taken all posted requests, and reads the new
  // memory.
  const std::lock_guard hold(srq.queue.lock);
  attach::Message reply;
  const int error = c.session.ask(attach::Operation::modify_srq, request, reply);
  return error != 0 ? error : map_queue(srq, reply, reply.as<attach::SrqReply>());
}

int destroy_srq(SharedReceiveQueue* srq) {
  Context& c = *srq->context;
  const int error = c.session.drop(attach::Operation::destroy_srq, srq->srq.handle);
  if (error != 0 && error != EIO) return error;
  {
    const std::lock_guard hold(c.objects);
    forget(c.shared_receive_queues, srq);
  }
  ibv_srq& s = srq->srq;
  if (!c.presence.forked()) {
    ::pthread_mutex_lock(&s.mutex);
    while (s.events_completed != srq->async_reported) ::pthread_cond_wait(&s.cond, &s.mutex);
    ::pthread_mutex_unlock(&s.mutex);
  }
  ::pthread_cond_destroy(&s.cond);
  ::pthread_mutex_destroy(&s.mutex);
  delete srq;
  return 0;
}

}  // namespace

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) noexcept {
  constexpr std::uint32_t kHome = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  constexpr std::uint32_t kMask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | kHome;
  if ((attr->comp_mask & ~kMask) != 0) return refuse(EOPNOTSUPP);
  const bool typed = (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0;
  const ibv_srq_type type = typed ? attr->srq_type : IBV_SRQT_BASIC;
  if (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC) return refuse(EOPNOTSUPP);
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr->pd->context != context) {
    return refuse(EINVAL);
  }
  Home home;
  if (type == IBV_SRQT_XRC) {
    if ((attr->comp_mask & kHome) != kHome || attr->xrcd == nullptr || attr->cq == nullptr ||
        attr->xrcd->context != context || attr->cq->context != context) {
      return refuse(EINVAL);
    }
    home = {attr->xrcd, attr->cq};
  }
  return guarded(static_cast<ibv_srq*>(nullptr),
                 [&] { return make_srq(attr->pd, attr->srq_context, attr->attr, home); });
}

int get_srq_num(ibv_srq* srq, std::uint32_t* number) noexcept {
  *number = SharedReceiveQueue::of(srq).number;
  return 0;
}

}  // namespace paceline::verbs

using paceline::verbs::SharedReceiveQueue;

PACELINE_VERBS_EXPORT ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* srq_init_attr) {
  using namespace paceline::verbs;
  return guarded(static_cast<ibv_srq*>(nullptr),
                 [&] { return make_srq(pd, srq_init_attr->srq_context, srq_init_attr->attr); });
}

PACELINE_VERBS_EXPORT int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* srq_attr, int srq_attr_mask) {
  using namespace paceline::verbs;
  if (srq_attr_mask == 0) return 0;
  return result(guarded(
      ENOMEM, [&] { return modify(SharedReceiveQueue::of(srq), *srq_attr, srq_attr_mask); }));
}

PACELINE_VERBS_EXPORT int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* srq_attr) {
  using namespace paceline::verbs;
  return result(guarded(ENOMEM, [&] {
    paceline::attach::SrqReply reply;
    const int error = Context::of(srq->context)
                          .session.ask(paceline::attach::Operation::query_srq,
                                       paceline::attach::HandleBody{srq->handle, 0}, reply);
    if (error == 0) *srq_attr = {reply.requests, reply.segments, reply.limit};
    return error;
  }));
}

PACELINE_VERBS_EXPORT int ibv_destroy_srq(ibv_srq* srq) {
  using namespace paceline::verbs;
  return result(guarded(ENOMEM, [&] { return destroy_srq(&SharedReceiveQueue::of(srq)); }));
}
