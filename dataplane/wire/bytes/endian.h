// Big-endian loads and stores at any alignment. Each is one move and one byte swap after
// optimisation; callers guarantee that the bytes lie inside their buffer.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace paceline::wire {

inline constexpr bool kLittleEndianHost = std::endian::native == std::endian::little;

constexpr std::uint16_t to_big_endian(std::uint16_t v) {
  return kLittleEndianHost ? __builtin_bswap16(v) : v;
}
constexpr std::uint32_t to_big_endian(std::uint32_t v) {
  return kLittleEndianHost ? __builtin_bswap32(v) : v;
}
constexpr std::uint64_t to_big_endian(std::uint64_t v) {
  return kLittleEndianHost ? __builtin_bswap64(v) : v;
}

// In host order, as the bytes lie in memory.
template <class T>
inline T load_raw(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline std::uint8_t load_u8(const std::byte* p) { return static_cast<std::uint8_t>(*p); }
inline std::uint16_t load_be16(const std::byte* p) {
  return to_big_endian(load_raw<std::uint16_t>(p));
}
inline std::uint32_t load_be24(const std::byte* p) {
  return std::uint32_t{load_be16(p)} << 8 | load_u8(p + 2);
}
inline std::uint32_t load_be32(const std::byte* p) {
  return to_big_endian(load_raw<std::uint32_t>(p));
}
inline std::uint64_t load_be48(const std::byte* p) {
  return std::uint64_t{load_be16(p)} << 32 | load_be32(p + 2);
}
inline std::uint64_t load_be64(const std::byte* p) {
  return to_big_endian(load_raw<std::uint64_t>(p));
}

inline void store_u8(std::byte* p, std::uint8_t v) { *p = static_cast<std::byte>(v); }
inline void store_be16(std::byte* p, std::uint16_t v) {
  v = to_big_endian(v);
  std::memcpy(p, &v, sizeof v);
}
inline void store_be32(std::byte* p, std::uint32_t v) {
  v = to_big_endian(v);
  std::memcpy(p, &v, sizeof v);
}
inline void store_be64(std::byte* p, std::uint64_t v) {
  v = to_big_endian(v);
  std::memcpy(p, &v, sizeof v);
}
// The low 24 bits of v; the upper eight are ignored.
inline void store_be24(std::byte* p, std::uint32_t v) {
  store_be16(p, static_cast<std::uint16_t>(v >> 8));
  store_u8(p + 2, static_cast<std::uint8_t>(v));
}
// The low 48 bits of v; the upper sixteen are ignored.
inline void store_be48(std::byte* p, std::uint64_t v) {
  store_be16(p, static_cast<std::uint16_t>(v >> 32));
  store_be32(p + 2, static_cast<std::uint32_t>(v));
}

// The invariant CRC is the one little-endian field of RoCEv2.
inline std::uint32_t load_le32(const std::byte* p) {
  const auto v = load_raw<std::uint32_t>(p);
  return kLittleEndianHost ? v : __builtin_bswap32(v);
}
inline void store_le32(std::byte* p, std::uint32_t v) {
  if (!kLittleEndianHost) v = __builtin_bswap32(v);
  std::memcpy(p, &v, sizeof v);
}

}  // namespace paceline::wire
