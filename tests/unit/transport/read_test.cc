// RDMA READ: sequence numbers, order, repetition, and who is responsible for the data.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/unit/transport/lab.h"
#include "tests/unit/transport/read_support.h"

namespace paceline::transport::test {
namespace {

using wire::Operation;

// What passes to one side: opcode, PSN, length of the rest where it is a READ request.
struct Seen {
  Operation operation;
  std::uint32_t psn;
  std::uint64_t address;
  std::uint32_t length;
  bool ends;
};

// Notes everything that arrives at `side`; drops what `lose` says.
std::vector<Seen>& watch(Lab::Side& side, std::vector<Seen>& seen,
                         std::function<bool(const Seen&, std::size_t)> lose = {}) {
  side.cable.set_script([&seen, lose](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
    const Seen s{p.properties.operation, p.psn.value(), p.ext.reth.address, p.ext.reth.length,
                 p.properties.ends_message()};
    seen.push_back(s);
    verdict.drop = lose && lose(s, seen.size() - 1);
    return true;
  });
  return seen;
}

TEST_CASE("READ: every size, byte by byte, without one repetition", "[transport][read]") {
  for (const std::uint32_t mtu : {256U, 1024U, 4096U}) {
    LabOptions options;
    options.engine.payload_mtu = mtu;
    Lab lab(options);
    Lab::fill(lab.b().memory, mtu);
    const Lab::Pair pair = lab.connect(0xFF'FFF0, 3);  // wraps on the way
    const std::uint64_t sizes[] = {0, 1, 2, 3, 5, mtu - 1, mtu, mtu + 1, 3 * mtu, 20 * mtu + 7};
    std::uint64_t at = 1;
    std::uint64_t packets = 0;
    for (const std::uint64_t size : sizes) {
      REQUIRE(lab.post(0, pair.a, read_of(lab, size, at, at, size)) == PostResult::ok);
      at += size + 3;
      packets += size == 0 ? 1 : (size + mtu - 1) / mtu;
    }
    CHECK(lab.run(picos_from_micros(5000)));
    const auto sent = lab.a().sent();
    CAPTURE(mtu);
    REQUIRE(sent.size() == std::size(sizes));
    at = 1;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      CHECK(sent[i].status == CompletionStatus::success);
      CHECK(sent[i].opcode == CompletionOpcode::read);
      CHECK(sent[i].wr_id == sizes[i]);
      CHECK(sent[i].bytes == sizes[i]);
      CHECK(same(lab, at, at, sizes[i]));
      at += sizes[i] + 3;
    }
    CHECK(lab.a().counters().tx_data_packets == std::size(sizes));  // one request each
    CHECK(lab.b().counters().tx_data_packets == packets);
    CHECK(lab.a().counters().retransmitted_packets == 0);
    CHECK(lab.b().counters().retransmitted_packets == 0);
    CHECK(lab.a().counters().timeouts == 0);
    CHECK(lab.b().received().empty());  // the other side's application hears nothing
    CHECK(lab.leftovers().empty());
  }
}

// Vol. 1, 9.7.3.2: the request after a READ takes the number after its last response.
TEST_CASE("a READ takes a sequence number for each response", "[transport][read]") {
  Lab lab(small_packets());
  const Lab::Pair pair = lab.connect(100, 0);
  std::vector<Seen> seen;
  watch(lab.b(), seen);
  lab.post(0, pair.a, read_of(lab, 1, 0, 0, 5 * kMtu - 1));
  lab.post(0, pair.a, read_of(lab, 2, 0, 0, 0));
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 3, 0, 0, 8));
  CHECK(lab.run(picos_from_micros(1000)));
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].psn == 100);
  CHECK(seen[1].psn == 105);
  CHECK(seen[2].psn == 106);
  CHECK(lab.a().sent().size() == 3);
}

// 9.7.5.1: in order of sequence numbers, whatever is faster.
TEST_CASE("the ACK of a later request waits for the READ's last response", "[transport][read]") {
  Lab lab(small_packets());
  Lab::fill(lab.b().memory, 9);
  const Lab::Pair pair = lab.connect(100, 0);
  std::vector<Seen> seen;
  watch(lab.a(), seen);
  lab.post(0, pair.a, read_of(lab, 1, 0, 0, 20 * kMtu));
  for (std::uint64_t id = 2; id < 8; ++id) {
    lab.post(0, pair.a, lab.request(WorkOpcode::write, id, 0x10'0000, 0x10'0000, 64));
  }
  lab.post(0, pair.a, read_of(lab, 8, 0x8000, 0x8000, 3 * kMtu));
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 9, 0x10'0000, 0x10'0000, 64));
  CHECK(lab.run(picos_from_micros(1000)));
  for (std::size_t i = 1; i < seen.size(); ++i) CHECK(seen[i - 1].psn < seen[i].psn);
  REQUIRE(seen.size() >= 24);
  CHECK(seen[19].psn == 119);
  CHECK(seen.back().operation == Operation::acknowledge);
  CHECK(seen.back().psn == 129);
  // The six ACKs between the READs are one, or none: the second READ's response says it all.
  CHECK(seen.size() == 24);
  CHECK(lab.a().sent().size() == 9);
  CHECK(lab.a().counters().implied_naks == 0);
  CHECK(lab.a().counters().timeouts == 0);
  CHECK(same(lab, 0, 0, 20 * kMtu));
  CHECK(same(lab, 0x8000, 0x8000, 3 * kMtu));
  CHECK(lab.leftovers().empty());
}

// 9.7.2.6.
TEST_CASE("never more READs and atomics outstanding than agreed", "[transport][read]") {
  LabOptions options = small_packets();
  options.qp.max_rd_atomic = 3;
  options.qp.max_dest_rd_atomic = 3;
  Lab lab(options);
  Lab::fill(lab.b().memory, 4);
  const Lab::Pair pair = lab.connect();
  int outstanding = 0;
  int most = 0;
  lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
    if (p.properties.operation == Operation::read_request ||
        p.properties.operation == Operation::fetch_add) {
      most = std::max(most, ++outstanding);
    }
    return false;
  });
  lab.a().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
    const bool last =
        p.properties.operation == Operation::read_response && p.properties.ends_message();
    if (last || p.properties.operation == Operation::atomic_acknowledge) --outstanding;
    return false;
  });
  for (std::uint64_t id = 0; id < 20; ++id) {
    lab.post(0, pair.a, read_of(lab, id, id * 4096, id * 4096, 3 * kMtu));
    WorkRequest add = lab.request(WorkOpcode::fetch_add, 100 + id, 0x20'0000, 0x20'0000, 8);
    lab.post(0, pair.a, add);
    lab.post(0, pair.a, lab.request(WorkOpcode::write, 200 + id, 0x30'0000, 0x30'0000, 10));
  }
  CHECK(lab.run(picos_from_micros(10'000)));
  CHECK(most == 3);
  CHECK(outstanding == 0);
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 60);
  for (const Completion& c : sent) CHECK(c.status == CompletionStatus::success);
  CHECK(lab.leftovers().empty());
}

// 9.7.4.1.3: what the responder did not agree to is an invalid request.
TEST_CASE("more READs than the responder agreed on end the connection", "[transport][read]") {
  LabOptions options = small_packets();
  Lab lab(options);
  QpConfig a = lab.qp_config(0);
  QpConfig b = lab.qp_config(1);
  a.max_rd_atomic = 4;
  b.max_dest_rd_atomic = 2;
  const Lab::Pair pair = lab.connect(a, b, 0, 0);
  for (std::uint64_t id = 0; id < 4; ++id) {
    lab.post(0, pair.a, read_of(lab, id, 0, 0, 8 * kMtu));
  }
  CHECK(lab.run(picos_from_micros(10'000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 4);
  // The requests before it are answered first.
  CHECK(sent[0].status == CompletionStatus::success);
  CHECK(sent[1].status == CompletionStatus::success);
  CHECK(sent[2].status == CompletionStatus::remote_invalid_request);
  CHECK(sent[3].status == CompletionStatus::flushed);
  CHECK(lab.b().engine.view().state_of(pair.b) == QpState::error);
  CHECK(lab.leftovers().empty());
}

// 10.8.3.3.
TEST_CASE("a fenced request waits for the READs before it, others do not", "[transport][read]") {
  for (const bool fence : {false, true}) {
    Lab lab(small_packets());
    const Lab::Pair pair = lab.connect();
    std::size_t responses = 0;
    std::size_t responses_before_write = 0;
    lab.a().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
      responses += p.properties.operation == Operation::read_response ? 1U : 0U;
      return false;
    });
    lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
      if (p.properties.operation == Operation::write) responses_before_write = responses;
      return false;
    });
    lab.post(0, pair.a, read_of(lab, 1, 0, 0, 10 * kMtu));
    WorkRequest write = lab.request(WorkOpcode::write, 2, 0x10'0000, 0x10'0000, 10);
    write.fence = fence;
    lab.post(0, pair.a, write);
    CHECK(lab.run(picos_from_micros(1000)));
    CAPTURE(fence);
    CHECK(responses_before_write == (fence ? 10U : 0U));
    CHECK(lab.a().sent().size() == 2);
  }
}

// 9.7.5.1.1: asked for again from the first missing response on, address and length moved along.
// The network repeats a request so late that its answer has long arrived. It is answered again, but
// that is not what the peer has outstanding: it may ask for as much as was agreed on.
TEST_CASE("a READ answered again for a late repetition takes nobody's place", "[transport][read]") {
  for (const bool atomic : {false, true}) {
    LabOptions options = small_packets();
    options.link_rate = rate_from_gbps(10);
    options.qp.max_rd_atomic = options.qp.max_dest_rd_atomic = 2;
    Lab lab(options);
    Lab::fill(lab.b().memory, 8);
    const Lab::Pair pair = lab.connect(100, 0);
    unsigned requests = 0;
    lab.b().cable.set_script([&](const wire::ParsedPacket&, ImpairmentVerdict& verdict) {
      if (requests++ == 0) verdict = {.duplicate = true, .hold = 1};
      return true;
    });
    const std::uint64_t long_one = 20 * kMtu;
    lab.post(0, pair.a, read_of(lab, 1, 0, 0, long_one));
    CHECK(lab.run(picos_from_micros(1000)));
    REQUIRE(lab.a().sent().size() == 1);
    // Behind the second request comes the first again, then the third, which is the second that is
    // outstanding.
    lab.post(0, pair.a, read_of(lab, 2, long_one, long_one, 2 * kMtu));
    if (atomic) {
      lab.post(0, pair.a, lab.request(WorkOpcode::fetch_add, 3, 0x10'0000, 0, 8));
    } else {
      lab.post(0, pair.a, read_of(lab, 3, 2 * long_one, 2 * long_one, kMtu));
    }
    CHECK(lab.run(picos_from_micros(2000)));
    CAPTURE(atomic);
    const auto sent = lab.a().sent();
    REQUIRE(sent.size() == 2);
    for (const Completion& c : sent) CHECK(c.status == CompletionStatus::success);
    CHECK(same(lab, 0, 0, atomic ? 0 : long_one));
    CHECK(same(lab, long_one, long_one, 2 * kMtu));
    if (!atomic) CHECK(same(lab, 2 * long_one, 2 * long_one, kMtu));
    CHECK(lab.b().counters().retransmitted_packets < 20);  // given up on the way
    CHECK(lab.leftovers() == "");
  }
}

TEST_CASE("a lost response: the request is repeated for the rest", "[transport][read]") {
  struct Row {
    std::uint32_t lost;  // PSN
    bool by_timeout;
  };
  // In the middle, first, last (a write follows: its ACK shows the gap), last of everything.
  for (const Row row : {Row{104, false}, Row{100, false}, Row{109, false}, Row{109, true}}) {
    Lab lab(small_packets());
    Lab::fill(lab.b().memory, row.lost);
    const Lab::Pair pair = lab.connect(100, 0);
    bool lost = false;
    std::vector<Seen> at_a;
    watch(lab.a(), at_a, [&](const Seen& s, std::size_t) {
      const bool lose = !lost && s.psn == row.lost;
      lost = lost || lose;
      return lose;
    });
    std::vector<Seen> at_b;
    watch(lab.b(), at_b);
    lab.post(0, pair.a, read_of(lab, 1, 0x1000, 0x1000, 10 * kMtu - 3));
    if (!row.by_timeout) {
      lab.post(0, pair.a, lab.request(WorkOpcode::write, 2, 0x10'0000, 0x10'0000, 10));
    }
    CHECK(lab.run(picos_from_micros(10'000)));
    CAPTURE(row.lost, row.by_timeout);
    std::vector<Seen> reads;
    for (const Seen& s : at_b) {
      if (s.operation == Operation::read_request) reads.push_back(s);
    }
    REQUIRE(reads.size() == 2);
    const std::uint32_t index = row.lost - 100;
    CHECK(reads[1].psn == row.lost);
    CHECK(reads[1].address == Lab::kBase + 0x1000 + index * kMtu);
    CHECK(reads[1].length == 10 * kMtu - 3 - index * kMtu);
    CHECK(lab.a().counters().timeouts == (row.by_timeout ? 1 : 0));
    CHECK(lab.a().counters().implied_naks == (row.by_timeout ? 0 : 1));
    CHECK(lab.a().sent().size() == (row.by_timeout ? 1 : 2));
    CHECK(same(lab, 0x1000, 0x1000, 10 * kMtu - 3));
    CHECK(lab.leftovers().empty());
  }
}

TEST_CASE("a lost READ request is found by the NAK of what follows, or by the timer",
          "[transport][read]") {
  for (const bool follows : {true, false}) {
    Lab lab(small_packets());
    Lab::fill(lab.b().memory, 5);
    const Lab::Pair pair = lab.connect(100, 0);
    bool lost = false;
    lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
      verdict.drop = !lost && p.properties.operation == Operation::read_request;
      lost = lost || verdict.drop;
      return true;
    });
    lab.post(0, pair.a, read_of(lab, 1, 0, 0, 3 * kMtu));
    if (follows) lab.post(0, pair.a, lab.request(WorkOpcode::write, 2, 0x10'0000, 0x10'0000, 9));
    CHECK(lab.run(picos_from_micros(10'000)));
    CHECK(lab.a().sent().size() == (follows ? 2 : 1));
    CHECK(lab.a().counters().naks_received == (follows ? 1 : 0));
    CHECK(lab.a().counters().timeouts == (follows ? 0 : 1));
    CHECK(same(lab, 0, 0, 3 * kMtu));
    CHECK(lab.leftovers().empty());
  }
}

TEST_CASE("a READ request that comes twice is answered, and changes nothing", "[transport][read]") {
  Lab lab(small_packets());
  Lab::fill(lab.b().memory, 6);
  const Lab::Pair pair = lab.connect();
  lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
    verdict.duplicate = p.properties.operation == Operation::read_request;
    return true;
  });
  for (std::uint64_t id = 0; id < 10; ++id) {
    lab.post(0, pair.a, read_of(lab, id, id * 8192, id * 8192, 7 * kMtu));
  }
  CHECK(lab.run(picos_from_micros(10'000)));
  CHECK(lab.a().sent().size() == 10);
  CHECK(same(lab, 0, 0, 7 * kMtu));
  CHECK(lab.b().counters().duplicates == 10);
  CHECK(lab.a().counters().timeouts == 0);
  CHECK(lab.leftovers().empty());
}

TEST_CASE("READ: unknown key, no right, out of bounds, another domain", "[transport][read]") {
  for (int fault = 0; fault < 6; ++fault) {
    Lab lab(small_packets());
    Lab::fill(lab.b().memory, 1);
    auto& regions = lab.b().engine.regions();
    std::vector<std::byte> other(8 * kMtu);
    WorkRequest request = read_of(lab, 1, 0, 0, 3 * kMtu);
    QpConfig b = lab.qp_config(1);
    switch (fault) {
      case 0:
        request.remote_key ^= 0x5500;
        break;
      case 1:
        request.remote_address = Lab::kBase - 1;
        break;
      case 2:
        request.remote_address = Lab::kBase + Lab::kMemoryBytes - 3 * kMtu + 1;
        break;
      case 3:
        request.remote_key =
            regions.add_plain(Lab::kBase, other, access::local_write | access::remote_write);
        break;
      case 4:
        request.remote_key = regions.add_plain(Lab::kBase, other, access::remote_read, 77);
        break;
      case 5:
        b.access = access::remote_write;
        break;
    }
    const Lab::Pair pair = lab.connect(lab.qp_config(0), b, 0, 0);
    lab.post(0, pair.a, read_of(lab, 7, 0, 0, 0));  // of no bytes: no key is looked at
    lab.post(0, pair.a, request);
    lab.post(0, pair.a, read_of(lab, 9, 0, 0, 8));
    CHECK(lab.run(picos_from_micros(10'000)));
    CAPTURE(fault);
    const auto sent = lab.a().sent();
    REQUIRE(sent.size() == 3);
    CHECK(sent[0].status == CompletionStatus::success);
    CHECK(sent[1].status == CompletionStatus::remote_access_error);
    CHECK(sent[2].status == CompletionStatus::flushed);
    CHECK(lab.a().counters().rx_data_bytes == 0);
    CHECK(lab.leftovers().empty());
  }
}

TEST_CASE("READ: local memory must be writable, and still there", "[transport][read]") {
  Lab lab(small_packets());
  std::vector<std::byte> other(64 * kMtu);
  auto& regions = lab.a().engine.regions();
  const Lab::Pair pair = lab.connect();
  WorkRequest request = read_of(lab, 1, 0, 0, 40 * kMtu);
  request.local_key = regions.add_plain(Lab::kBase, other, 0);
  CHECK(lab.post(0, pair.a, request) == PostResult::bad_key);
  request.local_key = regions.add_plain(Lab::kBase, other, access::local_write);
  CHECK(lab.post(0, pair.a, request) == PostResult::ok);
  lab.run(picos_from_micros(4));
  regions.remove(request.local_key);
  CHECK(lab.run(picos_from_micros(1000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == CompletionStatus::local_protection_error);
  CHECK(lab.a().engine.view().state_of(pair.a) == QpState::error);
  lab.b().engine.destroy_qp(lab.now(), pair.b);
  CHECK(lab.leftovers().empty());
}

TEST_CASE("a region that goes while it is read: what was sent counts, the rest is refused",
          "[transport][read]") {
  Lab lab(small_packets());
  std::vector<std::byte> other(64 * kMtu);
  const Lab::Pair pair = lab.connect();
  WorkRequest request = read_of(lab, 1, 0, 0, 40 * kMtu);
  request.remote_key = lab.b().engine.regions().add_plain(Lab::kBase, other, access::remote_read);
  lab.post(0, pair.a, request);
  lab.run(picos_from_micros(3));
  lab.b().engine.regions().remove(request.remote_key);
  CHECK(lab.run(picos_from_micros(1000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == CompletionStatus::remote_access_error);
  CHECK(lab.a().counters().rx_data_packets > 0);
  CHECK(lab.leftovers().empty());
}

TEST_CASE("one queue pair's READ responses and own requests share its turns", "[transport][read]") {
  Lab lab(small_packets());
  Lab::fill(lab.a().memory, 1);
  const Lab::Pair pair = lab.connect();
  const std::uint64_t length = 500 * kMtu;
  Picos read_done{0};
  Picos write_done{0};
  lab.on_poll = [&](unsigned) {
    if (read_done.count == 0 && !lab.a().send_cq.empty()) read_done = lab.now();
    if (write_done.count == 0 && !lab.b().send_cq.empty()) write_done = lab.now();
  };
  lab.post(0, pair.a, read_of(lab, 1, 0, 0, length));
  WorkRequest write = lab.request(WorkOpcode::write, 2, 0x20'0000, 0x20'0000, length);
  write.local_key = lab.b().key;
  write.remote_key = lab.a().key;
  lab.post(1, pair.b, write);
  CHECK(lab.run(picos_from_micros(10'000)));
  const double ratio = static_cast<double>(read_done.count) / static_cast<double>(write_done.count);
  CHECK(ratio > 0.95);
  CHECK(ratio < 1.05);
  CHECK(lab.leftovers().empty());
}

TEST_CASE("elided memory is read, too: lengths and places are checked", "[transport][read]") {
  for (const bool lossy : {false, true}) {
    LabOptions options = small_packets();
    if (lossy) options.impairments = {.drop = 0.02, .duplicate = 0.02, .reorder = 0.02};
    options.qp.retry_count = 100;
    Lab lab(options);
    const std::uint64_t size = std::uint64_t{1} << 30;
    const std::uint32_t from = lab.b().engine.regions().add_elided(0, size, access::remote_read);
    const std::uint32_t to = lab.a().engine.regions().add_elided(0, size, access::local_write);
    const Lab::Pair pair = lab.connect();
    for (std::uint64_t id = 0; id < 30; ++id) {
      WorkRequest request = lab.request(WorkOpcode::read, id, 0, 0, 40 * kMtu + id);
      request.local_address = id << 20;
      request.remote_address = id << 21;
      request.local_key = to;
      request.remote_key = from;
      REQUIRE(lab.post(0, pair.a, request) == PostResult::ok);
    }
    lab.run(picos_from_micros(1'000'000));
    CHECK(lab.a().sent().size() == 30);
    CHECK(lab.a().counters().digest_mismatches == 0);
    CHECK(lab.leftovers().empty());
  }
}

}  // namespace
}  // namespace paceline::transport::test
