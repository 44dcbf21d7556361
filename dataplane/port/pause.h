// Pause frames of an Ethernet link (IEEE 802.3, annex 31B) and of single priorities (802.1Qbb), as
// a device reports its abilities: what to set, and which of its own counters count them. Does not
// access devices; dpdk_pause.h does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

enum class PauseMode : std::uint8_t {
  off,
  receive,  // received pause frames stop sending
  send,     // pause frames are sent when there is no room to receive
  both,
};

// "off", "receive", "send", "both"; nothing for any other text.
std::string_view name_of(PauseMode mode);
std::optional<PauseMode> pause_mode_of(std::string_view name);

// State reported by a device.
struct PauseState {
  bool offered = false;
  PauseMode mode = PauseMode::off;    // in force; where it is offered
  std::string refusal;                // why it is not, in the driver's words
  std::uint8_t priority_classes = 0;  // that may be paused each by itself, queue by queue; 0: none
};

struct PausePlan {
  std::optional<PauseMode> set;  // nothing: the device is left alone
  std::string note;              // a wish that cannot be met; else ""
};
// `wish`: nothing for "as it is".
PausePlan plan_pause(std::optional<PauseMode> wish, const PauseState& state);

// A counter of frames that start a pause; frames that end one have other counters.
struct PauseCounter {
  bool sent = false;      // received otherwise
  bool priority = false;  // of 802.1Qbb
  bool part = false;      // of one priority only
  bool operator==(const PauseCounter&) const = default;
};
// The kind of a counter by its name: "rx_xoff_packets", "tx_pause_frames",
// "rx_pfc_ena_frames_pri3". Names are the drivers' own; a counter that is not surely a number of
// pause frames is ignored.
std::optional<PauseCounter> pause_counter(std::string_view name);

// Pause counters of a device that may be added up: if it counts a whole, no parts of that.
struct PauseCounterPlace {
  std::uint64_t index = 0;  // in the names
  PauseCounter counts{};
};
std::vector<PauseCounterPlace> pause_counters(std::span<const std::string> names);

}  // namespace paceline
