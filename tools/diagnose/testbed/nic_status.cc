#include "tools/diagnose/testbed/nic_status.h"

namespace paceline::tools {

namespace {

using Json = nlohmann::json;

std::uint64_t counted(const Json& from, const char* name) {
  const auto at = from.find(name);
  return at != from.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

double micros_in(const Json& from, const char* name) {
  const auto at = from.find(name);
  return at != from.end() && at->is_number() ? at->get<double>() : 0;
}

}  // namespace

NicStatus nic_status(const Json& nic) {
  NicStatus out;
  const auto up = nic.find("up");
  if (up != nic.end() && up->is_boolean()) out.up = up->get<bool>();
  out.pausing_us = micros_in(nic, "pausing_us");
  out.reclassed_packets = counted(nic, "reclassed_packets");
  out.sent_wire_bytes = counted(nic, "sent_wire_bytes");
  out.sending_us = micros_in(nic, "sending_us");
  const auto counters = nic.find("counters");
  if (counters == nic.end() || !counters->is_object()) return out;
  out.received_bytes = counted(*counters, "rx_data_bytes");
  out.received_packets = counted(*counters, "rx_data_packets");
  out.marked_packets = counted(*counters, "rx_ce_packets");
  return out;
}

}  // namespace paceline::tools
