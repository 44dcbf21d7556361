// ARP, neighbour discovery, ICMP echo, 802.1Q: bytes against the RFCs' figures, and that what is
// malformed is refused with its reason.
#include <catch2/catch.hpp>
#include <string_view>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/wire/bytes/checksum.h"
#include "dataplane/wire/host/arp.h"
#include "dataplane/wire/host/ethernet.h"
#include "dataplane/wire/host/icmp.h"
#include "dataplane/wire/host/inet_sum.h"
#include "dataplane/wire/host/ndp.h"

namespace paceline::wire {
namespace {

using Bytes = std::vector<std::byte>;

Bytes hex(std::string_view text) {
  Bytes out;
  unsigned value = 0;
  unsigned digits = 0;
  for (const char c : text) {
    if (c == ' ') continue;
    value = value * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    if (++digits % 2 == 0) {
      out.push_back(static_cast<std::byte>(value));
      value = 0;
    }
  }
  return out;
}

IpAddress ip(const char* text) { return *ip_address_from_text(text); }
MacAddress mac(const char* text) { return *mac_address_from_text(text); }

Bytes arp_bytes(const ArpMessage& m) {
  Bytes out(kArpBytes);
  store_arp(out.data(), m);
  return out;
}

Bytes nd_bytes(const NdMessage& m) {
  Bytes out(kNdMaxBytes);
  out.resize(store_nd(out.data(), m));
  return out;
}

// Brings the ICMPv6 checksum up to date after a change.
void seal_v6(Bytes& ip_packet) {
  store_be16(ip_packet.data() + 42, 0);
  InetSum sum;
  const std::size_t length = ip_packet.size() - 40;
  sum.add_pseudo_header(IpAddress::load_v6(ip_packet.data() + 8),
                        IpAddress::load_v6(ip_packet.data() + 24),
                        static_cast<std::uint32_t>(length), 58);
  sum.add({ip_packet.data() + 40, length});
  store_be16(ip_packet.data() + 42, sum.checksum());
}

NdMessage solicitation() {
  NdMessage m;
  m.source = ip("fd00::1");
  m.target = ip("fd00::abcd:2");
  m.destination = solicited_node_group(m.target);
  m.link = mac("02:00:00:00:00:01");
  return m;
}

NdMessage advertisement() {
  NdMessage m;
  m.kind = NdKind::advertisement;
  m.source = m.target = ip("fd00::abcd:2");
  m.destination = ip("fd00::1");
  m.solicited = m.overrides = true;
  m.link = mac("02:00:00:00:00:02");
  return m;
}

HostError nd_error(const Bytes& bytes) {
  NdMessage out;
  return parse_nd(bytes, out);
}

HostError arp_error(const Bytes& bytes) {
  ArpMessage out;
  return parse_arp(bytes, out);
}

}  // namespace

TEST_CASE("arp: the bytes of RFC 826, both ways") {
  ArpMessage m;
  m.sender_mac = mac("02:00:0a:00:00:01");
  m.sender = ip("10.0.0.1");
  m.target = ip("10.0.0.2");
  const Bytes expected = hex("0001 0800 06 04 0001 02000a000001 0a000001 000000000000 0a000002");
  CHECK(arp_bytes(m) == expected);
  m.operation = ArpOperation::reply;
  m.target_mac = mac("02:00:0a:00:00:02");
  const Bytes reply = hex("0001 0800 06 04 0002 02000a000001 0a000001 02000a000002 0a000002");
  CHECK(arp_bytes(m) == reply);
  ArpMessage back;
  REQUIRE(parse_arp(reply, back) == HostError::ok);
  CHECK(back == m);
  CHECK_FALSE(back.is_probe());
  CHECK_FALSE(back.is_announcement());
}

TEST_CASE("arp: what is wrong has a reason") {
  ArpMessage m;
  m.sender_mac = mac("02:00:0a:00:00:01");
  m.sender = ip("10.0.0.1");
  m.target = ip("10.0.0.2");
  const Bytes good = arp_bytes(m);
  REQUIRE(arp_error(good) == HostError::ok);
  for (std::size_t n = 0; n < kArpBytes; ++n) {
    REQUIRE(arp_error({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)}) ==
            HostError::too_short);
  }
  const auto with = [&](std::size_t at, std::uint8_t value) {
    Bytes b = good;
    b[at] = std::byte{value};
    return arp_error(b);
  };
  CHECK(with(1, 6) == HostError::arp_format);
  CHECK(with(2, 0x86) == HostError::arp_format);
  CHECK(with(4, 8) == HostError::arp_format);
  CHECK(with(5, 16) == HostError::arp_format);
  CHECK(with(7, 3) == HostError::arp_operation);
  CHECK(with(7, 0) == HostError::arp_operation);
  CHECK(with(8, 0x03) == HostError::arp_sender);  // group address
  CHECK(with(14, 224) == HostError::arp_sender);  // multicast
  CHECK(with(14, 127) == HostError::arp_sender);
  CHECK(with(14, 255) == HostError::arp_sender);
  CHECK(with(14, 0) == HostError::arp_sender);  // 0.0.0.1
  m.sender = ip("0.0.0.0");
  CHECK(arp_error(arp_bytes(m)) == HostError::ok);  // a probe
  m.operation = ArpOperation::reply;
  CHECK(arp_error(arp_bytes(m)) == HostError::arp_sender);
}

TEST_CASE("nd: bytes of a solicitation and an advertisement") {
  // The checksum is tshark's to judge: tests/wire/tshark_host_test.py.
  const Bytes ns = nd_bytes(solicitation());
  REQUIRE(ns.size() == 72);
  const Bytes head =
      hex("60000000 0020 3a ff fd000000000000000000000000000001 ff0200000000000000000001ffcd0002"
          "87 00");
  CHECK(std::equal(head.begin(), head.end(), ns.begin()));
  const Bytes tail = hex("00000000 fd0000000000000000000000abcd0002 01 01 020000000001");
  CHECK(std::equal(tail.begin(), tail.end(), ns.begin() + 44));
  const Bytes na = nd_bytes(advertisement());
  CHECK(load_u8(na.data() + 40) == 136);
  CHECK(load_be32(na.data() + 44) == 0x6000'0000);
  CHECK(load_be16(na.data() + 64) == 0x0201);
  for (const NdMessage& m : {solicitation(), advertisement()}) {
    NdMessage back;
    REQUIRE(parse_nd(nd_bytes(m), back) == HostError::ok);
    CHECK(back == m);
  }
}

TEST_CASE("nd: groups and their MAC addresses, the examples of RFC 4291 2.7.1 and RFC 2464 7") {
  CHECK(solicited_node_group(ip("4037::1:800:200e:8c6c")) == ip("ff02::1:ff0e:8c6c"));
  CHECK(multicast_mac(ip("ff02::1:ff0e:8c6c")) == mac("33:33:ff:0e:8c:6c"));
  CHECK(all_nodes_group() == ip("ff02::1"));
}

TEST_CASE("nd: everything that RFC 4861 7.1 asks for is checked") {
  const auto change = [](Bytes b, std::size_t at, std::uint8_t value, bool seal = true) {
    b[at] = std::byte{value};
    if (seal) seal_v6(b);
    return nd_error(b);
  };
  const Bytes ns = nd_bytes(solicitation());
  const Bytes na = nd_bytes(advertisement());
  CHECK(change(ns, 7, 254) == HostError::nd_hop_limit);
  CHECK(change(ns, 41, 1) == HostError::icmp_code);
  CHECK(change(ns, 71, 9, false) == HostError::icmp_checksum);
  CHECK(change(ns, 23, 9, false) == HostError::icmp_checksum);  // the pseudo-header
  CHECK(change(ns, 40, 134) == HostError::icmp_type);           // a router's advertisement
  CHECK(change(ns, 6, 17) == HostError::protocol);
  CHECK(change(ns, 6, 0) == HostError::ip_options);
  CHECK(change(ns, 6, 44) == HostError::fragment);
  CHECK(change(ns, 0, 0x40, false) == HostError::ip_version);
  CHECK(change(ns, 48, 0xFF) == HostError::nd_address);  // target is multicast
  CHECK(change(ns, 65, 0) == HostError::nd_option);
  CHECK(change(ns, 65, 2) == HostError::nd_option);      // beyond the end
  CHECK(change(ns, 66, 0x03) == HostError::nd_option);   // a group address
  CHECK(change(ns, 64, 14) == HostError::ok);            // a nonce is none of our business
  CHECK(change(ns, 8, 0xFF) == HostError::ip_source);    // from a group
  CHECK(change(na, 24, 0xFF) == HostError::nd_address);  // solicited, to a group
  CHECK(change(ns, 5, 0x28, false) == HostError::ip_length);

  Bytes brief = ns;
  brief.resize(40 + 20);
  store_be16(brief.data() + 4, 20);
  seal_v6(brief);
  CHECK(nd_error(brief) == HostError::too_short);
  for (std::size_t n = 0; n < ns.size(); ++n) {
    REQUIRE(nd_error({ns.begin(), ns.begin() + static_cast<std::ptrdiff_t>(n)}) != HostError::ok);
  }

  // Duplicate address detection: to the target's group, without a link-layer address.
  NdMessage dad = solicitation();
  dad.source = IpAddress{};
  CHECK(nd_error(nd_bytes(dad)) == HostError::nd_address);
  dad.link.reset();
  CHECK(nd_error(nd_bytes(dad)) == HostError::ok);
  dad.destination = dad.target;
  CHECK(nd_error(nd_bytes(dad)) == HostError::nd_address);
  NdMessage from_nobody = advertisement();
  from_nobody.source = IpAddress{};
  CHECK(nd_error(nd_bytes(from_nobody)) == HostError::nd_address);
  // A mapped address must not pass for the IPv4 one.
  NdMessage mapped = advertisement();
  mapped.target = ip("10.0.0.1");
  CHECK(nd_error(nd_bytes(mapped)) == HostError::nd_address);
}

TEST_CASE("icmp: an echo becomes its reply, data anywhere, both families") {
  const std::uint64_t seed = 4;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 4000; ++i) {
    EchoMessage m;
    m.ip.ipv6 = random.below(2) == 0;
    m.ip.source = m.ip.ipv6 ? ip("fd00::1") : ip("10.0.0.1");
    m.ip.destination = m.ip.ipv6 ? ip("fd00::2") : ip("10.0.0.2");
    m.ip.ttl = static_cast<std::uint8_t>(random.next());
    m.ip.tos = static_cast<std::uint8_t>(random.next());
    // All zeros: the case with two forms of zero.
    const bool zeros = random.below(8) == 0;
    m.identifier = zeros ? 0 : static_cast<std::uint16_t>(random.next());
    m.sequence = zeros ? 0 : static_cast<std::uint16_t>(random.next());
    Bytes data(random.below(300));
    if (!zeros) {
      for (std::byte& b : data) b = static_cast<std::byte>(random.next());
    }
    Bytes bytes(48);
    bytes.resize(store_echo(bytes.data(), m, data));
    bytes.insert(bytes.end(), data.begin(), data.end());
    // In two pieces, wherever the cut.
    const std::size_t headers = m.ip.ipv6 ? 48 : 28;
    const std::size_t cut = headers + random.below(bytes.size() - headers + 1);
    const std::span<std::byte> front = std::span(bytes).first(cut);
    const std::span<std::byte> back = std::span(bytes).subspan(cut);
    EchoMessage parsed;
    REQUIRE(parse_echo(front, back, m.ip.ipv6, parsed) == HostError::ok);
    REQUIRE_FALSE(parsed.reply);
    REQUIRE(parsed.identifier == m.identifier);
    REQUIRE(parsed.sequence == m.sequence);
    REQUIRE(parsed.data_bytes == data.size());
    make_echo_reply(front, parsed);
    EchoMessage reply;
    REQUIRE(parse_echo(front, back, m.ip.ipv6, reply) == HostError::ok);
    REQUIRE(reply.reply);
    REQUIRE(reply.ip.source == m.ip.destination);
    REQUIRE(reply.ip.destination == m.ip.source);
    REQUIRE(reply.ip.tos == m.ip.tos);
    REQUIRE(reply.ip.ttl == 64);
    REQUIRE(reply.sequence == m.sequence);
    REQUIRE(std::equal(data.begin(), data.end(), bytes.begin() + static_cast<long>(headers)));
    // Any damaged bit is noticed: of data by the checksum, of headers by one check or another.
    const std::size_t bit = random.below((bytes.size() - headers + 4) * 8);
    const std::size_t at = headers - 4 + bit / 8;
    bytes[at] ^= static_cast<std::byte>(1U << (bit % 8));
    REQUIRE(parse_echo(front, back, m.ip.ipv6, reply) == HostError::icmp_checksum);
  }
}

TEST_CASE("icmp: what is wrong has a reason") {
  EchoMessage m;
  m.ip.source = ip("10.0.0.1");
  m.ip.destination = ip("10.0.0.2");
  m.ip.ttl = 64;
  Bytes good(28);
  store_echo(good.data(), m, {});
  EchoMessage out;
  const auto error = [&](Bytes b, bool seal_ip) {
    if (seal_ip) {
      store_be16(b.data() + 10, 0);
      store_be16(b.data() + 10, static_cast<std::uint16_t>(~fold_sum(ipv4_header_sum(b.data()))));
    }
    return parse_echo(b, {}, false, out);
  };
  REQUIRE(error(good, false) == HostError::ok);
  const auto with = [&](std::size_t at, std::uint8_t value, bool seal = true) {
    Bytes b = good;
    b[at] = std::byte{value};
    return error(b, seal);
  };
  CHECK(with(0, 0x65) == HostError::ip_version);
  CHECK(with(0, 0x46) == HostError::ip_options);
  CHECK(with(0, 0x44) == HostError::ip_length);
  CHECK(with(3, 29) == HostError::ip_length);
  CHECK(with(3, 27) == HostError::too_short);
  CHECK(with(6, 0x20) == HostError::fragment);
  CHECK(with(7, 1) == HostError::fragment);
  CHECK(with(8, 63, false) == HostError::ip_checksum);
  CHECK(with(9, 6) == HostError::protocol);
  CHECK(with(12, 224) == HostError::ip_source);
  CHECK(with(12, 127) == HostError::ip_source);
  CHECK(with(12, 0) == HostError::ip_source);
  CHECK(with(20, 3) == HostError::icmp_type);
  CHECK(with(27, 1) == HostError::icmp_checksum);
  Bytes code = good;
  code[21] = std::byte{1};
  code[23] = static_cast<std::byte>(load_u8(code.data() + 23) - 1);
  CHECK(error(code, true) == HostError::icmp_code);
}

TEST_CASE("ip: prefixes of every length") {
  CHECK(same_prefix(ip("10.0.0.1"), ip("192.168.0.1"), 0));
  CHECK(same_prefix(ip("10.0.0.1"), ip("10.0.0.200"), 24));
  CHECK_FALSE(same_prefix(ip("10.0.0.1"), ip("10.0.0.200"), 25));
  CHECK(same_prefix(ip("10.0.0.1"), ip("10.0.0.1"), 32));
  CHECK_FALSE(same_prefix(ip("10.0.0.1"), ip("10.0.0.1"), 33));
  CHECK_FALSE(same_prefix(ip("10.0.0.1"), ip("fd00::1"), 0));
  CHECK(same_prefix(ip("fd00::1"), ip("fd00::ffff:1"), 64));
  CHECK(same_prefix(ip("fd00::1"), ip("fd00::2"), 126));
  CHECK_FALSE(same_prefix(ip("fd00::1"), ip("fd00::2"), 127));
  CHECK_FALSE(same_prefix(ip("fd00::1"), ip("fe00::1"), 8));
  CHECK(same_prefix(ip("fd00::1"), ip("2001::1"), 0));
  CHECK(same_prefix(ip("fd00::1"), ip("fd00::1"), 128));
  CHECK_FALSE(same_prefix(ip("fd00::1"), ip("fd00::1"), 129));
}

TEST_CASE("ethernet: a tag goes in and out, at most one") {
  const std::uint64_t seed = 5;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 1000; ++i) {
    std::array<std::byte, 128> buffer;
    for (std::byte& b : buffer) b = static_cast<std::byte>(random.next());
    store_be16(buffer.data() + 12, kEtherTypeIpv4);
    const auto before = buffer;
    const std::size_t bytes = 14 + random.below(111);
    const auto tci = static_cast<std::uint16_t>(random.next());
    REQUIRE(set_vlan(buffer, bytes, 0x0FFF) == bytes + 4);
    REQUIRE(set_vlan(buffer, bytes + 4, tci) == bytes + 4);  // again: rewritten
    EthernetHeader header;
    REQUIRE(parse_ethernet(std::span(buffer).first(bytes + 4), header) == HostError::ok);
    REQUIRE(header.has_vlan);
    REQUIRE(header.vlan_tci == tci);
    REQUIRE(header.l3_offset == 18);
    REQUIRE(header.ether_type == kEtherTypeIpv4);
    REQUIRE(remove_vlan(buffer, bytes + 4) == bytes);
    REQUIRE(std::equal(before.begin(), before.begin() + static_cast<long>(bytes), buffer.begin()));
    REQUIRE(remove_vlan(buffer, bytes) == bytes);
  }
  std::array<std::byte, 128> full{};
  CHECK(set_vlan(full, 125, 1) == 0);
  CHECK(vlan_tci(5, 100) == 0xA064);
  EthernetHeader header;
  Bytes frame(18);
  store_be16(frame.data() + 12, kEtherTypeVlan);
  store_be16(frame.data() + 16, kEtherTypeVlan);
  CHECK(parse_ethernet(frame, header) == HostError::vlan_too_deep);
  CHECK(parse_ethernet(std::span(frame).first(17), header) == HostError::too_short);
  CHECK(parse_ethernet(std::span(frame).first(13), header) == HostError::too_short);
  store_be16(frame.data() + 12, kEtherTypeServiceVlan);
  CHECK(parse_ethernet(frame, header) == HostError::vlan_too_deep);
}

TEST_CASE("host errors: every reason has a name, and is counted") {
  HostErrorCounters counters;
  for (std::size_t i = 0; i < kHostErrors; ++i) {
    CHECK_FALSE(host_error_name(static_cast<HostError>(i)).empty());
    CHECK(host_error_name(static_cast<HostError>(i)) != "unknown");
    counters.record(static_cast<HostError>(i));
  }
  CHECK(counters.refused() == kHostErrors - 1);
  CHECK(counters.of(HostError::nd_option) == 1);
  CHECK(host_error_name(HostError::nd_option) == "nd_option");
}

}  // namespace paceline::wire
