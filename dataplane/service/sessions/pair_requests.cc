#include "dataplane/service/sessions/pair_requests.h"

#include <infiniband/verbs.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "dataplane/base/undo.h"
#include "dataplane/service/adapters/qp_values.h"
#include "dataplane/service/sessions/refusals.h"

namespace paceline::service {

namespace {

std::optional<transport::QpType> pair_type(attach::PairType type) {
  switch (type) {
    case attach::PairType::rc:
      return transport::QpType::rc;
    case attach::PairType::uc:
      return transport::QpType::uc;
    case attach::PairType::ud:
      return transport::QpType::ud;
    case attach::PairType::xrc_send:
      return transport::QpType::xrc_initiator;
    case attach::PairType::xrc_receive:
      return transport::QpType::xrc_target;
  }
  return std::nullopt;
}

constexpr Rate rate_of(std::uint32_t kbps) { return {std::uint64_t{kbps} * 1000}; }

Status check_sizes(const attach::CreateQpRequest& r, const ObjectLimits& limits) {
  const struct {
    const char* name;
    std::uint32_t value;
    std::uint32_t most;
  } rules[] = {
      {"max_send_wr", r.send_requests, limits.requests},
      {"max_recv_wr", r.receive_requests, limits.requests},
      {"max_send_sge", r.send_segments, limits.segments},
      {"max_recv_sge", r.receive_segments, limits.segments},
      {"max_inline_data", r.inline_bytes, limits.inline_bytes},
  };
  for (const auto& rule : rules) {
    if (rule.value > rule.most) return out_of_range(rule.name, rule.value, 0, rule.most);
  }
  return {};
}

}  // namespace

Status PairRequests::find_queues(const attach::CreateQpRequest& r, PairObject& pair) {
  pair.pd = state_.pds.find(r.pd);
  if (pair.pd == nullptr) return nothing_called("protection domain", r.pd);
  pair.send_cq = state_.queues.find(r.send_cq);
  if (pair.send_cq == nullptr) return nothing_called("completion queue", r.send_cq);
  if (r.type == attach::PairType::xrc_send) return {};  // it receives nothing
  pair.receive_cq = state_.queues.find(r.receive_cq);
  if (pair.receive_cq == nullptr) return nothing_called("completion queue", r.receive_cq);
  if (r.srq == 0) return {};
  pair.srq = state_.srqs.find(r.srq);
  if (pair.srq == nullptr) return nothing_called("shared receive queue", r.srq);
  if (pair.srq->pd != pair.pd) return {EINVAL, "the shared receive queue is of another pd"};
  if (pair.srq->domain != nullptr) return {EINVAL, "the shared receive queue is of an XRC domain"};
  if (r.type == attach::PairType::uc) return {EINVAL, "UC has receive queues of its own only"};
  return {};
}

// `join` adds what a queue pair of its kind needs besides; it may throw.
template <class Join>
Status PairRequests::make_in_engine(PairObject& pair, const transport::QpConfig& config,
                                    Join join) {
  std::uint32_t number = 0;
  const bool ran = state_.on_worker([&](Picos now) {
    number = state_.engine().create_qp(config);
    if (number == 0) return;
    PairTable& pairs = state_.worker().pairs(state_.place.nic);
    Undo not_known([&] {
      pairs.remove(number);
      state_.engine().destroy_qp(now, number);
    });
    pair.adapter->set_number(number);
    pairs.add(number, pair.adapter.get());
    join(number);
    not_known.keep();
  });
  if (!ran) return worker_gone();
  if (number == 0) return {ENOMEM, "queue pair numbers have run out"};
  return {};
}

Status PairRequests::create_qp(const attach::Message& request, Reply& reply) {
  const auto r = request.as<attach::CreateQpRequest>();
  const auto type = pair_type(r.type);
  if (!type) return {EOPNOTSUPP, "qp_type: RC, UC, UD and XRC are offered"};
  if (*type == transport::QpType::xrc_target) return create_target(r, reply);
  if (Status v = check_sizes(r, state_.service.settings().limits); v.error != 0) return v;
  PairObject making;
  making.type = r.type;
  if (Status v = find_queues(r, making); v.error != 0) return v;
  const bool receives = making.receive_cq != nullptr && making.srq == nullptr;  // by itself
  const std::uint32_t send_segments = std::max(1U, r.send_segments);
  const std::uint32_t receive_segments = std::max(1U, r.receive_segments);
  const attach::WorkQueueShape send =
      attach::send_queue_shape(std::max(1U, r.send_requests), send_segments, r.inline_bytes);
  attach::WorkQueueShape receive{};
  std::size_t bytes = send.bytes();
  if (receives) {
    receive = attach::receive_queue_shape(std::max(1U, r.receive_requests), receive_segments);
    bytes += receive.bytes();
  }
  transport::QpConfig config;
  config.type = *type;
  config.pd = making.pd->number;
  config.access = 0;
  config.max_send_segments = static_cast<std::uint8_t>(send_segments);
  config.send_queue_depth = static_cast<std::uint16_t>(send.slots);
  config.max_inline = static_cast<std::uint16_t>(r.inline_bytes);
  if (Status v = state_.take_queue(
          making.share, bytes + PairAdapter::bytes_for(send) + transport::queue_pair_bytes(config));
      v.error != 0) {
    return v;
  }
  const auto bell = state_.take_bell();
  if (!bell) return over_quota("work queues of a session");
  Undo no_bell([&] { state_.give_bell(*bell); });
  if (!state_.tenant.queue_pairs.take()) return over_quota("queue pairs");
  Undo not_counted([&] { state_.tenant.queue_pairs.give(); });
  const std::uint32_t handle = state_.pairs.next();
  PairObject& pair = state_.pairs.insert(handle, std::move(making));
  Undo no_pair([&] { state_.pairs.erase(handle); });
  pair.bell = *bell;
  if (!pair.memory.make("paceline-qp", bytes)) return {ENOMEM, "shared memory"};
  std::byte* const at = pair.memory.data();
  new (at) attach::WorkQueueHeader;
  if (receives) {
    new (at + send.bytes()) attach::WorkQueueHeader;
    pair.receives =
        std::make_unique<OwnReceives>(WorkQueueView(at + send.bytes(), receive), receive_segments);
  }
  PairAdapter::Setup setup;
  setup.engine = &state_.engine();
  setup.pairs = &state_.worker().pairs(state_.place.nic);
  setup.handle = handle;
  setup.pd = pair.pd->number;
  setup.type = config.type;
  setup.max_segments = send_segments;
  setup.max_inline = r.inline_bytes;
  setup.send_cq = pair.send_cq->adapter.get();
  setup.receive_cq = pair.receive_cq == nullptr ? nullptr : pair.receive_cq->adapter.get();
  setup.send = WorkQueueView(at, send);
  setup.receives = pair.receives.get();
  setup.shared = pair.srq == nullptr ? nullptr : pair.srq->receives.get();
  setup.notices = state_.notices.writing.get();
  setup.meter = &state_.worker().meter(state_.place.nic);
  setup.user = state_.peer.user;
  setup.pid = static_cast<std::uint32_t>(state_.peer.pid);
  pair.adapter = std::make_shared<PairAdapter>(setup);

  config.send_cq = &pair.send_cq->adapter->queue();
  if (pair.receive_cq != nullptr) {
    config.receive_cq = &pair.receive_cq->adapter->queue();
    config.receive_queue = receives ? &pair.receives->queue() : &pair.srq->receives->queue();
  }
  attach::CreateQpReply answer;
  reply.make_room(sizeof answer);
  Status made = make_in_engine(
      pair, config, [&](std::uint32_t) { state_.worker_session->add(*pair.adapter, *bell); });
  if (made.error != 0) return made;
  no_pair.keep();
  not_counted.keep();
  no_bell.keep();
  ++pair.pd->uses;
  ++pair.send_cq->uses;
  if (pair.receive_cq != nullptr) ++pair.receive_cq->uses;
  if (pair.srq != nullptr) ++pair.srq->uses;
  pair.values.handle = handle;

  answer.handle = handle;
  answer.qp_number = pair.adapter->number();
  answer.doorbell = *bell;
  answer.send_slots = answer.send_requests = send.slots;
  answer.send_stride = send.stride;
  answer.send_segments = send_segments;
  answer.inline_bytes = r.inline_bytes;
  if (receives) {
    answer.receive_slots = answer.receive_requests = receive.slots;
    answer.receive_stride = receive.stride;
    answer.receive_offset = static_cast<std::uint32_t>(send.bytes());
    answer.receive_segments = receive_segments;
  }
  reply.put(answer);
  reply.descriptors.assign(1, pair.memory.descriptor());
  return {};
}

Status PairRequests::create_target(const attach::CreateQpRequest& r, Reply& reply) {
  PairObject making;
  making.type = r.type;
  making.domain = state_.domains.find(r.domain);
  if (making.domain == nullptr) return nothing_called("XRC domain", r.domain);
  transport::QpConfig config;
  config.type = transport::QpType::xrc_target;
  config.domain = making.domain->domain->number;
  config.access = 0;
  config.send_queue_depth = 1;
  if (!making.share.bytes.take(state_.tenant.queue_bytes, transport::queue_pair_bytes(config))) {
    return out_of_queue_memory(state_.tenant.queue_bytes);
  }
  if (!state_.tenant.queue_pairs.take()) return over_quota("queue pairs");
  Undo not_counted([&] { state_.tenant.queue_pairs.give(); });
  const std::uint32_t handle = state_.pairs.next();
  PairAdapter::Setup setup;
  setup.engine = &state_.engine();
  setup.handle = handle;
  setup.type = config.type;
  setup.user = state_.peer.user;
  setup.pid = static_cast<std::uint32_t>(state_.peer.pid);
  making.adapter = std::make_shared<PairAdapter>(setup);
  making.values.handle = handle;
  PairObject& pair = state_.pairs.insert(handle, std::move(making));
  Undo no_pair([&] { state_.pairs.erase(handle); });
  reply.make_room(sizeof(attach::CreateQpReply));
  auto& targets = pair.domain->domain->targets;
  std::erase_if(targets, [](const auto& entry) { return entry.second.expired(); });
  Status made = make_in_engine(pair, config, [&](std::uint32_t number) {
    pair.adapter->add_listener(state_.notices.writing.get(), handle);
    targets[number] = pair.adapter;
  });
  if (made.error != 0) return made;
  no_pair.keep();
  not_counted.keep();
  ++pair.domain->uses;
  attach::CreateQpReply answer;
  answer.handle = handle;
  answer.qp_number = pair.adapter->number();
  reply.put(answer);
  return {};
}

Status PairRequests::open_qp(const attach::Message& request, Reply& reply) {
  const auto r = request.as<attach::OpenQpRequest>();
  PairObject making;
  making.type = attach::PairType::xrc_receive;
  making.domain = state_.domains.find(r.domain);
  if (making.domain == nullptr) return nothing_called("XRC domain", r.domain);
  const auto& targets = making.domain->domain->targets;
  if (const auto at = targets.find(r.qp_number); at != targets.end()) {
    making.adapter = at->second.lock();
  }
  if (making.adapter == nullptr) {
    return nothing_called("XRC queue pair for receiving with the number", r.qp_number);
  }
  if (!state_.tenant.queue_pairs.take()) return over_quota("queue pairs");
  Undo not_counted([&] { state_.tenant.queue_pairs.give(); });
  const std::uint32_t handle = state_.pairs.next();
  making.values.handle = handle;
  reply.make_room(sizeof(attach::CreateQpReply));
  PairObject& pair = state_.pairs.insert(handle, std::move(making));
  Undo no_pair([&] { state_.pairs.erase(handle); });
  const bool ran = state_.on_worker(
      [&](Picos) { pair.adapter->add_listener(state_.notices.writing.get(), handle); });
  if (!ran) return worker_gone();
  no_pair.keep();
  not_counted.keep();
  ++pair.domain->uses;
  attach::CreateQpReply answer;
  answer.handle = handle;
  answer.qp_number = r.qp_number;
  reply.put(answer);
  return {};
}

Status PairRequests::path_of(const attach::AddressVector& from, std::uint32_t local_qp,
                             std::uint32_t remote_qp, transport::QpPath& path) const {
  const attach::NicInfo& nic = state_.nics().nic(state_.place.nic).info;
  if (!attach::has_port(nic, from.port)) {
    return out_of_range("ah_attr.port_num", from.port, 1, attach::ports_of(nic));
  }
  std::optional<transport::QpPath> found;
  if (from.global != 0) {
    if (from.source_gid >= nic.gids.size() ||
        nic.gid_kinds[from.source_gid] == attach::GidKind::none) {
      return {EINVAL, fmt::format("sgid_index = {}: there is no such GID", from.source_gid)};
    }
    wire::IpAddress to;
    to.bytes = from.destination;
    found = state_.nics().path_to(state_.place.nic, to);
    if (!found) {
      return {EHOSTUNREACH, fmt::format("no path to {}", wire::to_text(to))};
    }
  } else {
    found = state_.nics().path_to_local(state_.place.nic, from.destination_id);
    if (!found) {
      return {EHOSTUNREACH, fmt::format("dlid = {}: no NIC of this service", from.destination_id)};
    }
  }
  const wire::IpAddress own{attach::gid_of(nic, from.port, 0)};
  if (nic.more_ports != 0 && wire::subnet_of(found->ip) != wire::subnet_of(own)) {
    return {EHOSTUNREACH, fmt::format("no path from port {}, which has the address {}, to {}",
                                      from.port, wire::to_text(own), wire::to_text(found->ip))};
  }
  path = *found;
  path.source_port = source_port_of(from.global != 0 ? from.flow_label : 0, local_qp, remote_qp);
  const auto collision = state_.service.faults().collision(
      FaultBook::steady_now(), std::uint64_t{local_qp} << 32U | remote_qp);
  if (collision) {
    path.source_port =
        state_.nics().port_past(*collision, state_.place.nic, path.ip, path.source_port);
  }
  const auto traffic_class = traffic_class_of(from);
  if (traffic_class) {
    // The topmost class is the transport's own.
    if (*traffic_class >= kControlClass) {
      return {EINVAL, fmt::format("service level or DSCP: class {}; data may use 0 to {}",
                                  *traffic_class, kControlClass - 1)};
    }
    path.traffic_class = *traffic_class;
  }
  return {};
}

Status PairRequests::modify_qp(const attach::Message& request) {
  const auto asked = request.as<attach::QpValues>();
  PairObject* const pair = state_.pairs.find(asked.handle);
  if (pair == nullptr) return nothing_called("queue pair", asked.handle);
  std::string why;
  auto change = change_from(
      asked, static_cast<std::uint8_t>(state_.service.settings().limits.rd_atomic), why);
  if (!change) return {EINVAL, why};
  if ((change->mask & transport::qp_attribute::path) != 0) {
    const std::uint32_t remote =
        (asked.mask & IBV_QP_DEST_QPN) != 0 ? asked.dest_qp : pair->values.dest_qp;
    Status v = path_of(asked.path, pair->adapter->number(), remote, change->attributes.path);
    if (v.error != 0) return v;
  }
  const auto static_rate = static_rate_of(asked.path.static_rate);
  const bool sets_path = (asked.mask & IBV_QP_AV) != 0 && pair->type != attach::PairType::ud;
  if (sets_path && !static_rate) {
    return {EINVAL,
            fmt::format("static_rate = {}: no number of enum ibv_rate", asked.path.static_rate)};
  }
  if (sets_path && pair->values.port != 0 && asked.path.port != pair->values.port) {
    return {EINVAL, fmt::format("ah_attr.port_num = {}: the queue pair is at port {}",
                                asked.path.port, pair->values.port)};
  }
  transport::ModifyResult result;
  const bool to_reset = (asked.mask & IBV_QP_STATE) != 0 && asked.state == IBV_QPS_RESET;
  const bool ran = state_.on_worker([&](Picos now) {
    result =
        state_.engine().modify_qp(now, pair->adapter->number(), change->attributes, change->mask);
    if (!result.ok()) return;
    if (to_reset) {
      pair->adapter->forget();
      state_.memory->forget(pair->adapter->number());
    }
    if (sets_path) state_.engine().limit_rate(now, pair->adapter->number(), *static_rate, 0);
    if (change->limit_rate) {
      state_.engine().limit_rate(now, pair->adapter->number(), rate_of(asked.rate_limit_kbps), 0);
    }
    if (pair->domain == nullptr) state_.worker_session->retry(pair->bell);
  });
  if (!ran) return worker_gone();
  if (!result.ok()) {
    return {EINVAL,
            fmt::format("{} {}", transport::to_string(result.error),
                        result.attribute == 0 ? "" : transport::attribute_name(result.attribute))};
  }
  remember(pair->values, asked);
  return {};
}

Status PairRequests::query_qp(const attach::Message& request, Reply& reply) {
  const std::uint32_t handle = request.as<attach::HandleBody>().handle;
  const PairObject* const pair = state_.pairs.find(handle);
  if (pair == nullptr) return nothing_called("queue pair", handle);
  std::optional<transport::QpAttributes> attributes;
  state_.on_worker([&](Picos) { attributes = state_.engine().query_qp(pair->adapter->number()); });
  if (!attributes) return worker_gone();
  reply.put(values_of(pair->values, *attributes));
  return {};
}

bool PairRequests::sending(const PairObject& pair) {
  bool any = false;
  if (pair.type != attach::PairType::uc && pair.type != attach::PairType::ud) return false;
  state_.on_worker([&](Picos) { any = pair.adapter->unfinished_sends() != 0; });
  return any;
}

void PairRequests::leave_target(SessionState& state, Picos now, PairObject& pair, bool abandoned) {
  const std::uint32_t number = pair.adapter->number();
  pair.adapter->remove_listener(state.notices.writing.get(), pair.values.handle);
  if (pair.adapter.use_count() == 1) {
    abandoned ? state.engine().abandon_qp(now, number) : state.engine().destroy_qp(now, number);
    state.worker().pairs(state.place.nic).remove(number);
    state.memory->forget(number);
  }
  pair.adapter.reset();
}

// Afterwards the worker has no reference to it, and no object counts it.
void PairRequests::release(PairObject& pair) {
  if (pair.domain != nullptr) {
    state_.on_worker([&](Picos now) { leave_target(state_, now, pair, false); });
    --pair.domain->uses;
    return;
  }
  state_.on_worker([&](Picos now) {
    state_.worker_session->remove(*pair.adapter, pair.bell);
    state_.engine().destroy_qp(now, pair.adapter->number());
    state_.memory->forget(pair.adapter->number());
    pair.adapter->count_lost();
    // Its completions are dropped: no program can take them.
    state_.worker().pairs(state_.place.nic).remove(pair.adapter->number());
    state_.worker_session->settle();
  });
  state_.give_bell(pair.bell);
  --pair.pd->uses;
  --pair.send_cq->uses;
  if (pair.receive_cq != nullptr) --pair.receive_cq->uses;
  if (pair.srq != nullptr) --pair.srq->uses;
}

// A NIC sends a datagram at once; here the worker takes it in its next turn. A datagram posted just
// before its queue pair is destroyed would be lost, and with it the last acknowledgement of a
// protocol that builds reliability on datagrams. The wait is bounded, and delays no other session.
Status PairRequests::destroy_sent(std::uint32_t handle, int looks, Reply& reply) {
  PairObject* const pair = state_.pairs.find(handle);
  if (pair == nullptr) return nothing_called("queue pair", handle);
  if (looks > 0 && sending(*pair)) {
    reply.aside = [] {
      const timespec pause{0, 50'000};
      ::nanosleep(&pause, nullptr);
    };
    reply.then = [this, handle, looks](Reply& answer) {
      return destroy_sent(handle, looks - 1, answer);
    };
    return {};
  }
  release(*pair);
  state_.pairs.erase(handle);
  state_.tenant.queue_pairs.give();
  return {};
}

Status PairRequests::destroy_qp(const attach::Message& request, Reply& reply) {
  constexpr int kLooks = 100;
  return destroy_sent(request.as<attach::HandleBody>().handle, kLooks, reply);
}

Status PairRequests::limit_rate(const attach::Message& request) {
  const auto r = request.as<attach::RateRequest>();
  PairObject* const pair = state_.pairs.find(r.handle);
  if (pair == nullptr) return nothing_called("queue pair", r.handle);
  bool done = false;
  state_.on_worker([&](Picos now) {
    done = state_.engine().limit_rate(now, pair->adapter->number(), rate_of(r.kbps), r.burst_bytes);
  });
  if (!done) return worker_gone();
  pair->values.rate_limit_kbps = r.kbps;
  return {};
}

// Its handle is the engine's number: what send requests name.
Status PairRequests::create_ah(const attach::Message& request, Reply& reply) {
  const auto r = request.as<attach::CreateAhRequest>();
  ProtectionDomain* const pd = state_.pds.find(r.pd);
  if (pd == nullptr) return nothing_called("protection domain", r.pd);
  transport::QpPath path;
  if (Status v = path_of(r.path, pd->number, r.path.destination_id, path); v.error != 0) return v;
  if (!state_.tenant.address_handles.take()) return over_quota("address handles");
  std::uint32_t number = 0;
  if (!state_.on_worker([&](Picos now) {
        number = state_.engine().create_address_handle(now, pd->number, path);
      })) {
    state_.tenant.address_handles.give();
    return worker_gone();
  }
  state_.handles.insert(number, {pd});
  ++pd->uses;
  reply.put(attach::HandleBody{number, 0});
  return {};
}

Status PairRequests::destroy_ah(const attach::Message& request) {
  const std::uint32_t handle = request.as<attach::HandleBody>().handle;
  AddressHandleObject* const ah = state_.handles.find(handle);
  if (ah == nullptr) return nothing_called("address handle", handle);
  // Datagrams that are queued still leave by it: the engine's goes when they have.
  state_.leaving_handles.push_back(handle);
  std::size_t gone = 0;
  const bool ran = state_.on_worker([&](Picos now) {
    gone = std::erase_if(state_.leaving_handles, [&](std::uint32_t number) {
      return state_.engine().destroy_address_handle(now, number);
    });
  });
  if (!ran) return worker_gone();
  --ah->pd->uses;
  state_.handles.erase(handle);
  state_.tenant.address_handles.give(gone);
  return {};
}

}  // namespace paceline::service
