#include "dataplane/neighbour/neighbour_config.h"

#include <string_view>

#include "dataplane/neighbour/neighbour_table.h"
#include "dataplane/wire/host/ip_header.h"

namespace paceline::neighbour {
namespace {

constexpr std::uint32_t kIpv6MinimumMtu = 1280;  // RFC 8200, 5
constexpr std::uint32_t kMaxIpMtu = 9216;

class Problems {
 public:
  void range(std::string_view field, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
    if (value >= least && value <= most) return;
    add(field, std::to_string(value),
        "allowed: " + std::to_string(least) + " to " + std::to_string(most));
  }
  void positive(std::string_view field, Picos value) {
    if (value > Picos{0} && value <= seconds(1'000'000)) return;
    add(field, std::to_string(value.count) + " ps",
        "allowed: more than 0, at most 1,000,000 seconds");
  }
  void add(std::string_view field, const std::string& value, const std::string& allowed) {
    list_.push_back(std::string(field) + " is " + value + "; " + allowed);
  }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

void check_mac(Problems& problems, std::string_view field, const wire::MacAddress& mac) {
  if (!mac.is_multicast() && mac != wire::MacAddress{}) return;
  problems.add(field, to_text(mac), "allowed: a unicast address other than all zeros");
}

bool on_link(const HostConfig& config, const wire::IpAddress& address) {
  if (!address.is_v4() && wire::is_link_local_v6(address)) return true;
  for (const HostAddress& own : config.addresses) {
    if (same_prefix(own.address, address, own.prefix_bits)) return true;
  }
  return false;
}

void check_addresses(Problems& problems, const HostConfig& config) {
  problems.range("the number of addresses", config.addresses.size(), 1, kMaxHostAddresses);
  for (std::size_t i = 0; i < config.addresses.size(); ++i) {
    const HostAddress& a = config.addresses[i];
    const std::string field = "address " + std::to_string(i + 1);
    if (!wire::is_host_address(a.address)) {
      problems.add(field, to_text(a.address), "allowed: a unicast address");
    }
    problems.range(field + ": the prefix length", a.prefix_bits, 0, a.address.is_v4() ? 32 : 128);
    for (std::size_t j = 0; j < i; ++j) {
      if (config.addresses[j].address == a.address) {
        problems.add(field, to_text(a.address), "given twice");
      }
    }
  }
}

void check_gateway(Problems& problems, const HostConfig& config, std::string_view field,
                   const std::optional<wire::IpAddress>& gateway, bool v4) {
  if (!gateway) return;
  if (gateway->is_v4() != v4 || !wire::is_host_address(*gateway)) {
    problems.add(field, to_text(*gateway),
                 std::string("allowed: a unicast ") + (v4 ? "IPv4" : "IPv6") + " address");
    return;
  }
  if (!on_link(config, *gateway)) {
    problems.add(field, to_text(*gateway), "it must lie in the prefix of one of the addresses");
  }
  for (const HostAddress& own : config.addresses) {
    if (own.address == *gateway) problems.add(field, to_text(*gateway), "it is an own address");
  }
}

}  // namespace

std::vector<std::string> problems(const HostConfig& config) {
  Problems found;
  check_mac(found, "mac", config.mac);
  check_addresses(found, config);
  check_gateway(found, config, "gateway_v4", config.gateway_v4, true);
  check_gateway(found, config, "gateway_v6", config.gateway_v6, false);
  for (const FixedNeighbour& n : config.fixed) {
    check_mac(found, "the MAC address of neighbour " + to_text(n.address), n.mac);
    if (!wire::is_host_address(n.address) || !on_link(config, n.address)) {
      found.add("a fixed neighbour", to_text(n.address),
                "allowed: a unicast address in the prefix of one of the addresses");
    }
  }
  if (config.vlan_id) found.range("vlan_id", *config.vlan_id, 1, 4094);
  for (const std::uint8_t priority : config.priority_of_class) {
    found.range("the priority of a class", priority, 0, 7);
  }
  if (!config.dscp.is_consistent()) {
    found.add("dscp", "inconsistent",
              "packets must be received in the class in which they were sent");
  }
  found.range("control_class", config.control_class, 0, kTrafficClasses - 1);
  found.range("ip_mtu", config.ip_mtu, kIpv6MinimumMtu, kMaxIpMtu);
  found.range("echo_per_second", config.echo_per_second, 1, 1'000'000);
  found.range("announcements", config.announcements, 0, 10);
  found.positive("announce_interval", config.announce_interval);
  found.positive("defend_interval", config.defend_interval);

  const NeighbourTiming& t = config.timing;
  found.range("multicast_solicits", t.multicast_solicits, 1, 100);
  found.range("unicast_solicits", t.unicast_solicits, 1, 100);
  found.positive("retransmit", t.retransmit);
  found.positive("reachable", t.reachable);
  found.positive("delay_first_probe", t.delay_first_probe);
  found.positive("failed_hold", t.failed_hold);
  found.positive("stale_lifetime", t.stale_lifetime);
  found.positive("heard_lifetime", t.heard_lifetime);
  found.positive("evict_idle", t.evict_idle);

  const NeighbourLimits& l = config.limits;
  found.range("capacity", l.capacity, 8, NeighbourTable::kMaxCapacity);
  found.range("heard_capacity", l.heard_capacity, 0, l.capacity / 2);
  found.range("the number of fixed neighbours", config.fixed.size(), 0, l.capacity / 2);
  found.range("parked_per_neighbour", l.parked_per_neighbour, 0, 65'535);
  found.range("parked", l.parked, 0, 65'535);
  return found.take();
}

std::uint16_t path_mtu_of(std::uint32_t ip_mtu) {
  constexpr std::uint32_t kAround = 40 + 8 + 12 + 16 + 4 + 4;
  for (std::uint32_t mtu = 4096; mtu >= 256; mtu /= 2) {
    if (mtu + kAround <= ip_mtu) return static_cast<std::uint16_t>(mtu);
  }
  return 0;
}

}  // namespace paceline::neighbour
