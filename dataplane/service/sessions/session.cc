#include "dataplane/service/sessions/session.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "dataplane/attach/text.h"
#include "dataplane/base/printable.h"
#include "dataplane/service/limits/service_limits.h"
#include "dataplane/service/sessions/refusals.h"

namespace paceline::service {

Session::Session(Service& service, Peer peer)
    : service_(service),
      tenant_(service.tenant(peer.user)),
      peer_(peer),
      number_(service.next_session()),
      counted_(tenant_.tidy() && descriptors_.take(tenant_.descriptors, kSessionDescriptors) &&
               tenant_.sessions.take()),
      bell_used_(attach::kDoorbells) {}

Session::~Session() {
  close();
  if (counted_) tenant_.sessions.give();
}

Status Session::handle(attach::Message& request, Reply& reply) {
  return counted(dispatch(request, reply));
}

Status Session::resume(Reply& reply) {
  const auto then = std::exchange(reply.then, nullptr);
  reply.aside = nullptr;
  return counted(then(reply));
}

Status Session::counted(Status status) {
  if (status.error != 0) ++tenant_.refused[status.error];
  if (status.error == EDQUOT) status.error = ENOMEM;  // what libibverbs documents
  return status;
}

Status Session::dispatch(attach::Message& request, Reply& reply) {
  using attach::Operation;
  const Operation operation = request.header.operation;
  if (operation == Operation::hello) return hello(request, reply);
  if (!greeted_) return {EPROTO, "the first request is hello"};
  if (operation == Operation::list_nics) return list_nics(reply);
  if (operation == Operation::open_nic) return open_nic(request, reply);
  if (!opened_) return {EPROTO, "no NIC is open"};
  // Addresses are those of the process that connected, not of one that inherited its connection.
  const bool memory = operation == Operation::share_memory ||
                      operation == Operation::register_region ||
                      operation == Operation::reregister_region;
  if (memory && request.sender != peer_.pid) {
    return not_who_connected(request.sender, peer_.pid);
  }
  switch (operation) {
    case Operation::query_port:
      return query_port(reply);
    case Operation::create_pd:
      return create_pd(reply);
    case Operation::destroy_pd:
      return destroy_pd(request);
    case Operation::share_memory:
      return {EPROTO, "share_memory comes with one descriptor"};  // take_memory()
    case Operation::register_region:
      return register_region(request, reply);
    case Operation::reregister_region:
      return reregister_region(request, reply);
    case Operation::deregister_region:
      return deregister_region(request, reply);
    case Operation::allocate_window:
      return allocate_window(request, reply);
    case Operation::free_window:
      return free_window(request);
    case Operation::create_channel:
      return create_channel(reply);
    case Operation::destroy_channel:
      return destroy_channel(request);
    case Operation::create_cq:
      return create_cq(request, reply);
    case Operation::resize_cq:
      return resize_cq(request, reply);
    case Operation::destroy_cq:
      return destroy_cq(request);
    case Operation::create_srq:
      return create_srq(request, reply);
    case Operation::modify_srq:
      return modify_srq(request);
    case Operation::query_srq:
      return query_srq(request, reply);
    case Operation::destroy_srq:
      return destroy_srq(request);
    case Operation::create_qp:
      return create_qp(request, reply);
    case Operation::modify_qp:
      return modify_qp(request);
    case Operation::query_qp:
      return query_qp(request, reply);
    case Operation::destroy_qp:
      return destroy_qp(request, reply);
    case Operation::limit_rate:
      return limit_rate(request);
    case Operation::attach_multicast:
    case Operation::detach_multicast:
      return {EOPNOTSUPP, "multicast is not offered"};
    case Operation::create_ah:
      return create_ah(request, reply);
    case Operation::destroy_ah:
      return destroy_ah(request);
    default:
      return {EPROTO, fmt::format("operation {} does not exist", static_cast<unsigned>(operation))};
  }
}

Status Session::hello(const Message& request, Reply& reply) {
  if (greeted_) return {EPROTO, "hello was said"};
  greeted_ = true;
  // It is shown to the operator, in logs and in answers of the API.
  program_ = printable(attach::text_of(request.as<attach::HelloRequest>().program));
  attach::HelloReply answer;
  answer.service_pid = static_cast<std::uint32_t>(::getpid());
  attach::put_text(answer.version, PACELINE_VERSION);
  reply.put(answer);
  return {};
}

Status Session::list_nics(Reply& reply) {
  // As many as one message holds.
  constexpr std::size_t kMost =
      (attach::kMaxMessage - sizeof(attach::Header) - sizeof(attach::NicList)) /
      sizeof(attach::NicInfo);
  const std::vector<NicPlace> all = service_.nics();
  attach::NicList list;
  list.count = static_cast<std::uint32_t>(std::min(all.size(), kMost));
  reply.put(list);
  for (std::size_t i = 0; i < list.count; ++i) reply.put(service_.nic_info(all[i]));
  return {};
}

Status Session::open_nic(const Message& request, Reply& reply) {
  if (opened_) return {EPROTO, "a NIC is open"};
  const std::string name = attach::text_of(request.as<attach::OpenRequest>().nic);
  const auto place = service_.find_nic(name);
  if (!place) return {ENODEV, fmt::format("there is no NIC '{}'", name)};
  place_ = *place;
  if (!bells_.make("paceline-doorbells", sizeof(attach::DoorbellPage)) || !notices_.make()) {
    return {errno, "doorbells or pipe"};
  }
  new (bells_.data()) attach::DoorbellPage;
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_ || !worker().watch(wake_.get())) return {errno, "eventfd"};
  ServiceWorker* const worker_of = &worker();
  memory_ = TenantMemory::make(peer_.program, [worker_of] { worker_of->wake(); });
  if (memory_ == nullptr) return {ENOMEM, "the thread that copies could not be started"};

  WorkerSessionSetup setup;
  setup.nic = place_.nic;
  setup.engine = &engine();
  setup.bells = reinterpret_cast<attach::DoorbellPage*>(bells_.data());
  setup.budget = tenant_.budgets[place_.worker].get();
  setup.memory = memory_.get();
  setup.pairs = &worker().pairs(place_.nic);
  setup.notices = notices_.writing.get();
  worker_session_ = std::make_unique<WorkerSession>(setup);
  if (!on_worker([this](Picos) { worker().add(*worker_session_); })) {
    return {EIO, "the worker has ended"};
  }
  opened_ = true;
  attach::OpenReply answer;
  answer.nic = service_.nic_info(place_);
  answer.session = number_;
  reply.put(answer);
  reply.descriptors = {bells_.descriptor(), worker().page_descriptor(), wake_.get(),
                       notices_.reading.get()};
  return {};
}

Status Session::query_port(Reply& reply) {
  reply.put(service_.nic_info(place_));
  return {};
}

Status Session::create_pd(Reply& reply) {
  if (!tenant_.protection_domains.take()) return {EDQUOT, "protection domains"};
  const std::uint32_t handle = pds_.next();
  pds_.insert(handle, {service_.next_pd(), 0});
  reply.put(attach::HandleBody{handle, 0});
  return {};
}

Status Session::destroy_pd(const Message& request) {
  const std::uint32_t handle = request.as<attach::HandleBody>().handle;
  const ProtectionDomain* const pd = pds_.find(handle);
  if (pd == nullptr) return nothing_called("protection domain", handle);
  if (pd->uses != 0) return {EBUSY, "the protection domain is in use"};
  pds_.erase(handle);
  tenant_.protection_domains.give();
  return {};
}

Status Session::create_channel(Reply& reply) {
  Channel channel;
  if (channels_.size() >= kMostChannels ||
      !channel.descriptors.take(tenant_.descriptors, kChannelDescriptors)) {
    return over_quota("completion channels, or descriptors");
  }
  if (!channel.pipe.make()) return {errno, "pipe"};
  const std::uint32_t handle = channels_.next();
  reply.descriptors = {channels_.insert(handle, std::move(channel)).pipe.reading.get()};
  reply.put(attach::HandleBody{handle, 0});
  return {};
}

Status Session::destroy_channel(const Message& request) {
  const std::uint32_t handle = request.as<attach::HandleBody>().handle;
  const Channel* const channel = channels_.find(handle);
  if (channel == nullptr) return nothing_called("completion channel", handle);
  if (channel->uses != 0) return {EBUSY, "the completion channel is in use"};
  channels_.erase(handle);
  return {};
}

TenantMemoryCounters Session::memory() const {
  return memory_ == nullptr ? TenantMemoryCounters{} : memory_->counters();
}

Status Session::take_queue(QueueShare& share, std::uint64_t bytes) {
  if (!share.bytes.take(tenant_.queue_bytes, bytes)) {
    return out_of_queue_memory(tenant_.queue_bytes);
  }
  if (!share.descriptor.take(tenant_.descriptors, 1)) return over_quota("descriptors");
  return {};
}

std::optional<std::uint32_t> Session::take_bell() {
  const auto at = std::find(bell_used_.begin(), bell_used_.end(), false);
  if (at == bell_used_.end()) return std::nullopt;
  *at = true;
  return static_cast<std::uint32_t>(at - bell_used_.begin());
}

void Session::give_bell(std::uint32_t bell) { bell_used_[bell] = false; }

// Queue pairs first: they use everything else. Then what datagrams are sent with, what they were
// received into, and at last the memory, when no packet can be made of it any more.
void Session::close() {
  if (worker_session_ == nullptr) return;
  // Datagrams that were posted last get the turn that they would have had: between the two.
  for (int i = 0; i < 2; ++i) on_worker([](Picos) {});
  on_worker([this](Picos now) {
    worker().remove(*worker_session_);
    transport::Engine& nic = engine();
    for (auto& [handle, pair] : pairs_) {
      // Peers need not find out by timeouts.
      nic.abandon_qp(now, pair.adapter->number());
      memory_->forget(pair.adapter->number());
      pair.adapter->count_lost();
      worker().pairs(place_.nic).remove(pair.adapter->number());
    }
    for (const auto& [number, ah] : handles_) nic.destroy_address_handle(now, number);
    for (const std::uint32_t number : leaving_handles_) nic.destroy_address_handle(now, number);
    for (const auto& [handle, window] : windows_) nic.regions().remove_window(window.key);
    for (const auto& [handle, region] : regions_) nic.regions().remove(region.key);
  });
  worker().unwatch(wake_.get());
  auto left = std::make_shared<std::vector<std::unique_ptr<RegionMemory>>>();
  for (auto& [handle, region] : regions_) {
    left->push_back(std::move(region.memory));
    give_extents(region.length, region.mappings);
  }
  tenant_.queue_pairs.give(pairs_.size());
  tenant_.address_handles.give(handles_.size() + leaving_handles_.size());
  tenant_.shared_receive_queues.give(srqs_.size());
  tenant_.completion_queues.give(queues_.size());
  tenant_.regions.give(regions_.size() + windows_.size());
  tenant_.protection_domains.give(pds_.size());
  pairs_.clear();
  handles_.clear();
  srqs_.clear();
  queues_.clear();
  windows_.clear();
  regions_.clear();
  pds_.clear();
  worker_session_.reset();
  // Its pages may be many, and a copy of them may wait for ever.
  memory_->leave(tenant_.remains());
  service_.aside().run([left, memory = std::exchange(memory_, nullptr)]() mutable {
    for (auto& region : *left) memory->abandon(std::move(region));
  });
}

}  // namespace paceline::service
