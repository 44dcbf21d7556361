// CRC-32 with the Ethernet polynomial, bits reflected, as in IEEE 802.3 and InfiniBand's invariant
// CRC. One function for callers, which picks the fastest kernel the processor has, and the kernels
// themselves, so that tests can hold one against the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline::wire {

// `crc` is the result for the bytes before these, 0 at the start:
// crc32(crc32(0, a), b) == crc32(0, a then b). crc32(0, "123456789") == 0xCBF43926.
std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> data);

// Same contract. Sixteen table look-ups per 16 bytes.
std::uint32_t crc32_portable(std::uint32_t crc, std::span<const std::byte> data);

// Same contract; x86-64 only. Carry-less multiplication folds 64 or 256 bytes at a time. Call only
// where the matching predicate holds; elsewhere they abort.
bool crc32_has_pclmul();
std::uint32_t crc32_pclmul(std::uint32_t crc, std::span<const std::byte> data);
bool crc32_has_vpclmul();  // AVX-512
std::uint32_t crc32_vpclmul(std::uint32_t crc, std::span<const std::byte> data);

}  // namespace paceline::wire
