// A frame cut into a packet's parts is judged as the whole frame is: for every captured packet, and
// for random damage to each. Nothing outside the frame is read: each has an allocation of its exact
// size.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

#include "dataplane/base/numbers/random.h"
#include "dataplane/port/frame_split.h"
#include "dataplane/port/packet.h"
#include "dataplane/wire/packet/icrc.h"
#include "dataplane/wire/packet/parse.h"
#include "tests/wire/pcap.h"

namespace paceline::test {
namespace {

struct Verdict {
  wire::ParseError error;
  wire::ParsedPacket parsed;
};

Verdict of_parts(std::span<const std::byte> frame, const FrameParts& parts) {
  Verdict v{};
  const auto headers = frame.first(parts.header_bytes);
  const auto payload = frame.subspan(parts.header_bytes, parts.payload_bytes);
  v.error = wire::parse_headers(headers, parts.payload_bytes, v.parsed);
  if (v.error == wire::ParseError::ok &&
      wire::icrc(headers, v.parsed.l3_offset, payload) != parts.icrc) {
    v.error = wire::ParseError::bad_icrc;
  }
  return v;
}

std::string compare(std::span<const std::byte> frame) {
  const FrameParts parts = split_frame(frame);
  if (parts.header_bytes > kMaxHeaderBytes) return "too many header bytes";
  if (std::size_t{parts.header_bytes} + parts.payload_bytes > frame.size()) return "too long";
  if (!parts.roce && (parts.bth_offset != 0 || parts.icrc != 0)) return "cut without reason";
  if (!parts.roce && parts.header_bytes + parts.payload_bytes != frame.size()) return "not whole";
  Verdict whole{};
  whole.error = wire::parse_frame(frame, whole.parsed);
  const Verdict cut = of_parts(frame, parts);
  const bool good = whole.error == wire::ParseError::ok;
  if (good != (cut.error == wire::ParseError::ok)) {
    return "frame: " + std::string(parse_error_name(whole.error)) +
           ", parts: " + std::string(parse_error_name(cut.error));
  }
  if (!good) return "";
  if (!parts.roce) return "a good packet was not taken for RoCE";
  if (parts.header_bytes != whole.parsed.header_bytes) return "headers end elsewhere";
  if (parts.payload_bytes != whole.parsed.padded_bytes()) return "payload has another length";
  if (parts.bth_offset != whole.parsed.bth_offset) return "bth_offset";
  if (parts.ecn != whole.parsed.ecn) return "ecn";
  if (parts.dscp != whole.parsed.dscp) return "dscp";
  if (cut.parsed.opcode != whole.parsed.opcode) return "opcode";
  return "";
}

std::unique_ptr<std::byte[]> exact(std::span<const std::byte> bytes) {
  auto copy = std::make_unique<std::byte[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return copy;
}

TEST_CASE("frame split: captured packets, padded to what Ethernet wants or longer") {
  std::size_t good = 0;
  for (const std::string& name : golden_captures()) {
    for (Frame frame : read_pcap(golden_path(name + ".pcap"))) {
      for (const std::size_t padding : {0U, 1U, 6U, 40U}) {
        Frame longer = frame;
        longer.resize(frame.size() + padding);
        INFO(name);
        CHECK(compare(longer) == "");
        good += split_frame(longer).roce;
      }
    }
  }
  CHECK(good > 400);
}

TEST_CASE("frame split: damaged packets") {
  std::size_t refused = 0;
  std::size_t taken = 0;
  for (const std::string& name : golden_captures()) {
    std::uint64_t index = 0;
    for (const Frame& original : read_pcap(golden_path(name + ".pcap"))) {
      Random random(++index, 77);
      for (int round = 0; round < 40; ++round) {
        Frame frame = original;
        if (random.below(3) == 0) frame.resize(random.below(frame.size() + 1));
        for (std::uint64_t changes = random.below(4); changes > 0 && !frame.empty(); --changes) {
          // Mostly where the headers are.
          const std::size_t reach = random.below(4) == 0 ? frame.size() : std::size_t{80};
          const std::size_t at = random.below(std::min(reach, frame.size()));
          frame[at] ^= static_cast<std::byte>(1U << random.below(8));
        }
        const auto copy = exact(frame);
        const std::string verdict = compare({copy.get(), frame.size()});
        INFO(name << " packet " << index << " round " << round);
        REQUIRE(verdict == "");
        (split_frame({copy.get(), frame.size()}).roce ? taken : refused) += 1;
      }
    }
  }
  CHECK(taken > 1000);
  CHECK(refused > 1000);
}

// Another layer decides for whom frames are.
TEST_CASE("frame split: frames for others stay whole") {
  const auto text = [](std::initializer_list<unsigned> bytes) {
    Frame frame;
    for (const unsigned b : bytes) frame.push_back(static_cast<std::byte>(b));
    return frame;
  };
  // ARP, padded to 60.
  Frame arp = text({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x08, 0x06});
  arp.resize(60);
  const FrameParts parts = split_frame(arp);
  CHECK(!parts.roce);
  CHECK(parts.header_bytes == 60);
  CHECK(parts.payload_bytes == 0);
  arp.resize(1500);
  CHECK(split_frame(arp).header_bytes == kMaxHeaderBytes);
  CHECK(split_frame(arp).payload_bytes == 1500 - kMaxHeaderBytes);
  CHECK(split_frame({}).header_bytes == 0);
}

}  // namespace
}  // namespace paceline::test
