// What is captured of NIC instances: every frame both ways, as it is on the wire, what was dropped
// with its reason; and that looking changes nothing.
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "dataplane/port/capture/capture_ring_reader.h"
#include "dataplane/port/capture/port_capture.h"
#include "dataplane/service/nics/emulated_nics.h"
#include "dataplane/service/nics/port_nics.h"
#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/icrc.h"
#include "dataplane/wire/packet/parse.h"
#include "tests/support/roce_engine.h"
#include "tests/unit/neighbour/hub.h"
#include "tests/unit/nics/emulated_lab.h"
#include "tests/wire/checks/pcapng_reader.h"

namespace paceline::service::test {
namespace {

// A ring in this process, and what came out of it as a file.
struct Catcher {
  explicit Catcher(std::size_t records = 4U << 20U)
      : bytes(kCaptureRecordsAt + records),
        memory(new (std::align_val_t{4096}) std::byte[bytes]{}) {
    writer = std::make_unique<CaptureRingWriter>(std::span(memory.get(), bytes), page,
                                                 CaptureRingWriter::Settings{kMostCaptureSnap, {}});
    writer->begin(Picos{0}, 1'000'000'000);
    REQUIRE(reader.open(std::span(memory.get(), bytes), page) == "");
    PortCaptureConfig config;
    config.name = "nic";
    config.epoch = Nanos{reader.epoch_unix_ns()};
    file = std::make_unique<PortCapture>(out, config);
  }
  void drain() {
    CapturedFrame frame;
    while (reader.next(frame)) file->frame(frame);
    REQUIRE(reader.error() == "");
  }
  ::paceline::test::PcapngFile read() {
    drain();
    file->finish(Picos{0}, reader.missed());
    const std::string text = out.str();
    const auto all = std::as_bytes(std::span(text));
    return ::paceline::test::parse_pcapng({all.begin(), all.end()}, "ring");
  }

  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{4096}); }
  };
  std::size_t bytes;
  std::unique_ptr<std::byte[], Free> memory;
  CaptureReaderPage page;
  std::unique_ptr<CaptureRingWriter> writer;
  CaptureRingReader reader;
  std::ostringstream out;
  std::unique_ptr<PortCapture> file;
};

constexpr const char* kLossyPair = R"(
[fabric]
hosts = 2
rate = "25Gb/s"
delay = "1us"
loss = 0.01
corrupt = 0.01
duplicate = 0.01
)";

struct PairRun {
  explicit PairRun(const char* testbed, CaptureRingWriter* ring)
      : nics(nics_from(testbed)), a(*nics, 0, 300'000), b(*nics, 1, 300'000), turns(*nics) {
    if (ring != nullptr) REQUIRE(nics->capture(0, ring) == "");
    a.fill(1);
    b.fill(2);
    turns.connect(a, b, 0);
    turns.post(a, a.write(1, 200'000, b));
    turns.post(b, b.write(2, 100'000, a));
    REQUIRE(turns.run(picos_from_micros(1'000'000)));
    CHECK(a.sent().size() == 1);
    CHECK(b.sent().size() == 1);
  }
  std::unique_ptr<NicSet> nics;
  Side a;
  Side b;
  Turns turns;
};

TEST_CASE("capture: of an emulated NIC, all that crosses its link", "[nics]") {
  Catcher caught;
  PairRun run(kLossyPair, caught.writer.get());
  const PairRun other(kLossyPair, nullptr);
  CHECK(run.turns.now() == other.turns.now());
  CHECK(run.turns.turns() == other.turns.turns());
  const telemetry::EngineCounters& mine = run.a.engine.counters();
  CHECK(mine.tx_data_packets == other.a.engine.counters().tx_data_packets);
  CHECK(mine.retransmitted_packets == other.a.engine.counters().retransmitted_packets);

  NicSetReport report = run.nics->blank_report();
  run.nics->describe(run.turns.now(), report);
  CHECK(report.nics[0].capture.running);
  CHECK_FALSE(report.nics[1].capture.running);
  CHECK(report.nics[0].capture.missed == 0);
  CHECK(report.nics[0].capture.ring_bytes == 4U << 20U);

  const auto file = caught.read();
  CHECK(check_capture(file) == "");  // the ICRC of each included
  CHECK(report.nics[0].capture.frames == file.packets.size());
  std::uint64_t outbound = 0;
  std::uint64_t inbound = 0;
  std::uint64_t lost = 0;
  std::uint64_t damaged = 0;
  for (const auto& packet : file.packets) {
    const bool delivered = packet.comment.find("lost") == std::string::npos;
    lost += delivered ? 0 : 1;
    damaged += packet.crc_error ? 1 : 0;
    if (packet.direction == 2 && packet.comment.find("a copy") == std::string::npos) ++outbound;
    if (packet.direction == 1 && delivered) ++inbound;
  }
  CHECK(lost > 0);
  CHECK(damaged > 0);
  CHECK(outbound == mine.tx_data_packets + mine.retransmitted_packets + mine.tx_control_packets);
  CHECK(inbound == mine.rx_packets);
  REQUIRE(file.statistics.size() == 1);
  CHECK(file.statistics[0].dropped == 0);

  SECTION("and nothing any more once it is over") {
    REQUIRE(run.nics->capture(0, nullptr) == "");
    const std::uint64_t before = caught.writer->frames();
    run.turns.post(run.a, run.a.write(3, 50'000, run.b));
    REQUIRE(run.turns.run(picos_from_micros(2'000'000)));
    CHECK(run.a.sent().size() == 1);
    CHECK(caught.writer->frames() == before);
    run.nics->describe(run.turns.now(), report);
    CHECK_FALSE(report.nics[0].capture.running);
  }
}

TEST_CASE("capture: a ring that is full takes nothing from the NIC", "[nics]") {
  Catcher caught(kLeastCaptureBytes);
  PairRun run(kLossyPair, caught.writer.get());
  const PairRun other(kLossyPair, nullptr);
  CHECK(run.turns.now() == other.turns.now());
  CHECK(run.turns.turns() == other.turns.turns());
  CHECK(caught.writer->missed() > 0);
  const auto file = caught.read();
  CHECK(check_capture(file) == "");
  CHECK(file.statistics[0].dropped == caught.writer->missed());
  CHECK(file.statistics[0].received == caught.writer->frames());
}

wire::IpAddress address(const char* text) { return wire::ip_address_from_text(text).value(); }

// As an engine makes it.
Packet* roce_packet(Port& port, const wire::IpAddress& from, const wire::IpAddress& to) {
  Packet* const packet = port.packets().alloc();
  REQUIRE(packet != nullptr);
  wire::FlowAddressing flow;
  flow.source = from;
  flow.destination = to;
  wire::TransportFields fields;
  fields.opcode = wire::Opcode::rc_send_only;
  fields.payload_bytes = 100;
  const wire::HeaderTemplate header = wire::make_header_template(flow);
  packet->header_bytes =
      static_cast<std::uint16_t>(wire::build_data(header, packet->header, fields));
  packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  packet->payload_kind = PayloadKind::owned;
  packet->payload_bytes = 100;
  std::memset(packet->payload, 0x5A, 100);
  packet->icrc = wire::icrc(packet->header_view(), wire::kEthernetBytes, packet->payload_view());
  return packet;
}

TEST_CASE("capture: of a port, all that passes, and what does not get that far", "[nics]") {
  using neighbour::test::host_config;
  neighbour::test::Hub hub(2);
  neighbour::ResolvingPort port(hub.port(0), host_config(1), Random(5, 1));
  neighbour::ResolvingPort peer(hub.port(1), host_config(2), Random(5, 2));
  const auto config = [](Port& of) {
    return ::paceline::test::roce_engine_config({}, {}, of.info(), cc::AlgorithmId::fixed);
  };
  PortNics nics({PortNic{"p", {{&port, nullptr}}, config(port)}}, nullptr);
  PortNics peers({PortNic{"q", {{&peer, nullptr}}, config(peer)}}, nullptr);
  Catcher caught;
  REQUIRE(nics.capture(0, caught.writer.get()) == "");
  Picos now{0};
  const auto run = [&](std::int64_t micros) {
    const Picos end = now + picos_from_micros(micros);
    for (; now < end; now = now + picos_from_micros(5)) {
      for (std::size_t i = 0; i < 2; ++i) hub.port(i).set_now(now);
      nics.turn(now, Picos{0});
      peers.turn(now, Picos{0});
    }
  };
  const auto send = [&](const char* to) {
    Packet* const packet = roce_packet(port, address("10.0.0.1"), address(to));
    REQUIRE(port.tx(now, 3, {&packet, 1}) == 1);
  };
  run(50);
  send("10.0.0.2");     // asked for, answered, sent
  send("192.168.7.7");  // there is no gateway
  run(100);
  send("10.0.0.77");  // nobody answers
  run(10'000'000);

  const auto file = caught.read();
  std::vector<std::string> got;
  wire::ParsedPacket parsed;
  for (const auto& packet : file.packets) {
    REQUIRE(packet.frame.size() >= 34);
    const bool arp = packet.frame[12] == std::byte{8} && packet.frame[13] == std::byte{6};
    const auto last = std::to_integer<int>(packet.frame[arp ? 41 : 33]);
    std::string text = std::string(packet.direction == 2 ? "out " : "in ") +
                       (arp ? "arp" : "roce") + (arp ? "" : " " + std::to_string(last));
    if (!arp) CHECK(wire::parse_frame(packet.frame, parsed) == wire::ParseError::ok);  // its ICRC
    if (!packet.comment.empty()) text += ": " + packet.comment;
    if (got.empty() || got.back() != text) got.push_back(text);
  }
  CHECK(got == std::vector<std::string>{
                   "out arp", "out roce 7: dropped in front of this link: no route", "in arp",
                   "out roce 2", "out arp",
                   "out roce 77: dropped in front of this link: no answer from the neighbour"});
  NicSetReport report = nics.blank_report();
  nics.describe(now, report);
  CHECK(report.nics[0].capture.running);
  CHECK(report.nics[0].capture.frames == file.packets.size());
  CHECK(nics.capture(0, nullptr) == "");
  CHECK(&port.behind() == &hub.port(0));
  nics.describe(now, report);
  CHECK_FALSE(report.nics[0].capture.running);
  const std::uint64_t before = caught.writer->frames();
  send("192.168.7.7");
  send("10.0.0.2");
  run(100);
  CHECK(caught.writer->frames() == before);
}

}  // namespace
}  // namespace paceline::service::test
