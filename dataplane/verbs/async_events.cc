// Asynchronous events: read from the service's pipe, which is the context's async_fd.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/completion/completion_queue.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/queue_pair/queue_pair.h"
#include "dataplane/verbs/queue_pair/shared_receive_queue.h"

namespace paceline::verbs {

namespace {

enum class Subject { port, device, completion_queue, queue_pair, shared_receive_queue };

Subject subject_of(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return Subject::completion_queue;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return Subject::queue_pair;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return Subject::shared_receive_queue;
    case IBV_EVENT_DEVICE_FATAL:
      return Subject::device;
    default:
      return Subject::port;
  }
}

void count(pthread_mutex_t& mutex, std::uint32_t& counter) {
  ::pthread_mutex_lock(&mutex);
  ++counter;
  ::pthread_mutex_unlock(&mutex);
}

// False: the object was destroyed meanwhile, and the event is dropped.
bool describe(Context& context, const attach::AsyncNotice& notice, ibv_async_event& out) {
  out.event_type = static_cast<ibv_event_type>(notice.event);
  const std::lock_guard hold(context.objects);
  switch (subject_of(out.event_type)) {
    case Subject::port:
      out.element.port_num = std::max(1, static_cast<int>(notice.handle));
      return true;
    case Subject::device:
      out.element.port_num = 0;
      return true;
    case Subject::completion_queue:
      for (CompletionQueue* queue : context.completion_queues) {
        if (queue->cq.handle != notice.handle) continue;
        count(queue->cq.mutex, queue->async_reported);
        out.element.cq = queue->handle();
        return true;
      }
      return false;
    case Subject::queue_pair:
      for (QueuePair* pair : context.queue_pairs) {
        if (pair->base().handle != notice.handle) continue;
        count(pair->base().mutex, pair->async_reported);
        out.element.qp = &pair->base();
        return true;
      }
      return false;
    case Subject::shared_receive_queue:
      for (SharedReceiveQueue* queue : context.shared_receive_queues) {
        if (queue->srq.handle != notice.handle) continue;
        count(queue->srq.mutex, queue->async_reported);
        out.element.srq = &queue->srq;
        return true;
      }
      return false;
  }
  return false;
}

void acknowledge(pthread_mutex_t& mutex, pthread_cond_t& cond, std::uint32_t& counter) {
  ::pthread_mutex_lock(&mutex);
  ++counter;
  ::pthread_cond_signal(&cond);
  ::pthread_mutex_unlock(&mutex);
}

// The end of the pipe: the device is lost, which is said once.
int tell_fatal(Context& context, ibv_async_event& out) {
  context.session.lost();
  const std::lock_guard hold(context.objects);
  if (context.fatal_told) {
    errno = EIO;
    return -1;
  }
  context.fatal_told = true;
  out = {};
  out.event_type = IBV_EVENT_DEVICE_FATAL;
  return 0;
}

}  // namespace

}  // namespace paceline::verbs

PACELINE_VERBS_EXPORT int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  using namespace paceline::verbs;
  Context& c = Context::of(context);
  for (;;) {
    if (c.presence.forked()) {
      errno = EIO;
      return -1;
    }
    paceline::attach::AsyncNotice notice;
    const ssize_t got = ::read(c.notices.get(), &notice, sizeof(notice));
    if (got < 0) return -1;
    if (got == 0) return tell_fatal(c, *event);
    if (describe(c, notice, *event)) return 0;
  }
}

PACELINE_VERBS_EXPORT void ibv_ack_async_event(ibv_async_event* event) {
  using namespace paceline::verbs;
  switch (subject_of(event->event_type)) {
    case Subject::completion_queue: {
      ibv_cq& cq = *event->element.cq;
      acknowledge(cq.mutex, cq.cond, cq.async_events_completed);
      break;
    }
    case Subject::queue_pair: {
      ibv_qp& qp = *event->element.qp;
      acknowledge(qp.mutex, qp.cond, qp.events_completed);
      break;
    }
    case Subject::shared_receive_queue: {
      ibv_srq& srq = *event->element.srq;
      acknowledge(srq.mutex, srq.cond, srq.events_completed);
      break;
    }
    case Subject::port:
    case Subject::device:
      break;
  }
}
