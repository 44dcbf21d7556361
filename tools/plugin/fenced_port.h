// A port of a plug-in with rates between pages that must not be touched, and the calls that it gets
// as the sending port and as the receiving one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "cc/plugin/plugin.h"
#include "tools/plugin/fenced_memory.h"

namespace paceline::tools {

class FencedPort {
 public:
  FencedPort(const cc::plugin::Plugin& plugin, bool at_end);

  void run();
  // As of the parts; empty: nothing is damaged.
  std::string damage() const;
  std::string place(std::uintptr_t address) const;

 private:
  static constexpr std::uint32_t kPeers = 3;

  Fenced& add(const char* name, std::size_t bytes);
  void share_uplink();
  void receive_request(std::uint32_t peer, std::uint64_t demand_bytes);
  void receive_round();
  void send_grant(std::uint32_t peer);
  paceline_cc_downlink& downlink();

  const cc::plugin::Plugin& plugin_;
  bool at_end_;
  std::deque<Fenced> parts_;
  Fenced& derived_;
  Fenced& uplink_state_;
  Fenced& uplink_;
  Fenced& contexts_;  // pointers, as are channels_
  Fenced& port_state_;
  Fenced& downlink_;
  Fenced& channels_;
  Fenced& grant_;
  Fenced* wants_[kPeers] = {};
  Fenced* shares_[kPeers] = {};
  Fenced* requests_[kPeers] = {};
  paceline_cc_channel* channel_[kPeers] = {};
  std::int64_t now_ns_ = 0;
};

}  // namespace paceline::tools
