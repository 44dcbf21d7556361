#include "dataplane/wire/extensions/control.h"

#include <catch2/catch.hpp>
#include <tuple>

#include "tests/unit/wire/wire_fixture.h"

namespace paceline::wire {
namespace {

using test::Buffer;

auto tie(const HelloMessage& m) {
  return std::tuple(m.version_min, m.version_max, m.reply, m.traffic_class, m.features, m.link_mbps,
                    m.mtu_bytes, m.echo_wanted, m.peer_count_hint, m.timestamp_ns,
                    m.timestamp_echo_ns);
}
auto tie(const RequestMessage& m) {
  return std::tuple(m.close, m.hint, m.traffic_class, m.echo_wanted, m.arm, m.epoch, m.channel,
                    m.req_seq, m.grant_echo, m.sent_total, m.unscheduled_total, m.demand_bytes,
                    m.tx_cap_mbps, m.timestamp_ns, m.hint_degree, m.hint_kind, m.hint_collective,
                    m.congested, m.lost, m.round);
}
auto tie(const GrantMessage& m) {
  return std::tuple(m.hold, m.revoke, m.credit, m.traffic_class, m.peer_count_hint, m.queue_us,
                    m.channel, m.grant_seq, m.rate_mbps, m.limit_total, m.lease_us,
                    m.effective_delay_us, m.unscheduled_budget, m.active_senders, m.priority,
                    m.timestamp_echo_ns, m.receiver_hold_ns);
}
auto tie(const NoticeMessage& m) {
  return std::tuple(m.feedback, m.traffic_class, m.dest_qpn, m.excess_bytes, m.growth_bytes);
}

template <class Int>
Int any(Random& random) {
  return static_cast<Int>(random.next());
}
std::uint8_t any_peer_count_hint(Random& random) {
  return static_cast<std::uint8_t>(random.below(1U << kPeerCountBits));
}
std::uint8_t any_class(Random& random) { return static_cast<std::uint8_t>(random.below(8)); }

HelloMessage random_hello(Random& r) {
  HelloMessage m;
  m.version_min = static_cast<std::uint8_t>(1 + r.below(255));
  m.version_max = static_cast<std::uint8_t>(m.version_min + r.below(256U - m.version_min));
  m.reply = r.below(2) == 0;
  m.traffic_class = any_class(r);
  m.features = any<std::uint32_t>(r);
  m.link_mbps = any<std::uint32_t>(r);
  m.mtu_bytes = any<std::uint16_t>(r);
  m.peer_count_hint = any_peer_count_hint(r);
  m.echo_wanted = static_cast<EcnEcho>(r.below(3));
  m.timestamp_ns = r.next();
  m.timestamp_echo_ns = r.next();
  return m;
}
RequestMessage random_request(Random& r) {
  RequestMessage m;
  m.close = r.below(2) == 0;
  m.hint = r.below(2) == 0;
  m.congested = r.below(2) == 0;
  m.lost = r.below(2) == 0;
  m.round = any<std::uint8_t>(r);
  m.traffic_class = any_class(r);
  m.echo_wanted = static_cast<EcnEcho>(r.below(3));
  m.arm = any<std::uint8_t>(r);
  m.epoch = any<std::uint8_t>(r);
  m.channel = any<std::uint16_t>(r);
  m.req_seq = any<std::uint16_t>(r);
  m.grant_echo = any<std::uint16_t>(r);
  m.sent_total = r.next() & kTotalMask;
  m.unscheduled_total = r.next() & kTotalMask;
  m.demand_bytes = r.next() & kTotalMask;
  m.tx_cap_mbps = any<std::uint32_t>(r);
  m.timestamp_ns = any<std::uint32_t>(r);
  m.hint_degree = any<std::uint16_t>(r);
  m.hint_kind = any<std::uint16_t>(r);
  m.hint_collective = any<std::uint32_t>(r);
  return m;
}
GrantMessage random_grant(Random& r) {
  GrantMessage m;
  m.hold = r.below(2) == 0;
  m.revoke = r.below(2) == 0;
  m.credit = r.below(2) == 0;
  m.traffic_class = any_class(r);
  m.peer_count_hint = any_peer_count_hint(r);
  m.queue_us = any<std::uint8_t>(r);
  m.channel = any<std::uint16_t>(r);
  m.grant_seq = any<std::uint16_t>(r);
  m.rate_mbps = any<std::uint32_t>(r);
  m.limit_total = r.next() & kTotalMask;
  m.lease_us = any<std::uint32_t>(r);
  m.effective_delay_us = any<std::uint32_t>(r);
  m.unscheduled_budget = any<std::uint32_t>(r);
  m.active_senders = static_cast<std::uint16_t>(r.below(kMostActiveSenders + 1U));
  m.priority = static_cast<std::uint8_t>(r.below(1U << kPriorityBits));
  m.timestamp_echo_ns = any<std::uint32_t>(r);
  m.receiver_hold_ns = any<std::uint32_t>(r);
  return m;
}
NoticeMessage random_notice(Random& r) {
  const auto bytes = [&r] {
    return static_cast<std::int32_t>(any<std::int16_t>(r) / 2) * kNoticeUnit;
  };
  NoticeMessage m;
  m.feedback = static_cast<std::uint8_t>(1 + r.below(kMostFeedback));
  m.traffic_class = any_class(r);
  m.dest_qpn = static_cast<std::uint32_t>(r.below(kMaxQpn + 1U));
  m.excess_bytes = bytes();
  m.growth_bytes = bytes();
  return m;
}

// The body of the message's packet, after the packet went through the parser in both forms.
template <class Message>
std::vector<std::byte> body_of(const Message& message, const FlowAddressing& flow, Opcode opcode) {
  const HeaderTemplate header = make_header_template(flow);
  Buffer out;
  out.fill(std::byte{0xEE});
  const std::size_t n = build_control(header, out, Psn(77), message);
  const auto headers = std::span<const std::byte>(out).first(n);
  ParsedPacket p;
  REQUIRE(parse_headers(headers, 0, p) == ParseError::ok);
  REQUIRE(p.opcode == opcode);
  REQUIRE(p.dest_qpn == kControlQpn);
  REQUIRE(p.psn == Psn(77));
  REQUIRE(p.payload_bytes == 0);
  const auto frame = test::frame_of(headers, p.l3_offset);
  REQUIRE(parse_frame(frame, p) == ParseError::ok);
  REQUIRE(p.header_bytes == n);
  const auto body = control_body(frame, p);
  return {body.begin(), body.end()};
}

template <class Message>
void check_round_trip(const Message& message, const FlowAddressing& flow, Opcode opcode,
                      std::size_t bytes) {
  const auto body = body_of(message, flow, opcode);
  REQUIRE(body.size() == bytes);
  Message again;
  REQUIRE(parse_control(body, again) == ParseError::ok);
  REQUIRE(tie(again) == tie(message));
}

template <class Message>
ParseError verdict(std::vector<std::byte> body, std::size_t at, unsigned value) {
  body.at(at) = static_cast<std::byte>(value);
  Message m;
  return parse_control(body, m);
}

std::string hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[static_cast<unsigned>(b) >> 4];
    text += kDigits[static_cast<unsigned>(b) & 15U];
  }
  return text;
}

}  // namespace

TEST_CASE("control: any message survives the wire") {
  const std::uint64_t seed = GENERATE(1U, 2U, 3U);
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 2000; ++i) {
    const FlowAddressing flow = test::random_flow(random);
    check_round_trip(random_hello(random), flow, Opcode::hello, kHelloBytes);
    check_round_trip(random_request(random), flow, Opcode::request, kRequestBytes);
    check_round_trip(random_grant(random), flow, Opcode::grant, kGrantBytes);
    check_round_trip(random_notice(random), flow, Opcode::notice, kNoticeBytes);
  }
}

// The layouts of docs/wire-protocol.md, byte by byte: a change here is a new protocol version.
TEST_CASE("control: byte layouts of version 1") {
  const FlowAddressing flow = test::plain_flow();
  HelloMessage hello;
  hello.version_min = 0x01;
  hello.version_max = 0x02;
  hello.reply = true;
  hello.traffic_class = 3;
  hello.echo_wanted = EcnEcho::xack;
  hello.mtu_bytes = 0x1000;
  hello.features = 0xA1A2A3A4;
  hello.link_mbps = 0x000186A0;
  hello.timestamp_ns = 0x1112131415161718;
  hello.timestamp_echo_ns = 0x2122232425262728;
  CHECK(hex(body_of(hello, flow, Opcode::hello)) ==
        "01010302"
        "01021000"
        "a1a2a3a4"
        "000186a0"
        "1112131415161718"
        "2122232425262728");
  hello.peer_count_hint = 7;
  CHECK(hex(body_of(hello, flow, Opcode::hello)).substr(0, 8) == "01390302");

  RequestMessage request;
  request.close = request.hint = true;
  request.traffic_class = 5;
  request.echo_wanted = EcnEcho::cnp;
  request.arm = 0x0A;
  request.epoch = 0x0B;
  request.channel = 0x0C0D;
  request.req_seq = 0x0E0F;
  request.grant_echo = 0x1011;
  request.tx_cap_mbps = 0x12131415;
  request.sent_total = 0x212223242526;
  request.unscheduled_total = 0x313233343536;
  request.demand_bytes = 0x414243444546;
  request.hint_degree = 0x5152;
  request.timestamp_ns = 0x61626364;
  request.hint_kind = 0x0002;
  request.hint_collective = 0x71727374;
  CHECK(hex(body_of(request, flow, Opcode::request)) ==
        "01030501"
        "0a0b0c0d"
        "0e0f1011"
        "12131415"
        "212223242526"
        "313233343536"
        "414243444546"
        "5152"
        "61626364"
        "00020000"
        "71727374");

  GrantMessage grant;
  grant.revoke = true;
  grant.traffic_class = 7;
  grant.queue_us = 0x71;
  grant.channel = 0x0102;
  grant.grant_seq = 0x0304;
  grant.rate_mbps = 0x05060708;
  grant.lease_us = 0x090A0B0C;
  grant.limit_total = 0x111213141516;
  grant.active_senders = 0x1718;
  grant.effective_delay_us = 0x21222324;
  grant.unscheduled_budget = 0x31323334;
  grant.timestamp_echo_ns = 0x41424344;
  grant.receiver_hold_ns = 0x51525354;
  CHECK(hex(body_of(grant, flow, Opcode::grant)) ==
        "01020771"
        "01020304"
        "05060708"
        "090a0b0c"
        "111213141516"
        "1718"
        "21222324"
        "31323334"
        "41424344"
        "51525354");

  // Priority lies above the senders, which stop at 8191: more are not told of.
  for (const unsigned priority : {1U, 7U}) {
    grant.priority = static_cast<std::uint8_t>(priority);
    const std::string said = hex(body_of(grant, flow, Opcode::grant)).substr(44, 4);
    CHECK(said == (priority == 1 ? "3718" : "f718"));
  }
  grant.active_senders = 0xFFFF;
  grant.priority = 2;
  CHECK(hex(body_of(grant, flow, Opcode::grant)).substr(44, 4) == "5fff");
  grant.active_senders = 0x1718;
  grant.priority = 0;

  // Credit (eqds) is a bit of its own.
  grant.revoke = false;
  grant.credit = true;
  CHECK(hex(body_of(grant, flow, Opcode::grant)).substr(0, 8) == "01040771");
  grant.peer_count_hint = 31;
  CHECK(hex(body_of(grant, flow, Opcode::grant)).substr(0, 8) == "01fc0771");

  NoticeMessage notice;
  notice.feedback = 0x2A;
  notice.traffic_class = 3;
  notice.dest_qpn = 0x00A1B2C3;
  notice.excess_bytes = 0x0123 * kNoticeUnit + 63;
  notice.growth_bytes = -2 * kNoticeUnit;
  CHECK(hex(body_of(notice, flow, Opcode::notice)) ==
        "012a0300"
        "00a1b2c3"
        "0123fffe");
  notice.excess_bytes = 1'000'000'000;
  notice.growth_bytes = -1'000'000'000;
  CHECK(hex(body_of(notice, flow, Opcode::notice)).substr(16) == "7fff8001");
}

TEST_CASE("control: the peer-count hint is a number of peers, rounded up to a power of two") {
  CHECK(peer_count_hint_of(0) == 0);
  CHECK(peers_of(0) == 0);
  for (std::uint32_t peers = 1; peers < 5000; ++peers) {
    const std::uint32_t told = peers_of(peer_count_hint_of(peers));
    CAPTURE(peers);
    REQUIRE(told >= peers);
    REQUIRE(told < 2 * peers);
  }
  // It fits the wire, whatever the number.
  CHECK(peer_count_hint_of(0xFFFF'FFFF) == (1U << kPeerCountBits) - 1);
}

TEST_CASE("control: totals are modulo 2^48, demand is not") {
  RequestMessage m;
  m.sent_total = (std::uint64_t{5} << 48) | 17;
  m.unscheduled_total = (std::uint64_t{1} << 48) + 1;
  m.demand_bytes = (std::uint64_t{1} << 48) + 1;
  const auto body = body_of(m, test::plain_flow(), Opcode::request);
  RequestMessage again;
  REQUIRE(parse_control(body, again) == ParseError::ok);
  CHECK(again.sent_total == 17);
  CHECK(again.unscheduled_total == 1);
  CHECK(again.demand_bytes == kTotalMask);
  CHECK(extend_total(m.sent_total - 1000, again.sent_total) == m.sent_total);
}

TEST_CASE("control: unknown versions are refused before anything else is read") {
  const FlowAddressing flow = test::plain_flow();
  const auto request = body_of(RequestMessage{}, flow, Opcode::request);
  const auto grant = body_of(GrantMessage{}, flow, Opcode::grant);
  const auto hello = body_of(HelloMessage{}, flow, Opcode::hello);
  for (unsigned version = 0; version < 256; ++version) {
    const ParseError expected = version == 1 ? ParseError::ok : ParseError::control_version;
    CHECK(verdict<RequestMessage>(request, 0, version) == expected);
    CHECK(verdict<GrantMessage>(grant, 0, version) == expected);
    CHECK(verdict<HelloMessage>(hello, 0, version) == expected);
  }
  // A message of another version is rejected for its version, even if its length is unknown too.
  auto longer = grant;
  longer.resize(60);
  CHECK(verdict<GrantMessage>(longer, 0, 2) == ParseError::control_version);
}

TEST_CASE("control: lengths") {
  const FlowAddressing flow = test::plain_flow();
  const auto check = [](auto message, std::vector<std::byte> body, bool longer_is_fine) {
    for (std::size_t n = 0; n < body.size(); ++n) {
      REQUIRE(parse_control(std::span<const std::byte>(body).first(n), message) ==
              ParseError::control_length);
    }
    REQUIRE(parse_control(body, message) == ParseError::ok);
    body.resize(body.size() + 4);
    REQUIRE(parse_control(body, message) ==
            (longer_is_fine ? ParseError::ok : ParseError::control_length));
  };
  check(RequestMessage{}, body_of(RequestMessage{}, flow, Opcode::request), false);
  check(GrantMessage{}, body_of(GrantMessage{}, flow, Opcode::grant), false);
  // HELLO negotiates: a later version's must be readable.
  check(HelloMessage{}, body_of(HelloMessage{}, flow, Opcode::hello), true);
}

TEST_CASE("control: fields out of range, reserved bits ignored") {
  const FlowAddressing flow = test::plain_flow();
  const auto request = body_of(RequestMessage{}, flow, Opcode::request);
  const auto grant = body_of(GrantMessage{}, flow, Opcode::grant);
  const auto hello = body_of(HelloMessage{}, flow, Opcode::hello);
  CHECK(verdict<RequestMessage>(request, 2, 8) == ParseError::control_field);
  CHECK(verdict<RequestMessage>(request, 3, 3) == ParseError::control_field);
  CHECK(verdict<RequestMessage>(request, 42, 1) == ParseError::control_field);  // reserved
  CHECK(verdict<GrantMessage>(grant, 2, 255) == ParseError::control_field);
  CHECK(verdict<HelloMessage>(hello, 2, 8) == ParseError::control_field);
  CHECK(verdict<HelloMessage>(hello, 3, 3) == ParseError::control_field);
  CHECK(verdict<HelloMessage>(hello, 4, 0) == ParseError::control_field);  // version_min
  CHECK(verdict<HelloMessage>(hello, 5, 0) == ParseError::control_field);  // max below min
  CHECK(verdict<RequestMessage>(request, 1, 0xFC) == ParseError::ok);
  CHECK(verdict<RequestMessage>(request, 43, 0xFF) == ParseError::ok);
  CHECK(verdict<GrantMessage>(grant, 3, 0xFF) == ParseError::ok);
}

TEST_CASE("control: version negotiation") {
  HelloMessage theirs;
  const auto with = [&theirs](unsigned lo, unsigned hi) {
    theirs.version_min = static_cast<std::uint8_t>(lo);
    theirs.version_max = static_cast<std::uint8_t>(hi);
    return negotiate_version(theirs);
  };
  CHECK(with(1, 1) == std::uint8_t{1});
  CHECK(with(1, 9) == std::uint8_t{1});
  CHECK_FALSE(with(2, 9));
}

TEST_CASE("control: a notice says something, of a queue pair that there can be") {
  NoticeMessage notice;
  notice.feedback = 1;
  notice.traffic_class = 3;
  const auto body = body_of(notice, test::plain_flow(), Opcode::notice);
  using P = ParseError;
  CHECK(verdict<NoticeMessage>(body, 0, 1) == P::ok);
  CHECK(verdict<NoticeMessage>(body, 0, 2) == P::control_version);
  CHECK(verdict<NoticeMessage>(body, 1, 0) == P::control_field);
  CHECK(verdict<NoticeMessage>(body, 1, 63) == P::ok);
  CHECK(verdict<NoticeMessage>(body, 1, 64) == P::control_field);
  CHECK(verdict<NoticeMessage>(body, 2, 8) == P::control_field);
  CHECK(verdict<NoticeMessage>(body, 3, 0xFF) == P::ok);  // reserved
  CHECK(verdict<NoticeMessage>(body, 4, 1) == P::control_field);
  NoticeMessage out;
  CHECK(parse_control(std::span(body).first(8), out) == P::control_length);
}

}  // namespace paceline::wire
