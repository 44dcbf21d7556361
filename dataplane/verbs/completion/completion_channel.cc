// Completion channels and their events.
//
// Events name queues by a cookie, never by an address: a queue that was destroyed while its event
// was in flight is not found, and the event is dropped as the kernel's would be.
#include "dataplane/verbs/completion/completion_channel.h"

#include <pthread.h>
#include <unistd.h>

#include <memory>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/completion/completion_queue.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/operations.h"

namespace paceline::verbs {

namespace {

ibv_comp_channel* make_channel(ibv_context* handle) {
  auto channel = std::make_unique<CompletionChannel>();
  attach::Message reply;
  const int error = Context::of(handle).session.ask(attach::Operation::create_channel,
                                                    attach::HandleBody{}, reply);
  if (error != 0) return refuse(error);
  if (reply.descriptors.size() != 1) return refuse(EPROTO);
  channel->pipe = std::move(reply.descriptors[0]);
  channel->handle = reply.as<attach::HandleBody>().handle;
  channel->channel.context = handle;
  channel->channel.fd = channel->pipe.get();
  return &channel.release()->channel;
}

// Counts an event that is handed out. The context's objects are held.
void report(CompletionQueue& queue) {
  ::pthread_mutex_lock(&queue.cq.mutex);
  ++queue.events_reported;
  ::pthread_mutex_unlock(&queue.cq.mutex);
}

CompletionQueue* by_cookie(Context& context, std::uint64_t cookie) {
  const std::lock_guard hold(context.objects);
  for (CompletionQueue* queue : context.completion_queues) {
    if (queue->cookie != cookie) continue;
    report(*queue);
    return queue;
  }
  return nullptr;
}

// The service is gone: every armed queue gets its event, and its owner finds the flushed requests.
CompletionQueue* next_armed(Context& context, const ibv_comp_channel* channel) {
  constexpr std::uint32_t kArmed =
      attach::completion_wanted::event | attach::completion_wanted::solicited;
  const std::lock_guard hold(context.objects);
  for (CompletionQueue* queue : context.completion_queues) {
    if (queue->cq.channel != channel) continue;
    if ((queue->ring()->wanted.value.fetch_and(~kArmed) & kArmed) == 0) continue;
    report(*queue);
    return queue;
  }
  return nullptr;
}

}  // namespace

int req_notify_cq(ibv_cq* cq, int solicited_only) noexcept {
  CompletionQueue& queue = CompletionQueue::of(cq);
  // After the service nothing comes: a program that waits for the next event as long as arming
  // works would be given one at once, for ever.
  if (!queue.context->usable()) return result(EIO);
  const std::lock_guard hold(queue.lock);  // a resize would lose it
  queue.ring()->wanted.value.fetch_or(
      solicited_only != 0 ? attach::completion_wanted::solicited : attach::completion_wanted::event,
      std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return 0;
}

}  // namespace paceline::verbs

using paceline::verbs::CompletionChannel;
using paceline::verbs::CompletionQueue;
using paceline::verbs::Context;

PACELINE_VERBS_EXPORT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return paceline::verbs::guarded(static_cast<ibv_comp_channel*>(nullptr),
                                  [&] { return paceline::verbs::make_channel(context); });
}

PACELINE_VERBS_EXPORT int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  using namespace paceline::verbs;
  Context& c = Context::of(channel->context);
  {
    const std::lock_guard hold(c.objects);
    if (channel->refcnt != 0) return result(EBUSY);
  }
  auto* const whole = reinterpret_cast<CompletionChannel*>(channel);
  const int error = guarded(ENOMEM, [&] {
    return c.session.drop(paceline::attach::Operation::destroy_channel, whole->handle);
  });
  if (error != 0 && error != EIO) return result(error);
  delete whole;
  return 0;
}

PACELINE_VERBS_EXPORT int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq,
                                           void** cq_context) {
  Context& c = Context::of(channel->context);
  CompletionQueue* queue = nullptr;
  // As long as the program has not closed it.
  const int pipe = reinterpret_cast<CompletionChannel*>(channel)->pipe.get();
  while (queue == nullptr) {
    if (c.presence.forked()) {
      errno = EIO;
      return -1;
    }
    paceline::attach::ChannelEvent event;
    const ssize_t got = ::read(pipe, &event, sizeof(event));
    if (got < 0) return -1;
    if (got == 0) {
      c.session.lost();
      queue = paceline::verbs::next_armed(c, channel);
      if (queue == nullptr) {
        errno = EIO;
        return -1;
      }
    } else {
      queue = paceline::verbs::by_cookie(c, event.cookie);
    }
  }
  *cq = queue->handle();
  *cq_context = queue->cq.cq_context;
  return 0;
}

PACELINE_VERBS_EXPORT void ibv_ack_cq_events(ibv_cq* cq, unsigned int nevents) {
  ::pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += nevents;
  ::pthread_cond_signal(&cq->cond);
  ::pthread_mutex_unlock(&cq->mutex);
}
