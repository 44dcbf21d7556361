#include "tests/soak/world.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "cc/registry.h"
#include "tests/soak/reliable_stream.h"
#include "tests/soak/troubled_pair.h"
#include "tests/soak/unreliable_stream.h"

namespace paceline::soak {

using transport::QpType;

namespace {

constexpr std::size_t kMemoryBytes = std::size_t{32} << 20;
constexpr std::uint64_t kReliableBytes = std::uint64_t{1} << 19;
constexpr std::uint64_t kUnreliableBytes = std::uint64_t{2} << 20;
constexpr std::uint64_t kLargest = 400'000;
constexpr std::uint64_t kLargestUnreliable = 12'000;
constexpr std::uint32_t kQkey = 0x1234;
constexpr Picos kStuck = picos_from_micros(5'000'000);
constexpr Picos kQuietWithin = picos_from_micros(1'000'000);

wire::IpAddress ip_of(unsigned side) { return wire::IpAddress::v4(0x0A00'0001 + side); }
wire::MacAddress mac_of(unsigned side) { return wire::MacAddress::local(1 + side); }

}  // namespace

World::World(const Options& options, std::uint64_t seed)
    : options_(options),
      mode_(*find_mode(options.mode)),
      seed_(seed),
      random_(seed, 1),
      changes_(seed, 2),
      completions_(512) {
  make_hosts();
  for (unsigned side = 0; side < 2; ++side) {
    Host& host = *stage_.hosts[side];
    stage_.counters[side].offset = take_memory(64);
    std::memset(host.memory.data() + stage_.counters[side].offset, 0, 8);
    constexpr std::uint64_t kBytes = 16'384;
    constexpr std::uint32_t kCount = 96;
    const std::uint64_t place = take_memory(Buffers::room(kBytes, kCount));
    stage_.shared[side] =
        std::make_unique<Buffers>(host, place, kBytes, kCount, transport::ReceiveSharing::shared);
  }
  make_reliable(6);
  make_unreliable(QpType::uc);
  make_unreliable(QpType::ud);
  if (mode_.trouble) make_troubled(3);
}

World::~World() {
  // Packets that were set aside go home before their pool.
  for (auto& host : stage_.hosts) host->weather.take_back();
}

void World::make_hosts() {
  constexpr std::uint64_t kGbps[] = {10, 25, 100, 400};
  constexpr std::int64_t kDelayNs[] = {200, 1000, 4000};
  constexpr std::uint32_t kAckEvery[] = {1, 2, 8, 16};
  constexpr cc::AlgorithmId kAlgorithms[] = {cc::AlgorithmId::fixed, cc::AlgorithmId::dcqcn,
                                             cc::AlgorithmId::cadence};
  const std::uint64_t gbps = kGbps[random_.below(std::size(kGbps))];
  const Picos delay = picos_from_nanos(kDelayNs[random_.below(std::size(kDelayNs))]);
  const cc::AlgorithmId algorithm = kAlgorithms[seed_ % std::size(kAlgorithms)];
  PortInfo info;
  info.link_rate = rate_from_gbps(gbps);
  info.payload_room = kMtu;
  info.tx_burst = random_.below(2) == 0 ? 1 : 8;
  info.computes_icrc = false;

  transport::EngineConfig config;
  config.payload_mtu = kMtu;
  config.ack_every = kAckEvery[random_.below(std::size(kAckEvery))];
  config.check_invariants = true;
  config.base_rtt_ns = static_cast<std::uint32_t>(
      2 * delay.count / 1000 + serialization_time(kMtu + 150, info.link_rate).count / 1000);
  config.primary = choose_cc(algorithm, info.link_rate, config.base_rtt_ns);
  config.fallback = choose_cc(cc::AlgorithmId::dcqcn, info.link_rate, config.base_rtt_ns);
  mode_.configure(config);

  // A pool that is too small now and then makes engines go without: as if the packet were lost.
  const bool scarce = random_.below(4) == 0;
  pool_ = std::make_unique<PacketPool>(scarce ? 192 : 4096, kMtu, !scarce);
  Impairments impairments;
  impairments.drop = options_.loss;
  impairments.reorder = options_.reorder;
  impairments.duplicate = options_.duplicate;
  impairments.corrupt = options_.corrupt;
  impairments.mark = 0.01;
  for (unsigned side = 0; side < 2; ++side) {
    config.address = ip_of(side);
    config.mac = mac_of(side);
    stage_.hosts[side] =
        std::make_unique<Host>(info, delay, *pool_, impairments, config, kMemoryBytes, seed_, side);
    stage_.hosts[side]->weather.set_listener(*this);
    if (options_.hash) stage_.hosts[side]->port.record(trail_, side, options_.frames);
  }
  stage_.hosts[0]->port.join(stage_.hosts[1]->port);
  stage_.hosts[1]->port.join(stage_.hosts[0]->port);
  step_ = serialization_time(16'000, info.link_rate);
  description_ = fmt::format("{} Gb/s, {} ns, {}, ACK every {}, bursts of {}{}", gbps,
                             delay.count / 1000, cc::find(algorithm)->name, config.ack_every,
                             info.tx_burst, scarce ? ", few packets" : "");
}

std::uint64_t World::take_memory(std::uint64_t bytes) {
  const std::uint64_t at = memory_used_;
  memory_used_ += (bytes + 63) & ~std::uint64_t{63};
  require(memory_used_ <= kMemoryBytes, "the soak itself: too little memory");
  return at;
}

World::Ends& World::ends(unsigned side, std::uint32_t qp_number) {
  constexpr std::uint32_t kIndexMask = (1U << transport::EngineCore::kQpnIndexBits) - 1;
  const std::uint32_t slot = (qp_number & kIndexMask) - 16;
  std::vector<Ends>& list = by_slot_[side];
  if (slot >= list.size()) list.resize(slot + 1);
  return list[slot];
}

void World::join(std::unique_ptr<Stream> forth, std::unique_ptr<Stream> back, std::uint32_t a,
                 std::uint32_t b) {
  ends(0, a) = {forth.get(), back.get()};
  ends(1, b) = {back.get(), forth.get()};
  streams_.push_back(std::move(forth));
  streams_.push_back(std::move(back));
}

void World::make_reliable(unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    constexpr std::uint16_t kMtus[] = {256, 512, 1024, 1024, 2048, 4096};
    transport::QpConfig config;
    config.path_mtu = kMtus[random_.below(std::size(kMtus))];
    config.send_queue_depth = static_cast<std::uint16_t>(1U << (2 + random_.below(6)));
    config.max_rd_atomic = config.max_dest_rd_atomic =
        static_cast<std::uint8_t>(1U << random_.below(5));
    config.max_inline = random_.below(2) == 0 ? 0 : 220;
    config.max_send_segments = random_.below(2) == 0 ? 1 : Pieces::kMost;
    // A round without progress is bad luck here, and not the end.
    config.retry_count = 200;
    config.min_rnr_timer = static_cast<std::uint8_t>(1 + random_.below(4));
    config.retransmit_timeout = picos_from_micros(200);
    std::array<ReliableSetup, 2> setups;
    std::array<std::uint32_t, 2> numbers{};
    std::array<Psn, 2> first;
    for (unsigned side = 0; side < 2; ++side) {
      Host& host = *stage_.hosts[side];
      ReliableSetup& coming = setups[1 - side];  // the stream whose target this side is
      coming.shared_receives = random_.below(3) == 0;
      config.send_cq = &host.send_cq;
      config.receive_cq = &host.receive_cq;
      if (coming.shared_receives) {
        config.receive_queue = &stage_.shared[side]->queue();
      } else {
        queues_.push_back(std::make_unique<transport::ReceiveQueue>(
            128, transport::ReceiveSharing::owned, Pieces::kMost));
        config.receive_queue = queues_.back().get();
      }
      numbers[side] = host.engine.create_qp(config);
      // Half of them wrap soon.
      first[side] = Psn(static_cast<std::uint32_t>(
          random_.below(2) == 0 ? 0xFF'FFFF - random_.below(3000) : random_.below(0x100'0000)));
    }
    std::array<std::unique_ptr<Stream>, 2> streams;
    for (unsigned side = 0; side < 2; ++side) {
      Host& host = *stage_.hosts[side];
      const transport::QpAddress remote =
          stage_.hosts[1 - side]->engine.address_of(numbers[1 - side], first[1 - side]);
      require(host.engine.connect(stage_.now, numbers[side], remote, first[side],
                                  static_cast<std::uint16_t>(0xC000 + i)),
              "queue pairs do not connect");
      ReliableSetup& setup = setups[side];
      setup.from = side;
      setup.qp = numbers[side];
      setup.peer = numbers[1 - side];
      setup.mtu = config.path_mtu;
      setup.bytes = kReliableBytes;
      setup.base = take_memory(setup.bytes);
      setup.largest = kLargest;
      setup.max_inline = config.max_inline;
      setup.segments = config.max_send_segments;
      setup.slow_memory = random_.below(3) == 0;
      setup.reads = random_.below(4) != 0;  // without, answers go another way
      streams[side] =
          std::make_unique<ReliableStream>(stage_, setup, Random(seed_, 100 + 2 * i + side));
    }
    join(std::move(streams[0]), std::move(streams[1]), numbers[0], numbers[1]);
  }
}

void World::make_unreliable(QpType type) {
  const bool ud = type == QpType::ud;
  constexpr std::uint16_t kMtus[] = {256, 1024, 4096};
  transport::QpConfig config;
  config.type = type;
  config.qkey = kQkey;
  config.path_mtu = ud ? std::uint16_t{kMtu} : kMtus[random_.below(std::size(kMtus))];
  config.send_queue_depth = 32;
  std::array<UnreliableSetup, 2> setups;
  std::array<std::uint32_t, 2> numbers{};
  for (unsigned side = 0; side < 2; ++side) {
    Host& host = *stage_.hosts[side];
    const std::uint64_t bytes = ud ? kMtu + transport::kGrhBytes : kLargestUnreliable;
    const std::uint32_t count = 64;
    buffers_.push_back(std::make_unique<Buffers>(host, take_memory(Buffers::room(bytes, count)),
                                                 bytes, count, transport::ReceiveSharing::owned));
    buffers_.back()->give(count);
    setups[1 - side].buffers = buffers_.back().get();
    config.send_cq = &host.send_cq;
    config.receive_cq = &host.receive_cq;
    config.receive_queue = &buffers_.back()->queue();
    numbers[side] = host.engine.create_qp(config);
    setups[side].first_psn = Psn(static_cast<std::uint32_t>(0xFF'FFFF - random_.below(3000)));
  }
  std::array<std::unique_ptr<Stream>, 2> streams;
  for (unsigned side = 0; side < 2; ++side) {
    Host& host = *stage_.hosts[side];
    UnreliableSetup& setup = setups[side];
    if (ud) {
      transport::QpAttributes a;
      a.qkey = kQkey;
      a.sq_psn = setup.first_psn;
      using transport::QpState;
      for (const QpState to : {QpState::init, QpState::rtr, QpState::rts}) {
        a.state = to;
        const std::uint32_t mask =
            transport::transition_rule(type, host.engine.view().state_of(numbers[side]), to)
                .required;
        require(host.engine
                    .modify_qp(stage_.now, numbers[side], a, mask | transport::qp_attribute::state)
                    .ok(),
                "a UD queue pair does not become ready");
      }
      transport::QpPath path;
      path.ip = ip_of(1 - side);
      path.mac = mac_of(1 - side);
      path.source_port = 0xC0DE;
      setup.handle = host.engine.create_address_handle(stage_.now, 0, path);
      path.traffic_class = 5;
      setup.other_handle = host.engine.create_address_handle(stage_.now, 0, path);
      setup.qkey = kQkey;
    } else {
      const transport::QpAddress remote =
          stage_.hosts[1 - side]->engine.address_of(numbers[1 - side], setups[1 - side].first_psn);
      require(host.engine.connect(stage_.now, numbers[side], remote, setup.first_psn, 0xC0C0),
              "queue pairs do not connect");
    }
    setup.from = side;
    setup.qp = numbers[side];
    setup.peer = numbers[1 - side];
    setup.mtu = config.path_mtu;
    setup.bytes = kUnreliableBytes;
    setup.base = take_memory(setup.bytes);
    setup.largest = ud ? kMtu : kLargestUnreliable;
    streams[side] =
        std::make_unique<UnreliableStream>(stage_, setup, Random(seed_, (ud ? 300U : 200U) + side));
  }
  join(std::move(streams[0]), std::move(streams[1]), numbers[0], numbers[1]);
}

void World::make_troubled(unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    troubled_.push_back(std::make_unique<TroubledPair>(stage_, take_memory(TroubledPair::kBytes),
                                                       static_cast<std::uint16_t>(0xC080 + i),
                                                       Random(seed_, 400 + i)));
    TroubledPair& pair = *troubled_.back();
    // Each draws a seed: not as two arguments of one call, whose order compilers choose.
    auto second = pair.stream(1);
    auto first = pair.stream(0);
    join(std::move(first), std::move(second), pair.qp(0), pair.qp(1));
  }
}

void World::on_weather(std::uint32_t qp_number, Psn psn, const ImpairmentVerdict& verdict) {
  // Numbers of the two sides differ by who receives; weather is told by the receiving side only.
  Ends& e = ends(weather_side_, qp_number);
  if (e.receives != nullptr) e.receives->on_weather(psn, verdict);
}

std::uint64_t World::packets() const {
  return stage_.hosts[0]->port.sent() + stage_.hosts[1]->port.sent();
}

bool World::finished() const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const auto& stream) { return stream->finished(); });
}

void World::take_completions(unsigned side) {
  Host& host = *stage_.hosts[side];
  for (const bool sent : {false, true}) {
    transport::CompletionQueue& queue = sent ? host.send_cq : host.receive_cq;
    while (!queue.empty()) {
      const std::size_t n = queue.poll(completions_);
      last_completion_ = stage_.now;
      for (std::size_t i = 0; i < n; ++i) {
        const transport::Completion& c = completions_[i];
        Ends& e = ends(side, c.qp_number);
        Stream* stream = sent ? e.sends : e.receives;
        require(stream != nullptr, "a completion of queue pair {:#x}, which nobody has",
                c.qp_number);
        if (options_.hash) note(c);
        sent ? stream->on_sent(c) : stream->on_received(c);
        stream->post();
      }
    }
  }
}

void World::check_engine(unsigned side) {
  const transport::Engine& engine = stage_.hosts[side]->engine;
  const std::string broken = engine.view().check_conservation();
  require(broken.empty(), "host {}: {}", side, broken);
}

void World::poll(unsigned side) {
  Host& host = *stage_.hosts[side];
  host.touched = false;
  weather_side_ = side;
  host.port.set_now(stage_.now);
  host.slow.set_now(stage_.now);
  polled_[side] = stage_.now;
  if (mode_.trouble && polls_ % 2 == 0) look_ahead(host.engine);
  host.engine.poll(stage_.now);
  require(host.engine.next_deadline() > stage_.now,
          "host {}: next_deadline() is not later than the poll", side);
  require(host.engine.view().violation().empty(), "host {}: {}", side,
          host.engine.view().violation());
  if (++polls_ % 256 == 0) check_engine(side);
  check_events(side);
  take_completions(side);
}

// Loads what the poll will read, and changes nothing.
void World::look_ahead(const transport::Engine& engine) {
  engine.lookahead().load_state();
  engine.lookahead().load_deadlines();
  engine.lookahead().load_flow(nullptr);
  engine.lookahead().load_flow_parts(nullptr);
  engine.lookahead().load_request(nullptr);
}

// But for queue pairs in trouble nothing here is a reason for an event. Those of the peer may say
// more than the flushed receives that come first.
void World::check_events(unsigned side) {
  transport::AsyncEvent event;
  while (stage_.hosts[side]->engine.poll_events({&event, 1}) != 0) {
    const Stream* stream = event.qp_number == 0 ? nullptr : ends(side, event.qp_number).sends;
    require(stream != nullptr && stream->expects_events(), "host {}: event {} of queue pair {:#x}",
            side, static_cast<int>(event.kind), event.qp_number);
    if (options_.hash) completed_.add(static_cast<std::uint64_t>(event.kind));
  }
}

// Time for the applications.
void World::step() {
  if (mode_.changes && !stage_.closing && changes_.below(32) == 0) change();
  for (auto& shared : stage_.shared) {
    if (random_.below(3) == 0) shared->give(static_cast<std::uint32_t>(random_.below(24)));
  }
  for (auto& stream : streams_) stream->step();
  next_step_ =
      stage_.now +
      Picos{static_cast<std::int64_t>(random_.below(2 * static_cast<std::uint64_t>(step_.count)))} +
      Picos{1};
}

// To the next thing that happens; false when nothing will.
bool World::advance() {
  Picos next = next_step_;
  std::array<Picos, 2> due{};
  std::array<Picos, 2> answers{};
  for (unsigned side = 0; side < 2; ++side) {
    Host& host = *stage_.hosts[side];
    answers[side] = host.slow.next();
    // What a poll has left behind the next one takes, and what is to be sent leaves in time.
    const Picos arrival = host.weather.rx_ready_at();
    const Picos found = arrival <= polled_[side] ? stage_.now : mode_.poll_time(arrival);
    due[side] =
        host.touched ? stage_.now : later(stage_.now, earlier(host.engine.next_deadline(), found));
    next = earlier(next, earlier(due[side], answers[side]));
  }
  if (next == kNever) return false;
  stage_.now = later(stage_.now, next);
  if (next_step_ <= stage_.now) step();
  for (unsigned side = 0; side < 2; ++side) {
    Host& host = *stage_.hosts[side];
    if (answers[side] <= stage_.now) {
      answers_.clear();
      host.slow.take_due(stage_.now, answers_);
      for (const std::uint32_t qp : answers_) {
        host.slow.answer_next();
        host.engine.memory_ready(stage_.now, qp);
      }
      host.touched = true;
    }
    if (due[side] <= stage_.now || host.touched) poll(side);
  }
  return true;
}

void World::check_end() {
  Totals totals;
  std::uint64_t held = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t failed = 0;
  std::uint64_t refused = 0;
  for (auto& stream : streams_) {
    stream->check_finished();
    stream->add_to(totals);
  }
  for (unsigned side = 0; side < 2; ++side) {
    Host& host = *stage_.hosts[side];
    check_engine(side);
    require(host.engine.view().inflight_bytes() == 0, "host {}: bytes in flight at the end", side);
    require(host.engine.next_deadline() == kNever, "host {}: a timer runs at the end", side);
    const CableEnd& from = stage_.hosts[1 - side]->port;
    require(from.sent() == host.port.arrived(), "host {}: {} packets were sent to it, {} arrived",
            side, from.sent(), host.port.arrived());
    const ImpairmentCounters& w = host.weather.counters();
    const telemetry::EngineCounters& c = host.engine.counters();
    require(c.rx_packets == w.passed, "host {}: {} packets passed, {} were counted", side, w.passed,
            c.rx_packets);
    held += host.port.arrived() + w.duplicated - w.dropped - w.passed;
    // One flipped bit is found, by the ICRC or what else a packet must be, but where nothing
    // protects it: then it reaches nobody who cares.
    const std::uint64_t found = telemetry::malformed_total(c);
    require(found <= w.corrupted, "host {}: {} malformed packets, {} were damaged", side, found,
            w.corrupted);
    sent_bytes += c.tx_data_bytes;
    failed += c.completion_errors;
    refused += c.error_naks_sent;
    require(c.cq_overflows == 0 && c.digest_mismatches == 0, "host {}: errors were counted", side);
    const SharedCounter& counter = stage_.counters[side];
    std::uint64_t value;
    std::memcpy(&value, host.memory.data() + counter.offset, sizeof value);
    require(value == counter.posted && counter.found == counter.posted,
            "host {}: the shared counter is {} after {} additions, {} of them answered", side,
            value, counter.posted, counter.found);
  }
  require(mode_.trouble == (failed != 0) && mode_.trouble == (refused != 0),
          "{} requests failed, {} were refused", failed, refused);
  // What a queue pair in trouble has posted may be flushed.
  require(mode_.trouble || sent_bytes == totals.reliable_bytes + totals.unreliable_bytes,
          "{} bytes were posted, {} sent for the first time",
          totals.reliable_bytes + totals.unreliable_bytes, sent_bytes);
  // A queue pair whose peer is in error does not know: it still waits for what it misses.
  std::uint64_t early = 0;
  for (auto& host : stage_.hosts) early += host->engine.view().held_packets();
  require(mode_.trouble || early == 0, "{} packets wait for others at the end", early);
  require(pool_->in_use() == held + early, "{} packets are not home, {} are set aside, {} wait",
          pool_->in_use(), held, early);
  for (auto& host : stage_.hosts) host->weather.take_back();
  require(pool_->in_use() == early, "{} packets are not home, {} wait", pool_->in_use(), early);
}

void World::fail_stuck() const {
  std::string states;
  for (const auto& stream : streams_) {
    if (!stream->finished()) states += "\n  " + stream->state();
  }
  throw Broken(fmt::format("nothing has completed for {} ms; after {} packets:{}",
                           kStuck.count / 1'000'000'000, packets(), states));
}

Totals World::run(const std::function<void(std::uint64_t)>& progress) {
  std::uint64_t report_at = 0;
  Picos finished_at{-1};
  for (;;) {
    const std::uint64_t sent = packets();
    if (sent >= report_at) {
      progress(sent);
      report_at = sent + 10'000;
    }
    if (sent >= options_.packets) stage_.closing = true;
    if (stage_.closing && finished_at.count < 0 && finished()) {
      finished_at = stage_.now;
      next_step_ = kNever;
    }
    if (!advance()) break;
    if (finished_at.count < 0 && stage_.now - last_completion_ > kStuck) fail_stuck();
    require(finished_at.count < 0 || stage_.now - finished_at < kQuietWithin,
            "not quiet {} ms after the last completion", kQuietWithin.count / 1'000'000'000);
  }
  check_end();
  Totals totals;
  totals.packets = packets();
  for (auto& stream : streams_) stream->add_to(totals);
  for (auto& host : stage_.hosts) {
    const telemetry::EngineCounters& c = host->engine.counters();
    totals.retransmitted += c.retransmitted_packets;
    totals.timeouts += c.timeouts;
    totals.rnr += c.rnr_sent;
    totals.damaged_found += telemetry::malformed_total(c);
    totals.damaged += host->weather.counters().corrupted;
  }
  return totals;
}

}  // namespace paceline::soak
