#include "dataplane/wire/bytes/crc32.h"

#include <array>

#include "dataplane/wire/bytes/crc32_polynomial.h"
#include "dataplane/wire/bytes/endian.h"

namespace paceline::wire {
namespace {

// kTables[k][b]: what byte b contributes when k more bytes follow it in the block.
using Tables = std::array<std::array<std::uint32_t, 256>, 16>;

constexpr Tables make_tables() {
  Tables t{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = crc::times_x(crc);
    t[0][b] = crc;
  }
  for (std::size_t k = 1; k < t.size(); ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t before = t[k - 1][b];
      t[k][b] = t[0][before & 0xFFU] ^ (before >> 8);
    }
  }
  return t;
}
constexpr Tables kTables = make_tables();

// Contribution of four bytes, read little-endian, of which the last is followed by `after` bytes.
std::uint32_t four_bytes(std::uint32_t word, std::size_t after) {
  return kTables[after + 3][word & 0xFFU] ^ kTables[after + 2][(word >> 8) & 0xFFU] ^
         kTables[after + 1][(word >> 16) & 0xFFU] ^ kTables[after][word >> 24];
}

using Kernel = std::uint32_t (*)(std::uint32_t, std::span<const std::byte>);

Kernel fastest_kernel() {
  if (crc32_has_vpclmul()) return crc32_vpclmul;
  if (crc32_has_pclmul()) return crc32_pclmul;
  return crc32_portable;
}

}  // namespace

std::uint32_t crc32_portable(std::uint32_t crc, std::span<const std::byte> data) {
  const std::byte* p = data.data();
  std::size_t n = data.size();
  crc = ~crc;
  for (; n >= 16; n -= 16, p += 16) {
    crc = four_bytes(load_le32(p) ^ crc, 12) ^ four_bytes(load_le32(p + 4), 8) ^
          four_bytes(load_le32(p + 8), 4) ^ four_bytes(load_le32(p + 12), 0);
  }
  for (; n > 0; --n, ++p) crc = kTables[0][(crc ^ load_u8(p)) & 0xFFU] ^ (crc >> 8);
  return ~crc;
}

std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> data) {
  static const Kernel kernel = fastest_kernel();
  return kernel(crc, data);
}

}  // namespace paceline::wire
