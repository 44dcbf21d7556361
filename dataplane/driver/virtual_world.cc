#include "dataplane/driver/virtual_world.h"

#include <algorithm>
#include <stdexcept>

#include "dataplane/base/prefetch.h"
#include "dataplane/base/random.h"
#include "dataplane/driver/fabric_ideal.h"

namespace paceline {

namespace {

// Events between two looks at the stop flag and the progress callback, at most.
constexpr std::uint64_t kHousekeeping = 1 << 16;
// Event sources from which on what an event touches is likely to lie outside the caches, and how
// many events ahead it is fetched.
constexpr std::uint32_t kPrefetchFrom = 4096;
constexpr std::uint32_t kScoutEvents = 24;
constexpr std::array<std::uint32_t, 4> kStages{17, 11, 6, 3};
// Hosts from which on a world has memory of its own, in large pages.
constexpr std::uint32_t kLargePagesFrom = 32;

// Events until the next look. An event makes a hop or two, seldom more: a limit of hops is looked
// at so much the more often as it comes near, and overstepped by what one event does.
std::uint64_t events_to_next_look(std::uint64_t hops, std::uint64_t max_hops) {
  if (max_hops == 0) return kHousekeeping;
  const std::uint64_t left = hops < max_hops ? max_hops - hops : 0;
  return std::clamp<std::uint64_t>(left / 16, 1, kHousekeeping);
}
// RoCEv2 source ports: the dynamic range (annex A17).
constexpr std::uint16_t kFirstSourcePort = 0xC000;

// Pops per simulated microsecond, if the busiest port is busy throughout: about five events a
// packet (two links each way and the pacer). Only the width of the event queue's slots depends on
// it.
double expected_events_per_us(const config::Scenario& scenario, const MessagePlan& plan) {
  std::vector<double> out(scenario.fabric.hosts);
  std::vector<double> in(scenario.fabric.hosts);
  double packets = 0;
  double busiest_us = 1;
  for (const PlannedMessage& message : plan.messages) {
    const auto bytes = static_cast<double>(message.bytes);
    packets += 1 + bytes / scenario.transport.payload_bytes;
    busiest_us = std::max(busiest_us, static_cast<double>(message.start.count) / 1e6);
    out[message.src] += bytes;
    in[message.dst] += bytes;
  }
  const double us_per_byte = 8e6 / static_cast<double>(scenario.fabric.rate.bps);
  for (std::uint32_t h = 0; h < scenario.fabric.hosts; ++h) {
    busiest_us = std::max(busiest_us, std::max(out[h], in[h]) * us_per_byte);
  }
  return 5 * packets / busiest_us;
}

constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xD6E8'FEB8'6659'FD93ULL;
  x ^= x >> 32;
  return x;
}

}  // namespace

const char* to_string(RunEnd end) {
  switch (end) {
    case RunEnd::completed:
      return "completed";
    case RunEnd::duration:
      return "duration";
    case RunEnd::stalled:
      return "stalled";
    case RunEnd::hop_limit:
      return "hop limit";
    case RunEnd::stopped:
      return "stopped";
    case RunEnd::violation:
      return "violation";
  }
  return "unknown";
}

struct VirtualWorld::Host {
  Host(transport::EngineConfig config, Port& port, std::uint32_t number, const MessagePlan& plan,
       const PlanIndex& index, std::vector<MessageRecord>& records, Connector& connector,
       transport::MemoryProvider* memory)
      : engine(std::move(config), port),
        app(number, plan, index, records, engine, connector, memory) {}
  transport::Engine engine;
  MessageApp app;
};

VirtualWorld::VirtualWorld(const config::Scenario& scenario, MessagePlan plan, WorldOptions options)
    : scenario_(scenario),
      plan_(std::move(plan)),
      options_(std::move(options)),
      setup_(plan_world(scenario)),
      memory_(scenario.seed) {
  if (!setup_.error.empty()) throw std::invalid_argument(setup_.error);
  setup_.fabric.exact_departures = options_.exact_departures;
  const bool real_bytes = !options_.taps.empty();
  if (real_bytes) {
    setup_.fabric.payload_room = static_cast<std::uint16_t>((setup_.engine.payload_mtu + 3) & ~3U);
    setup_.fabric.computes_icrc = false;
  }
  for (PlannedMessage& message : plan_.messages) {
    bytes_total_ += message.bytes;
    if (message.src >= scenario_.fabric.hosts || message.dst >= scenario_.fabric.hosts) {
      throw std::invalid_argument("a message names a host that the fabric does not have");
    }
    if (message.after != kNoMessage) plan_.messages.at(message.after).notify = true;
  }
  records_.resize(plan_.messages.size());
  index_ = std::make_unique<PlanIndex>(plan_, scenario_.fabric.hosts);

  std::pmr::memory_resource& memory = scenario_.fabric.hosts >= kLargePagesFrom
                                          ? static_cast<std::pmr::memory_resource&>(large_pages_)
                                          : *std::pmr::new_delete_resource();
  first_host_actor_ = fabric::Network::actors_needed(setup_.fabric);
  const unsigned shift = EventWheel::slot_shift_for(expected_events_per_us(scenario_, plan_));
  wheel_ = std::make_unique<EventWheel>(first_host_actor_ + scenario_.fabric.hosts, shift,
                                        EventWheel::slots_log2_for(shift), memory);
  prefetching_ = wheel_->actors() >= kPrefetchFrom;
  network_ = std::make_unique<fabric::Network>(setup_.fabric, *wheel_, 0, memory);
  for (const LinkTapping& tapping : options_.taps) network_->tap(tapping.link, *tapping.tap);
  FabricIdeal(scenario_, setup_.fabric, network_->topology()).fill(plan_);
  hosts_ = std::make_unique<Slab<Host>>(scenario_.fabric.hosts, memory);
  for (std::uint32_t h = 0; h < scenario_.fabric.hosts; ++h) {
    transport::EngineConfig config = setup_.engine;
    config.address = wire::IpAddress::v4(setup_.fabric.subnet_base + h + 1);
    config.mac = wire::MacAddress::local(h + 1);
    config.speak_control = setup_.speaks_control[h];
    config.check_invariants = options_.check_invariants;
    config.memory = &memory;
    hosts_->emplace(std::move(config), network_->host_port(h), h, plan_, *index_, records_, *this,
                    real_bytes ? &memory_ : nullptr);
  }
}

VirtualWorld::~VirtualWorld() = default;

const transport::Engine& VirtualWorld::engine(std::uint32_t host) const {
  return (*hosts_)[host].engine;
}

std::uint32_t VirtualWorld::connect(Picos now, std::uint32_t src, std::uint32_t dst,
                                    std::uint8_t traffic_class) {
  // Out of band, as a connection manager would have done before; takes no time.
  Host& a = (*hosts_)[src];
  Host& b = (*hosts_)[dst];
  transport::QpConfig config = setup_.queue_pair;
  config.traffic_class = traffic_class;
  config.send_cq = config.receive_cq = &a.app.completions();
  config.receive_queue = &a.app.receives();
  // Queues no longer than what will ever be in them: the applications read nothing from one
  // another, and the far end of a connection only answers.
  config.max_rd_atomic = config.max_dest_rd_atomic = 0;
  config.send_queue_depth = static_cast<std::uint16_t>(
      std::min<std::uint64_t>(config.send_queue_depth, index_->posts(src)));
  const std::uint32_t qa = a.engine.create_qp(config);
  config.send_cq = config.receive_cq = &b.app.completions();
  config.receive_queue = &b.app.receives();
  config.send_queue_depth = 1;
  const std::uint32_t qb = b.engine.create_qp(config);
  const std::uint64_t entropy = mix(scenario_.seed ^ (std::uint64_t{++connections_} << 20));
  const auto port = static_cast<std::uint16_t>(kFirstSourcePort + (entropy & 0x3FFF));
  const Psn psn_a(static_cast<std::uint32_t>(entropy >> 16));
  const Psn psn_b(static_cast<std::uint32_t>(entropy >> 40));
  a.engine.connect(now, qa, b.engine.address_of(qb, psn_b), psn_a, port);
  b.engine.connect(now, qb, a.engine.address_of(qa, psn_a), psn_b, port);
  const Picos next = earlier(b.engine.next_deadline(), b.app.next_deadline());
  wheel_->schedule(first_host_actor_ + dst, later(next, now_));
  return qa;
}

void VirtualWorld::take_finished(Host& host) {
  for (const std::uint32_t id : host.app.newly_finished()) {
    const MessageRecord& record = records_[id];
    ++finished_;
    if (record.failed) {
      ++failed_;
    } else {
      ++completed_;
    }
    bytes_done_ += plan_.messages[id].bytes;
    hash_ = mix(hash_ ^ mix(static_cast<std::uint64_t>(record.completed.count) + id) ^
                (record.failed ? 1U : 0U));
  }
  host.app.newly_finished().clear();
}

// The group of one host: application first, then engine, until neither has work at `now`.
void VirtualWorld::poll_host(std::uint32_t index, Picos now) {
  Host& host = (*hosts_)[index];
  if (!prefetching_) host.engine.prefetch();
  if (host.app.due(now)) host.app.poll(now);
  do {
    host.engine.poll(now);
  } while (!host.app.completions().empty() && host.app.poll(now));
  if (!host.app.newly_finished().empty()) take_finished(host);
  wheel_->schedule(first_host_actor_ + index,
                   earlier(host.engine.next_deadline(), host.app.next_deadline()));
}

// Everything that stage `stage` of an event some events ahead fetches. Looks only.
void VirtualWorld::fetch(unsigned stage, Ahead& ahead) const {
  const std::uint32_t actor = ahead.actor;
  const Packet* packet = nullptr;
  std::uint32_t host = actor - first_host_actor_;
  if (actor < first_host_actor_) {
    switch (stage) {
      case 0:
        network_->prefetch_packet(actor);
        break;
      case 1:
        ahead.next = network_->prefetch_next(actor);
        break;
      case 2:
        network_->prefetch_egress(actor, ahead.next);
        break;
      default:
        network_->prefetch_joined(actor, ahead.next);
        break;
    }
    packet = network_->arriving(actor, host);
    if (packet == nullptr) return;
  }
  const Host& to = (*hosts_)[host];
  switch (stage) {
    case 0:
      to.engine.prefetch_state();
      prefetch_line(&to.app);
      break;
    case 1:
      break;
    case 2:
      to.engine.prefetch_flow(packet);
      break;
    default:
      to.engine.prefetch_flow_parts(packet);
      break;
  }
}

// An event has been popped: those some events ahead are brought near in stages, each of which reads
// what an earlier one fetched.
void VirtualWorld::look_ahead(Picos now) {
  const auto seen = [this](std::uint32_t i) -> Ahead& { return ahead_[i % ahead_.size()]; };
  while (passed_ != scouted_ && seen(passed_).until <= now) ++passed_;
  while (scouted_ - passed_ < kScoutEvents && wheel_->scout([&](std::uint32_t actor, Picos until) {
    if (scouted_ - passed_ == ahead_.size()) return;  // a slot fuller than is worth while
    network_->prefetch_link(actor);
    seen(scouted_++) = {actor, fabric::Network::kNowhere, until};
  })) {
  }
  for (unsigned stage = 0; stage < kStages.size(); ++stage) {
    std::uint32_t& next = next_of_stage_[stage];
    if (static_cast<std::int32_t>(next - passed_) < 0) next = passed_;
    for (; next != scouted_ && next - passed_ < kStages[stage]; ++next) fetch(stage, seen(next));
  }
}

RunEnd VirtualWorld::run() {
  for (std::uint32_t h = 0; h < hosts_->size(); ++h) poll_host(h, now_);
  Picos next_sample = options_.sample ? options_.sample_interval : kNever;
  std::uint64_t housekeeping = events_to_next_look(0, scenario_.max_hops);
  RunEnd end = RunEnd::completed;
  Picos time;
  std::uint32_t actor = 0;
  while (finished_ < plan_.messages.size()) {
    if (!wheel_->pop(time, actor)) {
      end = RunEnd::stalled;
      problem_ = "nothing left to happen, but " +
                 std::to_string(plan_.messages.size() - finished_) + " messages are outstanding";
      break;
    }
    if (time > scenario_.duration) {
      now_ = scenario_.duration;
      end = RunEnd::duration;
      break;
    }
    while (time >= next_sample) {
      now_ = next_sample;
      options_.sample(*this, next_sample);
      next_sample += options_.sample_interval;
    }
    now_ = time;
    ++events_;
    if (prefetching_) look_ahead(time);
    if (actor < first_host_actor_) {
      network_->link_fired(actor, time);
      const auto woken = network_->woken_hosts();
      if (!woken.empty()) {
        for (const std::uint32_t host : woken) poll_host(host, time);
        network_->clear_woken();
      }
    } else {
      poll_host(actor - first_host_actor_, time);
    }
    if (--housekeeping == 0) {
      housekeeping = events_to_next_look(network_->stats().hops, scenario_.max_hops);
      if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) {
        end = RunEnd::stopped;
        break;
      }
      if (scenario_.max_hops != 0 && network_->stats().hops > scenario_.max_hops) {
        end = RunEnd::hop_limit;
        problem_ = "more than max_hops = " + std::to_string(scenario_.max_hops) + " packet-hops";
        break;
      }
      if (options_.progress && bytes_total_ != 0) {
        options_.progress(static_cast<double>(bytes_done_) / static_cast<double>(bytes_total_));
      }
    }
  }
  network_->finish(now_);
  if (!check_all()) end = RunEnd::violation;
  return end;
}

bool VirtualWorld::check_all() {
  std::string broken = network_->check_conservation();
  for (std::uint32_t h = 0; h < hosts_->size() && broken.empty(); ++h) {
    broken = (*hosts_)[h].engine.check_conservation();
    if (broken.empty()) broken = (*hosts_)[h].engine.violation();
    if (!broken.empty()) broken.insert(0, "host " + std::to_string(h) + ": ");
  }
  if (broken.empty()) return true;
  problem_ = broken;
  return false;
}

std::uint64_t VirtualWorld::trace_hash() const {
  std::uint64_t h = hash_;
  const fabric::NetworkStats& stats = network_->stats();
  for (const std::uint64_t value :
       {stats.hops, stats.hop_bytes, stats.injected_packets, stats.delivered_bytes,
        stats.marked_packets, stats.pause_frames, stats.total_drops(),
        static_cast<std::uint64_t>(stats.pause_time.count)}) {
    h = mix(h ^ value);
  }
  return h;
}

}  // namespace paceline
