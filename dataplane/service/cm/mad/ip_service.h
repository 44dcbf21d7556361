// RDMA IP connection management (InfiniBand Architecture Specification, volume 1, annex A11): the
// service id of a port, and the header with both addresses that begins the private data of a REQ
// or a SIDR_REQ.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "dataplane/wire/bytes/endian.h"
#include "dataplane/wire/headers/addresses.h"

namespace paceline::service::cm {

// A port space: bytes 4 and 5 of the service id. Numbers of enum rdma_ucm_port_space.
enum class PortSpace : std::uint16_t {
  ipoib = 0x0002,
  tcp = 0x0106,
  udp = 0x0111,
  ib = 0x013F,
};

constexpr std::uint64_t service_id(PortSpace space, std::uint16_t port) {
  return std::uint64_t{static_cast<std::uint16_t>(space)} << 16 | port;
}

struct IpService {
  PortSpace space;
  std::uint16_t port;
};
// Nothing if the id does not name a port.
constexpr std::optional<IpService> ip_service(std::uint64_t id) {
  if (id >> 32 != 0) return std::nullopt;
  const IpService out{static_cast<PortSpace>(id >> 16), static_cast<std::uint16_t>(id)};
  switch (out.space) {
    case PortSpace::ipoib:
    case PortSpace::tcp:
    case PortSpace::udp:
    case PortSpace::ib:
      return out;
  }
  return std::nullopt;
}

// A11.2: precedes the program's private data.
struct IpHeader {
  wire::IpAddress source{};
  wire::IpAddress destination{};
  std::uint16_t source_port = 0;
  bool v4 = true;

  friend bool operator==(const IpHeader&, const IpHeader&) = default;
};
inline constexpr std::size_t kIpHeaderBytes = 36;

inline void put_ip_header(std::byte* at, const IpHeader& header) {
  wire::store_u8(at, 0);  // version
  wire::store_u8(at + 1, header.v4 ? 0x40 : 0x60);
  wire::store_be16(at + 2, header.source_port);
  const auto put = [&](std::byte* to, const wire::IpAddress& address) {
    std::memset(to, 0, 16);
    const std::size_t skip = header.v4 ? 12 : 0;
    std::memcpy(to + skip, address.bytes.data() + skip, 16 - skip);
  };
  put(at + 4, header.source);
  put(at + 20, header.destination);
}

// `bytes` has at least kIpHeaderBytes. Nothing if the version is unknown.
inline std::optional<IpHeader> read_ip_header(std::span<const std::byte> bytes) {
  const std::uint8_t family = wire::load_u8(bytes.data() + 1) >> 4;
  if (wire::load_u8(bytes.data()) != 0 || (family != 4 && family != 6)) return std::nullopt;
  IpHeader out;
  out.v4 = family == 4;
  out.source_port = wire::load_be16(bytes.data() + 2);
  const auto read = [&](std::size_t at) {
    return out.v4 ? wire::IpAddress::load_v4(bytes.data() + at + 12)
                  : wire::IpAddress::load_v6(bytes.data() + at);
  };
  out.source = read(4);
  out.destination = read(20);
  return out;
}

}  // namespace paceline::service::cm
