#include "tests/unit/cc/cadence_world.h"

#include <algorithm>
#include <cassert>

namespace paceline::cc::test {
namespace {

constexpr std::uint32_t kMtu = 4096;
constexpr std::uint32_t kOverhead = 74;
constexpr std::uint32_t kAckBytes = 84;

std::vector<double> default_values() {
  std::vector<double> values;
  for (const ParamSpec& spec : cadence_param_specs()) values.push_back(spec.default_value);
  return values;
}

}  // namespace

World::World(const WorldOptions& options) : options_(options), random_(options.seed) {
  PortFacts facts;
  facts.link_rate = options.link;
  facts.mtu_bytes = kMtu;
  facts.full_packet_bytes = kMtu + kOverhead;
  // Two links there and two back, the packet twice, its ACK twice.
  facts.base_rtt_ns = static_cast<std::uint32_t>(
      4 * options.hop_ns + 2 *
                               (serialization_time(kMtu + kOverhead, options.link).count +
                                serialization_time(kAckBytes, options.link).count) /
                               1000);
  params_ = make_cadence_params(options.params.empty() ? default_values() : options.params, facts);
  hosts_.resize(options.hosts);
  for (Host& host : hosts_) {
    host.arbiter = std::make_unique<CadenceSender>(params_);
    host.receiver = std::make_unique<CadenceReceiver>(params_);
    host.contexts.resize(options.hosts);
  }
}

void World::at(std::int64_t ps, std::function<void()> run) {
  events_.push({std::max(ps, now_), order_++, std::move(run)});
}

std::size_t World::post(std::uint32_t src, std::uint32_t dst, std::uint64_t bytes,
                        std::int64_t start_ns) {
  const std::size_t id = flows_.size();
  flows_.push_back({src, dst, bytes, start_ns, -1});
  ++unfinished_;
  at(start_ns * 1000, [this, id] {
    const Flow flow = flows_[id];
    Host& host = hosts_[flow.src];
    if (host.dead) return;
    Context& c = host.contexts[flow.dst];
    if (!c.started) {
      c.started = true;
      Event start;
      start.signal = Signal::start;
      deliver(flow.src, flow.dst, start);
    }
    if (c.backlog == 0) host.busy.push_back(flow.dst);
    c.messages.push_back({id, flow.bytes});
    c.backlog += flow.bytes;
    Event e;
    e.signal = Signal::message;
    e.message_bytes = flow.bytes;
    deliver(flow.src, flow.dst, e);
    // Others of the same instant are posted before the arbiter answers, as in one engine poll.
    at(now_, [this, src = flow.src] { settle(src); });
  });
  return id;
}

const Cadence::State& World::context(std::uint32_t src, std::uint32_t dst) const {
  return hosts_[src].contexts[dst].state;
}
const Decision& World::decision(std::uint32_t src, std::uint32_t dst) const {
  return hosts_[src].contexts[dst].decision;
}
std::uint64_t World::delivered(std::uint32_t src, std::uint32_t dst) const {
  return hosts_[src].contexts[dst].delivered;
}

void World::deliver(std::uint32_t src, std::uint32_t dst, Event e) {
  Host& host = hosts_[src];
  if (host.dead) return;
  Context& c = host.contexts[dst];
  e.now = Nanos{now_ns()};
  e.sent_total = c.sent_total;
  e.backlog_bytes = c.backlog;
  e.inflight_bytes = c.flying;
  e.sent_bytes = c.sent_since;
  c.sent_since = 0;
  const bool stopped = c.decision.rate.bps == 0;
  Cadence::on_event(c.state, params_, e, c.decision);
  if (stopped) c.pace_at = std::max(c.pace_at, now_);  // no credit for time without a rate
  if (c.decision.request) send_request(src, dst, e);
  host.arbiter->update(e.now, dst, Cadence::uplink_want(c.state, params_));
  if (c.decision.timed && c.decision.wake_at.count <= e.now.count) fail("wake in the past");
  arm(src, dst);
}

void World::settle(std::uint32_t src) {
  Host& host = hosts_[src];
  if (host.dead) return;
  ShareOutput out[16];
  for (int round = 0; round < 64; ++round) {
    const std::size_t n = host.arbiter->poll(Nanos{now_ns()}, out);
    for (std::size_t i = 0; i < n; ++i) {
      Event e;
      e.signal = Signal::share;
      e.share = &out[i].share;
      deliver(src, out[i].context, e);
    }
    if (n == 0) break;
  }
  const Nanos wake = host.arbiter->next_wake();
  if (wake != kNeverNanos && wake.count * 1000 != host.arbiter_at) {
    host.arbiter_at = std::max(wake.count, now_ns() + 1) * 1000;
    at(host.arbiter_at, [this, src, due = host.arbiter_at] {
      if (hosts_[src].arbiter_at == due) settle(src);
    });
  }
  if (const std::string v = host.arbiter->check_invariants(Nanos{now_ns()}); !v.empty()) fail(v);
  kick_uplink(src);
}

void World::arm(std::uint32_t src, std::uint32_t dst) {
  Context& c = hosts_[src].contexts[dst];
  if (!c.decision.timed) return;
  const std::int64_t due = c.decision.wake_at.count * 1000;
  if (c.timer_at == due) return;
  c.timer_at = due;
  at(due, [this, src, dst, due] {
    Context& x = hosts_[src].contexts[dst];
    if (x.timer_at != due) return;
    x.timer_at = 0;
    Event e;
    e.signal = Signal::tick;
    deliver(src, dst, e);
    settle(src);
  });
}

void World::control(std::uint32_t from, std::uint32_t to, std::function<void()> arrive) {
  control_bytes_ += kControlWireBytes;
  if (hosts_[from].dead || random_.uniform() < options_.control_loss) return;
  std::int64_t delay =
      2 * options_.hop_ns * 1000 + 2 * serialization_time(kControlWireBytes, options_.link).count;
  if (options_.control_jitter_ns > 0) {
    delay += static_cast<std::int64_t>(
                 random_.below(static_cast<std::uint64_t>(options_.control_jitter_ns))) *
             1000;
  }
  at(now_ + delay, [this, to, arrive = std::move(arrive)] {
    if (hosts_[to].dead) return;
    hosts_[to].priority_bytes += kControlWireBytes;
    arrive();
  });
}

void World::send_request(std::uint32_t src, std::uint32_t dst, const Event& e) {
  Context& c = hosts_[src].contexts[dst];
  RequestMessage r;
  r.channel = static_cast<std::uint16_t>(dst);
  Cadence::fill_request(c.state, params_, e, r);
  control(src, dst, [this, src, dst, r] {
    hosts_[src].contexts[dst].counters = hosts_[dst].receiver->on_request(Nanos{now_ns()}, src, r);
    poll_receiver(dst);
  });
}

void World::poll_receiver(std::uint32_t id) {
  Host& host = hosts_[id];
  if (host.dead) return;
  ReceiverOutput out[16];
  const Nanos now{now_ns()};
  for (;;) {
    const std::size_t n = host.receiver->poll(now, out);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t src = out[i].peer;
      const ReceiverOutput o = out[i];
      if (on_grant) on_grant(o.grant, src, id);
      control(id, src, [this, src, id, o] {
        Event e;
        e.signal = Signal::grant;
        e.grant = &o.grant;
        if (!hosts_[src].contexts[id].started) return;
        deliver(src, id, e);
        settle(src);
      });
    }
    if (n < std::size(out)) break;
  }
  check(id);
  const Nanos wake = host.receiver->next_wake();
  if (wake == kNeverNanos) return;
  const std::int64_t due = std::max(wake.count, now.count + 1) * 1000;
  if (host.receiver_at == due) return;
  host.receiver_at = due;
  at(due, [this, id, due] {
    if (hosts_[id].receiver_at != due) return;
    hosts_[id].receiver_at = -1;
    poll_receiver(id);
  });
}

void World::check(std::uint32_t id) {
  const std::string v = hosts_[id].receiver->check_invariants(Nanos{now_ns()});
  if (!v.empty()) fail("host " + std::to_string(id) + ": " + v);
}

void World::kick_uplink(std::uint32_t id) {
  Host& host = hosts_[id];
  if (host.uplink_busy || host.dead || host.busy.empty()) return;
  std::int64_t soonest = -1;
  const std::size_t count = host.busy.size();
  // Two rounds over the busy contexts: urgent ones, then the others.
  for (std::size_t k = 0; k < 2 * count; ++k) {
    const std::size_t at_index = (host.turn + k) % count;
    const std::uint32_t dst = host.busy[at_index];
    Context& c = host.contexts[dst];
    const auto payload =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(c.messages.front().left, kMtu));
    const std::uint32_t wire = payload + kOverhead;
    if (c.decision.urgent != (k < count)) continue;
    if (c.decision.rate.bps == 0 || c.sent_total + wire > c.decision.ceiling) continue;
    if (c.flying >= c.decision.window_bytes) continue;  // as the transport counts
    if (c.pace_at > now_) {
      if (soonest < 0 || c.pace_at < soonest) soonest = c.pace_at;
      continue;
    }
    host.turn = at_index + 1;
    Packet p{id, dst, wire, payload, c.messages.front().flow, false};
    c.messages.front().left -= payload;
    c.backlog -= payload;
    c.flying += payload;
    if (c.messages.front().left == 0) {
      p.last = true;
      c.messages.pop_front();
    } else {  // queue pairs of one context take turns
      c.messages.push_back(c.messages.front());
      c.messages.pop_front();
    }
    c.sent_total += wire;
    c.sent_since += wire;
    data_bytes_ += wire;
    if (c.sent_total > c.decision.ceiling) fail("I2: sent beyond the ceiling");
    const std::int64_t interval = serialization_time(wire, c.decision.rate).count;
    c.pace_at = std::max(c.pace_at, now_ - interval) + interval;  // at most one packet late
    const bool idle = c.backlog == 0;
    if (idle) host.busy.erase(host.busy.begin() + static_cast<std::ptrdiff_t>(at_index));
    host.uplink_busy = true;
    const std::int64_t done = now_ + serialization_time(wire, options_.link).count;
    at(done, [this, id] {
      hosts_[id].uplink_busy = false;
      kick_uplink(id);
    });
    at(done + options_.hop_ns * 1000, [this, p] {
      Host& to = hosts_[p.dst];
      queue_changed(p.dst);
      to.queue.push_back(p);
      to.queued += p.wire;
      to.peak_queue = std::max(to.peak_queue, to.queued);
      kick_downlink(p.dst);
    });
    if (idle || c.sent_since >= c.decision.wake_bytes) {
      Event e;
      e.signal = idle ? Signal::idle : Signal::tick;
      deliver(id, dst, e);
      settle(id);
    }
    return;
  }
  if (soonest >= 0 && (host.uplink_at < now_ || soonest < host.uplink_at)) {
    host.uplink_at = soonest;
    at(soonest, [this, id] { kick_uplink(id); });
  }
}

void World::queue_changed(std::uint32_t id) {
  if (id != watch_host_) return;
  const std::int64_t from = std::max(watch_last_, watch_from_);
  const std::int64_t to = std::min(now_, watch_to_);
  if (to > from) {
    watch_area_ += static_cast<double>(hosts_[id].queued) * static_cast<double>(to - from);
    watch_peak_ = std::max(watch_peak_, hosts_[id].queued);
  }
  watch_last_ = now_;
}

void World::kick_downlink(std::uint32_t id) {
  Host& host = hosts_[id];
  if (host.downlink_busy || host.queue.empty()) return;
  host.downlink_busy = true;
  const Packet p = host.queue.front();
  const std::int64_t done =
      now_ + serialization_time(p.wire + host.priority_bytes, options_.link).count;
  host.priority_bytes = 0;
  at(done, [this, id, p] {
    Host& h = hosts_[id];
    queue_changed(id);
    h.queue.pop_front();
    h.queued -= p.wire;
    h.downlink_busy = false;
    kick_downlink(id);
    at(now_ + options_.hop_ns * 1000, [this, id, p] {
      Host& to = hosts_[id];
      if (to.dead) return;
      Context& c = hosts_[p.src].contexts[id];
      c.delivered += p.payload;
      if (c.counters != nullptr) {
        c.counters->rx_bytes += p.wire;
        ++c.counters->rx_packets;
      }
      if (p.last) {
        flows_[p.flow].finish_ns = now_ns();
        --unfinished_;
      }
      at(now_ + 2 * options_.hop_ns * 1000, [this, id, p] {
        hosts_[p.src].contexts[id].flying -= p.payload;
        if (options_.acks) hosts_[p.src].priority_bytes += kAckBytes;
        kick_uplink(p.src);
      });
    });
  });
}

void World::kill(std::uint32_t host, std::int64_t at_ns) {
  at(at_ns * 1000, [this, host] { hosts_[host].dead = true; });
}

bool World::run(std::int64_t limit_ns) {
  while (unfinished_ > 0 && !events_.empty() && events_.top().at <= limit_ns * 1000) {
    Entry e = events_.top();
    events_.pop();
    now_ = e.at;
    e.run();
    if (!violation_.empty()) return false;
  }
  return unfinished_ == 0;
}

void World::run_to(std::int64_t ns) {
  while (!events_.empty() && events_.top().at <= ns * 1000) {
    Entry e = events_.top();
    events_.pop();
    now_ = e.at;
    e.run();
  }
  now_ = std::max(now_, ns * 1000);
}

std::uint64_t World::peak_queue() const {
  std::uint64_t peak = 0;
  for (const Host& host : hosts_) peak = std::max(peak, host.peak_queue);
  return peak;
}

void World::watch(std::uint32_t host, std::int64_t from_ns, std::int64_t to_ns) {
  watch_host_ = host;
  watch_from_ = from_ns * 1000;
  watch_to_ = to_ns * 1000;
}

double World::watched_average() const {
  return watch_area_ / static_cast<double>(watch_to_ - watch_from_);
}

double World::base_ns(std::uint64_t bytes) const {
  // The last hop repeats the last packet, behind a full one if there is more than one.
  const std::uint64_t last = bytes > kMtu ? kMtu + kOverhead : bytes + kOverhead;
  return static_cast<double>(serialization_time(wire_bytes(bytes), options_.link).count +
                             serialization_time(last, options_.link).count) /
             1000 +
         2.0 * static_cast<double>(options_.hop_ns);
}

double World::ideal_ns() const {
  std::vector<std::uint64_t> up(hosts_.size()), down(hosts_.size());
  for (const Flow& flow : flows_) {
    up[flow.src] += wire_bytes(flow.bytes);
    down[flow.dst] += wire_bytes(flow.bytes);
  }
  const std::uint64_t most = std::max(*std::max_element(up.begin(), up.end()),
                                      *std::max_element(down.begin(), down.end()));
  return static_cast<double>(serialization_time(most, options_.link).count) / 1000 +
         2.0 * static_cast<double>(options_.hop_ns) +
         static_cast<double>(serialization_time(kMtu + kOverhead, options_.link).count) / 1000;
}

}  // namespace paceline::cc::test
