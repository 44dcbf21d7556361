#include "dataplane/driver/virtual/virtual_world.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "dataplane/config/server_shape.h"
#include "dataplane/driver/traffic/fabric_ideal.h"
#include "dataplane/driver/traffic/ideal.h"
#include "dataplane/driver/traffic/reachable.h"
#include "dataplane/driver/virtual/expected_events.h"
#include "dataplane/driver/virtual/real_time_run.h"
#include "dataplane/driver/virtual/world_host.h"
#include "dataplane/driver/virtual/world_probes.h"

namespace paceline {

namespace {

// Events between two looks at the stop flag and the progress callback, at most.
constexpr std::uint64_t kHousekeeping = 1 << 16;

// Events until the next look. An event makes a hop or two, seldom more: a limit of hops is looked
// at so much the more often as it comes near, and overstepped by what one event does.
std::uint64_t events_to_next_look(std::uint64_t hops, std::uint64_t max_hops) {
  if (max_hops == 0) return kHousekeeping;
  const std::uint64_t left = hops < max_hops ? max_hops - hops : 0;
  return std::clamp<std::uint64_t>(left / 16, 1, kHousekeeping);
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

VirtualWorld::VirtualWorld(const config::Scenario& scenario, MessagePlan plan, WorldOptions options)
    : scenario_(scenario),
      plan_(std::move(plan)),
      options_(std::move(options)),
      setup_(plan_world(scenario)),
      memory_(scenario.seed),
      nvlink_({scenario.fabric.nvlink_rate, scenario.fabric.nvlink_latency},
              scenario.fabric.nics > 1 ? scenario.fabric.hosts : 0) {
  if (!setup_.error.empty()) throw std::invalid_argument(setup_.error);
  if (options_.threads == 0 || options_.threads > kMaxThreads) {
    throw std::invalid_argument("threads: allowed is 1 to " + std::to_string(kMaxThreads));
  }
  setup_.fabric.exact_departures = options_.exact_departures;
  if (!options_.taps.empty()) {
    setup_.fabric.payload_room = static_cast<std::uint16_t>((setup_.engine.payload_mtu + 3) & ~3U);
    setup_.fabric.computes_icrc = false;
  } else if (scenario_.probing.enabled) {
    setup_.fabric.payload_room = kProbePayload;  // payloads of messages stay elided
  }
  refuse_odd_options();
  if (options_.real_time.clock != nullptr) prepare_real_time();
  const config::ServerShape servers = config::server_shape(scenario_.fabric);
  for (PlannedMessage& message : plan_.messages) {
    bytes_total_ += message.bytes;
    if (message.src >= scenario_.fabric.hosts || message.dst >= scenario_.fabric.hosts) {
      throw std::invalid_argument("a message names a host that the fabric does not have");
    }
    message.nvlink = message.src != message.dst && servers.same_server(message.src, message.dst);
  }
  mark_awaited(plan_);
  const std::string no_path = no_path_of(scenario_, setup_.fabric, plan_);
  if (!no_path.empty()) throw std::invalid_argument(no_path);
  index_ = std::make_unique<PlanIndex>(plan_, scenario_.fabric.hosts);
  if (options_.threads > 1) one_thread_because_ = obstacle();
  sweeping_ = may_sweep();
  build(one_thread_because_.empty() ? options_.threads : 1);
  FabricIdeal(scenario_, network().spec(), network().topology()).fill(plan_);
}

VirtualWorld::~VirtualWorld() = default;

void VirtualWorld::refuse_odd_options() const {
  if (options_.sample && options_.sample_interval.count <= 0) {
    throw std::invalid_argument("sample_interval: allowed is more than 0");
  }
  if (scenario_.probing.enabled && options_.real_time.clock != nullptr) {
    throw std::invalid_argument("probing.enabled = true: allowed in virtual time only");
  }
  if (!options_.control) return;
  if (options_.control_interval.count <= 0) {
    throw std::invalid_argument("control_interval: allowed is more than 0");
  }
  if (options_.real_time.clock != nullptr) {
    throw std::invalid_argument("a world under a clock takes no control callback");
  }
}

// Why the work cannot be shared; empty: it can.
std::string VirtualWorld::obstacle() const {
  if (options_.sample) return "time series look at the whole fabric at once";
  return order_matters();
}

// Why the order of events at different places is to be that of time; empty: it need not.
std::string VirtualWorld::order_matters() const {
  if (setup_.fabric.ports > 1) return "a host with several ports hangs on several switches";
  if (options_.real_time.clock != nullptr) return "the clock is read by one thread";
  if (!options_.taps.empty()) return "captures are written in the order of time";
  if (options_.control) return "hosts are changed during the run, all at the same time";
  if (scenario_.probing.enabled) return "hosts that probe are worked off in the order of time";
  if (scenario_.max_hops != 0) return "max_hops counts over the whole fabric";
  if (setup_.fabric.drop_control_ppm != 0) {
    return "fabric.drop_control_ppm draws from one generator for all hosts";
  }
  return ParallelRun::obstacle(plan_, scenario_.fabric.nvlink_latency);
}

// Whether windows are worked off node by node.
bool VirtualWorld::may_sweep() const {
  return options_.sweep && order_matters().empty() && (!options_.sample || options_.restart) &&
         fabric::FabricSweep::obstacle(setup_.fabric).empty();
}

// The world at time 0, in as many parts as there are threads, or as the fabric has.
void VirtualWorld::build(std::uint32_t threads) {
  hosts_.reset();
  bonds_.clear();
  // Between two builds only the networks keep the links: a large fabric has millions.
  if (!parts_.empty()) setup_.fabric.links = network().spec().links;
  parts_.clear();
  records_ = fresh_records(plan_);
  now_ = Picos{0};
  nvlink_.reset();
  division_ = fabric::divide(setup_.fabric, threads);
  if (division_.parts == 1 && threads > 1) {
    one_thread_because_ = "the fabric has one switch with hosts";
  }
  const double events_per_us = expected_events_per_us(scenario_, plan_) / division_.parts;
  for (std::uint32_t part = 0; part < division_.parts; ++part) {
    parts_.push_back(std::make_unique<WorldPart>(setup_.fabric, events_per_us, plan_, records_));
    if (division_.parts > 1) parts_[part]->network().divide(division_, part);
  }
  for (const LinkTapping& tapping : options_.taps) network().tap(tapping.link, *tapping.tap);
  hosts_ = std::make_unique<Slab<WorldHost>>(scenario_.fabric.hosts, parts_.front()->memory());
  for (std::uint32_t h = 0; h < scenario_.fabric.hosts; ++h) {
    WorldPart& part = *parts_[division_.part_of_node[h]];
    transport::EngineConfig config = setup_.engine;
    config.address = wire::IpAddress::v4(setup_.fabric.subnet_base + h + 1);
    config.mac = wire::MacAddress::local(h + 1);
    config.speak_control = setup_.speaks_control[h];
    config.check_invariants = options_.check_invariants;
    config.expected_peers = index_->peers(h);
    config.memory = &part.memory();
    config.params = &params_;
    hosts_->emplace(std::move(config), port_of(h, part.network()), h, plan_, *index_, records_,
                    *this, options_.taps.empty() ? nullptr : &memory_);
  }
  if (scenario_.probing.enabled) add_probes(scenario_, network().spec(), *hosts_);
  for (const auto& part : parts_) part->set_hosts(*hosts_);
  connections_ =
      std::make_unique<WorldConnections>(scenario_, setup_, plan_, *index_, network(), *hosts_);
  setup_.fabric.links = {};
  if (!plan_.connected) return;
  for (const PlannedMessage& message : plan_.messages) {
    if (!message.computes && !message.nvlink) (*hosts_)[message.src].app.open(now_, message);
  }
}

// The port of a host's engine: its only port, or all of its ports as one.
Port& VirtualWorld::port_of(std::uint32_t host, fabric::Network& network) {
  const std::uint32_t ports = setup_.fabric.ports;
  if (ports == 1) return network.host_port(host);
  std::array<Port*, BondedPort::kMostPorts> all{};
  for (std::uint32_t p = 0; p < ports; ++p) {
    all[p] = &network.host_port(p * scenario_.fabric.hosts + host);
  }
  return bonds_.emplace_back(std::span<Port* const>(all.data(), ports));
}

const transport::Engine& VirtualWorld::engine(std::uint32_t host) const {
  return (*hosts_)[host].engine;
}

const MessageApp& VirtualWorld::app(std::uint32_t host) const { return (*hosts_)[host].app; }

const probing::ProbeEnd* VirtualWorld::probe(std::uint32_t host) const {
  return (*hosts_)[host].probe.get();
}

std::uint64_t VirtualWorld::events() const {
  std::uint64_t sum = 0;
  for (const auto& part : parts_) sum += part->events();
  return sum;
}

std::uint64_t VirtualWorld::messages_failed() const {
  std::uint64_t sum = 0;
  for (const auto& part : parts_) sum += part->failed();
  return sum;
}

std::uint64_t VirtualWorld::messages_completed() const {
  std::uint64_t sum = 0;
  for (const auto& part : parts_) sum += part->finished().size() - part->failed();
  return sum;
}

std::uint32_t VirtualWorld::connect(Picos now, const PlannedMessage& message) {
  const std::uint32_t dst = message.dst;
  if (parallel_ != nullptr && !parallel_->may_connect(message.src)) throw ParallelRun::NotAlone();
  const std::uint32_t queue_pair = connections_->connect(now, message);
  const Picos next = (*hosts_)[dst].next_deadline();
  parts_[division_.part_of_node[dst]]->schedule_host(dst, later(next, now));
  return queue_pair;
}

Picos VirtualWorld::carry(Picos now, std::uint32_t message) {
  const PlannedMessage& m = plan_.messages[message];
  const Picos at = nvlink_.send(now, m.src, m.bytes);
  if (!m.notify) return at;
  if (parallel_ != nullptr) {
    parallel_->carry(at, message);
  } else {
    parts_.front()->will_arrive(at, message);
  }
  return at;
}

RunEnd VirtualWorld::run() {
  RunEnd end = RunEnd::completed;
  if (options_.real_time.clock != nullptr) {
    end = run_in_real_time();
  } else if ((parts_.size() == 1 && !sweeping_) || !run_in_parallel(end)) {
    end = run_alone();
  }
  if (end == RunEnd::stalled) {
    problem_ = "no event is left, but " +
               std::to_string(plan_.messages.size() - messages_completed() - messages_failed()) +
               " messages are outstanding";
  }
  if (!check_all()) end = RunEnd::violation;
  return end;
}

RunEnd VirtualWorld::run_alone() {
  WorldPart& part = *parts_.front();
  for (std::uint32_t h = 0; h < hosts_->size(); ++h) part.begin(h);
  const bool probing = scenario_.probing.enabled;
  if (probing) part.begin_probing();
  const fabric::NetworkStats& stats = part.network().stats();
  const Picos over = saturating_add(scenario_.duration, Picos{1});
  Picos next_sample = options_.sample ? options_.sample_interval : kNever;
  Picos next_control = options_.control ? options_.control_interval : kNever;
  std::uint64_t housekeeping = events_to_next_look(0, scenario_.max_hops);
  RunEnd end = RunEnd::completed;
  for (;;) {
    const Picos until = earlier(over, earlier(next_sample, next_control));
    const auto work = probing ? &WorldPart::work_probing : &WorldPart::work;
    const auto pause = (part.*work)(until, plan_.messages.size(), housekeeping);
    if (pause == WorldPart::Pause::finished) break;
    if (pause == WorldPart::Pause::time) {
      const Picos time = part.wheel().next_time();
      if (time == kNever) {
        end = RunEnd::stalled;
        break;
      }
      if (time > scenario_.duration) {
        now_ = scenario_.duration;
        end = RunEnd::duration;
        break;
      }
      // One at a time: what is changed may make something happen before the next.
      if (next_sample <= next_control) {
        now_ = next_sample;
        options_.sample(*this, next_sample);
        next_sample += options_.sample_interval;
      } else {
        now_ = next_control;
        controlling_ = true;
        options_.control(*this, next_control);
        controlling_ = false;
        next_control += options_.control_interval;
      }
      continue;
    }
    housekeeping = events_to_next_look(stats.hops, scenario_.max_hops);
    if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) {
      end = RunEnd::stopped;
      break;
    }
    if (scenario_.max_hops != 0 && stats.hops > scenario_.max_hops) {
      end = RunEnd::hop_limit;
      problem_ = "more than max_hops = " + std::to_string(scenario_.max_hops) + " packet-hops";
      break;
    }
    if (options_.progress && bytes_total_ != 0) {
      options_.progress(static_cast<double>(part.bytes_done()) / static_cast<double>(bytes_total_));
    }
  }
  if (end != RunEnd::duration) now_ = part.now();
  part.network().finish(now_);
  return end;
}

// False: the run has to be repeated by one thread, for which the world is ready.
bool VirtualWorld::run_in_parallel(RunEnd& end) {
  std::function<void(Picos)> sample;
  if (options_.sample) {
    sample = [this](Picos at) {
      now_ = at;
      options_.sample(*this, at);
    };
  }
  parallel_ = std::make_unique<ParallelRun>(
      parts_, network().spec(), division_, *hosts_, plan_,
      ParallelRun::Options{scenario_.duration, options_.stop, options_.progress,
                           scenario_.fabric.nvlink_latency, sweeping_, options_.sample_interval,
                           sample});
  const ParallelRun::End how = parallel_->run();
  use_ = parallel_->use();
  if (parts_.size() == 1) use_.threads.clear();
  parallel_.reset();
  bool good = how != ParallelRun::End::misjudged;
  for (const auto& part : parts_) {
    now_ = later(now_, part->now());
    finished_.insert(finished_.end(), part->finished().begin(), part->finished().end());
  }
  // Stable: what one event has finished is in the order in which it did. An event is one part's,
  // except for the agenda of link events.
  std::stable_sort(finished_.begin(), finished_.end(),
                   [](const WorldPart::Finished& a, const WorldPart::Finished& b) {
                     return std::pair(a.at, a.actor) < std::pair(b.at, b.actor);
                   });
  for (const WorldPart::Finished& finished : finished_) {
    if (finished.at != WorldPart::kBeforeAll && parts_.front()->shared_actor(finished.actor)) {
      good = false;
    }
  }
  if (!good) {
    sweeping_ = false;
    if (options_.threads > 1)
      one_thread_because_ =
          "the run ended, or hosts connected, at a time that could not be foreseen";
    finished_.clear();
    use_ = {};
    build(1);
    if (options_.restart) options_.restart();
    return false;
  }
  switch (how) {
    case ParallelRun::End::duration:
      now_ = scenario_.duration;
      end = RunEnd::duration;
      break;
    case ParallelRun::End::stalled:
      end = RunEnd::stalled;
      break;
    case ParallelRun::End::stopped:
      end = RunEnd::stopped;
      break;
    default:
      end = RunEnd::completed;
      break;
  }
  for (const auto& part : parts_) part->network().finish(now_);
  for (std::size_t i = 1; i < parts_.size(); ++i) network().gather(parts_[i]->network());
  return true;
}

bool VirtualWorld::check_all() {
  std::string broken = network().check_conservation();
  for (std::uint32_t h = 0; h < hosts_->size() && broken.empty(); ++h) {
    broken = engine(h).view().check_conservation();
    if (broken.empty()) broken = engine(h).view().violation();
    if (!broken.empty()) broken.insert(0, "host " + std::to_string(h) + ": ");
  }
  if (broken.empty()) return true;
  problem_ = broken;
  return false;
}

const std::vector<WorldPart::Finished>& VirtualWorld::finished() const {
  return parts_.size() == 1 && !sweeping_ ? parts_.front()->finished() : finished_;
}

std::uint64_t VirtualWorld::trace_hash() const {
  std::uint64_t h = 0;
  for (const WorldPart::Finished& finished : this->finished()) {
    const MessageRecord& record = records_[finished.message];
    h = world_mix(h ^
                  world_mix(static_cast<std::uint64_t>(record.completed.count) + finished.message) ^
                  (record.failed ? 1U : 0U));
  }
  const fabric::NetworkStats& stats = network().stats();
  for (const std::uint64_t value :
       {stats.hops, stats.hop_bytes, stats.injected_packets, stats.delivered_bytes,
        stats.marked_packets, stats.pause_frames, stats.total_drops(),
        static_cast<std::uint64_t>(stats.pause_time.count)}) {
    h = world_mix(h ^ value);
  }
  return h;
}

// Congestion control of a world changed under way, by its control callback.

void VirtualWorld::reconfigure(const transport::CcSetup& setup, std::uint8_t arm,
                               std::uint8_t epoch) {
  std::vector<std::uint32_t> all(hosts());
  std::iota(all.begin(), all.end(), 0U);
  reconfigure(setup, arm, epoch, all);
}

void VirtualWorld::reconfigure(const transport::CcSetup& setup, std::uint8_t arm,
                               std::uint8_t epoch, std::span<const std::uint32_t> hosts) {
  if (!controlling_) {
    throw std::logic_error("a world is changed only by its control callback");
  }
  for (const std::uint32_t h : hosts) {
    if (h >= hosts_->size()) {
      throw std::invalid_argument("host " + std::to_string(h) + ": allowed is 0 to " +
                                  std::to_string(hosts_->size() - 1));
    }
    const std::string refusal = engine(h).reconfigure_refusal(setup);
    if (!refusal.empty()) {
      throw std::invalid_argument("host " + std::to_string(h) + ": " + refusal);
    }
  }
  for (const std::uint32_t h : hosts) {
    (*hosts_)[h].engine.reconfigure(now_, setup, arm, epoch);
    parts_.front()->schedule_host(h, now_);
  }
}

void VirtualWorld::reconfigure_by_receiver(const std::array<transport::CcSetup, 2>& setups,
                                           std::span<const std::uint8_t> arms, std::uint8_t epoch) {
  if (!controlling_) {
    throw std::logic_error("a world is changed only by its control callback");
  }
  if (arms.size() != hosts_->size()) {
    throw std::invalid_argument("arms of " + std::to_string(arms.size()) + " hosts, there are " +
                                std::to_string(hosts_->size()));
  }
  transport::ArmsByPeer by_peer;
  by_peer.setups = setups;
  by_peer.arm_of[1] = 1;  // a cluster for each arm
  for (std::uint32_t h = 0; h < arms.size(); ++h) {
    if (arms[h] == telemetry::kNoCluster) continue;
    by_peer.places.push_back({wire::IpAddress::v4(setup_.fabric.subnet_base + h + 1), arms[h]});
  }
  for (std::uint32_t h = 0; h < arms.size(); ++h) {
    const std::string refusal = engine(h).reconfigure_refusal(by_peer);
    if (!refusal.empty()) {
      throw std::invalid_argument("host " + std::to_string(h) + ": " + refusal);
    }
  }
  for (std::uint32_t h = 0; h < arms.size(); ++h) {
    by_peer.own_cluster = arms[h];
    (*hosts_)[h].engine.reconfigure(now_, by_peer, epoch);
    parts_.front()->schedule_host(h, now_);
  }
}

transport::CcSetup VirtualWorld::cc_setup(const config::CcConfig& cc) const {
  config::Scenario scenario = scenario_;
  scenario.cc = cc;
  WorldPlan plan = plan_world(scenario);
  if (!plan.error.empty()) throw std::invalid_argument(plan.error);
  return {std::move(plan.engine.primary), std::move(plan.engine.fallback)};
}

// The world under a clock.

// Derives options that are not given from the scenario.
void VirtualWorld::prepare_real_time() {
  RealTimeOptions& real_time = options_.real_time;
  if (real_time.tolerance.count == 0) {
    const std::int64_t round_trip_ns = setup_.engine.base_rtt_ns;
    real_time.tolerance = later(picos_from_nanos(round_trip_ns / 50), picos_from_micros(2));
  }
  if (real_time.transmit_ahead.count < 0) {
    const IdealClock clock(scenario_, 2);
    const std::uint64_t payload = 2 * std::uint64_t{scenario_.transport.payload_bytes};
    real_time.transmit_ahead = serialization_time(clock.wire_bytes(payload), scenario_.fabric.rate);
  }
  setup_.fabric.transmit_ahead = real_time.transmit_ahead;
}

RunEnd VirtualWorld::run_in_real_time() {
  WorldPart& part = *parts_.front();
  for (std::uint32_t h = 0; h < hosts_->size(); ++h) part.begin(h);
  RealTimeRun::Options options;
  options.real_time = options_.real_time;
  options.duration = scenario_.duration;
  options.messages = plan_.messages.size();
  options.max_hops = scenario_.max_hops;
  options.stop = options_.stop;
  if (options_.sample) {
    options.sample_interval = options_.sample_interval;
    options.sample = [this](Picos at) {
      now_ = at;
      options_.sample(*this, at);
    };
  }
  if (options_.progress && bytes_total_ != 0) {
    options.progress = [this](std::uint64_t bytes) {
      options_.progress(static_cast<double>(bytes) / static_cast<double>(bytes_total_));
    };
  }
  RealTimeRun run(part, std::move(options));
  const RealTimeRun::End how = run.run();
  real_time_ = run.report();
  now_ = run.now();
  part.network().finish(now_);
  switch (how) {
    case RealTimeRun::End::completed:
      return RunEnd::completed;
    case RealTimeRun::End::duration:
      return RunEnd::duration;
    case RealTimeRun::End::stalled:
      return RunEnd::stalled;
    case RealTimeRun::End::hop_limit:
      problem_ = "more than max_hops = " + std::to_string(scenario_.max_hops) + " packet-hops";
      return RunEnd::hop_limit;
    case RealTimeRun::End::stopped:
      return RunEnd::stopped;
  }
  return RunEnd::violation;
}

}  // namespace paceline
