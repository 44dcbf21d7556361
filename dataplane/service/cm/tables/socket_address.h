// Addresses as programs pass them: sockaddr_in, sockaddr_in6 and sockaddr_ib (AF_IB, which
// librdmacm tries to see whether it is supported).
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "dataplane/wire/bytes/endian.h"
#include "dataplane/wire/headers/addresses.h"

namespace paceline::service::cm {

inline constexpr std::uint16_t kAfIb = 27;  // the kernel's AF_IB; the C library has no name for it

struct SocketAddress {
  std::uint16_t family = 0;  // AF_INET, AF_INET6, kAfIb; 0: none
  std::uint16_t port = 0;    // kAfIb: the low bytes of the service id
  std::uint32_t scope = 0;   // AF_INET6
  wire::IpAddress ip{};
  std::uint64_t service = 0;  // kAfIb: the service id, as a number

  bool none() const { return family == 0; }
  // Means any NIC. As in Linux's rdma_cm (cma_any_addr), addresses of the loopback interface do,
  // too.
  bool any() const { return ip.is_unspecified() || loopback(); }
  bool v4() const { return family == AF_INET; }
  bool loopback() const {
    if (ip.is_v4()) return ip.v4_value() >> 24 == 127;
    return ip.high() == 0 && ip.low() == 1;
  }
};

// Sizes of sockaddr_storage and of the kernel's struct sockaddr_ib.
inline constexpr std::size_t kStorageBytes = 128;
inline constexpr std::size_t kSockaddrIbBytes = 48;

constexpr std::size_t address_bytes(std::uint16_t family) {
  switch (family) {
    case AF_INET:
      return sizeof(sockaddr_in);
    case AF_INET6:
      return sizeof(sockaddr_in6);
    case kAfIb:
      return kSockaddrIbBytes;
    default:
      return 0;
  }
}

// Nothing if the family is unknown, or if there are fewer bytes than it needs.
inline std::optional<SocketAddress> read_address(std::span<const std::byte> bytes) {
  if (bytes.size() < 2) return std::nullopt;
  SocketAddress out;
  out.family = wire::load_raw<std::uint16_t>(bytes.data());
  const std::size_t size = address_bytes(out.family);
  if (size == 0 || bytes.size() < size) return std::nullopt;
  out.port = wire::load_be16(bytes.data() + 2);
  if (out.family == AF_INET) {
    out.ip = wire::IpAddress::load_v4(bytes.data() + 4);
  } else {
    out.ip = wire::IpAddress::load_v6(bytes.data() + 8);
    if (out.family == AF_INET6) {
      out.scope = wire::load_raw<std::uint32_t>(bytes.data() + 24);
    } else {
      out.service = wire::load_be64(bytes.data() + 24);
      out.port = static_cast<std::uint16_t>(out.service);
    }
  }
  return out;
}

// Writes to `at`, kStorageBytes of zeroes. Returns the size of the family's address.
inline std::size_t put_address(std::byte* at, const SocketAddress& address) {
  if (address.none()) return 0;
  std::memcpy(at, &address.family, 2);
  if (address.family == kAfIb) {
    wire::store_be16(at + 2, 0xFFFF);
    wire::store_be64(at + 24, address.service);
    std::memset(at + 32, 0xFF, 8);
  } else {
    wire::store_be16(at + 2, address.port);
  }
  if (address.family == AF_INET) {
    std::memcpy(at + 4, address.ip.bytes.data() + 12, 4);
  } else {
    std::memcpy(at + 8, address.ip.bytes.data(), 16);
    if (address.family == AF_INET6) std::memcpy(at + 24, &address.scope, 4);
  }
  return address_bytes(address.family);
}

}  // namespace paceline::service::cm
