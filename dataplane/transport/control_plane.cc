#include "dataplane/transport/control_plane.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cc/port_parts.h"
#include "cc/registry.h"
#include "dataplane/transport/scheduler.h"
#include "dataplane/wire/build.h"
#include "dataplane/wire/control.h"
#include "dataplane/wire/dscp.h"

namespace paceline::transport {

namespace {

// What a proactive algorithm goes on hearing while its fallback decides (cc/cadence/cadence.h).
constexpr std::uint32_t kProactiveSignals =
    cc::signal_bit(cc::Signal::message) | cc::signal_bit(cc::Signal::idle) |
    cc::signal_bit(cc::Signal::grant) | cc::signal_bit(cc::Signal::share) |
    cc::signal_bit(cc::Signal::tick) | cc::signal_bit(cc::Signal::port_down) |
    cc::signal_bit(cc::Signal::port_up);

std::uint32_t mbps_of(Rate rate) { return static_cast<std::uint32_t>(rate.bps / 1'000'000); }

}  // namespace

ControlPlane::ControlPlane(EngineCore& core, Scheduler& scheduler)
    : core_(core), scheduler_(scheduler) {
  const EngineConfig& config = core_.config;
  crowd_ = crowd_of(config.expected_peers);
  setup_ = {config.primary, config.fallback};
  take_values(setup_, core_.params);
  proactive_ = grants_ = is_proactive(setup_.primary.algorithm);
  make_port_parts();
}

// The primary algorithm's go last: where the fallback is the same, it is not used.
void ControlPlane::take_values(const CcSetup& setup, ParamTable& into) {
  for (const CcChoice* choice : {&setup.fallback, &setup.primary}) {
    cc::ParamBlock params = cc::make_param_block(choice->algorithm, choice->values, core_.facts);
    watch_plugin(params);
    into.put(params, core_.config.params);
  }
}

// What a proactive algorithm has once for the port, as far as it is not there yet. The governor
// serves contexts of both arms.
void ControlPlane::make_port_parts() {
  if (!proactive_) return;
  core_.control_active = true;
  const std::uint8_t governing = governing_arm();
  const cc::ParamBlock& params = core_.params_on(governing, setup_on(governing).primary.algorithm);
  if (sender_ == nullptr) sender_ = cc::make_port_sender(params);
  // Its own arm governs, if it grants.
  if (grants_ && core_.receiver == nullptr && core_.config.speak_control) {
    core_.receiver = cc::make_port_receiver(params);
  }
}

void ControlPlane::start_algorithm(std::uint32_t index, CongestionContext& context,
                                   cc::AlgorithmId algorithm, const cc::Handover* handover) {
  context.side = core_.peers[context.peer].arm;
  context.algorithm = algorithm;
  const cc::ParamBlock& params = core_.params_of(context);
  context.channel = static_cast<std::uint16_t>(index);
  const cc::AlgorithmInfo* info = cc::find(params.id);
  context.wants = info == nullptr ? 0 : info->wants;
  context.proactive = info != nullptr && info->proactive;
  context.on_fallback = false;
  cc::Event event;
  event.now = to_nanos(core_.now);
  event.sent_total = context.sent_total;
  event.signal = cc::Signal::start;
  event.handover = handover;
  if (context.peer != kNoIndex) event.crowd = core_.peers[context.peer].crowd;
  cc::start_state(params.id, context.state.data(), params, event, context.decision);
  if (context.decision.fallback) enter_fallback(context, event);
  if (context.proactive) update_sender(index, context);
}

void ControlPlane::update_sender(std::uint32_t index, const CongestionContext& context) {
  if (sender_ == nullptr) return;
  sender_->update(
      to_nanos(core_.now), index,
      cc::uplink_want(context.algorithm, context.state.data(), core_.params_of(context)));
}

void ControlPlane::dispatch(std::uint32_t index, CongestionContext& context,
                            const cc::Event& event) {
  const cc::ParamBlock& params = core_.params_of(context);
  if (!context.on_fallback) {
    cc::dispatch(context.algorithm, context.state.data(), params, event, context.decision);
    if (context.decision.fallback) enter_fallback(context, event);
    if (context.proactive) update_sender(index, context);
    return;
  }
  // Two algorithms live here: the proactive one listens and probes, the reactive one decides.
  cc::Decision& proactive = context.proactive_decision;
  if ((kProactiveSignals & cc::signal_bit(event.signal)) != 0) {
    cc::dispatch(context.algorithm, context.state.data(), params, event, proactive);
    update_sender(index, context);
    if (!proactive.fallback) {
      context.on_fallback = false;
      context.decision = proactive;
      context.wants = cc::find(context.algorithm)->wants;
      return;
    }
  }
  context.decision.wake_at = kNeverNanos;
  cc::dispatch(context.fallback, context.fallback_state.data(),
               core_.params_on(context.side, context.fallback), event, context.decision);
  context.decision.ceiling = cc::kUnlimited;
  context.decision.request = proactive.request;
  proactive.request = false;
  // A poll that comes late hears of packets before timers: the proactive one's may have passed.
  const Nanos wake_at = std::max(proactive.wake_at, Nanos{event.now.count + 1});
  if (wake_at < context.decision.wake_at) context.decision.wake_at = wake_at;
  context.decision.timed = proactive.timed;
}

void ControlPlane::enter_fallback(CongestionContext& context, const cc::Event& event) {
  ++core_.counters.fallbacks;
  context.on_fallback = true;
  context.proactive_decision = context.decision;
  begin_fallback(context, event);
}

// The fallback takes over from whoever has decided so far.
void ControlPlane::begin_fallback(CongestionContext& context, const cc::Event& event) {
  cc::Handover handover;
  handover.rate = context.decision.rate;
  handover.inflight_bytes = context.inflight_bytes;
  cc::Event start = event;
  start.signal = cc::Signal::start;
  start.handover = &handover;
  context.fallback = setup_on(context.side).fallback.algorithm;
  const cc::ParamBlock& params = core_.params_on(context.side, context.fallback);
  cc::start_state(params.id, context.fallback_state.data(), params, start, context.decision);
  context.decision.ceiling = cc::kUnlimited;
  context.decision.request = context.proactive_decision.request;
  context.proactive_decision.request = false;
  context.decision.wake_at = std::min(context.decision.wake_at, context.proactive_decision.wake_at);
  context.decision.timed = context.proactive_decision.timed;
  // The round trips that one asked for are no acknowledgements to the other.
  context.wants =
      (cc::find(context.algorithm)->wants & ~cc::kWantsRoundTrips) | cc::find(params.id)->wants;
}

template <class Message>
void ControlPlane::send_control(const wire::HeaderTemplate& header, const Message& message,
                                std::uint64_t& counter) {
  Packet* packet = core_.alloc_headers_only();
  if (packet == nullptr) return;  // as if lost: every message is repeated until answered
  packet->header_bytes = static_cast<std::uint16_t>(wire::build_control(
      header, wire::HeaderBuffer{packet->header}, Psn(control_sequence_++), message));
  packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  ++counter;
  core_.counters.control_bytes +=
      core_.info.wire.wire_bytes(packet->frame_bytes(), packet->payload_bytes);
  core_.queue_control(packet);
}

void ControlPlane::send_request(std::uint32_t index, const cc::Event& event, bool close) {
  CongestionContext& context = core_.contexts[index];
  const Peer& peer = core_.peers[context.peer];
  RequestMessage request;
  if (!cc::fill_request(context.algorithm, context.state.data(), core_.params_of(context), event,
                        request)) {
    return;
  }
  request.close = close;
  request.traffic_class = context.traffic_class;
  request.echo_wanted = cc::find(context.algorithm)->echo;
  request.arm = context.arm;
  request.epoch = context.epoch;
  request.channel = context.channel;
  send_control(peer.control, request, core_.counters.requests_sent);
}

std::uint32_t ControlPlane::features() const {
  const bool several = core_.config.multipath != Multipath::none;
  return (grants_ && core_.receiver != nullptr ? kFeatureGrants : 0U) |
         (offers_selective() ? kFeatureXack : 0U) |
         (offers_selective() && several ? kFeatureMultipath : 0U) |
         (offers_selective() && core_.info.telemetry ? kFeatureTelemetry : 0U);
}

void ControlPlane::send_hello(std::uint32_t index) {
  Peer& peer = core_.peers[index];
  HelloMessage hello;
  hello.traffic_class = peer.traffic_class;
  hello.crowd = peer.told = crowd_;
  hello.features = features();
  hello.link_mbps = mbps_of(core_.info.link_rate);
  hello.mtu_bytes = static_cast<std::uint16_t>(core_.config.payload_mtu);
  hello.timestamp_ns = static_cast<std::uint64_t>(to_nanos(core_.now).count);
  ++peer.hellos_sent;
  peer.next_hello = core_.now + core_.config.hello_interval;
  send_control(peer.control, hello, core_.counters.hellos_sent);
}

void ControlPlane::on_hello(const wire::ParsedPacket& parsed, const Packet& packet) {
  HelloMessage hello;
  const wire::ParseError error =
      wire::parse_control(wire::control_body(packet.header_view(), parsed), hello);
  if (error != wire::ParseError::ok) {
    core_.count_malformed(error);
    return;
  }
  ++core_.counters.hellos_received;
  if (!wire::negotiate_version(hello)) return;  // stays foreign
  const std::uint32_t index = core_.peers.find(parsed.source, hello.traffic_class);
  if (!hello.reply) {
    HelloMessage reply;
    reply.reply = true;
    reply.traffic_class = hello.traffic_class;
    reply.features = features();
    reply.link_mbps = mbps_of(core_.info.link_rate);
    reply.mtu_bytes = static_cast<std::uint16_t>(core_.config.payload_mtu);
    reply.timestamp_ns = static_cast<std::uint64_t>(to_nanos(core_.now).count);
    reply.timestamp_echo_ns = hello.timestamp_ns;
    reply.crowd = crowd_;
    if (index != kNoIndex) core_.peers[index].told = crowd_;
    wire::FlowAddressing flow;
    flow.source_mac = core_.config.mac;
    flow.destination_mac = wire::MacAddress::load(packet.header.data() + 6);
    flow.source = core_.config.source_for(parsed.source);
    flow.destination = parsed.source;
    flow.dscp = wire::kDefaultDscpMap.dscp(kControlClass);
    flow.ecn = Ecn::not_ect;
    send_control(wire::make_header_template(flow), reply, core_.counters.hellos_sent);
  }
  if (index == kNoIndex || core_.config.peers != PeerPolicy::discover) return;
  Peer& peer = core_.peers[index];
  peer.heard = true;
  peer.greeting = false;
  peer.features = hello.features;
  use_features(index, hello.features);
  hear_crowd(index, hello.crowd);
  // It grew between our question and this answer.
  if (peer.told != crowd_ && peer.queue_pairs != 0 && tells_crowd()) greet(index);
}

// Asked or answered: the far side speaks. What it can do, we do from now on, if we can.
void ControlPlane::use_features(std::uint32_t index, std::uint32_t theirs) {
  if (offers_selective() && (theirs & kFeatureXack) != 0) {
    core_.peers[index].selective = true;
    core_.peers[index].telemetry = core_.info.telemetry && (theirs & kFeatureTelemetry) != 0;
    for (QueuePair* qp : core_.qps) {
      if (qp != nullptr && qp->peer == index) offer_selective(*qp);
    }
    if (!proactive_) core_.peers[index].status = PeerStatus::native;
  }
  if (proactive_ && (theirs & kFeatureGrants) != 0) upgrade(index);
}

void ControlPlane::on_request(const wire::ParsedPacket& parsed, const RequestMessage& request) {
  const std::uint32_t index = core_.peers.find(parsed.source, request.traffic_class);
  if (index == kNoIndex || core_.receiver == nullptr) {
    ++core_.counters.control_ignored;
    return;
  }
  core_.peers[index].echo = request.echo_wanted;
  core_.peers[index].counters = core_.receiver->on_request(to_nanos(core_.now), index, request);
  // What it sends from here on belongs to no channel.
  if (request.close) core_.peers[index].counters = nullptr;
}

void ControlPlane::on_control(const wire::ParsedPacket& parsed, const Packet& packet) {
  if (!core_.config.speak_control) {
    ++core_.counters.control_ignored;
    return;
  }
  const auto body = wire::control_body(packet.header_view(), parsed);
  wire::ParseError error = wire::ParseError::ok;
  switch (parsed.properties.operation) {
    case wire::Operation::hello:
      on_hello(parsed, packet);
      return;
    case wire::Operation::request: {
      RequestMessage request;
      error = wire::parse_control(body, request);
      if (error != wire::ParseError::ok) break;
      ++core_.counters.requests_received;
      on_request(parsed, request);
      return;
    }
    case wire::Operation::grant: {
      GrantMessage grant;
      error = wire::parse_control(body, grant);
      if (error != wire::ParseError::ok) break;
      ++core_.counters.grants_received;
      const std::uint32_t peer = core_.peers.find(parsed.source, grant.traffic_class);
      const std::uint32_t context = peer == kNoIndex ? kNoIndex : core_.peers[peer].context;
      if (context == kNoIndex || core_.contexts[context].channel != grant.channel) {
        ++core_.counters.control_ignored;
        return;
      }
      cc::Event event;
      event.signal = cc::Signal::grant;
      event.grant = &grant;
      scheduler_.deliver(context, event);
      return;
    }
    case wire::Operation::path: {
      PathMessage path;
      error = wire::parse_control(body, path);
      if (error != wire::ParseError::ok) break;
      ++core_.counters.paths_received;
      const std::uint32_t peer = core_.peers.find(parsed.source, path.traffic_class);
      const std::uint32_t context = peer == kNoIndex ? kNoIndex : core_.peers[peer].context;
      if (context == kNoIndex || core_.contexts[context].channel != path.channel) {
        ++core_.counters.control_ignored;
        return;
      }
      cc::Event event;
      event.signal = cc::Signal::path_report;
      event.path = &path;
      scheduler_.deliver(context, event);
      return;
    }
    default:
      error = wire::ParseError::unknown_opcode;
      break;
  }
  core_.count_malformed(error);
}

void ControlPlane::poll_receiver() {
  cc::PortReceiver* receiver = core_.receiver.get();
  if (receiver == nullptr || receiver->next_wake() > to_nanos(core_.now)) return;
  if (core_.foreign_bytes != 0) {
    receiver->on_foreign_bytes(core_.foreign_bytes);
    core_.foreign_bytes = 0;
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
      out[i].grant.traffic_class = out[i].path.traffic_class = traffic_class;
      out[i].grant.crowd = crowd_;
      if (out[i].kind == cc::ReceiverOutput::Kind::grant) {
        send_control(header, out[i].grant, core_.counters.grants_sent);
      } else {
        send_control(header, out[i].path, core_.counters.paths_sent);
      }
    }
  } while (n == out.size());
  if (core_.config.check_invariants && violation_.empty()) {
    violation_ = receiver->check_invariants(to_nanos(core_.now));
  }
}

void ControlPlane::poll_sender() {
  if (sender_ == nullptr || sender_->next_wake() > to_nanos(core_.now)) return;
  std::array<cc::ShareOutput, 16> out;
  std::size_t n;
  do {
    n = sender_->poll(to_nanos(core_.now), out);
    for (std::size_t i = 0; i < n; ++i) {
      cc::Event event;
      event.signal = cc::Signal::share;
      event.share = &out[i].share;
      scheduler_.deliver(out[i].context, event);
    }
  } while (n == out.size());
  if (core_.config.check_invariants && violation_.empty()) {
    violation_ = sender_->check_invariants(to_nanos(core_.now));
  }
}

void ControlPlane::poll() {
  for (std::size_t i = 0; i < waiting_hello_.size();) {
    Peer& peer = core_.peers[waiting_hello_[i]];
    if (awaits_hello(peer) && peer.next_hello <= core_.now) {
      if (peer.hellos_sent < kHelloTries) {
        send_hello(waiting_hello_[i]);
      } else {
        peer.greeting = false;
        // A late answer still upgrades it.
        if (peer.status == PeerStatus::unknown) peer.status = PeerStatus::foreign;
      }
    }
    if (awaits_hello(peer)) {
      ++i;
    } else {
      waiting_hello_[i] = waiting_hello_.back();
      waiting_hello_.pop_back();
    }
  }
  if (change_due() <= core_.now) [[unlikely]]
    go_on_changing();
  poll_receiver();
  poll_sender();
  if (plugin_news_) [[unlikely]]
    hear_guards();
}

Picos ControlPlane::next_deadline() const {
  if (plugin_news_) return core_.now;
  Picos next = kNever;
  for (const std::uint32_t peer : waiting_hello_) {
    next = earlier(next, core_.peers[peer].next_hello);
  }
  if (core_.receiver != nullptr) next = earlier(next, to_picos(core_.receiver->next_wake()));
  if (sender_ != nullptr) next = earlier(next, to_picos(sender_->next_wake()));
  return earlier(next, change_due());
}

}  // namespace paceline::transport
