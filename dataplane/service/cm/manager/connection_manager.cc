#include "dataplane/service/cm/manager/connection_manager.h"

#include <algorithm>
#include <cerrno>

namespace paceline::service::cm {

ConnectionManager::ConnectionManager(NicBook nics, std::uint64_t seed)
    : nics_(std::move(nics)), ports_(mix64(seed)), random_(seed) {}

std::uint32_t ConnectionManager::open_channel(const Visible& seen) {
  do {
    ++last_channel_;
  } while (last_channel_ == 0 || channels_.contains(last_channel_));
  channels_[last_channel_].seen = seen;
  return last_channel_;
}

void ConnectionManager::close_channel(Nanos now, std::uint32_t channel) {
  std::vector<std::uint32_t> own;
  for (const auto& [number, entry] : ids_) {
    if (entry.channel == channel) own.push_back(number);
  }
  for (const std::uint32_t id : own) erase(now, id);
  channels_.erase(channel);
  carry(now);
}

bool ConnectionManager::has_events(std::uint32_t channel) const {
  const auto at = channels_.find(channel);
  return at != channels_.end() && !at->second.events.empty();
}

ConnectionManager::Holdings ConnectionManager::holdings_of(std::uint32_t channel) const {
  Holdings out;
  const auto at = channels_.find(channel);
  if (at != channels_.end()) out.ids = at->second.ids;
  for (const auto& [number, entry] : ids_) {
    const bool listens = entry.id.state() == CmId::State::listening;
    if (entry.channel == channel && listens) ++out.listeners;
  }
  return out;
}

std::optional<Event> ConnectionManager::next_event(std::uint32_t channel) {
  const auto at = channels_.find(channel);
  if (at == channels_.end() || at->second.events.empty()) return std::nullopt;
  Event event = std::move(at->second.events.front());
  at->second.events.pop_front();
  if (Entry* const of = entry(event.counts_for)) {
    ++of->reported;
    if (event.kind == EventKind::connect_request) --of->unreported_requests;
  }
  return event;
}

void ConnectionManager::queue(Event event) {
  Entry* const of = entry(event.counts_for);
  if (of == nullptr || of->channel == 0) return;
  // The program cannot name an id that it has not accepted yet. Its accept will fail.
  if (of->id.cookie() == 0) return;
  Channel& channel = channels_.at(of->channel);
  if (channel.events.empty()) woken_.push_back(of->channel);
  channel.events.push_back(std::move(event));
}

ConnectionManager::Entry* ConnectionManager::entry(std::uint32_t id) {
  const auto at = ids_.find(id);
  return at == ids_.end() ? nullptr : &at->second;
}

int ConnectionManager::find(std::uint32_t channel, std::uint32_t id, CmId*& out) {
  Entry* const found = entry(id);
  if (found == nullptr || found->channel == 0) return ENOENT;
  if (found->channel != channel) return EINVAL;
  out = &found->id;
  return 0;
}

int ConnectionManager::create(std::uint32_t channel, std::uint64_t cookie, PortSpace space,
                              IdType type, std::uint32_t& id) {
  Channel& on = channels_.at(channel);
  if (on.ids >= kMostIds) return ENOMEM;
  do {
    ++last_id_;
  } while (last_id_ == 0 || ids_.contains(last_id_));
  id = last_id_;
  ids_.try_emplace(id, CmId(id, cookie, space, type, on.seen), channel);
  ++on.ids;
  return 0;
}

int ConnectionManager::destroy(Nanos now, std::uint32_t channel, std::uint32_t id,
                               std::uint32_t& reported) {
  CmId* found = nullptr;
  if (const int error = find(channel, id, found); error != 0) return error;
  reported = entry(id)->reported;
  erase(now, id);
  carry(now);
  return 0;
}

// Sends the last message of the id and drops its events that were not reported; also destroys the
// ids of its connection requests that were not reported.
void ConnectionManager::erase(Nanos now, std::uint32_t id) {
  Entry* const gone = entry(id);
  if (gone == nullptr) return;
  Actions last;
  gone->id.end(now, last);
  last.notices.clear();
  perform(*gone, last, std::nullopt);
  Channel& channel = channels_.at(gone->channel);
  std::vector<std::uint32_t> unseen;
  std::erase_if(channel.events, [&](const Event& event) {
    if (event.counts_for != id) return false;
    if (event.id != id) unseen.push_back(event.id);
    return true;
  });
  ports_.drop(id);
  --channel.ids;
  if (!gone->id.over() && outside(gone->id.destination().ip) && left_ < kMostLeft) {
    gone->channel = 0;
    ++left_;
  } else {
    remove(id);
  }
  for (const std::uint32_t one : unseen) erase(now, one);
}

void ConnectionManager::remove(std::uint32_t id) {
  Entry& gone = *entry(id);
  if (gone.channel == 0) --left_;
  timers_.erase({gone.timer.count, id});
  if (gone.id.message_id() != 0) messages_.erase(gone.id.message_id());
  if (gone.request) {
    const auto at = requests_.find(*gone.request);
    if (at != requests_.end() && at->second == id) requests_.erase(at);
  }
  ids_.erase(id);
}

void ConnectionManager::remove_if_over(std::uint32_t id) {
  const Entry& of = *entry(id);
  if (of.channel == 0 && of.id.over()) remove(id);
}

int ConnectionManager::migrate(std::uint32_t from, std::uint32_t to, std::uint32_t id,
                               std::uint32_t& reported) {
  CmId* found = nullptr;
  if (const int error = find(from, id, found); error != 0) return error;
  if (!channels_.contains(to)) return EINVAL;
  Entry& moved = *entry(id);
  reported = moved.reported;
  if (from == to) return 0;
  Channel& old = channels_.at(from);
  Channel& now = channels_.at(to);
  for (Event& event : old.events) {
    if (event.counts_for != id) continue;
    if (now.events.empty()) woken_.push_back(to);
    now.events.push_back(event);
  }
  std::erase_if(old.events, [&](const Event& event) { return event.counts_for == id; });
  --old.ids;
  ++now.ids;
  moved.channel = to;
  return 0;
}

int ConnectionManager::resolve_address(CmId& id, const SocketAddress& source,
                                       const SocketAddress& destination) {
  Event event;
  const int error = id.resolve_address(nics_, ports_, source, destination, event);
  if (error == 0) queue(std::move(event));
  return error;
}

int ConnectionManager::resolve_route(CmId& id) {
  Event event;
  const int error = id.resolve_route(event);
  if (error == 0) queue(std::move(event));
  return error;
}

int ConnectionManager::listen(CmId& id, std::uint32_t backlog) {
  return id.listen(ports_, backlog == 0 || backlog > kMostBacklog ? kMostBacklog : backlog);
}

std::uint32_t ConnectionManager::fresh_message_id(std::uint32_t id) {
  std::uint32_t fresh = 0;
  do {
    fresh = static_cast<std::uint32_t>(random_.next());
  } while (fresh == 0 || messages_.contains(fresh));
  messages_[fresh] = id;
  return fresh;
}

int ConnectionManager::after(Nanos now, CmId& id, int error, Actions& actions) {
  perform(*entry(id.number()), actions, std::nullopt);
  carry(now);
  return error;
}

int ConnectionManager::connect(Nanos now, CmId& id, const Offer& offer) {
  if (id.state() != CmId::State::route_resolved) return EINVAL;
  Actions actions;
  const std::uint32_t message = fresh_message_id(id.number());
  const auto psn = static_cast<std::uint32_t>(random_.next() & 0xFF'FFFF);
  const int error = id.connect(now, nics_, offer, message, psn, actions);
  if (id.message_id() != message) messages_.erase(message);
  return after(now, id, error, actions);
}

int ConnectionManager::accept(Nanos now, CmId& id, const std::optional<Offer>& offer,
                              std::uint32_t qkey) {
  Actions actions;
  const int error = id.accept(now, offer, qkey, actions);
  return after(now, id, error, actions);
}

int ConnectionManager::reject(Nanos now, CmId& id, std::uint16_t reason,
                              std::span<const std::byte> private_data) {
  Actions actions;
  const int error = id.reject(reason, private_data, actions);
  return after(now, id, error, actions);
}

int ConnectionManager::disconnect(Nanos now, CmId& id) {
  Actions actions;
  const int error = id.disconnect(now, actions);
  return after(now, id, error, actions);
}

int ConnectionManager::data_has_come(Nanos now, CmId& id) {
  Actions actions;
  const int error = id.data_has_come(actions);
  return after(now, id, error, actions);
}

void ConnectionManager::retime(Entry& of) {
  const Nanos next = of.id.deadline();
  if (next.count == of.timer.count) return;
  timers_.erase({of.timer.count, of.id.number()});
  of.timer = next;
  if (next.count != kNeverNanos.count) timers_.insert({next.count, of.id.number()});
}

void ConnectionManager::perform(Entry& of, Actions& actions, std::optional<Event> event) {
  if (!actions.send.empty()) {
    const Parcel parcel{*of.id.nic(), of.id.source().ip, of.id.destination().ip, {}};
    const bool leaves = outside(parcel.destination);
    for (const Mad& mad : actions.send) mail_.post(parcel, mad, leaves);
    if (leaves) mail_.counts().repeated += actions.repeated;
  }
  retime(of);
  for (const Notice& notice : actions.notices) {
    if (std::optional<Event> told = of.id.event_of(notice)) queue(std::move(*told));
  }
  if (event) queue(std::move(*event));
}

void ConnectionManager::expire(Nanos now) {
  while (!timers_.empty() && timers_.begin()->first <= now.count) {
    const std::uint32_t id = timers_.begin()->second;
    Entry& due = *entry(id);
    Actions actions;
    std::optional<Event> event;
    due.id.expire(now, actions, event);
    perform(due, actions, std::move(event));
    remove_if_over(id);
  }
  carry(now);
}

// Like Linux, which destroys the kernel's half of such an id: its program may destroy it, and do
// nothing else. A program is not told about an id that it has not accepted yet; accepting it fails.
void ConnectionManager::take_away(std::size_t nic) {
  nics_.take_away(nic);
  for (auto& [number, entry] : ids_) {
    if (entry.id.nic() != nic) continue;
    queue(entry.id.lose_device());
    ports_.drop(number);
    retime(entry);
  }
  std::vector<std::uint32_t> left;
  for (const auto& [number, entry] : ids_) {
    if (entry.channel == 0 && entry.id.over()) left.push_back(number);
  }
  for (const std::uint32_t id : left) remove(id);
}

// Delivers messages, and the answers to them, until none is left.
void ConnectionManager::carry(Nanos now) {
  while (const auto parcel = mail_.next()) {
    const auto nic = nics_.owner(parcel->destination);
    if (!nic || !nics_.up(parcel->nic, parcel->source)) continue;
    if (!nics_.up(*nic, parcel->destination)) continue;
    if (!nics_.reaches(parcel->nic, parcel->destination)) continue;
    if (const auto mad = parse_mad(parcel->bytes)) deliver(now, *nic, *parcel, *mad);
  }
}

void ConnectionManager::arrive(Nanos now, const Parcel& parcel, std::span<const std::byte> bytes) {
  MadCounts& counts = mail_.counts();
  ++counts.received;
  const auto mad = parse_mad(bytes);
  const bool here = nics_.owner(parcel.destination) == parcel.nic && outside(parcel.source);
  if (!mad || !here) {
    ++counts.refused;
    return;
  }
  deliver(now, parcel.nic, parcel, *mad);
  carry(now);
}

// The id that a message is for, if it is there and expects messages of that end.
ConnectionManager::Entry* ConnectionManager::receiver_of(const Parcel& parcel, const Mad& mad) {
  const auto by = [&](const auto& places, const auto& key) {
    const auto at = places.find(key);
    return at == places.end() ? nullptr : entry(at->second);
  };
  Entry* to = nullptr;
  if (mad.attribute == Attribute::req || mad.attribute == Attribute::sidr_req) {
    to = by(requests_, std::pair(parcel.source, mad.local_id));
    // Another request with an earlier number, from a peer that was restarted.
    return to != nullptr && to->transaction == mad.transaction ? to : nullptr;
  }
  if (mad.attribute == Attribute::sidr_rep) {
    to = by(messages_, mad.local_id);
  } else if (mad.remote_id != 0) {
    to = by(messages_, mad.remote_id);
  } else {  // a REJ from an end that has not had an answer
    to = by(requests_, std::pair(parcel.source, mad.local_id));
  }
  if (to == nullptr || to->id.destination().ip != parcel.source) return nullptr;
  const Connection* const connection = to->id.connection();
  const std::uint32_t peer = connection != nullptr ? connection->remote_id() : 0;
  // An end that refuses a REQ may have no number.
  return peer == 0 || mad.local_id == 0 || mad.local_id == peer ? to : nullptr;
}

void ConnectionManager::deliver(Nanos now, std::size_t nic, const Parcel& parcel, const Mad& mad) {
  Entry* const to = receiver_of(parcel, mad);
  if (to == nullptr) {
    if (mad.attribute == Attribute::req || mad.attribute == Attribute::sidr_req) {
      return receive_request(nic, parcel, mad);
    }
    if (outside(parcel.source)) ++mail_.counts().unknown;
    if (const auto told = answer_to_unknown(mad)) answer(nic, parcel, *told);
    return;
  }
  Actions actions;
  std::optional<Event> event;
  const std::uint32_t id = to->id.number();
  to->id.receive(now, mad, actions, event);
  perform(*to, actions, std::move(event));
  remove_if_over(id);
}

void ConnectionManager::receive_request(std::size_t nic, const Parcel& parcel, const Mad& mad) {
  const auto service = ip_service(mad.service_id);
  const auto header = read_ip_header(mad.private_data);
  const bool datagram = mad.attribute == Attribute::sidr_req;
  const auto number = service && header && header->destination == parcel.destination &&
                              header->source == parcel.source
                          ? ports_.listener(service->space, service->port, nic, parcel.destination)
                          : std::nullopt;
  Entry* const listener = number ? entry(*number) : nullptr;
  if (listener == nullptr || listener->id.datagram() != datagram) {
    return answer(nic, parcel, refusal_of(mad, reject_reason::invalid_service_id));
  }
  const std::uint8_t service_type = listener->id.type() == IdType::uc ? 1 : 0;
  if (!datagram && mad.service_type != service_type) {
    return answer(nic, parcel, refusal_of(mad, reject_reason::invalid_service_type));
  }
  std::uint32_t id = 0;
  if (listener->unreported_requests >= listener->id.backlog() ||
      create(listener->channel, 0, service->space, listener->id.type(), id) != 0) {
    return answer(nic, parcel, refusal_of(mad, reject_reason::consumer_defined));
  }
  Entry& made = *entry(id);
  const auto psn = static_cast<std::uint32_t>(random_.next() & 0xFF'FFFF);
  made.id.become_passive(nics_, nic, *header, service->port, mad, fresh_message_id(id), psn);
  made.request = {parcel.source, mad.local_id};
  made.transaction = mad.transaction;
  requests_[*made.request] = id;
  ++listener->unreported_requests;
  queue(made.id.request_event(listener->id, mad));
}

}  // namespace paceline::service::cm
