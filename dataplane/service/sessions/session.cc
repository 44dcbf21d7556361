#include "dataplane/service/sessions/session.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "dataplane/attach/text.h"
#include "dataplane/base/text/printable.h"
#include "dataplane/service/limits/service_limits.h"
#include "dataplane/service/nics/port_counters.h"
#include "dataplane/service/sessions/refusals.h"

namespace paceline::service {

namespace {

// For requests that undo what they have done when memory ends. After others the session ends.
template <class Request>
Status unless_memory_ends(Request request) {
  try {
    return request();
  } catch (const std::bad_alloc&) {
    return {ENOMEM, "the service has no memory left"};
  }
}

}  // namespace

Session::Session(Service& service, cm::CmService& cm, Peer peer)
    : state_(service, std::move(peer)),
      cm_requests_(state_, cm),
      counted_(state_.tenant.tidy() &&
               descriptors_.take(state_.tenant.descriptors, kSessionDescriptors) &&
               state_.tenant.sessions.take()) {}

Session::~Session() {
  close();
  if (counted_) state_.tenant.sessions.give();
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
  if (status.error != 0) ++state_.tenant.refused[status.error];
  if (status.error == EDQUOT) status.error = ENOMEM;  // what libibverbs documents
  return status;
}

Status Session::dispatch(attach::Message& request, Reply& reply) {
  using attach::Operation;
  const Operation operation = request.header.operation;
  if (operation == Operation::hello) return hello(request, reply);
  if (!greeted_) return {EPROTO, "the first request is hello"};
  if (operation == Operation::list_nics) return list_nics(reply);
  if (operation == Operation::port_counters) return port_counters(request, reply);
  if (cm_requests_.opened()) {
    if (operation == Operation::cm_channel) return cm_requests_.channel(reply);
    if (operation == Operation::cm_command) return cm_requests_.command(request, reply);
    return {EPROTO, "this connection is for rdma_cm"};
  }
  if (operation == Operation::open_nic) return open_nic(request, reply);
  if (operation == Operation::open_cm && !opened_) return cm_requests_.open(request);
  if (!opened_) return {EPROTO, "no NIC is open"};
  // Addresses are those of the process that connected, not of one that inherited its connection.
  const bool memory = operation == Operation::share_memory ||
                      operation == Operation::register_region ||
                      operation == Operation::reregister_region;
  if (memory && request.sender != state_.peer.pid) {
    return not_who_connected(request.sender, state_.peer.pid);
  }
  switch (operation) {
    case Operation::query_port:
      return query_port(reply);
    case Operation::create_pd:
      return create_pd(reply);
    case Operation::destroy_pd:
      return end_unused(state_.pds, "protection domain", request);
    case Operation::share_memory:
      return {EPROTO, "share_memory comes with one descriptor"};  // take_memory()
    case Operation::register_region:
      return region_requests_.register_region(request, reply);
    case Operation::reregister_region:
      return region_requests_.reregister_region(request, reply);
    case Operation::deregister_region:
      return region_requests_.deregister_region(request, reply);
    case Operation::allocate_window:
      return region_requests_.allocate_window(request, reply);
    case Operation::free_window:
      return region_requests_.free_window(request);
    case Operation::create_channel:
      return create_channel(reply);
    case Operation::destroy_channel:
      return end_unused(state_.channels, "completion channel", request);
    case Operation::create_cq:
      return unless_memory_ends([&] { return queue_requests_.create_cq(request, reply); });
    case Operation::resize_cq:
      return queue_requests_.resize_cq(request, reply);
    case Operation::destroy_cq:
      return queue_requests_.destroy_cq(request);
    case Operation::open_domain:
      return unless_memory_ends([&] { return queue_requests_.open_domain(request, reply); });
    case Operation::close_domain:
      return end_unused(state_.domains, "XRC domain", request);
    case Operation::create_srq:
      return unless_memory_ends([&] { return queue_requests_.create_srq(request, reply); });
    case Operation::modify_srq:
      return queue_requests_.modify_srq(request, reply);
    case Operation::query_srq:
      return queue_requests_.query_srq(request, reply);
    case Operation::destroy_srq:
      return queue_requests_.destroy_srq(request);
    case Operation::create_qp:
      return unless_memory_ends([&] { return pair_requests_.create_qp(request, reply); });
    case Operation::open_qp:
      return unless_memory_ends([&] { return pair_requests_.open_qp(request, reply); });
    case Operation::modify_qp:
      return pair_requests_.modify_qp(request);
    case Operation::query_qp:
      return pair_requests_.query_qp(request, reply);
    case Operation::destroy_qp:
      return pair_requests_.destroy_qp(request, reply);
    case Operation::limit_rate:
      return pair_requests_.limit_rate(request);
    case Operation::attach_multicast:
    case Operation::detach_multicast:
      return {EOPNOTSUPP, "multicast is not offered"};
    case Operation::create_ah:
      return pair_requests_.create_ah(request, reply);
    case Operation::destroy_ah:
      return pair_requests_.destroy_ah(request);
    default:
      return {EPROTO, fmt::format("operation {} does not exist", static_cast<unsigned>(operation))};
  }
}

Status Session::hello(const attach::Message& request, Reply& reply) {
  if (greeted_) return {EPROTO, "hello was said"};
  greeted_ = true;
  // It is shown to the operator, in logs and in answers of the API.
  state_.program = printable(attach::text_of(request.as<attach::HelloRequest>().program));
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
  const std::vector<NicPlace> all = state_.service.nics();
  attach::NicList list;
  list.count = static_cast<std::uint32_t>(std::min(all.size(), kMost));
  reply.put(list);
  for (std::size_t i = 0; i < list.count; ++i) reply.put(state_.service.nic_info(all[i]));
  return {};
}

Status Session::port_counters(const attach::Message& request, Reply& reply) {
  NicPlace place;
  if (Status v = find_nic(request, place); v.error != 0) return v;
  ServiceWorker& worker = state_.service.worker(place.worker);
  telemetry::EngineCounters counters;
  const bool ran = worker.call(
      place.nic, [&](Picos) { counters = worker.nics().nic(place.nic).engine->counters(); });
  if (!ran) return worker_gone();
  const std::vector<attach::PortCounter> all = service::port_counters(counters);
  reply.put(attach::CounterList{static_cast<std::uint32_t>(all.size()), 0});
  for (const attach::PortCounter& counter : all) reply.put(counter);
  return {};
}

// The NIC that an OpenRequest names.
Status Session::find_nic(const attach::Message& request, NicPlace& out) const {
  const std::string name = attach::text_of(request.as<attach::OpenRequest>().nic);
  const auto place = state_.service.find_nic(name);
  if (!place) return {ENODEV, fmt::format("there is no NIC '{}'", name)};
  if (state_.service.gone(*place)) return {ENODEV, fmt::format("NIC {} was taken away", name)};
  out = *place;
  return {};
}

Status Session::open_nic(const attach::Message& request, Reply& reply) {
  if (opened_) return {EPROTO, "a NIC is open"};
  NicPlace place;
  if (Status v = find_nic(request, place); v.error != 0) return v;
  state_.place = place;
  if (!state_.bells.make("paceline-doorbells", sizeof(attach::DoorbellPage)) ||
      !state_.notices.make()) {
    return {errno, "doorbells or pipe"};
  }
  new (state_.bells.data()) attach::DoorbellPage;
  state_.wake.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!state_.wake || !state_.worker().watch(state_.wake.get())) return {errno, "eventfd"};
  ServiceWorker* const worker_of = &state_.worker();
  state_.memory = TenantMemory::make(state_.peer.program, [worker_of] { worker_of->wake(); });
  if (state_.memory == nullptr) return {ENOMEM, "the thread that copies could not be started"};

  WorkerSessionSetup setup;
  setup.nic = state_.place.nic;
  setup.engine = &state_.engine();
  setup.bells = reinterpret_cast<attach::DoorbellPage*>(state_.bells.data());
  setup.budget = state_.tenant.budgets[state_.place.worker].get();
  setup.memory = state_.memory.get();
  setup.pairs = &state_.worker().pairs(state_.place.nic);
  setup.notices = state_.notices.writing.get();
  state_.worker_session = std::make_unique<WorkerSession>(setup);
  if (!state_.on_worker([this](Picos) { state_.worker().add(*state_.worker_session); })) {
    return {EIO, "the worker has ended"};
  }
  opened_ = true;
  attach::OpenReply answer;
  answer.nic = state_.service.nic_info(state_.place);
  answer.session = state_.number;
  reply.put(answer);
  reply.descriptors = {state_.bells.descriptor(), state_.worker().page_descriptor(),
                       state_.wake.get(), state_.notices.reading.get()};
  return {};
}

Status Session::query_port(Reply& reply) {
  reply.put(state_.service.nic_info(state_.place));
  return {};
}

Status Session::create_pd(Reply& reply) {
  ProtectionDomain pd;
  if (!pd.place.take(state_.tenant.protection_domains, 1)) return over_quota("protection domains");
  pd.number = state_.service.next_pd();
  const std::uint32_t handle = state_.pds.next();
  state_.pds.insert(handle, std::move(pd));
  reply.put(attach::HandleBody{handle, 0});
  return {};
}

Status Session::create_channel(Reply& reply) {
  Channel channel;
  if (state_.channels.size() >= kMostChannels ||
      !channel.descriptors.take(state_.tenant.descriptors, kChannelDescriptors)) {
    return over_quota("completion channels, or descriptors");
  }
  if (!channel.pipe.make()) return {errno, "pipe"};
  const std::uint32_t handle = state_.channels.next();
  reply.descriptors = {state_.channels.insert(handle, std::move(channel)).pipe.reading.get()};
  reply.put(attach::HandleBody{handle, 0});
  return {};
}

TenantMemoryCounters Session::memory() const {
  return state_.memory == nullptr ? TenantMemoryCounters{} : state_.memory->counters();
}

// Queue pairs first: they use everything else. Then address handles, then queues, and at last the
// memory, when no packet can be made from it any more.
void Session::close() {
  if (state_.worker_session == nullptr) return;
  // Datagrams that were posted last get the turn that they would have had: between the two.
  for (int i = 0; i < 2; ++i) state_.on_worker([](Picos) {});
  state_.on_worker([this](Picos now) {
    state_.worker().remove(*state_.worker_session);
    transport::Engine& nic = state_.engine();
    for (auto& [handle, pair] : state_.pairs) {
      if (pair.domain != nullptr) {
        PairRequests::leave_target(state_, now, pair, true);
        continue;
      }
      // Peers need not find out by timeouts.
      nic.abandon_qp(now, pair.adapter->number());
      state_.memory->forget(pair.adapter->number());
      pair.adapter->count_lost();
      state_.worker().pairs(state_.place.nic).remove(pair.adapter->number());
    }
    for (const auto& [number, ah] : state_.handles) nic.destroy_address_handle(now, number);
    for (const std::uint32_t number : state_.leaving_handles)
      nic.destroy_address_handle(now, number);
    for (const auto& [handle, window] : state_.windows) nic.regions().remove_window(window.key);
    for (const auto& [handle, region] : state_.regions) nic.regions().remove(region.key);
    for (const auto& [handle, srq] : state_.srqs) {
      if (srq.domain != nullptr) nic.remove_domain_queue(now, srq.number);
    }
    // Targets of others that waited for this memory.
    for (const auto& [handle, domain] : state_.domains) {
      for (const auto& [number, target] : domain.domain->targets) nic.memory_ready(now, number);
    }
  });
  state_.worker().unwatch(state_.wake.get());
  for (const auto& [handle, region] : state_.regions)
    region_requests_.give_extents(region.length, region.mappings);
  state_.tenant.queue_pairs.give(state_.pairs.size());
  state_.tenant.address_handles.give(state_.handles.size() + state_.leaving_handles.size());
  state_.tenant.shared_receive_queues.give(state_.srqs.size());
  state_.tenant.completion_queues.give(state_.queues.size());
  state_.tenant.regions.give(state_.regions.size() + state_.windows.size());
  state_.pairs.clear();
  state_.handles.clear();
  state_.srqs.clear();
  state_.domains.clear();
  state_.queues.clear();
  state_.windows.clear();
  left_->regions = std::exchange(state_.regions, {});
  state_.pds.clear();
  state_.worker_session.reset();
  // Its pages may be many, and a copy of them may wait for ever.
  state_.memory->leave(state_.tenant.remains());
  left_->memory = std::exchange(state_.memory, nullptr);
  state_.service.aside().run(std::move(let_go_));
}

}  // namespace paceline::service
