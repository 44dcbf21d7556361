#include "tests/interop/packet_socket_port.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "dataplane/port/frame_split.h"
#include "dataplane/wire/host/ethernet.h"

namespace paceline::test {
namespace {

constexpr std::size_t kShortestFrame = 60;
constexpr std::uint16_t kPayloadRoom = 9216;
constexpr std::size_t kMacPair = 12;
constexpr std::uint16_t kAllProtocols = 0x0003;  // ETH_P_ALL

void require(bool good, const char* what) {
  if (!good) throw std::system_error(errno, std::generic_category(), what);
}

void switch_on(int socket, int option, const char* what) {
  const int on = 1;
  require(setsockopt(socket, SOL_PACKET, option, &on, sizeof on) == 0, what);
}

// The kernel takes the tag out and tells it beside the frame.
bool tag_of(msghdr& message, std::uint16_t& tci) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA) continue;
    tpacket_auxdata aux;
    std::memcpy(&aux, CMSG_DATA(c), sizeof aux);
    tci = aux.tp_vlan_tci;
    return (aux.tp_status & TP_STATUS_VLAN_VALID) != 0;
  }
  return false;
}

}  // namespace

PacketSocketPort::PacketSocketPort(const std::string& interface)
    : socket_(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(kAllProtocols))),
      pool_(4096, kPayloadRoom),
      frame_(kPayloadRoom) {
  require(socket_ >= 0, "a packet socket");
  const unsigned index = if_nametoindex(interface.c_str());
  require(index != 0, interface.c_str());
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(kAllProtocols);
  address.sll_ifindex = static_cast<int>(index);
  require(bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "bind");
  // Our MAC address is made up, and our groups are nobody else's business.
  packet_mreq everything{};
  everything.mr_ifindex = static_cast<int>(index);
  everything.mr_type = PACKET_MR_PROMISC;
  require(
      setsockopt(socket_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &everything, sizeof everything) == 0,
      "promiscuous mode");
  switch_on(socket_, PACKET_AUXDATA, "PACKET_AUXDATA");
  switch_on(socket_, PACKET_IGNORE_OUTGOING, "PACKET_IGNORE_OUTGOING");
}

PacketSocketPort::~PacketSocketPort() { close(socket_); }

PortInfo PacketSocketPort::info() const {
  PortInfo info;
  info.link_rate = rate_from_gbps(1);
  info.payload_room = kPayloadRoom;
  info.tx_burst = 16;
  return info;
}

void PacketSocketPort::wait_beside(int fd, int milliseconds) const {
  std::array<pollfd, 2> entries{{{socket_, POLLIN, 0}, {fd, POLLIN, 0}}};
  poll(entries.data(), entries.size(), milliseconds);
}

bool PacketSocketPort::receive_one(Packet& packet) {
  // Room in front for the tag.
  iovec part{frame_.data() + wire::kVlanBytes, frame_.size() - wire::kVlanBytes};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(tpacket_auxdata))> control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket_, &message, MSG_TRUNC);
  if (got < 0 || (message.msg_flags & MSG_TRUNC) != 0) return false;
  std::span<std::byte> frame(frame_.data() + wire::kVlanBytes, static_cast<std::size_t>(got));
  std::uint16_t tci = 0;
  if (frame.size() >= wire::kEthernetBytes && tag_of(message, tci)) {
    std::copy_n(frame.data(), kMacPair, frame_.data());
    wire::store_be16(frame_.data() + kMacPair, wire::kEtherTypeVlan);
    wire::store_be16(frame_.data() + kMacPair + 2, tci);
    frame = {frame_.data(), frame.size() + wire::kVlanBytes};
  }
  const FrameParts parts = split_frame(frame);
  fill_received(packet, frame.data(), parts, WireAccounting{});
  std::copy_n(frame.data() + parts.header_bytes, parts.payload_bytes, packet.payload);
  return true;
}

std::size_t PacketSocketPort::rx(std::span<Packet*> burst) {
  std::size_t n = 0;
  while (n < burst.size()) {
    Packet* packet = pool_.alloc();
    if (packet == nullptr) break;
    if (!receive_one(*packet)) {
      pool_.free(packet);
      break;
    }
    burst[n++] = packet;
  }
  return n;
}

std::size_t PacketSocketPort::tx(Picos, std::uint8_t, std::span<Packet* const> burst) {
  std::size_t n = 0;
  for (Packet* packet : burst) {
    std::array<std::byte, 4> icrc{};
    std::array<std::byte, kShortestFrame> padding{};
    wire::store_le32(icrc.data(), packet->icrc);
    const std::size_t icrc_bytes = packet->bth_offset != 0 ? icrc.size() : 0;
    const std::size_t payload =
        packet->payload_kind == PayloadKind::owned ? packet->payload_bytes : 0;
    const std::size_t bytes = packet->header_bytes + payload + icrc_bytes;
    const std::size_t short_by = bytes < kShortestFrame ? kShortestFrame - bytes : 0;
    std::array<iovec, 4> parts{{{packet->header.data(), packet->header_bytes},
                                {packet->payload, payload},
                                {icrc.data(), icrc_bytes},
                                {padding.data(), short_by}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    if (sendmsg(socket_, &message, 0) < 0 && (errno == EAGAIN || errno == ENOBUFS)) break;
    pool_.free(packet);
    ++n;
  }
  return n;
}

}  // namespace paceline::test
