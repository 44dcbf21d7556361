// Protection domains, rights per queue pair, and SEND with invalidate.
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

// Vol. 1, 10.2.3: memory of another domain is out of reach, at both ends and in both roles.
TEST_CASE("a queue pair reaches only regions of its protection domain", "[transport]") {
  Lab lab(small_packets());
  std::vector<std::byte> other(8 * kMtu);
  const std::uint8_t all = access::local_write | access::remote;
  const std::uint32_t key_a = lab.a().engine.regions().add_plain(Lab::kBase, other, all, 5);
  const std::uint32_t key_b = lab.b().engine.regions().add_plain(Lab::kBase, other, all, 5);
  const Lab::Pair pair = lab.connect();  // domain 0
  // Local: refused at once.
  WorkRequest local = lab.request(WorkOpcode::write, 1, 0, 0, 8);
  local.local_key = key_a;
  CHECK(lab.post(0, pair.a, local) == PostResult::bad_key);
  // Remote.
  WorkRequest remote = lab.request(WorkOpcode::write, 2, 0, 0, 8);
  remote.remote_key = key_b;
  CHECK(lab.post(0, pair.a, remote) == PostResult::ok);
  CHECK(lab.run(picos_from_micros(1000)));
  CHECK(lab.a().sent().at(0).status == CompletionStatus::remote_access_error);
  // A receive request that names memory of another domain.
  const Lab::Pair second = lab.connect();
  REQUIRE(lab.b().receives.post({9, Lab::kBase, 100, key_b}));
  lab.post(0, second.a, lab.request(WorkOpcode::send, 3, 0, 0, 8));
  CHECK(lab.run(picos_from_micros(2000)));
  CHECK(lab.a().sent().at(0).status == CompletionStatus::remote_operational_error);
  CHECK(lab.b().received().at(0).status == CompletionStatus::local_protection_error);
  // And in the same domain all is well.
  QpConfig a = lab.qp_config(0);
  QpConfig b = lab.qp_config(1);
  a.pd = b.pd = 5;
  const Lab::Pair third = lab.connect(a, b, 0, 0);
  local.remote_key = key_b;
  CHECK(lab.post(0, third.a, local) == PostResult::ok);
  CHECK(lab.run(picos_from_micros(3000)));
  CHECK(lab.a().sent().at(0).status == CompletionStatus::success);
  CHECK(lab.leftovers().empty());
}

TEST_CASE("a queue pair that does not allow remote WRITE refuses it", "[transport]") {
  Lab lab(small_packets());
  QpConfig b = lab.qp_config(1);
  b.access = access::remote_read | access::remote_atomic;
  const Lab::Pair pair = lab.connect(lab.qp_config(0), b, 0, 0);
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 0));  // no bytes: nothing to allow
  lab.post(0, pair.a, lab.request(WorkOpcode::read, 2, 0, 0, 8));
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 3, 0, 0, 8));
  CHECK(lab.run(picos_from_micros(1000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 3);
  CHECK(sent[0].status == CompletionStatus::success);
  CHECK(sent[1].status == CompletionStatus::success);
  CHECK(sent[2].status == CompletionStatus::remote_access_error);
}

// 9.4.1.1.3: the region is revoked before the receive completes.
TEST_CASE("SEND with invalidate revokes the region it names", "[transport]") {
  for (const std::uint64_t length : {std::uint64_t{20}, std::uint64_t{5} * kMtu}) {
    Lab lab(small_packets());
    Lab::fill(lab.a().memory, 3);
    std::vector<std::byte> other(8 * kMtu);
    auto& regions = lab.b().engine.regions();
    const std::uint32_t key =
        regions.add_plain(Lab::kBase, other, access::remote_write | access::remote_invalidate);
    const Lab::Pair pair = lab.connect();
    WorkRequest write = lab.request(WorkOpcode::write, 1, 0, 0, 8);
    write.remote_key = key;
    WorkRequest send = lab.request(WorkOpcode::send_invalidate, 2, 0, 0, length);
    send.remote_key = key;
    REQUIRE(lab.b().post_receive(7, 0, length));
    lab.post(0, pair.a, write);
    lab.post(0, pair.a, send);
    lab.post(0, pair.a, write);
    CHECK(lab.run(picos_from_micros(1000)));
    const auto sent = lab.a().sent();
    CAPTURE(length);
    REQUIRE(sent.size() == 3);
    CHECK(sent[0].status == CompletionStatus::success);
    CHECK(sent[1].status == CompletionStatus::success);
    CHECK(sent[2].status == CompletionStatus::remote_access_error);
    const auto received = lab.b().received();
    REQUIRE(received.size() == 1);
    CHECK(received[0].status == CompletionStatus::success);
    CHECK(received[0].invalidated);
    CHECK(received[0].invalidated_key == key);
    CHECK(!received[0].has_immediate);
    CHECK(std::memcmp(lab.a().memory.data(), lab.b().memory.data(), length) == 0);
    CHECK(regions.find(key)->revoked);
    CHECK(regions.remove(key));
  }
}

TEST_CASE("SEND with invalidate: unknown key, not revocable, another domain, twice",
          "[transport]") {
  for (int fault = 0; fault < 4; ++fault) {
    Lab lab(small_packets());
    std::vector<std::byte> other(kMtu);
    auto& regions = lab.b().engine.regions();
    std::uint32_t key = regions.add_plain(
        Lab::kBase, other, fault == 1 ? access::remote_write : access::remote_invalidate,
        fault == 2 ? 9 : 0);
    if (fault == 0) key ^= 0x4400;
    if (fault == 3) REQUIRE(regions.invalidate(key, 0, 0));
    const Lab::Pair pair = lab.connect();
    WorkRequest send = lab.request(WorkOpcode::send_invalidate, 2, 0, 0, 20);
    send.remote_key = key;
    REQUIRE(lab.b().post_receive(7, 0, 100));
    lab.post(0, pair.a, send);
    CHECK(lab.run(picos_from_micros(1000)));
    CAPTURE(fault);
    const auto sent = lab.a().sent();
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].status == CompletionStatus::remote_access_error);
    const auto received = lab.b().received();
    REQUIRE(received.size() == 1);
    CHECK(received[0].status == CompletionStatus::remote_invalid_request);
    CHECK(lab.b().engine.view().state_of(pair.b) == QpState::error);
    CHECK(lab.leftovers().empty());
  }
}

}  // namespace
}  // namespace paceline::transport::test
