#include "dataplane/wire/host/host_error.h"

#include <iterator>

namespace paceline::wire {

std::string_view host_error_name(HostError error) {
  static constexpr std::string_view kNames[] = {
      "ok",          "too_short",     "too_long",   "corrupt",    "vlan_too_deep", "ether_type",
      "arp_format",  "arp_operation", "arp_sender", "ip_version", "ip_options",    "ip_length",
      "ip_checksum", "ip_source",     "fragment",   "protocol",   "icmp_checksum", "icmp_type",
      "icmp_code",   "nd_hop_limit",  "nd_address", "nd_option",
  };
  static_assert(std::size(kNames) == kHostErrors);
  static_assert(static_cast<std::size_t>(HostError::nd_option) + 1 == kHostErrors);
  const auto i = static_cast<std::size_t>(error);
  return i < kHostErrors ? kNames[i] : std::string_view("unknown");
}

}  // namespace paceline::wire
