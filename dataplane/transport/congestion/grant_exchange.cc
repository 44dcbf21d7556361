#include "dataplane/transport/congestion/grant_exchange.h"

#include <algorithm>
#include <array>

#include "cc/dispatch.h"
#include "cc/port_parts.h"
#include "cc/registry.h"

namespace paceline::transport {

GrantExchange::GrantExchange(EngineCore& core, const CongestionSetups& setups,
                             const PeerDirectory& peers, ControlMessages& messages)
    : core_(core), setups_(setups), peers_(peers), messages_(messages) {
  make_halves();
}

// Makes the halves that do not exist yet. The arbiter serves contexts of both arms.
void GrantExchange::make_halves() {
  if (!setups_.proactive()) return;
  core_.control_active = true;
  const std::uint8_t governing = setups_.governing_arm();
  const cc::ParamBlock& params =
      core_.params_on(governing, setups_.on(governing).primary.algorithm);
  if (uplink_ == nullptr) uplink_ = cc::make_uplink_arbiter(params);
  // The port's own arm governs, if it grants.
  if (setups_.grants() && core_.receiver == nullptr && core_.config.speak_control) {
    core_.receiver = cc::make_downlink_allocator(params);
  }
}

void GrantExchange::take_setup(const CongestionSetups::Before& before) {
  if (!setups_.proactive()) return;
  const std::uint8_t governing = setups_.governing_arm();
  const CcSetup& arbiter = setups_.on(governing);
  // The halves of the new setup take over at once. Contexts that have not changed yet ask them,
  // too: the messages are the same, and a grant is a rate and a ceiling to both algorithms.
  if (setups_.grants() && core_.receiver != nullptr &&
      setups_.own().primary.algorithm != before.receiving) {
    drop_downlink();
  }
  if (arbiter.primary.algorithm != before.governing) uplink_.reset();
  make_halves();
  const cc::ParamBlock& params = core_.params_on(governing, arbiter.primary.algorithm);
  if (uplink_ != nullptr) uplink_->set_params(params);
  if (setups_.grants() && core_.receiver != nullptr) core_.receiver->set_params(params);
}

bool GrantExchange::settle() {
  if (!setups_.proactive()) uplink_.reset();
  return core_.receiver != nullptr;
}

void GrantExchange::drop_downlink() {
  for (std::uint32_t i = 0; i < core_.peers.size(); ++i) core_.peers[i].counters = nullptr;
  core_.receiver.reset();
}

void GrantExchange::send_request(std::uint32_t index, const cc::Event& event, bool close) {
  CongestionContext& context = core_.contexts[index];
  const Peer& peer = core_.peers[context.peer];
  const cc::Decision& decision =
      context.on_fallback ? context.proactive_decision : context.decision;
  RequestMessage request;
  if (!cc::fill_request(context.algorithm, context.state.data(), core_.params_of(context), event,
                        decision, request)) {
    return;
  }
  request.close = close;
  request.traffic_class = context.traffic_class;
  request.echo_wanted = cc::find(context.algorithm)->echo;
  request.arm = context.arm;
  request.epoch = context.epoch;
  request.channel = context.channel;
  messages_.send(peer.control, request, core_.counters.requests_sent);
}

void GrantExchange::update_want(std::uint32_t index, const CongestionContext& context) {
  if (uplink_ == nullptr) return;
  cc::UplinkWant want =
      cc::uplink_want(context.algorithm, context.state.data(), core_.params_of(context));
  want.traffic_class = context.traffic_class;
  uplink_->update(to_nanos(core_.now), index, want);
}

void GrantExchange::forget_context(std::uint32_t index) {
  if (uplink_ != nullptr) uplink_->forget(to_nanos(core_.now), index);
}

std::size_t GrantExchange::poll_uplink(std::span<cc::ShareOutput> out) {
  return uplink_->poll(to_nanos(core_.now), out);
}

void GrantExchange::check_uplink() {
  if (core_.config.check_invariants && violation_.empty()) {
    violation_ = uplink_->check_invariants(to_nanos(core_.now));
  }
}

std::uint32_t GrantExchange::context_of(const wire::IpAddress& source, std::uint8_t traffic_class,
                                        std::uint16_t channel) {
  const std::uint32_t peer = core_.peers.find(source, traffic_class);
  const std::uint32_t context = peer == kNoIndex ? kNoIndex : core_.peers[peer].context;
  if (context != kNoIndex && core_.contexts[context].channel == channel) return context;
  ++core_.counters.control_ignored;
  return kNoIndex;
}

void GrantExchange::on_request(const wire::ParsedPacket& parsed, const RequestMessage& request) {
  const std::uint32_t index = core_.peers.find(parsed.source, request.traffic_class);
  if (index == kNoIndex || core_.receiver == nullptr) {
    ++core_.counters.control_ignored;
    return;
  }
  core_.peers[index].echo = request.echo_wanted;
  core_.peers[index].counters = core_.receiver->on_request(to_nanos(core_.now), index, request);
  // Data that the peer sends from here on belongs to no channel.
  if (request.close) core_.peers[index].counters = nullptr;
}

void GrantExchange::forget_peer(std::uint32_t index) {
  Peer& peer = core_.peers[index];
  if (peer.counters == nullptr) return;
  core_.receiver->forget(to_nanos(core_.now), index);
  peer.counters = nullptr;
}

void GrantExchange::poll_downlink() {
  cc::DownlinkAllocator* receiver = core_.receiver.get();
  if (receiver == nullptr || receiver->next_wake() > to_nanos(core_.now)) return;
  if (core_.unaccounted_bytes != 0) {
    receiver->on_unaccounted_bytes(core_.unaccounted_bytes);
    core_.unaccounted_bytes = 0;
  }
  if (core_.trimmed_bytes != 0) {
    receiver->on_trimmed_bytes(core_.trimmed_bytes);
    core_.trimmed_bytes = 0;
  }
  std::array<cc::ReceiverOutput, 16> out;
  std::size_t n;
  do {
    n = receiver->poll(to_nanos(core_.now), out);
    for (std::size_t i = 0; i < n; ++i) {
      const wire::HeaderTemplate& header = core_.peers[out[i].peer].control;
      const std::uint8_t traffic_class = core_.peers[out[i].peer].traffic_class;
      out[i].grant.traffic_class = traffic_class;
      out[i].grant.peer_count_hint = peers_.peer_count_hint(traffic_class);
      messages_.send(header, out[i].grant, core_.counters.grants_sent);
    }
  } while (n == out.size());
  if (core_.config.check_invariants && violation_.empty()) {
    violation_ = receiver->check_invariants(to_nanos(core_.now));
  }
}

Picos GrantExchange::next_deadline() const {
  Nanos next = core_.receiver == nullptr ? kNeverNanos : core_.receiver->next_wake();
  if (uplink_ != nullptr) next = std::min(next, uplink_->next_wake());
  return to_picos(next);
}

}  // namespace paceline::transport
