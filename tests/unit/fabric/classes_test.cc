// Priorities and weights between the classes of a port.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "tests/unit/fabric/lab.h"

namespace paceline::fabric {
namespace {

// Two hosts at 100 Gb/s send `per_class` packets of each class to a third at the same rate; bytes
// delivered by class when the first class has been served.
std::array<std::uint64_t, kTrafficClasses> served(std::array<std::uint32_t, 8> weights,
                                                  std::vector<std::uint8_t> classes,
                                                  std::array<std::uint16_t, 8> payload,
                                                  Picos until) {
  FabricSpec spec = star(static_cast<std::uint32_t>(classes.size()) + 1, rate_from_gbps(100),
                         picos_from_micros(1));
  spec.class_weights = weights;
  spec.buffer_bytes = 1ULL << 30;
  spec.ecn.enabled = spec.pfc.enabled = false;
  REQUIRE(check(spec).empty());
  Lab lab(spec);
  for (std::uint32_t i = 0; i < classes.size(); ++i) {
    for (int n = 0; n < 4'000; ++n) {
      lab.send(
          {.from = i + 1, .to = 0, .payload = payload[classes[i]], .traffic_class = classes[i]});
    }
  }
  lab.run(until);
  lab.net().finish(until);
  CHECK(lab.net().check_conservation() == "");
  CHECK(lab.net().stats().total_drops() == 0);
  std::array<std::uint64_t, kTrafficClasses> bytes{};
  for (const Delivery& d : lab.deliveries()) {
    bytes[d.traffic_class] += lab_wire_bytes(payload[d.traffic_class]);
  }
  return bytes;
}

constexpr std::array<std::uint16_t, 8> kAlike{4096, 4096, 4096, 4096, 4096, 4096, 4096, 4096};

TEST_CASE("classes: strict by default, the higher first") {
  const auto bytes = served({}, {1, 3, 5}, kAlike, picos_from_micros(200));
  CHECK(bytes[5] > 0);
  // While class 5 sends at line rate the others get what leaves before its first packet is there.
  CHECK(bytes[3] <= 2 * lab_wire_bytes(4096));
  CHECK(bytes[1] <= 2 * lab_wire_bytes(4096));
}

TEST_CASE("classes: weights divide the link, whatever the packets' sizes") {
  std::array<std::uint16_t, 8> sizes = kAlike;
  sizes[1] = 256;
  const auto bytes = served({1, 1, 2, 5, 0, 0, 0, 0}, {1, 2, 3}, sizes, picos_from_micros(400));
  const double sum = static_cast<double>(bytes[1] + bytes[2] + bytes[3]);
  // Exact but for a turn at either end: 8 quanta of 5 kB in 5 MB.
  CHECK(static_cast<double>(bytes[1]) / sum == Approx(1.0 / 8).margin(0.01));
  CHECK(static_cast<double>(bytes[2]) / sum == Approx(2.0 / 8).margin(0.01));
  CHECK(static_cast<double>(bytes[3]) / sum == Approx(5.0 / 8).margin(0.01));
}

TEST_CASE("classes: what strict classes leave is shared; a class alone gets all of it") {
  const auto bytes = served({0, 1, 1, 0, 0, 0, 0, 0}, {0, 1, 2}, kAlike, picos_from_micros(200));
  // Class 0 is strict and goes ahead of those with weights, although they have higher numbers.
  CHECK(bytes[1] + bytes[2] <= 4 * lab_wire_bytes(4096));
  CHECK(bytes[0] > 1'000'000);
  const auto alone = served({0, 1, 1, 0, 0, 0, 0, 0}, {1}, kAlike, picos_from_micros(100));
  CHECK(alone[1] >= 97 * 12'500 - 2 * lab_wire_bytes(4096));
}

TEST_CASE("classes: a wrong weight is an error") {
  FabricSpec spec = star(2, rate_from_gbps(100), picos_from_micros(1));
  spec.class_weights[kControlClass] = 1;
  CHECK(check(spec).size() == 1);
  spec.class_weights[kControlClass] = 0;
  spec.class_weights[0] = 1'001;
  CHECK(check(spec).size() == 1);
}

// Hosts 1 and 2 fill the port to host 0; then host 3 sends it an answer of each kind and one packet
// of the control protocol. Before how many packets of data does each arrive?
std::map<std::uint8_t, std::size_t> data_behind(const FabricSpec& spec) {
  constexpr std::array<std::uint8_t, 5> kOpcodes = {0x11, 0x12, 0xC4, 0x81, 0xC2};
  Lab lab(spec);
  for (int n = 0; n < 100; ++n) {
    for (const std::uint32_t from : {1U, 2U}) lab.send({.from = from, .to = 0});
  }
  std::map<std::uint64_t, std::uint8_t> opcodes;
  for (const std::uint8_t opcode : kOpcodes) {
    opcodes[201 + opcodes.size()] = opcode;  // numbered from 1 on
    lab.send({.at = picos_from_micros(5),
              .from = 3,
              .to = 0,
              .payload = 0,
              .traffic_class = kControlClass,
              .ecn = Ecn::not_ect,
              .opcode = opcode});
  }
  REQUIRE(lab.run());
  CHECK(lab.net().check_conservation() == "");
  REQUIRE(lab.deliveries().size() == 205);
  std::map<std::uint8_t, std::size_t> behind;
  for (std::size_t i = 0; i < lab.deliveries().size(); ++i) {
    const auto found = opcodes.find(lab.deliveries()[i].id);
    if (found == opcodes.end()) continue;
    behind[found->second] = static_cast<std::size_t>(
        std::count_if(lab.deliveries().begin() + static_cast<long>(i), lab.deliveries().end(),
                      [](const Delivery& d) { return d.id <= 200; }));
  }
  return behind;
}

TEST_CASE("classes: switches queue answers with data where they are told to, and nothing else") {
  FabricSpec spec = star(4, rate_from_gbps(100), picos_from_micros(1));
  spec.buffer_bytes = 1ULL << 30;
  auto behind = data_behind(spec);
  for (const auto& [opcode, data] : behind) {
    CAPTURE(int{opcode});
    CHECK(data > 130);  // ahead of all that waits
  }
  const std::size_t ahead = behind[0x11];
  spec.ack_class = kDefaultDataClass;
  behind = data_behind(spec);
  for (const std::uint8_t ack : {std::uint8_t{0x11}, std::uint8_t{0x12}, std::uint8_t{0xC4}}) {
    CAPTURE(int{ack});
    CHECK(behind[ack] > 50);  // before what came after it
    CHECK(behind[ack] < ahead - 40);
  }
  CHECK(behind[0x81] > 130);
  CHECK(behind[0xC2] > 130);
  spec.ack_class = kControlClass;
  spec.cnp_class = 0;
  behind = data_behind(spec);
  CHECK(behind[0x81] == 0);  // behind all classes of data
  CHECK(behind[0x11] > 130);
  CHECK(behind[0xC2] > 130);
}

TEST_CASE("classes: a wrong class of answers is an error") {
  FabricSpec spec = star(2, rate_from_gbps(100), picos_from_micros(1));
  spec.ack_class = kTrafficClasses;
  CHECK(check(spec).size() == 1);
  spec.ack_class = kDefaultDataClass;
  CHECK(check(spec).empty());
  spec.pfc.enabled = false;
  spec.credit.enabled = true;
  CHECK(check(spec) == std::vector<std::string>{"class 3 of ACKs or CNPs: credits rule there"});
  spec.ack_class = 0;
  CHECK(check(spec).empty());
}

}  // namespace
}  // namespace paceline::fabric
