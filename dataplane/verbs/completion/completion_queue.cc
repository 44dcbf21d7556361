// Completion queues: made, resized, destroyed.
#include "dataplane/verbs/completion/completion_queue.h"

#include <pthread.h>

#include <memory>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/completion/completion_channel.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/operations.h"
#include "dataplane/verbs/regions/protection_domain.h"

namespace paceline::verbs {

namespace {

constexpr std::uint64_t kStandard = IBV_WC_STANDARD_FLAGS;
constexpr std::uint64_t kTimestamp = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;

// Maps what a reply brings. 0 or an errno.
int map_ring(CompletionQueue& queue, attach::Message& reply, const attach::CqReply& made) {
  if (reply.descriptors.size() != 1 || made.slots == 0 || (made.slots & (made.slots - 1)) != 0) {
    return EPROTO;
  }
  attach::SharedMemory memory;
  const attach::CompletionQueueShape shape{made.slots};
  if (!memory.open(std::move(reply.descriptors[0]), shape.bytes(), true)) return errno;
  memory.close_descriptor();
  queue.memory.reserve(queue.memory.size() + 1);
  queue.slots = made.slots;
  queue.header.store(reinterpret_cast<attach::CompletionQueueHeader*>(memory.data()),
                     std::memory_order_release);
  queue.memory.push_back(std::move(memory));
  return 0;
}

int entries_of(const CompletionQueue& queue) { return static_cast<int>(queue.slots); }

CompletionQueue* make_queue(ibv_context* handle, std::uint32_t entries, void* cq_context,
                            ibv_comp_channel* channel, std::uint32_t vector) {
  Context& c = Context::of(handle);
  if (entries == 0 || entries > c.nic.limits.entries) return refuse(EINVAL);
  if (vector >= static_cast<std::uint32_t>(handle->num_comp_vectors)) return refuse(EINVAL);
  if (channel != nullptr && channel->context != handle) return refuse(EINVAL);
  auto queue = std::make_unique<CompletionQueue>();
  queue->context = &c;
  {
    const std::lock_guard hold(c.objects);
    c.completion_queues.reserve(c.completion_queues.size() + 1);
    queue->cookie = c.next_cookie++;
  }
  attach::CreateCqRequest request;
  request.entries = entries;
  request.channel = channel == nullptr ? 0 : channel_handle(*channel);
  request.cookie = queue->cookie;
  attach::Message reply;
  int error = c.session.ask(attach::Operation::create_cq, request, reply);
  if (error != 0) return refuse(error);
  const auto made = reply.as<attach::CqReply>();
  error = map_ring(*queue, reply, made);
  if (error != 0) {
    c.session.drop(attach::Operation::destroy_cq, made.handle);
    return refuse(error);
  }
  ibv_cq_ex& cq = queue->cq;
  cq.context = handle;
  cq.channel = channel;
  cq.cq_context = cq_context;
  cq.handle = made.handle;
  cq.cqe = entries_of(*queue);
  ::pthread_mutex_init(&cq.mutex, nullptr);
  ::pthread_cond_init(&cq.cond, nullptr);
  const std::lock_guard hold(c.objects);
  if (channel != nullptr) ++channel->refcnt;
  c.completion_queues.push_back(queue.get());
  return queue.release();
}

ibv_cq_ex* make_extended(ibv_context* handle, const ibv_cq_init_attr_ex& attr) {
  constexpr std::uint32_t kMask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  if ((attr.comp_mask & ~kMask) != 0) return refuse(EOPNOTSUPP);
  if ((attr.wc_flags & ~(kStandard | kTimestamp)) != 0) return refuse(EOPNOTSUPP);
  std::uint32_t flags = 0;
  if ((attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0) flags = attr.flags;
  if ((flags & ~std::uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}) != 0) return refuse(EOPNOTSUPP);
  bool single = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
  if ((attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0) {
    if (attr.parent_domain == nullptr || attr.parent_domain->context != handle) {
      return refuse(EINVAL);
    }
    if (ProtectionDomain::of(attr.parent_domain).thread != nullptr) single = true;
  }
  CompletionQueue* const queue =
      make_queue(handle, attr.cqe, attr.cq_context, attr.channel, attr.comp_vector);
  if (queue == nullptr) return nullptr;
  queue->wc_flags = attr.wc_flags;
  set_poll_functions(queue->cq, attr.wc_flags, single);
  queue->single_threaded = single;
  return &queue->cq;
}

int resize(CompletionQueue& queue, std::uint32_t entries) {
  Context& c = *queue.context;
  if (entries == 0 || entries > c.nic.limits.entries) return EINVAL;
  // Held until the entries are in their new place: no thread may poll meanwhile.
  const std::lock_guard hold(queue.lock);
  const std::uint32_t waiting = queue.ring()->tail.value.load(std::memory_order_acquire) -
                                queue.head.load(std::memory_order_relaxed);
  if (waiting > entries) return EINVAL;
  attach::Message reply;
  const attach::ResizeCqRequest request{queue.cq.handle, entries};
  int error = c.session.ask(attach::Operation::resize_cq, request, reply);
  if (error != 0) return error;
  error = map_ring(queue, reply, reply.as<attach::CqReply>());
  if (error != 0) return error;
  queue.ring()->head.value.store(queue.head.load(std::memory_order_relaxed),
                                 std::memory_order_release);
  queue.cq.cqe = entries_of(queue);
  return 0;
}

void wait_for_acknowledgements(CompletionQueue& queue) {
  ibv_cq_ex& cq = queue.cq;
  ::pthread_mutex_lock(&cq.mutex);
  while (cq.comp_events_completed != queue.events_reported ||
         cq.async_events_completed != queue.async_reported) {
    ::pthread_cond_wait(&cq.cond, &cq.mutex);
  }
  ::pthread_mutex_unlock(&cq.mutex);
}

int destroy(CompletionQueue* queue) {
  Context& c = *queue->context;
  {
    // The service's lock, and ours: another thread may use the queue while it is destroyed.
    const std::lock_guard hold(queue->lock);
    if (queue->pairs.size() != 0) return EBUSY;
  }
  const int error = c.session.drop(attach::Operation::destroy_cq, queue->cq.handle);
  if (error != 0 && error != EIO) return error;
  {
    const std::lock_guard hold(c.objects);
    forget(c.completion_queues, queue);
    if (queue->cq.channel != nullptr) --queue->cq.channel->refcnt;
    const CompletionQueue* self = queue;
    c.last_polled.compare_exchange_strong(self, nullptr);
  }
  // No further event of it can be handed out; those that were must be acknowledged.
  if (!c.presence.forked()) wait_for_acknowledgements(*queue);
  ::pthread_cond_destroy(&queue->cq.cond);
  ::pthread_mutex_destroy(&queue->cq.mutex);
  delete queue;
  return 0;
}

}  // namespace

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) noexcept {
  return guarded(static_cast<ibv_cq_ex*>(nullptr), [&] { return make_extended(context, *attr); });
}

}  // namespace paceline::verbs

using paceline::verbs::CompletionQueue;

PACELINE_VERBS_EXPORT ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context,
                                            ibv_comp_channel* channel, int comp_vector) {
  using namespace paceline::verbs;
  if (cqe <= 0 || comp_vector < 0) return refuse(EINVAL);
  return guarded(static_cast<ibv_cq*>(nullptr), [&]() -> ibv_cq* {
    CompletionQueue* const queue = make_queue(context, static_cast<std::uint32_t>(cqe), cq_context,
                                              channel, static_cast<std::uint32_t>(comp_vector));
    return queue == nullptr ? nullptr : queue->handle();
  });
}

PACELINE_VERBS_EXPORT int ibv_resize_cq(ibv_cq* cq, int cqe) {
  using namespace paceline::verbs;
  if (cqe <= 0) return result(EINVAL);
  return result(guarded(
      ENOMEM, [&] { return resize(CompletionQueue::of(cq), static_cast<std::uint32_t>(cqe)); }));
}

PACELINE_VERBS_EXPORT int ibv_destroy_cq(ibv_cq* cq) {
  using namespace paceline::verbs;
  return result(guarded(ENOMEM, [&] { return destroy(&CompletionQueue::of(cq)); }));
}
