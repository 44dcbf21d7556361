#include "dataplane/port/capture/link_capture.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <sstream>
#include <string>

#include "dataplane/port/packet_pool.h"
#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/icrc.h"
#include "tests/wire/checks/pcapng_reader.h"

namespace paceline {
namespace {

test::PcapngFile read(const std::ostringstream& out) {
  const std::string text = out.str();
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return test::parse_pcapng(bytes, "capture");
}

// A SEND of `payload` bytes, ICRC and all.
Packet* make(PacketPool& pool, std::uint16_t payload) {
  wire::FlowAddressing flow;
  flow.source = wire::IpAddress::v4(0x0A00'0001);
  flow.destination = wire::IpAddress::v4(0x0A00'0002);
  const wire::HeaderTemplate header = wire::make_header_template(flow);
  Packet* p = pool.alloc();
  wire::TransportFields fields;
  fields.dest_qpn = 17;
  fields.payload_bytes = payload;
  p->header_bytes =
      static_cast<std::uint16_t>(wire::build_data(header, wire::HeaderBuffer{p->header}, fields));
  p->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  p->payload_kind = payload == 0 ? PayloadKind::none : PayloadKind::owned;
  p->payload_bytes = static_cast<std::uint16_t>((payload + 3) & ~3);
  for (std::uint16_t i = 0; i < p->payload_bytes; ++i) {
    p->payload[i] = i < payload ? static_cast<std::byte>(i * 7) : std::byte{0};
  }
  p->icrc = wire::icrc(p->header_view(), header.l3_offset,
                       payload == 0 ? std::span<const std::byte>{} : p->payload_view());
  return p;
}

LinkCaptureConfig config() {
  LinkCaptureConfig c;
  c.application = "paceline test";
  c.name = "leaf0-spine1";
  c.description = "outbound from leaf0";
  c.rate = rate_from_gbps(400);
  return c;
}

}  // namespace

TEST_CASE("link capture: frames, times, directions and what became of them") {
  PacketPool pool(4, 4096);
  std::ostringstream out;
  LinkCapture capture(out, config());
  Packet* p = make(pool, 61);
  capture.show(Picos{1'999}, true, *p);
  capture.settle(Fate::delivered, "");
  p->flags = packet_flag::duplicate;
  capture.show(Picos{5'000'000'000'000'000}, false, *p);  // beyond 32 bits of nanoseconds
  capture.settle(Fate::delivered, "");
  p->flags = packet_flag::corrupt;
  capture.show(Picos{5'000'000'000'000'000}, false, *p);
  capture.settle(Fate::refused, "buffer_full");
  p->flags = 0;
  for (const Fate fate : {Fate::lost, Fate::never_sent}) {
    capture.show(Picos{5'000'000'000'001'000}, true, *p);
    capture.settle(fate, "link_down");
  }
  for (const std::uint32_t pause : {1U, 0U}) {
    Packet* frame = pool.alloc();
    frame->flags = packet_flag::pfc;
    frame->traffic_class = 3;
    frame->entropy = pause;
    capture.show(Picos{6'000'000'000'000'000}, false, *frame);
    capture.settle(Fate::delivered, "");
  }
  // After every block the file is whole, statistics or not.
  CHECK(read(out).packets.size() == 7);
  CHECK(read(out).statistics.empty());
  capture.finish(Picos{7'000'000'000'000'000});

  const test::PcapngFile file = read(out);
  CHECK(test::check_capture(file) == "");
  CHECK(file.application == "paceline test");
  REQUIRE(file.interfaces.size() == 1);
  CHECK(file.interfaces[0].name == "leaf0-spine1");
  CHECK(file.interfaces[0].description == "outbound from leaf0");
  CHECK(file.interfaces[0].bits_per_second == 400'000'000'000);
  CHECK(file.interfaces[0].resolution == 9);
  REQUIRE(file.packets.size() == 7);
  CHECK(file.packets[0].time == 1);
  CHECK(file.packets[1].time == 5'000'000'000'000);
  CHECK(file.packets[0].direction == 2);
  CHECK(file.packets[1].direction == 1);
  const std::string comments[] = {"",
                                  "a copy made on the way",
                                  "bit error on the way; dropped at the end of this link: "
                                  "buffer_full",
                                  "lost on this link: link_down",
                                  "dropped in front of this link: link_down",
                                  "",
                                  ""};
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK(file.packets[i].comment == comments[i]);
    CHECK(file.packets[i].crc_error == (i == 2));
  }
  CHECK(test::count_packets(file) ==
        std::map<std::string, unsigned>{{"PFC", 2}, {"RC SEND Only", 5}});
  // IEEE 802.1Qbb: opcode, classes, and a time per class: longest for a pause, none for a resume.
  const auto at = [&](std::size_t packet, std::size_t byte) {
    return wire::load_be16(file.packets[packet].frame.data() + byte);
  };
  for (const std::size_t i : {5U, 6U}) {
    CHECK(at(i, 0) == 0x0180);
    CHECK(at(i, 14) == 0x0101);
    CHECK(at(i, 16) == 1U << 3);
    for (std::size_t c = 0; c < 8; ++c) {
      CHECK(at(i, 18 + 2 * c) == (i == 5 && c == 3 ? 0xFFFF : 0));
    }
  }
  REQUIRE(file.statistics.size() == 1);
  CHECK(file.statistics[0].received == 7);
  CHECK(file.statistics[0].dropped == 3);
  CHECK(file.statistics[0].comment == "");
  CHECK(capture.bytes() == out.str().size());
}

TEST_CASE("link capture: limits stop the file, not the counting") {
  PacketPool pool(2, 4096);
  for (const bool by_bytes : {false, true}) {
    std::ostringstream out;
    LinkCaptureConfig c = config();
    (by_bytes ? c.most_bytes : c.most_packets) = by_bytes ? 5'000 : 3;
    LinkCapture capture(out, c);
    Packet* p = make(pool, 1024);
    for (std::int64_t i = 0; i < 10; ++i) {
      capture.show(Picos{i * 1000}, true, *p);
      capture.settle(Fate::delivered, "");
    }
    // 54 + 1024 + 4 bytes and 48 of the block, four times, leave no room for a fifth.
    const std::uint64_t kept = by_bytes ? 4 : 3;
    CHECK(capture.written() == kept);
    CHECK(capture.seen() == 10);
    CHECK(capture.full_at() == Picos{static_cast<std::int64_t>(kept) * 1000});
    if (by_bytes) CHECK(out.str().size() <= 5'000);
    capture.finish(Picos{10'000});
    const test::PcapngFile file = read(out);
    CHECK(file.packets.size() == kept);
    CHECK(test::check_capture(file) == "");
    REQUIRE(file.statistics.size() == 1);
    CHECK(file.statistics[0].received == 10);
    CHECK(file.statistics[0].comment != "");
    pool.free(p);
  }
}

TEST_CASE("link capture: every length of a frame is padded as the format wants it") {
  PacketPool pool(1, 4096);
  for (std::uint16_t payload = 0; payload < 9; ++payload) {
    std::ostringstream out;
    LinkCapture capture(out, config());
    Packet* p = make(pool, payload);
    capture.show(Picos{0}, true, *p);
    capture.settle(Fate::lost, std::string(payload, 'x').c_str());  // and of a comment
    const test::PcapngFile file = read(out);
    CHECK(test::check_capture(file) == "");
    REQUIRE(file.packets.size() == 1);
    CHECK(file.packets[0].frame.size() == p->header_bytes + p->payload_bytes + 4U);
    CHECK(file.packets[0].comment == "lost on this link: " + std::string(payload, 'x'));
    pool.free(p);
  }
}

TEST_CASE("link capture: the reader notices what is wrong with a file") {
  PacketPool pool(1, 4096);
  std::ostringstream out;
  LinkCapture capture(out, config());
  Packet* p = make(pool, 3);
  capture.show(Picos{0}, true, *p);
  capture.settle(Fate::delivered, "");
  const std::string text = out.str();
  for (std::size_t n = 1; n < text.size(); ++n) {
    std::vector<std::byte> bytes(n);
    std::memcpy(bytes.data(), text.data(), n);
    bool whole = true;
    try {
      static_cast<void>(test::parse_pcapng(bytes, "cut"));
    } catch (const std::runtime_error&) {
      whole = false;
    }
    // Whole between blocks alone: behind the section header, and behind the interface.
    if (whole) {
      CHECK((n + wire::load_le32(reinterpret_cast<const std::byte*>(text.data() + n) + 4) <=
             text.size()));
    }
  }
}

// An ARP request on an emulated link between ports of a machine.
TEST_CASE("link capture: what is no RoCEv2 packet has no ICRC, and times may be of this world") {
  PacketPool pool(1, 4096);
  std::ostringstream out;
  LinkCaptureConfig today = config();
  today.epoch = Nanos{1'700'000'000'250'000'007};
  LinkCapture capture(out, today);
  Packet* p = pool.alloc();
  p->header_bytes = 42;
  p->payload_kind = PayloadKind::none;
  p->icrc = 0xAAAA'AAAA;
  capture.show(Picos{800'000'000'000}, false, *p);
  capture.settle(Fate::delivered, "");
  capture.finish(Picos{900'000'000'000});
  const test::PcapngFile file = read(out);
  REQUIRE(file.packets.size() == 1);
  CHECK(file.packets[0].frame.size() == 42);
  // Whole seconds of the epoch are the interface's offset.
  CHECK(file.packets[0].time == 1'050'000'007);
  pool.free(p);
}

}  // namespace paceline
