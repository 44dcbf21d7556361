#include "tools/diagnose/testbed/nic_status.h"

#include <nlohmann/json.hpp>

namespace paceline::tools {

namespace {

using Json = nlohmann::json;

NicStatus nic_of(const Json& nic) {
  const Json counters = nic.value("counters", Json::object());
  const auto counted = [](const Json& from, const char* name) {
    return from.value(name, std::uint64_t{0});
  };
  NicStatus out;
  out.up = nic.value("up", true);
  out.pausing_us = nic.value("pausing_us", 0.0);
  out.reclassed_packets = counted(nic, "reclassed_packets");
  out.sent_wire_bytes = counted(nic, "sent_wire_bytes");
  out.sending_us = nic.value("sending_us", 0.0);
  out.received_bytes = counted(counters, "rx_data_bytes");
  out.received_packets = counted(counters, "rx_data_packets");
  out.marked_packets = counted(counters, "rx_ce_packets");
  return out;
}

}  // namespace

std::vector<NicStatus> nics_of(const Json& status) {
  std::vector<NicStatus> out;
  for (const Json& worker : status.value("workers", Json::array())) {
    for (const Json& nic : worker.value("nics", Json::array())) out.push_back(nic_of(nic));
  }
  return out;
}

}  // namespace paceline::tools
