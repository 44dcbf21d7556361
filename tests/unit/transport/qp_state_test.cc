// The life of a queue pair: every change of state, what it must and may set, and what each state
// does with work and packets.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

namespace attr = qp_attribute;

constexpr std::array kStates = {QpState::reset, QpState::init, QpState::rtr,  QpState::rts,
                                QpState::sqd,   QpState::sqe,  QpState::error};
constexpr std::array kTypes = {QpType::rc, QpType::uc, QpType::ud};

// Good values for everything.
QpAttributes good(QpState to, const QpAddress& remote) {
  QpAttributes a;
  a.state = to;
  a.access = access::remote;
  a.qkey = 0x1111'2222;
  a.path = {remote.ip, remote.mac, 0xC123, kDefaultDataClass};
  a.path_mtu = 512;
  a.timeout = ack_timeout(8);
  a.retry_count = 5;
  a.rnr_retry = 6;
  a.min_rnr_timer = 9;
  a.max_rd_atomic = 3;
  a.max_dest_rd_atomic = 4;
  a.rq_psn = remote.first_psn;
  a.sq_psn = Psn(0xFF'FFF0);
  a.dest_qp_number = remote.qp_number;
  return a;
}

// A side's queue pair, led to `to` by the shortest way.
struct Walker {
  explicit Walker(Lab& lab_, unsigned side_, const QpConfig& config)
      : lab(lab_), side(side_), qp(lab_.side(side_).engine.create_qp(config)) {
    remote.ip = wire::IpAddress::v4(0x0A00'0001 + (1 - side));
    remote.mac = wire::MacAddress::local(2 - side);
    remote.qp_number = 16;
    remote.first_psn = Psn(0xFF'FFF0);
    type = config.type;
  }
  ModifyResult modify(QpState to, std::uint32_t mask) {
    return lab.side(side).engine.modify_qp(lab.now(), qp, good(to, remote), mask | attr::state);
  }
  ModifyResult step(QpState from, QpState to) {
    return modify(to, transition_rule(type, from, to).required);
  }
  void walk(QpState to) {
    if (to == QpState::reset) return;
    if (to == QpState::error) {
      REQUIRE(step(QpState::reset, QpState::error).ok());
      return;
    }
    constexpr std::array kWay = {QpState::reset, QpState::init, QpState::rtr, QpState::rts,
                                 QpState::sqd};
    for (std::size_t i = 1; i < kWay.size(); ++i) {
      REQUIRE(step(kWay[i - 1], kWay[i]).ok());
      if (kWay[i] == to) return;
    }
  }
  QpState state() const { return lab.side(side).engine.view().state_of(qp); }

  Lab& lab;
  unsigned side;
  std::uint32_t qp;
  QpAddress remote;
  QpType type;
};

// For tests that make a lab in every step and send nothing: a pool of packets costs most of a lab.
LabOptions few_packets() {
  LabOptions options = small_packets();
  options.pool_packets = 64;
  return options;
}

// Vol. 1, figure 124.
TEST_CASE("exactly the changes of the specification are possible", "[transport][state]") {
  const auto possible = [](QpType type, QpState from, QpState to) {
    using S = QpState;
    if (to == S::reset || to == S::error) return true;
    switch (from) {
      case S::reset:
        return to == S::init;
      case S::init:
        return to == S::init || to == S::rtr;
      case S::rtr:
        return to == S::rts;
      case S::rts:
        return to == S::rts || to == S::sqd;
      case S::sqd:
        return to == S::sqd || to == S::rts;
      case S::sqe:
        return to == S::rts && type != QpType::rc;
      case S::error:
        return false;
    }
    return false;
  };
  for (const QpType type : kTypes) {
    for (const QpState from : kStates) {
      for (const QpState to : kStates) {
        CAPTURE(static_cast<int>(type), static_cast<int>(from), static_cast<int>(to));
        CHECK(transition_rule(type, from, to).allowed == possible(type, from, to));
        // And the engine holds to it.
        if (from == QpState::sqe) continue;  // reached by an error only
        Lab lab(few_packets());
        QpConfig config = lab.qp_config(0);
        config.type = type;
        Walker walker(lab, 0, config);
        walker.walk(from);
        REQUIRE(walker.state() == from);
        const ModifyResult result = walker.step(from, to);
        CHECK(result.ok() == possible(type, from, to));
        CHECK(walker.state() == (result.ok() ? to : from));
        if (!result.ok()) CHECK(result == ModifyResult{ModifyError::bad_transition, attr::state});
      }
    }
  }
}

TEST_CASE("each attribute is required, allowed or refused as the table says",
          "[transport][state]") {
  for (const QpType type : kTypes) {
    for (const QpState from : kStates) {
      for (const QpState to : kStates) {
        const TransitionRule rule = transition_rule(type, from, to);
        if (!rule.allowed || from == QpState::sqe) continue;
        CHECK((rule.required & rule.optional) == 0);
        for (unsigned bit = 2; bit < attr::kCount; ++bit) {
          const std::uint32_t attribute = 1U << bit;
          std::uint32_t mask = rule.required;
          ModifyResult expected;
          if ((rule.required & attribute) != 0) {
            mask &= ~attribute;
            expected = {ModifyError::missing_attribute, attribute};
          } else {
            mask |= attribute;
            if ((rule.optional & attribute) == 0) {
              expected = {ModifyError::unexpected_attribute, attribute};
            }
          }
          CAPTURE(static_cast<int>(type), static_cast<int>(from), static_cast<int>(to),
                  attribute_name(attribute));
          Lab lab(few_packets());
          QpConfig config = lab.qp_config(0);
          config.type = type;
          Walker walker(lab, 0, config);
          walker.walk(from);
          CHECK(walker.modify(to, mask) == expected);
          CHECK(walker.state() == (expected.ok() ? to : from));
        }
      }
    }
  }
}

TEST_CASE("a value out of range refuses the whole change", "[transport][state]") {
  struct Row {
    std::uint32_t attribute;
    void (*spoil)(QpAttributes&);
  };
  const Row to_init[] = {
      {attr::access_flags, [](QpAttributes& a) { a.access = access::local_write; }},
      {attr::pkey_index, [](QpAttributes& a) { a.pkey_index = 1; }},
      {attr::port, [](QpAttributes& a) { a.port = 2; }},
  };
  const Row to_rtr[] = {
      {attr::path_mtu, [](QpAttributes& a) { a.path_mtu = 2048; }},  // more than the engine's
      {attr::path_mtu, [](QpAttributes& a) { a.path_mtu = 300; }},
      {attr::path_mtu, [](QpAttributes& a) { a.path_mtu = 128; }},
      {attr::path, [](QpAttributes& a) { a.path.ip = {}; }},
      {attr::path, [](QpAttributes& a) { a.path.traffic_class = 8; }},
      {attr::max_dest_rd_atomic, [](QpAttributes& a) { a.max_dest_rd_atomic = 200; }},
      {attr::min_rnr_timer, [](QpAttributes& a) { a.min_rnr_timer = 32; }},
      {attr::dest_qp_number, [](QpAttributes& a) { a.dest_qp_number = 1U << 24; }},
  };
  const Row to_rts[] = {
      {attr::timeout, [](QpAttributes& a) { a.timeout = Picos{-1}; }},
      {attr::retry_count, [](QpAttributes& a) { a.retry_count = 8; }},
      {attr::rnr_retry, [](QpAttributes& a) { a.rnr_retry = 8; }},
      {attr::max_rd_atomic, [](QpAttributes& a) { a.max_rd_atomic = 129; }},
  };
  const auto check = [](std::span<const Row> rows, QpState from, QpState to) {
    for (const Row& row : rows) {
      Lab lab(small_packets());
      Walker walker(lab, 0, lab.qp_config(0));
      walker.walk(from);
      const auto before = lab.a().engine.query_qp(walker.qp);
      QpAttributes a = good(to, walker.remote);
      row.spoil(a);
      const std::uint32_t mask = transition_rule(QpType::rc, from, to).required | attr::state;
      CAPTURE(attribute_name(row.attribute));
      CHECK(lab.a().engine.modify_qp(lab.now(), walker.qp, a, mask) ==
            ModifyResult{ModifyError::bad_value, row.attribute});
      const auto after = lab.a().engine.query_qp(walker.qp);
      CHECK(after->state == from);
      CHECK(after->access == before->access);
      CHECK(after->path_mtu == before->path_mtu);
      CHECK(after->dest_qp_number == before->dest_qp_number);
      CHECK(after->retry_count == before->retry_count);
      CHECK(walker.step(from, to).ok());
    }
  };
  check(to_init, QpState::reset, QpState::init);
  check(to_rtr, QpState::init, QpState::rtr);
  check(to_rts, QpState::rtr, QpState::rts);
}

TEST_CASE("query tells what was set; current_state guards", "[transport][state]") {
  Lab lab(small_packets());
  Walker walker(lab, 0, lab.qp_config(0));
  walker.walk(QpState::rts);
  const auto a = lab.a().engine.query_qp(walker.qp);
  REQUIRE(a);
  CHECK(a->state == QpState::rts);
  CHECK(a->path_mtu == 512);
  CHECK(a->timeout == ack_timeout(8));
  CHECK(a->retry_count == 5);
  CHECK(a->rnr_retry == 6);
  CHECK(a->min_rnr_timer == 9);
  CHECK(a->max_rd_atomic == 3);
  CHECK(a->max_dest_rd_atomic == 4);
  CHECK(a->rq_psn == Psn(0xFF'FFF0));
  CHECK(a->sq_psn == Psn(0xFF'FFF0));
  CHECK(a->dest_qp_number == 16);
  CHECK(a->path.source_port == 0xC123);
  CHECK(!lab.a().engine.query_qp(12345));
  CHECK(lab.a().engine.modify_qp(lab.now(), 12345, *a, attr::state).error ==
        ModifyError::no_queue_pair);
  QpAttributes guarded = *a;
  guarded.state = QpState::sqd;
  guarded.current_state = QpState::rtr;
  CHECK(lab.a()
            .engine.modify_qp(lab.now(), walker.qp, guarded, attr::state | attr::current_state)
            .error == ModifyError::wrong_current_state);
  guarded.current_state = QpState::rts;
  CHECK(lab.a()
            .engine.modify_qp(lab.now(), walker.qp, guarded, attr::state | attr::current_state)
            .ok());
}

TEST_CASE("a connection made step by step carries data at its own MTU", "[transport][state]") {
  Lab lab(small_packets());
  Lab::fill(lab.a().memory, 5);
  Walker a(lab, 0, lab.qp_config(0));
  Walker b(lab, 1, lab.qp_config(1));
  std::vector<std::uint32_t> sizes;
  lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
    sizes.push_back(p.payload_bytes);
    return false;
  });
  CHECK(lab.post(0, a.qp, lab.request(WorkOpcode::write, 1, 0, 0, 8)) == PostResult::bad_state);
  a.walk(QpState::rtr);
  CHECK(lab.post(0, a.qp, lab.request(WorkOpcode::write, 1, 0, 0, 8)) == PostResult::bad_state);
  CHECK(a.step(QpState::rtr, QpState::rts).ok());
  b.walk(QpState::rtr);  // receives, and answers READs, before it may send
  CHECK(lab.post(0, a.qp, lab.request(WorkOpcode::write, 1, 0, 0, 1500)) == PostResult::ok);
  CHECK(lab.post(0, a.qp, lab.request(WorkOpcode::read, 2, 4096, 0, 1500)) == PostResult::ok);
  CHECK(lab.run(picos_from_micros(10'000)));
  CHECK(lab.a().sent().size() == 2);
  CHECK(std::memcmp(lab.a().memory.data(), lab.b().memory.data(), 1500) == 0);
  CHECK(std::memcmp(lab.a().memory.data() + 4096, lab.b().memory.data(), 1500) == 0);
  REQUIRE(sizes.size() == 4);
  CHECK(sizes[0] == 512);
  CHECK(sizes[2] == 1500 - 2 * 512);
  std::array<AsyncEvent, 4> events;
  REQUIRE(lab.b().engine.poll_events(events) == 1);
  CHECK(events[0].kind == AsyncEventKind::comm_established);
  CHECK(events[0].qp_number == b.qp);
  CHECK(lab.a().engine.poll_events(events) == 0);
  CHECK(lab.leftovers().empty());
}

// 10.3.1.5.
TEST_CASE("SQD: what was begun is completed, even through loss; nothing is begun until RTS",
          "[transport][state]") {
  for (const bool lossy : {false, true}) {
    for (const WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::read}) {
      LabOptions options = small_packets();
      options.qp.retransmit_timeout = picos_from_micros(50);
      if (lossy) options.impairments = {.drop = 0.05};
      options.qp.retry_count = 100;
      Lab lab(options);
      Lab::fill(lab.a().memory, 5);
      lab.b().memory = lab.a().memory;
      const Lab::Pair pair = lab.connect();
      for (std::uint64_t id = 0; id < 30; ++id) {
        lab.post(0, pair.a, lab.request(opcode, id, id * 8192, id * 8192, 7 * kMtu));
      }
      lab.run(picos_from_micros(3));
      QpAttributes a;
      a.state = QpState::sqd;
      a.notify_drained = true;
      CHECK(
          lab.a().engine.modify_qp(lab.now(), pair.a, a, attr::state | attr::notify_drained).ok());
      lab.touch(0);
      std::array<AsyncEvent, 4> events;
      CHECK(lab.a().engine.poll_events(events) == 0);
      a.state = QpState::rts;
      CHECK(lab.a().engine.modify_qp(lab.now(), pair.a, a, attr::state).error ==
            ModifyError::not_drained);
      // Posted, and kept.
      CHECK(lab.post(0, pair.a, lab.request(opcode, 30, 0, 0, 10)) == PostResult::ok);
      lab.run(lab.now() + picos_from_micros(20'000));
      CAPTURE(lossy, static_cast<int>(opcode));
      CHECK(lab.a().engine.view().state_of(pair.a) == QpState::sqd);
      const std::size_t done = lab.a().sent().size();
      CHECK(done >= 1);
      CHECK(done < 30);
      REQUIRE(lab.a().engine.poll_events(events) == 1);
      CHECK(events[0].kind == AsyncEventKind::sq_drained);
      CHECK(events[0].qp_number == pair.a);
      CHECK(lab.a().engine.view().inflight_bytes() == 0);
      CHECK(lab.a().engine.view().check_conservation() == "");
      CHECK(lab.a().engine.modify_qp(lab.now(), pair.a, a, attr::state).ok());
      lab.touch(0);
      lab.run(lab.now() + picos_from_micros(50'000));
      CHECK(done + lab.a().sent().size() == 31);
      CHECK(lab.leftovers().empty());
    }
  }
}

// 10.3.1.1: nothing completes; the queue pair can be used again.
TEST_CASE("RESET forgets all work and connects anew", "[transport][state]") {
  Lab lab(small_packets());
  Lab::fill(lab.a().memory, 5);
  const Lab::Pair pair = lab.connect();
  for (std::uint64_t id = 0; id < 5; ++id) {
    lab.post(0, pair.a, lab.request(WorkOpcode::write, id, 0, 0, 20 * kMtu));
    lab.post(0, pair.a, lab.request(WorkOpcode::read, id, 0x10'0000, 0x10'0000, 20 * kMtu));
  }
  lab.run(picos_from_micros(4));
  CHECK(lab.a().sent().size() < 10);
  QpAttributes a;
  a.state = QpState::reset;
  for (unsigned side = 0; side < 2; ++side) {
    CHECK(lab.side(side)
              .engine.modify_qp(lab.now(), side == 0 ? pair.a : pair.b, a, attr::state)
              .ok());
    lab.touch(side);
  }
  lab.run(lab.now() + picos_from_micros(1000));
  CHECK(lab.a().sent().empty());
  CHECK(lab.leftovers().empty());
  const QpAddress at_a = lab.a().engine.address_of(pair.a, Psn(0x50'0000));
  const QpAddress at_b = lab.b().engine.address_of(pair.b, Psn(0x60'0000));
  CHECK(lab.a().engine.connect(lab.now(), pair.a, at_b, Psn(0x50'0000), 0xC001));
  CHECK(lab.b().engine.connect(lab.now(), pair.b, at_a, Psn(0x60'0000), 0xC002));
  CHECK(!lab.b().engine.connect(lab.now(), pair.b, at_a, Psn(0x60'0000), 0xC002));
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 9, 0, 0, 3 * kMtu));
  CHECK(lab.run(lab.now() + picos_from_micros(1000)));
  CHECK(lab.a().sent().size() == 1);
  CHECK(std::memcmp(lab.a().memory.data(), lab.b().memory.data(), 3 * kMtu) == 0);
  CHECK(lab.leftovers().empty());
}

// 10.3.1.7 and 10.2.9.3.
TEST_CASE("ERROR flushes all that the queue pair owns, and nothing that is shared",
          "[transport][state]") {
  for (const bool shared : {false, true}) {
    Lab lab(small_packets());
    ReceiveQueue receives(8, shared ? ReceiveSharing::shared : ReceiveSharing::owned);
    QpConfig config = lab.qp_config(0);
    config.receive_queue = &receives;
    const Lab::Pair pair = lab.connect(config, lab.qp_config(1), 0, 0);
    for (std::uint64_t id = 0; id < 3; ++id) {
      CHECK(lab.a().engine.post_receive(lab.now(), pair.a, {id, Lab::kBase, 8, lab.a().key}));
      lab.post(0, pair.a, lab.request(WorkOpcode::write, 10 + id, 0, 0, 20 * kMtu));
    }
    lab.run(picos_from_micros(2));
    QpAttributes a;
    a.state = QpState::error;
    CHECK(lab.a().engine.modify_qp(lab.now(), pair.a, a, attr::state).ok());
    lab.touch(0);
    CAPTURE(shared);
    const auto sent = lab.a().sent();
    REQUIRE(sent.size() == 3);
    for (const Completion& c : sent) CHECK(c.status == CompletionStatus::flushed);
    CHECK(lab.a().received().size() == (shared ? 0 : 3));
    CHECK(receives.size() == (shared ? 3 : 0));
    std::array<AsyncEvent, 4> events;
    const std::size_t n = lab.a().engine.poll_events(events);
    CHECK(n == (shared ? 1 : 0));
    if (shared) CHECK(events[0].kind == AsyncEventKind::last_wqe_reached);
    // Posted later: flushed at once, in both queues.
    CHECK(lab.post(0, pair.a, lab.request(WorkOpcode::write, 20, 0, 0, 8)) == PostResult::ok);
    CHECK(lab.a().sent().size() == 1);
    CHECK(lab.a().engine.post_receive(lab.now(), pair.a, {7, Lab::kBase, 8, lab.a().key}));
    CHECK(lab.a().received().size() == (shared ? 0 : 1));
    lab.run(lab.now() + picos_from_micros(1000));
    CHECK(lab.leftovers().empty());
  }
}

TEST_CASE("a completion queue that overruns takes its queue pairs with it", "[transport][state]") {
  Lab lab(small_packets());
  CompletionQueue small(4);
  QpConfig config = lab.qp_config(0);
  config.send_cq = &small;
  const Lab::Pair pair = lab.connect(config, lab.qp_config(1), 0, 0);
  const Lab::Pair other = lab.connect();
  for (std::uint64_t id = 0; id < 8; ++id) {
    lab.post(0, pair.a, lab.request(WorkOpcode::write, id, 0, 0, 8));
  }
  lab.post(0, other.a, lab.request(WorkOpcode::write, 1, 0, 0, 8));
  lab.run(picos_from_micros(1000));
  CHECK(small.overflowed());
  CHECK(lab.a().engine.view().state_of(pair.a) == QpState::error);
  CHECK(lab.a().engine.view().state_of(other.a) == QpState::rts);
  std::array<AsyncEvent, 8> events;
  const std::size_t n = lab.a().engine.poll_events(events);
  const auto count = [&](AsyncEventKind kind) {
    return std::count_if(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(n),
                         [kind](const AsyncEvent& e) { return e.kind == kind; });
  };
  CHECK(count(AsyncEventKind::cq_error) == 1);
  CHECK(count(AsyncEventKind::qp_fatal) == 1);
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(events[i].queue == (events[i].kind == AsyncEventKind::cq_error ? &small : nullptr));
  }
  CHECK(lab.leftovers().empty());
}

TEST_CASE("a refused request of the peer is an event here", "[transport][state]") {
  for (const bool rights : {true, false}) {
    Lab lab(small_packets());
    const Lab::Pair pair = lab.connect();
    WorkRequest request = lab.request(WorkOpcode::fetch_add, 1, 0, rights ? 0 : 4, 8);
    if (rights) request.remote_key = 0;
    lab.post(0, pair.a, request);
    lab.run(picos_from_micros(100));
    std::array<AsyncEvent, 4> events;
    REQUIRE(lab.b().engine.poll_events(events) >= 1);
    CHECK(events[0].kind ==
          (rights ? AsyncEventKind::qp_access_error : AsyncEventKind::qp_request_error));
    CHECK(events[0].qp_number == pair.b);
  }
}

TEST_CASE("no timeout means none", "[transport][state]") {
  LabOptions options = small_packets();
  options.qp.retransmit_timeout = kNoTimeout;
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  lab.b().cable.set_script([](const wire::ParsedPacket&, ImpairmentVerdict& verdict) {
    verdict.drop = true;
    return true;
  });
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 8));
  CHECK(lab.run(picos_from_micros(1'000'000)));  // nothing is left to happen
  CHECK(lab.a().sent().empty());
  CHECK(lab.a().engine.query_qp(pair.a)->timeout.count == 0);
}

// A dead queue pair must not keep what it asked for: the algorithm hears that it is idle.
TEST_CASE("cadence: a queue pair that fails asks for nothing more", "[transport][state]") {
  LabOptions options = small_packets();
  options.engine.primary = choose_cc(cc::AlgorithmId::cadence, options);
  options.engine.fallback = choose_cc(cc::AlgorithmId::dcqcn, options);
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  const Lab::Pair other = lab.connect();  // keeps the channel
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 2000 * kMtu));
  lab.run(picos_from_micros(40));
  QpAttributes a;
  a.state = QpState::error;
  CHECK(lab.a().engine.modify_qp(lab.now(), pair.a, a, attr::state).ok());
  lab.touch(0);
  CHECK(lab.run(lab.now() + picos_from_micros(5000)));
  const std::uint64_t requests = lab.a().counters().requests_sent;
  const std::uint64_t grants = lab.b().counters().grants_sent;
  lab.run(lab.now() + picos_from_micros(20'000));
  CHECK(lab.a().counters().requests_sent == requests);
  CHECK(lab.b().counters().grants_sent == grants);
  CHECK(lab.a().engine.view().state_of(other.a) == QpState::rts);
}

}  // namespace
}  // namespace paceline::transport::test
