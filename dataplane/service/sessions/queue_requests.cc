#include "dataplane/service/sessions/queue_requests.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "dataplane/base/undo.h"
#include "dataplane/service/sessions/refusals.h"

namespace paceline::service {

namespace {

// With the ring that the engine fills.
std::uint64_t bytes_of(attach::CompletionQueueShape shape) {
  return shape.bytes() + std::uint64_t{shape.slots} * sizeof(transport::Completion);
}

bool make_completion_memory(attach::SharedMemory& memory, attach::CompletionQueueShape shape) {
  if (!memory.make("paceline-cq", shape.bytes())) return false;
  new (memory.data()) attach::CompletionQueueHeader;
  return true;
}

}  // namespace

Status QueueRequests::create_cq(const attach::Message& request, Reply& reply) {
  const auto r = request.as<attach::CreateCqRequest>();
  const std::uint32_t most = state_.service.settings().limits.entries;
  if (r.entries == 0 || r.entries > most) return out_of_range("entries", r.entries, 1, most);
  Channel* const channel = state_.channels.find(r.channel);
  if (r.channel != 0 && channel == nullptr) return nothing_called("channel", r.channel);
  CompletionObject making;
  const attach::CompletionQueueShape shape{attach::power_of_two_from(r.entries)};
  if (Status v = state_.take_queue(making.share, bytes_of(shape)); v.error != 0) return v;
  if (!state_.tenant.completion_queues.take()) return over_quota("completion queues");
  Undo not_counted([&] { state_.tenant.completion_queues.give(); });
  const std::uint32_t handle = state_.queues.next();
  CompletionObject& queue = state_.queues.insert(handle, std::move(making));
  Undo no_queue([&] { state_.queues.erase(handle); });
  if (!make_completion_memory(queue.memory, shape)) return {ENOMEM, "shared memory"};
  queue.channel = channel;
  queue.adapter = std::make_unique<CompletionAdapter>(
      handle, shape, queue.memory.data(), channel == nullptr ? -1 : channel->pipe.writing.get(),
      r.cookie);
  reply.make_room(sizeof(attach::CqReply));
  if (!state_.on_worker([&](Picos) { state_.worker_session->add(*queue.adapter); }))
    return worker_gone();
  no_queue.keep();
  not_counted.keep();
  if (channel != nullptr) ++channel->uses;
  reply.put(attach::CqReply{handle, shape.slots});
  reply.descriptors.assign(1, queue.memory.descriptor());
  return {};
}

// A NIC sends posted requests at once; here they may wait for a turn of the worker. Requests posted
// before the queue shrinks count as if they had completed, so that they do not overrun it.
std::uint64_t QueueRequests::unfinished_sends(const CompletionAdapter& queue) {
  std::uint64_t count = 0;
  for (const auto& [handle, pair] : state_.pairs) {
    if (pair.adapter->sends_complete_to(queue)) count += pair.adapter->unfinished_sends();
  }
  return count;
}

Status QueueRequests::resize_cq(const attach::Message& request, Reply& reply) {
  const auto r = request.as<attach::ResizeCqRequest>();
  const std::uint32_t most = state_.service.settings().limits.entries;
  if (r.entries == 0 || r.entries > most) return out_of_range("entries", r.entries, 1, most);
  CompletionObject* const queue = state_.queues.find(r.handle);
  if (queue == nullptr) return nothing_called("completion queue", r.handle);
  const attach::CompletionQueueShape shape{attach::power_of_two_from(r.entries)};
  attach::SharedMemory memory;
  QueueShare share;
  if (Status v = state_.take_queue(share, bytes_of(shape)); v.error != 0) return v;
  if (!make_completion_memory(memory, shape)) return {ENOMEM, "shared memory"};
  bool fits = false;
  const bool ran = state_.on_worker([&](Picos) {
    state_.worker_session->settle();
    fits = shape.slots >= queue->adapter->slots() ||
           queue->adapter->waiting() + unfinished_sends(*queue->adapter) <= shape.slots;
    fits = fits && queue->adapter->resize(shape, memory.data());
  });
  if (!ran) return worker_gone();
  if (!fits)
    return {EINVAL,
            "more entries wait, or are due for sends, than would fit, or the queue has overrun"};
  queue->memory = std::move(memory);
  queue->share = std::move(share);
  reply.put(attach::CqReply{r.handle, shape.slots});
  reply.descriptors = {queue->memory.descriptor()};
  return {};
}

Status QueueRequests::destroy_cq(const attach::Message& request) {
  const std::uint32_t handle = request.as<attach::HandleBody>().handle;
  CompletionObject* const queue = state_.queues.find(handle);
  if (queue == nullptr) return nothing_called("completion queue", handle);
  if (queue->uses != 0) return {EBUSY, "queue pairs complete to this queue"};
  state_.on_worker([&](Picos) { state_.worker_session->remove(*queue->adapter); });
  if (queue->channel != nullptr) --queue->channel->uses;
  state_.queues.erase(handle);
  state_.tenant.completion_queues.give();
  return {};
}

Status QueueRequests::open_domain(const attach::Message& request, Reply& reply) {
  const auto r = request.as<attach::OpenDomainRequest>();
  const auto asks = [&](std::uint32_t flag) { return (r.flags & flag) != 0; };
  const DomainBook::File file{state_.peer.user, state_.place.worker, state_.place.nic, r.device,
                              r.inode};
  DomainBook& book = state_.service.domains();
  DomainObject object;
  if (asks(attach::domain_flag::file)) {
    object.domain = book.find(file);
    if (object.domain != nullptr && asks(attach::domain_flag::exclusive)) {
      return {EINVAL, "O_EXCL: the file has a domain"};
    }
    if (object.domain == nullptr && !asks(attach::domain_flag::create)) {
      return {EAGAIN, "the file has no domain, and O_CREAT is not given"};
    }
  }
  if (!object.place.take(state_.tenant.protection_domains, 1)) {
    return over_quota("protection domains");
  }
  if (object.domain == nullptr) {
    object.domain = asks(attach::domain_flag::file) ? book.make(file) : book.make();
  }
  const std::uint32_t handle = state_.domains.next();
  state_.domains.insert(handle, std::move(object));
  reply.put(attach::HandleBody{handle, 0});
  return {};
}

Status QueueRequests::find_domain(const attach::CreateSrqRequest& r, SharedReceiveObject& srq) {
  if (r.domain == 0) return {};
  srq.domain = state_.domains.find(r.domain);
  if (srq.domain == nullptr) return nothing_called("XRC domain", r.domain);
  srq.cq = state_.queues.find(r.cq);
  return srq.cq == nullptr ? nothing_called("completion queue", r.cq) : Status{};
}

// The engine gives an XRC queue a number; other queues get 0.
void QueueRequests::add_to_worker(SharedReceiveObject& srq) {
  if (srq.domain != nullptr) {
    transport::DomainQueue queue;
    queue.receives = &srq.receives->queue();
    queue.completions = &srq.cq->adapter->queue();
    queue.pd = srq.pd->number;
    queue.domain = srq.domain->domain->number;
    srq.cq->adapter->serve(*srq.receives);
    Undo not_served([&] { srq.cq->adapter->leave(*srq.receives); });
    state_.worker_session->add(*srq.receives, srq.bell);
    Undo not_known([&] { state_.worker_session->remove(*srq.receives, srq.bell); });
    srq.number = state_.engine().add_domain_queue(queue);
    if (srq.number == 0) return;
    srq.receives->set_number(srq.number);
    not_known.keep();
    not_served.keep();
    return;
  }
  state_.worker_session->add(*srq.receives, srq.bell);
}

Status QueueRequests::create_srq(const attach::Message& request, Reply& reply) {
  const auto r = request.as<attach::CreateSrqRequest>();
  const ObjectLimits& limits = state_.service.settings().limits;
  if (r.requests == 0 || r.requests > limits.requests) {
    return out_of_range("requests", r.requests, 1, limits.requests);
  }
  if (r.segments > limits.segments) return out_of_range("segments", r.segments, 0, limits.segments);
  ProtectionDomain* const pd = state_.pds.find(r.pd);
  if (pd == nullptr) return nothing_called("protection domain", r.pd);
  SharedReceiveObject making;
  if (Status v = find_domain(r, making); v.error != 0) return v;
  making.segments = std::max(1U, r.segments);
  const attach::WorkQueueShape shape = attach::receive_queue_shape(r.requests, making.segments);
  if (Status v = state_.take_queue(making.share, shape.bytes()); v.error != 0) return v;
  const auto bell = state_.take_bell();
  if (!bell) return over_quota("work queues of a session");
  Undo no_bell([&] { state_.give_bell(*bell); });
  if (!state_.tenant.shared_receive_queues.take()) return over_quota("shared receive queues");
  Undo not_counted([&] { state_.tenant.shared_receive_queues.give(); });
  making.requests = shape.slots;
  making.pd = pd;
  making.bell = *bell;
  const std::uint32_t handle = state_.srqs.next();
  SharedReceiveObject& srq = state_.srqs.insert(handle, std::move(making));
  Undo no_queue([&] { state_.srqs.erase(handle); });
  if (!srq.memory.make("paceline-srq", shape.bytes())) return {ENOMEM, "shared memory"};
  new (srq.memory.data()) attach::WorkQueueHeader;
  srq.receives = std::make_unique<SharedReceives>(handle, WorkQueueView(srq.memory.data(), shape),
                                                  srq.segments);
  attach::SrqReply answer;
  reply.make_room(sizeof answer);
  // The limit of a new queue is not armed (ibv_create_srq ignores it); modify_srq arms it.
  if (!state_.on_worker([&](Picos) { add_to_worker(srq); })) return worker_gone();
  if (srq.domain != nullptr && srq.number == 0) {
    return {ENOMEM, "numbers of shared receive queues have run out"};
  }
  no_queue.keep();
  not_counted.keep();
  no_bell.keep();
  ++pd->uses;
  if (srq.domain != nullptr) {
    ++srq.domain->uses;
    ++srq.cq->uses;
  }
  answer.handle = handle;
  answer.number = srq.domain != nullptr ? srq.number : handle;
  answer.doorbell = *bell;
  answer.slots = shape.slots;
  answer.stride = shape.stride;
  answer.requests = srq.requests;
  answer.segments = srq.segments;
  reply.put(answer);
  reply.descriptors.assign(1, srq.memory.descriptor());
  return {};
}

// With both changes, the limit applies to the new size, and neither is made without the other.
Status QueueRequests::modify_srq(const attach::Message& request, Reply& reply) {
  const auto r = request.as<attach::ModifySrqRequest>();
  SharedReceiveObject* const srq = state_.srqs.find(r.handle);
  if (srq == nullptr) return nothing_called("shared receive queue", r.handle);
  constexpr std::uint32_t kChanges = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;
  if (r.change == 0 || (r.change & ~kChanges) != 0) {
    return {EINVAL, fmt::format("srq_attr_mask = {:#x}", r.change)};
  }
  const bool resizes = (r.change & IBV_SRQ_MAX_WR) != 0;
  const bool arms = (r.change & IBV_SRQ_LIMIT) != 0;
  const std::uint32_t most = state_.service.settings().limits.requests;
  if (resizes && (r.requests == 0 || r.requests > most)) {
    return out_of_range("max_wr", r.requests, 1, most);
  }
  const attach::WorkQueueShape shape =
      resizes ? attach::receive_queue_shape(r.requests, srq->segments) : attach::WorkQueueShape{};
  const std::uint32_t size = resizes ? shape.slots : srq->requests;
  if (arms && r.limit > size) return out_of_range("srq_limit", r.limit, 0, size);
  attach::SharedMemory memory;
  QueueShare share;
  if (resizes) {
    if (Status v = state_.take_queue(share, shape.bytes()); v.error != 0) return v;
    if (!memory.make("paceline-srq", shape.bytes())) return {ENOMEM, "shared memory"};
    new (memory.data()) attach::WorkQueueHeader;
  }
  bool fits = true;
  const bool ran = state_.on_worker([&](Picos) {
    const std::uint32_t before = srq->receives->limit();
    if (arms) srq->receives->arm(r.limit);
    if (resizes) fits = srq->receives->resize(memory.data(), shape);
    if (!fits && arms) srq->receives->arm(before);
  });
  if (!ran) return worker_gone();
  if (!fits) return {EINVAL, "more requests wait, or the limit is higher, than would fit"};
  if (!resizes) return {};
  srq->memory = std::move(memory);
  srq->share = std::move(share);
  srq->requests = shape.slots;
  attach::SrqReply answer;
  answer.handle = r.handle;
  answer.number = srq->domain != nullptr ? srq->number : r.handle;
  answer.doorbell = srq->bell;
  answer.slots = answer.requests = shape.slots;
  answer.stride = shape.stride;
  answer.segments = srq->segments;
  reply.put(answer);
  reply.descriptors = {srq->memory.descriptor()};
  return {};
}

Status QueueRequests::query_srq(const attach::Message& request, Reply& reply) {
  const std::uint32_t handle = request.as<attach::HandleBody>().handle;
  const SharedReceiveObject* const srq = state_.srqs.find(handle);
  if (srq == nullptr) return nothing_called("shared receive queue", handle);
  attach::SrqReply answer;
  answer.handle = answer.number = handle;
  answer.doorbell = srq->bell;
  answer.requests = srq->requests;
  answer.segments = srq->segments;
  if (!state_.on_worker([&](Picos) { answer.limit = srq->receives->limit(); }))
    return worker_gone();
  reply.put(answer);
  return {};
}

Status QueueRequests::destroy_srq(const attach::Message& request) {
  const std::uint32_t handle = request.as<attach::HandleBody>().handle;
  SharedReceiveObject* const srq = state_.srqs.find(handle);
  if (srq == nullptr) return nothing_called("shared receive queue", handle);
  if (srq->uses != 0) return {EBUSY, "queue pairs receive from this queue"};
  state_.on_worker([&](Picos now) {
    if (srq->domain != nullptr) {
      state_.engine().remove_domain_queue(now, srq->number);
      srq->cq->adapter->leave(*srq->receives);
    }
    state_.worker_session->remove(*srq->receives, srq->bell);
  });
  state_.give_bell(srq->bell);
  --srq->pd->uses;
  if (srq->domain != nullptr) {
    --srq->domain->uses;
    --srq->cq->uses;
  }
  state_.srqs.erase(handle);
  state_.tenant.shared_receive_queues.give();
  return {};
}

}  // namespace paceline::service
