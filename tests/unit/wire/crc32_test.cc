// Every kernel computes the same CRC-32, at every length, alignment and split.
#include "dataplane/wire/bytes/crc32.h"

#include <catch2/catch.hpp>
#include <string_view>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/wire/bytes/crc32_polynomial.h"

namespace paceline::wire {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The definition, bit by bit: shares nothing with the kernels but the polynomial.
std::uint32_t crc32_bitwise(std::uint32_t crc, std::span<const std::byte> data) {
  crc = ~crc;
  for (const std::byte b : data) {
    crc ^= static_cast<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

struct NamedKernel {
  const char* name;
  std::uint32_t (*run)(std::uint32_t, std::span<const std::byte>);
};

std::vector<NamedKernel> kernels() {
  std::vector<NamedKernel> all{{"portable", crc32_portable}, {"dispatched", crc32}};
  if (crc32_has_pclmul()) all.push_back({"pclmul", crc32_pclmul});
  if (crc32_has_vpclmul()) all.push_back({"vpclmul", crc32_vpclmul});
  return all;
}

std::vector<std::byte> random_bytes(Random& random, std::size_t n) {
  std::vector<std::byte> data(n);
  for (auto& b : data) b = static_cast<std::byte>(random.next());
  return data;
}

}  // namespace

TEST_CASE("crc32: the check value of the standard and the empty message") {
  for (const auto& kernel : kernels()) {
    INFO(kernel.name);
    CHECK(kernel.run(0, bytes_of("123456789")) == 0xCBF43926U);
    CHECK(kernel.run(0, {}) == 0U);
    CHECK(kernel.run(0x12345678U, {}) == 0x12345678U);
    CHECK(kernel.run(0, bytes_of("a")) == 0xE8B7BE43U);
  }
}

TEST_CASE("crc32: kernels agree with the definition at every length and alignment") {
  const std::uint64_t seed = 20240611;
  INFO("seed " << seed);
  Random random(seed);
  const auto data = random_bytes(random, 1200);
  for (std::size_t n = 0; n <= 1100; ++n) {
    const std::size_t at = n % 67;
    const auto span = std::span(data).subspan(at, n);
    const auto before = static_cast<std::uint32_t>(random.next());
    const std::uint32_t expected = crc32_bitwise(before, span);
    for (const auto& kernel : kernels()) {
      INFO(kernel.name << " length " << n << " offset " << at << " after " << before);
      REQUIRE(kernel.run(before, span) == expected);
    }
  }
}

TEST_CASE("crc32: a message may be split anywhere") {
  const std::uint64_t seed = 7;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 300; ++i) {
    const auto data = random_bytes(random, 1 + random.below(4500));
    const std::size_t cut = random.below(data.size() + 1);
    const auto whole = std::span<const std::byte>(data);
    const std::uint32_t expected = crc32_bitwise(0, whole);
    for (const auto& kernel : kernels()) {
      INFO(kernel.name << " length " << data.size() << " cut " << cut);
      REQUIRE(kernel.run(kernel.run(0, whole.first(cut)), whole.subspan(cut)) == expected);
    }
  }
}

TEST_CASE("crc32: constants derived at compile time are the published ones") {
  // V. Gopal et al., Intel 2009, appendix: k1..k5, mu and P of the reflected gzip CRC.
  CHECK(crc::fold_constant(4 * 128 + 32) == 0x154442BD4U);
  CHECK(crc::fold_constant(4 * 128 - 32) == 0x1C6E41596U);
  CHECK(crc::fold_constant(128 + 32) == 0x1751997D0U);
  CHECK(crc::fold_constant(128 - 32) == 0x0CCAA009EU);
  CHECK(crc::fold_constant(64) == 0x163CD6124U);
  CHECK(crc::barrett_quotient() == 0x1F7011641U);
  CHECK(crc::kBarrettPolynomial == 0x1DB710641U);
}

}  // namespace paceline::wire
