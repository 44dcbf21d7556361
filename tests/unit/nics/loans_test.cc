// Packets that refer to the sender's memory: nothing but what was asked to be sent arrives,
// whatever becomes of that memory once its owner has it back.
#include <algorithm>
#include <catch2/catch.hpp>

#include "dataplane/service/nics/emulated_nics.h"
#include "tests/unit/nics/emulated_lab.h"

namespace paceline::service::test {
namespace {

constexpr std::size_t kLoanBytes = 1'000'000;
constexpr std::byte kOverwritten{0xFF};

// Long links, so that much is on its way at any time.
std::string long_pair(std::string_view more = {}) {
  return std::string("[fabric]\nhosts = 2\nrate = \"25Gb/s\"\ndelay = \"50us\"\n") +
         std::string(more);
}

// Bytes that are not 0, as memory is at first, nor what it is overwritten with.
void fill_plainly(Side& side) {
  for (std::size_t i = 0; i < side.memory.size(); ++i) {
    side.memory[i] = static_cast<std::byte>(1 + i % 250);
  }
}

// What has arrived, and that nothing else has.
std::size_t arrived(const Side& to) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < to.memory.size(); ++i) {
    if (to.memory[i] == std::byte{0}) continue;
    if (to.memory[i] != static_cast<std::byte>(1 + i % 250)) {
      FAIL("byte " << i << " is " << std::to_integer<int>(to.memory[i]));
    }
    ++count;
  }
  return count;
}

// All of the memory, from `a` to `b` or the other way.
transport::WorkRequest whole(const Side& a, const Side& b, bool read) {
  transport::WorkRequest request = a.write(1, kLoanBytes, b);
  if (read) request.opcode = transport::WorkOpcode::read;
  return request;
}

// Two sides, and such a request of `a` posted.
struct Loan {
  Loan(NicSet& nics, bool read)
      : a(nics, 0, kLoanBytes),
        b(nics, 1, kLoanBytes),
        from(read ? b : a),
        to(read ? a : b),
        turns(nics) {
    fill_plainly(from);
    turns.connect(a, b, 0);
    turns.post(a, whole(a, b, read));
  }

  Side a, b;
  Side& from;
  Side& to;
  Turns turns;
};

TEST_CASE("loans: payload goes without a copy, unless the testbed says otherwise", "[nics]") {
  const bool lend = GENERATE(true, false);
  const bool read = GENERATE(true, false);
  CAPTURE(lend, read);
  const auto nics =
      nics_from(long_pair(std::string("[nic]\nlend_payload = ") + (lend ? "true" : "false")));
  Loan loan(*nics, read);
  REQUIRE(loan.turns.run());
  CHECK(arrived(loan.to) == kLoanBytes);
  // The last packet has 576 bytes, enough to be lent.
  CHECK(loan.from.engine.counters().tx_lent_bytes == (lend ? kLoanBytes : 0));
}

TEST_CASE("loans: what needs a pad, and what is short, is copied", "[nics]") {
  const auto nics = nics_from(long_pair());
  Side a(*nics, 0, 4096);
  Side b(*nics, 1, 4096);
  fill_plainly(a);
  Turns turns(*nics);
  turns.connect(a, b, 0);
  turns.post(a, a.write(1, 4095, b));
  turns.post(a, a.write(2, 64, b));
  REQUIRE(turns.run());
  CHECK(arrived(b) == 4095);
  CHECK(a.engine.counters().tx_lent_bytes == 0);
}

// With losses and copies made on the way, packets are about that nobody waits for any more when the
// request is completed: none of them may bring what the memory has become.
TEST_CASE("loans: memory may be written again once its request is completed", "[nics]") {
  const std::string repair = GENERATE("go_back_n", "selective");
  const std::string peers = repair == "selective" ? "paceline" : "roce";
  CAPTURE(repair);
  const auto nics =
      nics_from(long_pair("loss = 0.01\nreorder = 0.02\nduplicate = 0.02\n[transport]\n"
                          "reliability = \"" +
                          repair + "\"\npeers = \"" + peers + "\"\n"));
  Side a(*nics, 0, kLoanBytes);
  Side b(*nics, 1, kLoanBytes);
  Turns turns(*nics);
  turns.connect(a, b, 0);
  for (int round = 0; round < 5; ++round) {
    CAPTURE(round);
    fill_plainly(a);
    std::fill(b.memory.begin(), b.memory.end(), std::byte{0});
    turns.post(a, a.write(1, kLoanBytes, b));
    while (a.sends.size() == 0) turns.run(turns.now() + picos_from_micros(1));
    CHECK(a.sent()[0].status == transport::CompletionStatus::success);
    std::fill(a.memory.begin(), a.memory.end(), kOverwritten);
    REQUIRE(turns.run());
    CHECK(arrived(b) == kLoanBytes);
  }
  CHECK(a.engine.counters().retransmitted_packets > 0);
  CHECK(a.engine.counters().tx_lent_bytes == 5 * kLoanBytes);  // what is sent again is copied
}

TEST_CASE("loans: memory may be written again once its connection has ended", "[nics]") {
  const bool reset = GENERATE(true, false);
  CAPTURE(reset);
  const auto nics = nics_from(long_pair());
  Side a(*nics, 0, kLoanBytes);
  Side b(*nics, 1, kLoanBytes);
  fill_plainly(a);
  Turns turns(*nics);
  turns.connect(a, b, 0);
  turns.post(a, a.write(1, kLoanBytes, b));
  REQUIRE_FALSE(turns.run(picos_from_micros(160)));
  const std::size_t before = arrived(b);
  transport::QpAttributes to;
  to.state = reset ? transport::QpState::reset : transport::QpState::error;
  REQUIRE(a.engine.modify_qp(turns.now(), a.qp, to, transport::qp_attribute::state).ok());
  nics->touch(a.nic);
  std::fill(a.memory.begin(), a.memory.end(), kOverwritten);
  REQUIRE(turns.run());
  CHECK(arrived(b) > before);
}

TEST_CASE("loans: memory may go away once its region has", "[nics]") {
  const bool read = GENERATE(true, false);
  CAPTURE(read);
  const auto nics = nics_from(long_pair());
  Loan loan(*nics, read);
  REQUIRE_FALSE(loan.turns.run(picos_from_micros(260)));
  const std::size_t before = arrived(loan.to);
  REQUIRE(loan.from.engine.regions().remove(loan.from.key));
  nics->touch(loan.from.nic);
  std::vector<std::byte>().swap(loan.from.memory);  // read again, ASan would tell
  REQUIRE(loan.turns.run());
  REQUIRE(loan.a.sent().size() == 1);
  CHECK(arrived(loan.to) > before);
  CHECK(arrived(loan.to) < kLoanBytes);
}

TEST_CASE("loans: memory may be written again once a peer has revoked its region", "[nics]") {
  const auto nics = nics_from(long_pair());
  Side a(*nics, 0, kLoanBytes);
  Side b(*nics, 1, kLoanBytes);
  Side c(*nics, 0, 64);
  Side d(*nics, 1, 64);
  fill_plainly(b);
  REQUIRE(b.engine.regions().change(
      b.key, transport::access::remote | transport::access::remote_invalidate, 0));
  Turns turns(*nics);
  turns.connect(a, b, 0);
  turns.connect(c, d, 0);
  REQUIRE(d.engine.post_receive(turns.now(), d.qp, {}));
  turns.post(a, whole(a, b, true));
  REQUIRE_FALSE(turns.run(picos_from_micros(150)));
  transport::WorkRequest revoke;
  revoke.opcode = transport::WorkOpcode::send_invalidate;
  revoke.remote_key = b.key;
  turns.post(c, revoke);
  while (d.receives.size() == 0) turns.run(turns.now() + picos_from_micros(1));
  const std::size_t before = arrived(a);
  std::fill(b.memory.begin(), b.memory.end(), kOverwritten);
  REQUIRE(turns.run());
  REQUIRE(a.sent().size() == 1);
  CHECK(arrived(a) > before);
  CHECK(arrived(a) < kLoanBytes);
}

}  // namespace
}  // namespace paceline::service::test
