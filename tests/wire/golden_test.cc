// Against packets that another implementation sent: every one parses, its invariant CRC verifies,
// and our builders write the same bytes from what was parsed.
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/icrc.h"
#include "dataplane/wire/packet/parse.h"
#include "tests/wire/checks/parse_check.h"
#include "tests/wire/conversation.h"
#include "tests/wire/pcap.h"

namespace paceline::test {
namespace {

using namespace wire;

using Counts = std::map<std::string, unsigned>;

std::string text_of(const Counts& counts) {
  std::string text;
  for (const auto& [label, n] : counts) {
    text += (text.empty() ? "" : ", ") + label + " " + std::to_string(n);
  }
  return text;
}

// The third column of each row of the README's table, by capture.
std::map<std::string, Counts> counts_of_readme() {
  std::ifstream in(golden_path("README.md"));
  REQUIRE(in);
  std::map<std::string, Counts> table;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("| ", 0) != 0 || line.rfind("| file", 0) == 0) continue;
    const std::size_t name_end = line.find(" | ");
    const std::size_t counts_at = line.rfind(" | ") + 3;
    std::istringstream cells(line.substr(counts_at, line.size() - counts_at - 2));
    Counts counts;
    for (std::string cell; std::getline(cells, cell, ',');) {
      const std::size_t begin = cell.find_first_not_of(' ');
      const std::size_t space = cell.rfind(' ');
      counts[cell.substr(begin, space - begin)] +=
          static_cast<unsigned>(std::stoul(cell.substr(space + 1)));
    }
    table[line.substr(2, name_end - 2)] = counts;
  }
  return table;
}

bool is_roce(const Frame& frame) {
  ParsedPacket p;
  const ParseError e = parse_frame(frame, {false, false}, p);
  return e != ParseError::not_ip && e != ParseError::not_udp && e != ParseError::udp_port;
}

// Builds the packet again and compares headers and ICRC with the frame it came from.
void require_rebuilt(const Frame& frame, const ParsedPacket& p) {
  const HeaderTemplate header = make_header_template(addressing_of(p));
  const TransportFields fields{p.opcode,      p.dest_qpn,  p.psn,  p.payload_bytes,
                               p.ack_request, p.solicited, p.fecn, p.becn};
  std::array<std::byte, kHeaderBufferBytes> out;
  out.fill(std::byte{0xEE});
  const std::size_t n = build_packet(header, out, fields, p.ext);
  REQUIRE(n == p.header_bytes);
  REQUIRE(std::memcmp(out.data(), frame.data(), n) == 0);
  const auto payload = std::span<const std::byte>(frame).subspan(n, p.padded_bytes());
  REQUIRE(icrc(std::span(out).first(n), p.l3_offset, payload) == p.icrc);
}

}  // namespace

TEST_CASE("golden: every packet parses, verifies and rebuilds; counts are the table's") {
  const auto table = counts_of_readme();
  const auto captures = golden_captures();
  REQUIRE(captures.size() == 22);
  REQUIRE(table.size() == captures.size());
  for (const auto& name : captures) {
    REQUIRE(table.count(name) == 1);
    Counts counts;
    std::size_t number = 0;
    for (const Frame& frame : read_pcap(golden_path(name + ".pcap"))) {
      ++number;
      if (!is_roce(frame)) continue;
      INFO(name << " packet " << number);
      ParsedPacket p;
      const ParseError e = parse_frame(frame, p);
      INFO(parse_error_name(e));
      REQUIRE(e == ParseError::ok);
      require_rebuilt(frame, p);
      REQUIRE(check_frame(frame) == "");
      ++counts[label_of(p)];
    }
    INFO(name);
    CHECK(text_of(counts) == text_of(table.at(name)));
  }
}

TEST_CASE("golden: the ICRC vectors, IPv4 and IPv6") {
  const auto vectors = read_icrc_vectors();
  REQUIRE(vectors.size() == 40);
  unsigned ipv6 = 0;
  for (const auto& vector : vectors) {
    INFO(vector.title);
    CHECK(icrc(vector.datagram, 0) == vector.icrc);
    const Frame frame = frame_of(vector);
    ParsedPacket p;
    const ParseError e = parse_frame(frame, p);
    INFO(parse_error_name(e));
    REQUIRE(e == ParseError::ok);
    require_rebuilt(frame, p);
    ipv6 += p.ipv6 ? 1U : 0U;
    // The result does not depend on where headers end and payload begins.
    const auto whole = std::span<const std::byte>(frame);
    const std::size_t end = frame.size() - kIcrcBytes;
    for (std::size_t cut = p.bth_offset + kBthBytes; cut <= end; cut += 4) {
      REQUIRE(icrc(whole.first(cut), p.l3_offset, whole.subspan(cut, end - cut)) == vector.icrc);
    }
  }
  CHECK(ipv6 == 7);
}

TEST_CASE("golden: a flipped bit is noticed unless the field is masked") {
  for (const auto& vector : read_icrc_vectors()) {
    INFO(vector.title);
    Frame frame = frame_of(vector);
    ParsedPacket p;
    REQUIRE(parse_frame(frame, p) == ParseError::ok);
    const bool ipv6 = p.ipv6;
    const std::size_t udp = p.bth_offset - kUdpBytes;
    const auto masked = [&](std::size_t byte, unsigned bit) {
      if (byte == udp + 6 || byte == udp + 7 || byte == std::size_t{p.bth_offset} + 4) return true;
      const std::size_t in_ip = byte - p.l3_offset;
      // In the first IPv6 byte, the upper half is the version; the lower half begins the traffic
      // class.
      if (ipv6) return (in_ip == 0 && bit < 4) || (in_ip >= 1 && in_ip <= 3) || in_ip == 7;
      return in_ip == 1 || in_ip == 8 || in_ip == 10 || in_ip == 11;
    };
    // The IPv4 header checksum would notice some of the masked ones; here it is the ICRC's turn.
    const ParseOptions options{false, true};
    for (std::size_t byte = p.l3_offset; byte < frame.size(); ++byte) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        frame[byte] ^= static_cast<std::byte>(1U << bit);
        ParsedPacket tampered;
        const bool accepted = parse_frame(frame, options, tampered) == ParseError::ok;
        frame[byte] ^= static_cast<std::byte>(1U << bit);
        if (accepted != masked(byte, bit)) FAIL("byte " << byte << " bit " << bit);
      }
    }
  }
}

TEST_CASE("golden: the IPv4 header checksum notices what the ICRC masks") {
  Frame frame = frame_of(read_icrc_vectors().at(0));
  ParsedPacket p;
  REQUIRE(parse_frame(frame, p) == ParseError::ok);
  for (const std::size_t byte : {1U, 8U, 10U, 11U}) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      frame[kEthernetBytes + byte] ^= static_cast<std::byte>(1U << bit);
      CHECK(parse_frame(frame, p) == ParseError::ip_checksum);
      frame[kEthernetBytes + byte] ^= static_cast<std::byte>(1U << bit);
    }
  }
}

}  // namespace paceline::test
