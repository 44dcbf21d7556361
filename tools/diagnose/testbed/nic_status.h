// What the status of a service says of each of its NICs, for the evidence of a diagnosis.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

namespace paceline::tools {

// Counts are since the start of the service.
struct NicStatus {
  bool up = true;
  double pausing_us = 0;
  std::uint64_t reclassed_packets = 0;
  // As in diagnosis::NicWindow. Devices do not say how long they were sending: 0.
  std::uint64_t sent_wire_bytes = 0;
  double sending_us = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t received_packets = 0;
  std::uint64_t marked_packets = 0;
};

// From a NIC's entry in the status, from any source. Missing values are 0.
NicStatus nic_status(const nlohmann::json& nic);

}  // namespace paceline::tools
