#include "tests/bench/load/load_side.h"

#include <algorithm>
#include <array>

#include "dataplane/driver/scenario/real_time_defaults.h"
#include "tests/support/roce_engine.h"

namespace paceline::bench {

namespace {

using namespace transport;

constexpr std::uint64_t kSource = 0x4000'0000;  // virtual addresses, the same at both ends
constexpr std::uint64_t kTarget = 0x8000'0000;

EngineConfig engine_config(const LoadConfig& load, const PortInfo& port) {
  EngineConfig config = test::roce_engine_config(wire::IpAddress::v4(0x0A00'0001 + load.index),
                                                 wire::MacAddress::local(load.index + 1), port,
                                                 cc::AlgorithmId::fixed);
  apply_real_time_defaults(config);
  config.ack_every = load.ack_every;
  config.pacing_catch_up = load.catch_up;
  config.primary.values.front() = load.rate_mbps;  // Fixed::kRateMbps
  return config;
}

}  // namespace

LoadSide::LoadSide(const LoadConfig& config, Port& port)
    : config_(config),
      source_(std::max(config.working_set, config.size) + 64, std::byte{0x5A}),
      target_(source_.size()),
      send_cq_(std::size_t{config.window} * config.queue_pairs * 2 + 64),
      receive_cq_(std::size_t{config.window} * config.queue_pairs * 2 + 64),
      engine_(engine_config(config, port.info()), port) {
  source_key_ = engine_.regions().add_plain(kSource, source_, 0);
  target_key_ =
      engine_.regions().add_plain(kTarget, target_, access::local_write | access::remote_write);
  channels_.resize(config.queue_pairs);
  wanting_.reserve(config.queue_pairs);
  for (std::uint64_t i = 0; i < channels_.size(); ++i) {
    Channel& channel = channels_[i];
    // Both ends may have their window under way, and the answers to the other's.
    const std::size_t depth = std::size_t{config.window} * 2 + 64;
    receives_.push_back(std::make_unique<ReceiveQueue>(depth));
    QpConfig qp;
    qp.send_cq = &send_cq_;
    qp.receive_cq = &receive_cq_;
    qp.receive_queue = receives_.back().get();
    qp.send_queue_depth = static_cast<std::uint16_t>(depth);
    // A thread may lose its processor for long: not a loss.
    qp.retransmit_timeout = picos_from_micros(200'000);
    qp.retry_count = 255;
    channel.qp = engine_.create_qp(qp);
    channel.sent.resize(config.window);
    if (config.load != Load::write) {
      for (std::size_t n = 0; n < depth; ++n) post_receive(i);
    }
  }
}

// Both ends are built alike, so each knows what the other has.
bool LoadSide::connect() {
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    QpAddress peer = engine_.address_of(channels_[i].qp, Psn(7));
    peer.ip = wire::IpAddress::v4(0x0A00'0002 - config_.index);
    peer.mac = wire::MacAddress::local(2 - config_.index);
    if (!engine_.connect({0}, channels_[i].qp, peer, Psn(7),
                         static_cast<std::uint16_t>(kFirstSourcePort + i))) {
      return false;
    }
  }
  return true;
}

void LoadSide::fail(const std::string& what) {
  if (result_.problem.empty()) result_.problem = what;
  finished_.store(true, std::memory_order_release);
}

// Has room for another message, or an answer to give.
void LoadSide::want(Channel& channel) {
  if (channel.wants) return;
  channel.wants = true;
  wanting_.push_back(static_cast<std::uint32_t>(&channel - channels_.data()));
}

void LoadSide::post_receive(std::uint64_t channel) {
  receives_[channel]->post({channel, kTarget, config_.size, target_key_});
}

bool LoadSide::post(Picos now, Channel& channel) {
  const std::uint64_t index = static_cast<std::uint64_t>(&channel - channels_.data());
  bool any = false;
  for (;;) {
    if (asks() ? channel.outstanding == config_.window : channel.echoes_due == 0) break;
    WorkRequest request;
    request.wr_id = index;
    request.opcode = config_.load == Load::write ? WorkOpcode::write : WorkOpcode::send;
    request.length = config_.size;
    if (place_ + config_.size > config_.working_set) place_ = 0;
    request.local_address = kSource + place_;
    request.local_key = source_key_;
    request.remote_address = kTarget + place_;
    request.remote_key = target_key_;
    const PostResult result = engine_.post_send(now, channel.qp, request);
    if (result == PostResult::queue_full) {
      fail("a send queue that should have room is full");
      return any;
    }
    if (result != PostResult::ok) {
      fail("a post was refused");
      return any;
    }
    any = true;
    place_ += (config_.size + 63U) & ~63U;
    if (asks()) {
      ++channel.outstanding;
      channel.sent[channel.posted++ % config_.window] = now;
    } else {
      --channel.echoes_due;
    }
  }
  return any;
}

bool LoadSide::take(Picos now) {
  bool any = false;
  const bool echoed = config_.load == Load::echo;
  for (std::size_t n; (n = send_cq_.poll(batch_)) != 0;) {
    for (std::size_t i = 0; i < n; ++i) {
      const Completion& c = batch_[i];
      if (c.status != CompletionStatus::success) {
        fail(to_string(c.status));
        return any;
      }
      if (!asks() || echoed) continue;
      Channel& channel = channels_[c.wr_id];
      --channel.outstanding;
      want(channel);
      ++completed_;
      any = true;
    }
  }
  for (std::size_t n; (n = receive_cq_.poll(batch_)) != 0;) {
    any = true;
    for (std::size_t i = 0; i < n; ++i) {
      const Completion& c = batch_[i];
      if (c.status != CompletionStatus::success) {
        fail(to_string(c.status));
        return any;
      }
      Channel& channel = channels_[c.wr_id];
      post_receive(c.wr_id);
      if (!echoed) continue;
      if (!asks()) {
        ++channel.echoes_due;
        want(channel);
        continue;
      }
      --channel.outstanding;
      want(channel);
      ++completed_;
      const Picos since = now - channel.sent[channel.answered++ % config_.window];
      if (measuring_) round_trips_.record(static_cast<std::uint64_t>(since.count / 1000));
    }
  }
  return any;
}

void LoadSide::measure(Picos now) {
  if (started_.count < 0) {
    // The clock of the asking end starts with the first completion: the peer may come later.
    if (completed_ == 0 && asks()) return;
    started_ = now;
  }
  const telemetry::EngineCounters& c = engine_.counters();
  const auto counted = [&] {
    LoadResult r;
    r.elapsed = now;
    r.messages = completed_;
    r.bytes = completed_ * config_.size;
    r.tx_packets = c.tx_data_packets;
    r.retransmitted = c.retransmitted_packets;
    r.turns = turns_;
    return r;
  };
  if (!measuring_ && now - started_ >= config_.warm_up) {
    measuring_ = true;
    begin_ = counted();
    if (at_begin) at_begin();
  } else if (measuring_ && now - begin_.elapsed >= config_.duration) {
    const LoadResult end = counted();
    result_.elapsed = now - begin_.elapsed;
    result_.messages = end.messages - begin_.messages;
    result_.bytes = end.bytes - begin_.bytes;
    result_.tx_packets = end.tx_packets - begin_.tx_packets;
    result_.retransmitted = end.retransmitted - begin_.retransmitted;
    result_.turns = end.turns - begin_.turns;
    if (at_end) at_end();
    finished_.store(true, std::memory_order_release);
  }
}

void LoadSide::begin_channels(Picos now) {
  if (first_step_.count < 0) first_step_ = now;
  const auto count = static_cast<std::int64_t>(channels_.size());
  while (begun_ < channels_.size() &&
         now - first_step_ >= Picos{config_.stagger.count / count * begun_}) {
    want(channels_[begun_++]);
  }
}

bool LoadSide::step(Picos now) {
  ++turns_;
  if (asks() && begun_ < channels_.size()) begin_channels(now);
  const bool took = take(now);
  bool posted = false;
  if (asks() ? !finished_.load(std::memory_order_relaxed) : config_.load == Load::echo) {
    for (const std::uint32_t index : wanting_) {
      channels_[index].wants = false;
      posted = post(now, channels_[index]) || posted;
    }
    wanting_.clear();
  }
  if (asks() && !finished_.load(std::memory_order_relaxed)) measure(now);
  return took || posted;
}

}  // namespace paceline::bench
