// Random damage to real packets: the parser keeps its promises (checks/parse_check.h), reads
// nothing outside the input (each has an allocation of its exact size: the address sanitizer sees
// one byte too many) and refuses for many different reasons.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <memory>

#include "dataplane/base/numbers/random.h"
#include "dataplane/wire/extensions/control.h"
#include "dataplane/wire/packet/parse.h"
#include "tests/wire/checks/parse_check.h"
#include "tests/wire/pcap.h"

namespace paceline::test {
namespace {

using namespace wire;

// A copy on the heap, exactly as long as its bytes, so that no spare capacity hides a read too far.
struct Exact {
  explicit Exact(std::span<const std::byte> bytes)
      : data(std::make_unique<std::byte[]>(bytes.size())), size(bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), data.get());
  }
  std::span<const std::byte> span() const { return {data.get(), size}; }
  std::unique_ptr<std::byte[]> data;
  std::size_t size;
};

std::vector<Frame> seeds() {
  std::vector<Frame> frames;
  for (const auto& vector : read_icrc_vectors()) frames.push_back(frame_of(vector));
  FlowAddressing flow;
  flow.source = IpAddress::v4(0x0A000001);
  flow.destination = IpAddress::v4(0x0A000002);
  for (const bool tagged : {false, true}) {
    if (tagged) flow.vlan_tci = 0x6064;
    const HeaderTemplate header = make_header_template(flow);
    std::array<std::byte, kHeaderBufferBytes> out;
    const auto add = [&](std::size_t n) {
      Frame frame(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
      frame.resize(n + kIcrcBytes);
      frames.push_back(frame);
    };
    add(build_control(header, out, Psn{1}, HelloMessage{}));
    add(build_control(header, out, Psn{2}, RequestMessage{}));
    add(build_control(header, out, Psn{3}, GrantMessage{}));
    add(build_cnp(header, out, 0x11));
  }
  // Two that random damage would hardly ever hit upon: a second tag, and an IPv4-mapped address
  // inside IPv6.
  Frame two_tags = frames.back();
  const auto tag = two_tags.begin() + 12;
  two_tags.insert(tag, {std::byte{0x81}, std::byte{0}, std::byte{0}, std::byte{5}});
  frames.push_back(two_tags);
  flow.vlan_tci.reset();
  flow.source.bytes[0] = std::byte{0xFE};
  std::array<std::byte, kHeaderBufferBytes> out;
  const std::size_t n = build_cnp(make_header_template(flow), out, 0x11);
  frames.emplace_back(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n + kIcrcBytes));
  return frames;
}

// One to four changes: a bit, a byte, two bytes in the headers, a cut, an extension, a splice.
void mutate(Frame& frame, const Frame& other, Random& random) {
  for (std::uint64_t changes = 1 + random.below(4); changes > 0 && !frame.empty(); --changes) {
    const std::size_t headers = std::min<std::size_t>(frame.size(), 90);
    const std::size_t at = random.below(headers);
    switch (random.below(7)) {
      case 0:
      case 1:
        frame[at] ^= static_cast<std::byte>(1U << random.below(8));
        break;
      case 2:
        frame[at] = static_cast<std::byte>(random.next());
        break;
      case 3:
        if (at + 1 < frame.size()) {
          store_be16(frame.data() + at, static_cast<std::uint16_t>(random.below(300)));
        }
        break;
      case 4:
        frame.resize(random.below(frame.size() + 1));
        break;
      case 5:
        frame.resize(frame.size() + random.below(20));
        break;
      case 6:
        if (at < other.size()) {
          const std::size_t n =
              std::min({std::size_t{1 + random.below(16)}, frame.size() - at, other.size() - at});
          std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(at), n,
                      frame.begin() + static_cast<std::ptrdiff_t>(at));
        }
        break;
    }
  }
}

}  // namespace

TEST_CASE("mutation: the parser keeps its promises on damaged packets") {
  const std::uint64_t seed = GENERATE(1U, 2U, 3U, 4U);
  INFO("seed " << seed);
  Random random(seed);
  const auto frames = seeds();
  ParseCounters counters;
  for (int i = 0; i < 50'000; ++i) {
    Frame frame = frames[random.below(frames.size())];
    mutate(frame, frames[random.below(frames.size())], random);
    const Exact exact(frame);
    ParsedPacket p;
    counters.record(parse_frame(exact.span(), {random.below(2) == 0, false}, p));
    INFO("iteration " << i);
    if (const std::string wrong = check_frame(exact.span()); !wrong.empty()) FAIL(wrong);

    const Exact headers(exact.span().first(std::min<std::size_t>(exact.size, random.below(130))));
    const auto payload = static_cast<std::uint32_t>(random.below(3) * random.below(1100));
    counters.record(parse_headers(headers.span(), payload, {false, false}, p));
    if (const std::string wrong = check_headers(headers.span(), payload); !wrong.empty()) {
      FAIL(wrong);
    }
    const std::size_t body_at = std::min<std::size_t>(exact.size, 54);
    const Exact body(
        exact.span().subspan(body_at, std::min<std::size_t>(exact.size - body_at, 48)));
    if (const std::string wrong = check_control(body.span()); !wrong.empty()) FAIL(wrong);
  }
  // The damage reaches every rule of the parser that a frame without CRC check can break.
  for (std::size_t i = 0; i < kParseErrors; ++i) {
    const auto e = static_cast<ParseError>(i);
    const bool elsewhere = e == ParseError::bad_icrc || e == ParseError::corrupt ||
                           e == ParseError::control_version || e == ParseError::control_length ||
                           e == ParseError::control_field;
    INFO(parse_error_name(e));
    CHECK((counters.count[i] > 0) == !elsewhere);
  }
}

TEST_CASE("mutation: every truncation of every seed is refused without reading beyond it") {
  for (const Frame& frame : seeds()) {
    for (std::size_t n = 0; n < frame.size(); ++n) {
      const Exact exact{std::span<const std::byte>(frame).first(n)};
      ParsedPacket p;
      if (parse_frame(exact.span(), {false, false}, p) == ParseError::ok) FAIL("length " << n);
    }
  }
}

}  // namespace paceline::test
