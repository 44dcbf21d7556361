// The ICRC of headers and payload in two pieces against one over a masked copy of the whole
// (InfiniBand annex A17.3; golden captures hold the rule itself, tests/wire).
#include "dataplane/wire/packet/icrc.h"

#include <catch2/catch.hpp>
#include <vector>

#include "dataplane/wire/bytes/crc32.h"
#include "dataplane/wire/headers/headers.h"
#include "tests/unit/wire/wire_fixture.h"

namespace paceline::wire {
namespace {

// Masked as the annex says, byte by byte, and summed at once.
std::uint32_t icrc_of_copy(std::span<const std::byte> headers, std::size_t l3_offset,
                           std::span<const std::byte> payload, bool ipv6) {
  std::vector<std::byte> all(8, std::byte{0xFF});
  all.insert(all.end(), headers.begin() + static_cast<std::ptrdiff_t>(l3_offset), headers.end());
  all.insert(all.end(), payload.begin(), payload.end());
  std::byte* const ip = all.data() + 8;
  const auto ones = [](std::byte* at, std::size_t n) { std::fill_n(at, n, std::byte{0xFF}); };
  if (ipv6) {
    ip[0] |= std::byte{0x0F};
    ones(ip + 1, 3);
    ones(ip + 7, 1);
  } else {
    ones(ip + 1, 1);
    ones(ip + 8, 1);
    ones(ip + 10, 2);
  }
  std::byte* const udp = ip + (ipv6 ? kIpv6Bytes : kIpv4Bytes);
  ones(udp + 6, 2);
  ones(udp + kUdpBytes + 4, 1);
  return crc32_portable(0, all);
}

}  // namespace

TEST_CASE("icrc: headers and payload of any length, over IPv4 and IPv6") {
  const std::uint64_t seed = 21;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 4000; ++i) {
    const bool ipv6 = random.below(2) != 0;
    // From the base transport header alone to the longest that a packet holds.
    const std::size_t least =
        kEthernetBytes + (ipv6 ? kIpv6Bytes : kIpv4Bytes) + kUdpBytes + kBthBytes;
    std::vector<std::byte> headers(least + random.below(128 - least + 1));
    // About the length at which one pass becomes two, and far from it.
    std::vector<std::byte> payload(random.below(2) != 0 ? random.below(300) : random.below(4097));
    for (auto& b : headers) b = static_cast<std::byte>(random.next());
    for (auto& b : payload) b = static_cast<std::byte>(random.next());
    headers[kEthernetBytes] = ipv6 ? std::byte{0x6A} : std::byte{0x45};
    INFO("headers " << headers.size() << ", payload " << payload.size() << ", IPv6 " << ipv6);
    REQUIRE(icrc(headers, kEthernetBytes, payload) ==
            icrc_of_copy(headers, kEthernetBytes, payload, ipv6));
  }
}

}  // namespace paceline::wire
