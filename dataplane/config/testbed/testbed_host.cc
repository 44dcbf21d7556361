// [port.host]. Some errors show only when everything is known (a gateway that is not on the link):
// the host stack finds them when the port is opened, and its message begins with HostConfig::where.
#include <charconv>
#include <span>

#include "dataplane/config/testbed/testbed_fields.h"
#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/config/testbed/testbed_table.h"

namespace paceline::config {

namespace {

constexpr std::string_view kTable = "port.host";

void take_address(const TomlNode& node, HostConfig& host, ReadContext& context) {
  const auto fail = [&](std::string_view why) {
    fail_value(context, node, "port.host.addresses", why);
  };
  const std::string_view text = node.text;
  const std::size_t slash = text.find('/');
  const auto address = wire::ip_address_from_text(text.substr(0, slash));
  if (slash == std::string_view::npos || !address) {
    return fail(
        "expected an address and the length of its prefix, as in \"10.0.0.1/24\" or "
        "\"fd00::1/64\"");
  }
  const std::string_view digits = text.substr(slash + 1);
  const unsigned most = address->is_v4() ? 32 : 128;
  unsigned bits = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (code != std::errc{} || end != digits.data() + digits.size() || bits > most) {
    return fail(fmt::format("the length of the prefix: allowed is [0 .. {}]", most));
  }
  host.addresses.push_back({*address, static_cast<std::uint8_t>(bits)});
}

void take_fixed(const TomlNode& node, HostConfig& host, ReadContext& context) {
  const std::string_view text = node.text;
  const std::size_t space = text.find(' ');
  const auto address = wire::ip_address_from_text(text.substr(0, space));
  const auto mac = space == std::string_view::npos
                       ? std::nullopt
                       : wire::mac_address_from_text(text.substr(space + 1));
  if (!address || !mac) {
    return fail_value(context, node, "port.host.fixed",
                      "expected an address and a MAC address, as in \"10.0.0.9 "
                      "02:00:00:00:00:09\"");
  }
  host.fixed.push_back({*address, *mac});
}

void take_gateway(const TomlMember& m, HostConfig& host, ReadContext& context) {
  const bool v4 = m.key == "gateway_v4";
  const auto address = m.value.type == TomlNode::Type::text
                           ? wire::ip_address_from_text(m.value.text)
                           : std::nullopt;
  if (!address || address->is_v4() != v4) {
    return fail_value(context, m.value, fmt::format("{}.{}", kTable, m.key),
                      v4 ? "expected an IPv4 address as in \"10.0.0.254\""
                         : "expected an IPv6 address as in \"fe80::1\"");
  }
  (v4 ? host.gateway_v4 : host.gateway_v6) = *address;
}

}  // namespace

HostConfig read_port_host(const TomlNode& table, ReadContext& context) {
  HostConfig host;
  host.where = to_string(table.where);
  if (!table.is_table()) {
    context.errors->add(table.where, "expected a table, [port.host]");
    return host;
  }
  read_testbed_table(
      table, kTable, host_keys(), {"addresses", "gateway_v4", "gateway_v6", "fixed"}, context,
      [&](std::string_view name) { return host_field(host, name); },
      [&](const TomlMember& m) {
        if (m.key == "addresses") {
          read_texts(m, kTable, context,
                     [&](const TomlNode& item) { take_address(item, host, context); });
        } else if (m.key == "fixed") {
          read_texts(m, kTable, context,
                     [&](const TomlNode& item) { take_fixed(item, host, context); });
        } else {
          take_gateway(m, host, context);
        }
      });
  const TomlMember* const given = table.find("addresses");
  if (given == nullptr) {
    context.errors->add(table.where, "a [port.host] needs \"addresses\"");
  } else if (given->value.type == TomlNode::Type::array &&
             (given->value.items.empty() || given->value.items.size() > 8)) {
    fail_value(context, given->value, "port.host.addresses", "allowed are 1 to 8");
  }
  return host;
}

}  // namespace paceline::config
