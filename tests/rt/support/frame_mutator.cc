#include "tests/rt/support/frame_mutator.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "dataplane/neighbour/host_stack.h"
#include "dataplane/port/packet_pool.h"
#include "dataplane/wire/bytes/checksum.h"
#include "dataplane/wire/extensions/control.h"
#include "dataplane/wire/host/icmp.h"
#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/icrc.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::test {

namespace {

using namespace wire;

constexpr std::size_t kLongest = 4200;

template <class Address>
void put(Frame& frame, std::size_t at, const Address& address, std::size_t bytes,
         std::size_t from = 0) {
  if (at + bytes > frame.size()) return;
  std::memcpy(frame.data() + at, address.bytes.data() + from, bytes);
}

void put_addresses(Frame& frame, std::size_t l3, bool ipv6, const IpAddress& from,
                   const IpAddress& to) {
  if (ipv6) {
    put(frame, l3 + 8, from, 16);
    put(frame, l3 + 24, to, 16);
  } else {
    put(frame, l3 + 12, from, 4, 12);
    put(frame, l3 + 16, to, 4, 12);
  }
}

}  // namespace

FrameMutator::FrameMutator(std::uint64_t seed) : random_(seed, 0xF4A3) {
  for (const std::string& name : golden_captures()) {
    for (Frame& frame : read_pcap(golden_path(name + ".pcap"))) add_roce(std::move(frame));
  }
  for (const IcrcVector& vector : read_icrc_vectors()) add_roce(frame_of(vector));
  add_control();
  add_host();
}

// What is not RoCEv2 (the captures have some ARP) is kept as it is.
void FrameMutator::add_roce(Frame frame) {
  ParsedPacket p;
  Seed seed;
  if (parse_frame(frame, {false, false}, p) == ParseError::ok) {
    seed.l3 = p.l3_offset;
    seed.bth = p.bth_offset;
    seed.ipv6 = p.ipv6;
  }
  seed.frame = std::move(frame);
  seeds_.push_back(std::move(seed));
}

void FrameMutator::add_control() {
  FlowAddressing flow;
  flow.source = IpAddress::v4(0x0A000001);
  flow.destination = IpAddress::v4(0x0A000002);
  for (const bool ipv6 : {false, true}) {
    if (ipv6) flow.source.bytes[0] = flow.destination.bytes[0] = std::byte{0xFD};
    const HeaderTemplate header = make_header_template(flow);
    std::array<std::byte, kHeaderBufferBytes> out;
    const auto add = [&](std::size_t n) {
      Frame frame(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
      frame.resize(n + kIcrcBytes);
      // As often as ten frames of the captures: they are few.
      for (int i = 0; i < 10; ++i) add_roce(frame);
    };
    add(build_control(header, out, Psn{1}, HelloMessage{}));
    add(build_control(header, out, Psn{2}, RequestMessage{}));
    add(build_control(header, out, Psn{3}, GrantMessage{}));
    add(build_cnp(header, out, 0x11));
  }
}

// ARP, neighbour discovery and echo, as another host says them.
void FrameMutator::add_host() {
  neighbour::HostConfig config;
  config.mac = MacAddress::local(77);
  IpAddress v6;
  v6.bytes[0] = std::byte{0xFD};
  v6.bytes[15] = std::byte{77};
  config.addresses = {{IpAddress::v4(0x0A00004D), 24}, {v6, 64}};
  neighbour::HostStack stack(config, Random(1));
  PacketPool pool(1, 2048);
  Packet& packet = *pool.alloc();
  const auto add = [&] {
    Frame frame(packet.header_view().begin(), packet.header_view().end());
    if (packet.payload_kind == PayloadKind::owned) {
      frame.insert(frame.end(), packet.payload, packet.payload + packet.payload_bytes);
    }
    for (int i = 0; i < 20; ++i) seeds_.push_back({frame});
  };
  IpAddress peer6 = v6;
  peer6.bytes[15] = std::byte{1};
  for (const IpAddress& peer : {IpAddress::v4(0x0A000001), peer6}) {
    const std::uint8_t own = peer.is_v4() ? 0 : 1;
    stack.build_announcement(own, packet);
    add();
    const auto route = stack.table().use(Picos{0}, peer, own);
    neighbour::Neighbour known = stack.table()[route.index];
    stack.build_solicit(known, false, packet);
    add();
    known.mac = MacAddress::local(1);
    stack.build_solicit(known, true, packet);
    add();
    for (const std::size_t bytes : {0U, 56U, 1001U}) {
      EchoMessage m;
      m.ip.source = config.addresses[own].address;
      m.ip.destination = peer;
      m.ip.ipv6 = own == 1;
      m.ip.ttl = 64;
      const std::vector<std::byte> data(bytes, std::byte{0x5A});
      packet.bth_offset = 0;
      std::byte* p = packet.header.data();
      p += store_ethernet(p, MacAddress::local(1), config.mac, std::nullopt,
                          m.ip.ipv6 ? kEtherTypeIpv6 : kEtherTypeIpv4);
      p += store_echo(p, m, data);
      packet.header_bytes = static_cast<std::uint16_t>(p - packet.header.data());
      if (bytes != 0) std::memcpy(packet.payload, data.data(), bytes);
      packet.payload_bytes = static_cast<std::uint16_t>(bytes);
      packet.payload_kind = bytes == 0 ? PayloadKind::none : PayloadKind::owned;
      add();
    }
  }
}

void FrameMutator::readdress(Frame& frame, const Seed& seed, const StormTarget& target,
                             bool attack) {
  if (seed.bth == 0) {
    // Mostly as it was: to everybody, or to the host that it names.
    if (random_.below(4) == 0) put(frame, 0, target.mac, 6);
    return;
  }
  put(frame, 0, target.mac, 6);
  put(frame, 6, target.from_mac, 6);
  put_addresses(frame, seed.l3, seed.ipv6, seed.ipv6 ? target.from_v6 : target.from_v4,
                seed.ipv6 ? target.v6 : target.v4);
  if (!attack || seed.bth + kBthBytes > frame.size()) return;
  std::byte* const bth = frame.data() + seed.bth;
  if (random_.below(8) != 0) store_be32(bth + 4, target.qpn & 0xFF'FFFFU);
  if (random_.below(2) == 0) {
    const Psn psn = target.expected + static_cast<std::uint32_t>(random_.below(4));
    store_be32(bth + 8, (load_be32(bth + 8) & 0xFF00'0000U) | psn.value());
  }
  const OpcodeProperties& opcode = properties(static_cast<Opcode>(load_u8(bth)));
  if ((opcode.has_reth() || opcode.has_atomic_eth()) && random_.below(2) == 0 &&
      seed.bth + kBthBytes + 16 <= frame.size()) {
    store_be64(bth + kBthBytes, target.address + random_.below(4) * 8);
    store_be32(bth + kBthBytes + 8, target.key);
    if (random_.below(2) == 0 && opcode.has_reth()) {
      store_be32(bth + kBthBytes + 12, static_cast<std::uint32_t>(random_.below(9000)));
    }
  }
}

// One to four changes: a bit, a byte, two bytes, a cut, an extension, a splice. Some stay whole.
void FrameMutator::damage(Frame& frame, const Frame& other) {
  for (std::uint64_t changes = random_.below(5); changes > 0 && !frame.empty(); --changes) {
    const std::size_t at = random_.below(std::min<std::size_t>(frame.size(), 96));
    switch (random_.below(7)) {
      case 0:
      case 1:
        frame[at] ^= static_cast<std::byte>(1U << random_.below(8));
        break;
      case 2:
        frame[at] = static_cast<std::byte>(random_.next());
        break;
      case 3:
        if (at + 1 < frame.size()) {
          store_be16(frame.data() + at, static_cast<std::uint16_t>(random_.below(5000)));
        }
        break;
      case 4:
        frame.resize(random_.below(frame.size() + 1));
        break;
      case 5:
        frame.resize(std::min<std::size_t>(frame.size() + random_.below(200), kLongest));
        break;
      case 6:
        if (at < other.size()) {
          const std::size_t n =
              std::min({std::size_t{1 + random_.below(32)}, frame.size() - at, other.size() - at});
          std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(at), n,
                      frame.begin() + static_cast<std::ptrdiff_t>(at));
        }
        break;
    }
  }
}

// Lengths, sum and ICRC as they should be, each mostly: what is wrong lies deeper then.
void FrameMutator::repair(Frame& frame, const Seed& seed) {
  const std::size_t udp = seed.l3 + (seed.ipv6 ? kIpv6Bytes : kIpv4Bytes);
  if (seed.bth == 0 || frame.size() < udp + kUdpBytes + kBthBytes + kIcrcBytes) return;
  std::byte* const ip = frame.data() + seed.l3;
  if (random_.below(2) == 0) {
    const std::size_t ip_bytes = frame.size() - seed.l3;
    const auto udp_bytes = static_cast<std::uint16_t>(frame.size() - udp);
    store_be16(ip + (seed.ipv6 ? 4 : 2),
               seed.ipv6 ? udp_bytes : static_cast<std::uint16_t>(ip_bytes));
    store_be16(frame.data() + udp + 4, udp_bytes);
  }
  if (!seed.ipv6 && random_.below(4) != 0) {
    store_be16(ip + 10, 0);
    store_be16(ip + 10, static_cast<std::uint16_t>(~fold_sum(ipv4_header_sum(ip))));
  }
  if (random_.below(4) != 0) {
    // Where the IP length says that it is, if that is inside.
    const std::size_t said =
        seed.ipv6 ? udp + load_be16(ip + 4) : seed.l3 + std::size_t{load_be16(ip + 2)};
    const std::size_t end = std::min(said, frame.size());
    const auto version = load_u8(ip) >> 4;
    if (end < udp + kUdpBytes + kBthBytes + kIcrcBytes || version != (seed.ipv6 ? 6 : 4)) return;
    store_le32(frame.data() + end - kIcrcBytes, icrc_of_frame(frame, seed.l3, end - kIcrcBytes));
  }
}

Frame FrameMutator::next(const StormTarget& target, bool attack, std::size_t most) {
  const Seed& seed = seeds_[random_.below(seeds_.size())];
  Frame frame = seed.frame;
  readdress(frame, seed, target, attack);
  damage(frame, seeds_[random_.below(seeds_.size())].frame);
  repair(frame, seed);
  if (frame.size() > most) frame.resize(most);
  return frame;
}

}  // namespace paceline::test
