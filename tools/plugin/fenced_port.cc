#include "tools/plugin/fenced_port.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <variant>
#include <vector>

#include "cc/params.h"
#include "cc/plugin/call.h"
#include "dataplane/driver/scenario/plugin_watch.h"

namespace paceline::tools {
namespace {

constexpr int kPortRounds = 200;

std::size_t constants_of(const paceline_cc_algorithm& t) {
  return t.derive != nullptr ? t.derived_bytes : t.param_count * sizeof(double);
}

}  // namespace

Fenced& FencedPort::add(const char* name, std::size_t bytes) {
  return parts_.emplace_back(name, bytes, at_end_);
}

FencedPort::FencedPort(const cc::plugin::Plugin& plugin, bool at_end)
    : plugin_(plugin),
      at_end_(at_end),
      derived_(add("its constants", constants_of(plugin.table))),
      uplink_state_(add("its uplink's state", plugin.rates.uplink_bytes)),
      uplink_(add("the uplink", sizeof(paceline_cc_uplink))),
      contexts_(add("the list of contexts", kPeers * sizeof(void*))),
      port_state_(add("its port's state", plugin.rates.port_bytes)),
      downlink_(add("the downlink", sizeof(paceline_cc_downlink))),
      channels_(add("the list of channels", kPeers * sizeof(void*))),
      grant_(add("the grant", sizeof(paceline_cc_rate_grant))) {
  cc::PortFacts facts;
  facts.link_rate = rate_from_gbps(100);
  facts.full_packet_bytes = 4178;
  facts.base_rtt_ns = 5000;
  const auto values = cc::resolve_params(plugin.info, "", {}, facts);
  const cc::plugin::PluginParams params =
      cc::plugin::make_params(plugin, std::get<std::vector<double>>(values), facts);
  std::memcpy(derived_.as<std::byte>(), params.derived, constants_of(plugin.table));
  derived_.writable(false);
  for (std::uint32_t i = 0; i < kPeers; ++i) {
    wants_[i] = &add("what a context wants", sizeof(paceline_cc_want));
    shares_[i] = &add("a share", sizeof(paceline_cc_share));
    requests_[i] = &add("a request", sizeof(paceline_cc_request));
    auto* const context = add("a context of the uplink", sizeof(paceline_cc_uplink_context))
                              .as<paceline_cc_uplink_context>();
    context->number = i;
    context->want = wants_[i]->as<paceline_cc_want>();
    context->share = shares_[i]->as<paceline_cc_share>();
    context->state =
        add("a context's state in the uplink", plugin.rates.uplink_context_bytes).as<void>();
    contexts_.as<paceline_cc_uplink_context*>()[i] = context;
    channel_[i] = add("a channel", sizeof(paceline_cc_channel)).as<paceline_cc_channel>();
    channel_[i]->number = i;
    channel_[i]->request = requests_[i]->as<paceline_cc_request>();
    channel_[i]->state = add("a sender's state", plugin.rates.sender_bytes).as<void>();
    channels_.as<paceline_cc_channel*>()[i] = channel_[i];
  }
  contexts_.writable(false);
  channels_.writable(false);
}

void FencedPort::run() {
  for (int round = 0; round < kPortRounds; ++round) {
    now_ns_ += 5000;
    if (plugin_.rates.on_uplink != nullptr) share_uplink();
    for (std::uint32_t i = 0; i < kPeers; ++i) {
      receive_request(i, round % 20 == 19 ? 0 : 1'000'000);
      send_grant(i);
    }
    receive_round();
    for (std::uint32_t i = 0; i < kPeers; ++i) send_grant(i);
    PluginTimeLimit::passed();
  }
}

void FencedPort::share_uplink() {
  for (std::uint32_t i = 0; i < kPeers; ++i) {
    wants_[i]->writable(true);
    paceline_cc_want& want = *wants_[i]->as<paceline_cc_want>();
    want.left_bytes = 1'000'000;
    want.limit_mbps = 30'000 * i;
    want.start_bytes = 8000;
    want.active = want.weight = 1;
    want.asks_start = want.awaits_grant = i == 0 ? 1 : 0;
    wants_[i]->writable(false);
  }
  paceline_cc_uplink& u = *uplink_.as<paceline_cc_uplink>();
  u = {};
  u.now_ns = u.rest_ns = now_ns_;
  u.next_ns = PACELINE_CC_NEVER;
  u.state = uplink_state_.as<void>();
  u.derived = derived_.as<void>();
  u.contexts = contexts_.as<paceline_cc_uplink_context*>();
  u.context_count = kPeers;
  plugin_.rates.on_uplink(&u);
}

paceline_cc_downlink& FencedPort::downlink() {
  paceline_cc_downlink& d = *downlink_.as<paceline_cc_downlink>();
  d = {};
  d.now_ns = now_ns_;
  d.state = port_state_.as<void>();
  d.derived = derived_.as<void>();
  d.next_ns = PACELINE_CC_NEVER;
  return d;
}

void FencedPort::receive_request(std::uint32_t peer, std::uint64_t demand_bytes) {
  requests_[peer]->writable(true);
  paceline_cc_request& r = *requests_[peer]->as<paceline_cc_request>();
  r.sent_total += 4178;
  r.start_total = r.sent_total;
  r.demand_bytes = demand_bytes;
  r.cap_mbps = PACELINE_CC_NO_CAP;
  r.stamp_ns = static_cast<std::uint32_t>(now_ns_ - 2000);
  requests_[peer]->writable(false);
  paceline_cc_channel& c = *channel_[peer];
  c.fresh = c.heard_at_ns == 0 ? 1 : 0;
  c.listed = 1;
  c.tell = 0;
  c.heard_at_ns = now_ns_;
  c.received_total = r.sent_total;
  ++c.received_packets;
  plugin_.rates.on_request(&downlink(), &c);
  c.fresh = 0;
}

void FencedPort::receive_round() {
  paceline_cc_downlink& d = downlink();
  d.channels = channels_.as<paceline_cc_channel*>();
  d.channel_count = kPeers;
  for (paceline_cc_channel* const c : channel_) {
    c->listed = 1;
    c->tell = 0;
  }
  plugin_.rates.on_downlink(&d);
}

void FencedPort::send_grant(std::uint32_t peer) {
  paceline_cc_rate_grant& g = *grant_.as<paceline_cc_rate_grant>();
  g = {};
  g.stamp_ns = channel_[peer]->request->stamp_ns;
  plugin_.rates.fill_grant(&downlink(), channel_[peer], &g);
}

std::string FencedPort::damage() const {
  for (const Fenced& part : parts_) {
    if (const std::uintptr_t at = part.damage(); at != 0) return part.place(at);
  }
  return {};
}

std::string FencedPort::place(std::uintptr_t address) const {
  for (const Fenced& part : parts_) {
    if (part.has(address)) return part.place(address);
  }
  return fmt::format("address {:#x}, which is nothing that it was given", address);
}

}  // namespace paceline::tools
