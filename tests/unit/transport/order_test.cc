// The order of answers, and the message sequence number in them (vol. 1, 9.7.5.1 and 9.7.7.1).
#include <catch2/catch.hpp>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint32_t kTinyMtu = 256;

// One request: the sequence numbers it takes, and its place among the messages.
struct Range {
  std::uint32_t first;
  std::uint32_t last;
  bool has_response;
};

// Random requests; what each answer must say follows from them alone.
TEST_CASE("answers come in the order of their sequence numbers and count the messages",
          "[transport]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    LabOptions options;
    options.seed = seed;
    options.engine.payload_mtu = kTinyMtu;
    options.engine.ack_every = seed % 2 == 0 ? 8 : 1;
    options.qp.send_queue_depth = 256;
    Lab lab(options);
    Random random(seed, 3);
    const std::uint32_t first_psn = 0xFF'FE00;
    const Lab::Pair pair = lab.connect(first_psn, 0);
    std::vector<Range> ranges;
    std::uint32_t psn = 0;  // relative to the first
    for (std::uint64_t id = 0; id < 200; ++id) {
      constexpr WorkOpcode kOpcodes[] = {WorkOpcode::send, WorkOpcode::write, WorkOpcode::read,
                                         WorkOpcode::fetch_add};
      const WorkOpcode opcode = kOpcodes[random.below(4)];
      const std::uint64_t length =
          is_atomic(opcode) ? kAtomicBytes : random.below(6 * std::uint64_t{kTinyMtu});
      if (opcode == WorkOpcode::send) REQUIRE(lab.b().post_receive(id, 0, length));
      REQUIRE(lab.post(0, pair.a, lab.request(opcode, id, 0x1000, 0, length)) == PostResult::ok);
      const auto packets = static_cast<std::uint32_t>(
          std::max<std::uint64_t>(1, (length + kTinyMtu - 1) / kTinyMtu));
      ranges.push_back({psn, psn + packets - 1, expects_response(opcode)});
      psn += packets;
    }
    CAPTURE(seed);
    std::int64_t last = -1;
    std::size_t answers = 0;
    lab.a().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
      const auto at = static_cast<std::uint32_t>(distance(p.psn, Psn(first_psn)));
      CHECK(std::int64_t{at} > last);  // over a good cable nothing is said twice
      last = at;
      ++answers;
      if (!p.properties.has_aeth()) return false;
      std::size_t which = 0;
      while (ranges[which].last < at) ++which;
      const Range& range = ranges[which];
      const std::size_t messages = which + (range.has_response || range.last == at ? 1 : 0);
      CHECK(p.ext.aeth.msn == messages);
      return false;
    });
    CHECK(lab.run(picos_from_micros(10'000)));
    CHECK(last == psn - 1);
    CHECK(answers > 50);
    CHECK(lab.a().sent().size() == 200);
    CHECK(lab.leftovers().empty());
  }
}

// Requests come twice, after a READ or atomic whose answer is lost. Linux soft-RoCE would take an
// acknowledgement with that one's sequence number for its end, and its memory for filled.
TEST_CASE("no acknowledgement names a READ or atomic", "[transport]") {
  for (const WorkOpcode answered : {WorkOpcode::read, WorkOpcode::fetch_add}) {
    for (const WorkOpcode before : {WorkOpcode::write, WorkOpcode::send}) {
      LabOptions options = small_packets();
      Lab lab(options);
      Lab::fill(lab.b().memory, 4);
      const Lab::Pair pair = lab.connect(0xFF'FFFF, 0);
      REQUIRE(lab.b().post_receive(1, 0, 8));
      lab.post(0, pair.a, lab.request(before, 1, 0, 0, 8));
      const std::uint64_t length = is_atomic(answered) ? kAtomicBytes : 3 * kMtu;
      const std::uint32_t last = is_atomic(answered) ? 0 : 2;  // after the first one wrapped
      lab.post(0, pair.a, lab.request(answered, 2, 0x1000, 0x2000, length));
      // The first request again, when the second has been taken.
      lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
        if (p.psn != Psn(0xFF'FFFF)) return true;
        verdict.duplicate = true;
        verdict.hold = 1;
        return true;
      });
      unsigned plain = 0;
      unsigned answers = 0;
      lab.a().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
        if (p.opcode == wire::Opcode::rc_acknowledge) {
          ++plain;
          CHECK(p.psn == Psn(0xFF'FFFF));
          CHECK(p.ext.aeth.is_ack());
        } else {
          verdict.drop = p.psn == Psn(last) && answers++ == 0;
        }
        return true;
      });
      CHECK(lab.run(picos_from_micros(10'000)));
      CHECK(lab.b().counters().duplicates >= 1);
      CHECK(plain >= 2);
      CHECK(answers == 2);
      CHECK(lab.a().sent().size() == 2);
      if (!is_atomic(answered)) {
        CHECK(std::equal(lab.a().memory.begin() + 0x1000,
                         lab.a().memory.begin() + 0x1000 + static_cast<std::ptrdiff_t>(length),
                         lab.b().memory.begin() + 0x2000));
      }
      CHECK(lab.leftovers().empty());
    }
  }
}

}  // namespace
}  // namespace paceline::transport::test
