// The states of a connection's end: what it sends and what it tells, step by step.
#include <catch2/catch.hpp>

#include <cerrno>

#include "dataplane/service/cm/states/connection.h"
#include "dataplane/service/cm/states/lookup.h"

namespace paceline::service::cm {

namespace {

using State = Connection::State;
constexpr Nanos kStart{1'000};
constexpr std::int64_t kPatience = std::int64_t{4096} << Connection::kResponseTimeout;

struct Ends {
  Connection active{0xA, 1, 100};
  Connection passive{0xB, 2, 200};
  Mad request{};

  Ends() {
    Actions out;
    Offer offer;
    offer.qp_number = 17;
    offer.responder_resources = 3;
    offer.initiator_depth = 5;
    offer.retry_count = 7;
    offer.rnr_retry_count = 6;
    REQUIRE(active.connect(kStart, offer, {}, out) == 0);
    REQUIRE(out.send.size() == 1);
    request = out.send.front();
    REQUIRE(passive.take_request(request) == 0);
  }
  Mad accept() {
    Actions out;
    Offer offer;
    offer.qp_number = 18;
    offer.responder_resources = 5;
    offer.initiator_depth = 3;
    offer.rnr_retry_count = 4;
    REQUIRE(passive.accept(kStart, offer, out) == 0);
    REQUIRE(out.send.size() == 1);
    return out.send.front();
  }
  // The RTU.
  Mad confirm() {
    const Mad rep = accept();
    Actions out;
    active.receive(kStart, rep, out);
    REQUIRE(out.notices.size() == 1);
    REQUIRE(out.notices.front().kind == NoticeKind::response);
    out = {};
    REQUIRE(active.confirm(out) == 0);
    return out.send.front();
  }
  void establish() {
    Actions out;
    passive.receive(kStart, confirm(), out);
    REQUIRE(out.notices.size() == 1);
    REQUIRE(out.notices.front().kind == NoticeKind::established);
    REQUIRE(active.state() == State::established);
    REQUIRE(passive.state() == State::established);
  }
};

// The only message, and no notice.
Mad only_message(const Actions& out) {
  REQUIRE(out.send.size() == 1);
  REQUIRE(out.notices.empty());
  return out.send.front();
}
Notice only_notice(const Actions& out) {
  REQUIRE(out.send.empty());
  REQUIRE(out.notices.size() == 1);
  return out.notices.front();
}

}  // namespace

TEST_CASE("two ends agree on queue pairs, PSNs and depths") {
  Ends ends;
  REQUIRE(ends.active.state() == State::req_sent);
  REQUIRE_FALSE(ends.active.knows_peer());
  REQUIRE(ends.passive.knows_peer());
  ends.establish();
  const Agreed& a = ends.active.agreed();
  const Agreed& p = ends.passive.agreed();
  REQUIRE((a.remote_qp == 18 && p.remote_qp == 17));
  REQUIRE((a.receive_psn == 100 && p.send_psn == 100));
  REQUIRE((p.receive_psn == 200 && a.send_psn == 200));
  REQUIRE((a.initiator_depth == 5 && p.responder_resources == 5));
  REQUIRE((a.responder_resources == 3 && p.initiator_depth == 3));
  REQUIRE((a.rnr_retry_count == 4 && p.rnr_retry_count == 6));
  REQUIRE(ends.active.deadline().count == kNeverNanos.count);
  REQUIRE(ends.passive.deadline().count == kNeverNanos.count);
}

TEST_CASE("a disconnect is answered when the program answers, and both ends wait") {
  Ends ends;
  ends.establish();
  Actions out;
  REQUIRE(ends.active.disconnect(kStart, out) == 0);
  const Mad dreq = only_message(out);
  REQUIRE((dreq.attribute == Attribute::dreq && dreq.qp_number == 18));
  out = {};
  ends.passive.receive(kStart, dreq, out);
  REQUIRE(only_notice(out).kind == NoticeKind::disconnected);
  out = {};
  REQUIRE(ends.passive.disconnect(kStart, out) == 0);
  const Mad drep = only_message(out);
  out = {};
  ends.active.receive(kStart, drep, out);
  REQUIRE(only_notice(out).kind == NoticeKind::disconnected);
  for (Connection* end : {&ends.active, &ends.passive}) {
    REQUIRE(end->state() == State::timewait);
    out = {};
    end->expire(Nanos{end->deadline().count - 1}, out);
    REQUIRE(out.notices.empty());
    end->expire(end->deadline(), out);
    REQUIRE(only_notice(out).kind == NoticeKind::timewait_over);
    REQUIRE(end->disconnect(kStart, out) == EINVAL);
  }
}

TEST_CASE("both ends disconnect at once: each is told once") {
  Ends ends;
  ends.establish();
  Actions a;
  Actions p;
  ends.active.disconnect(kStart, a);
  ends.passive.disconnect(kStart, p);
  Actions out;
  ends.passive.receive(kStart, a.send.front(), out);
  ends.active.receive(kStart, p.send.front(), out);
  REQUIRE(out.notices.size() == 2);
  REQUIRE(out.send.size() == 2);
  for (const Mad& drep : out.send) REQUIRE(drep.attribute == Attribute::drep);
  const std::size_t told = out.notices.size();
  ends.active.receive(kStart, out.send.front(), out);
  REQUIRE(out.notices.size() == told);
}

TEST_CASE("a message without an answer is sent again, and then given up") {
  Ends ends;
  Actions out;
  std::int64_t now = kStart.count;
  for (int i = 0; i < Connection::kMostRetries; ++i) {
    REQUIRE(ends.active.deadline().count == now + kPatience);
    now += kPatience;
    out = {};
    ends.active.expire({now}, out);
    REQUIRE(only_message(out) == ends.request);
  }
  out = {};
  ends.active.expire({now + kPatience}, out);
  REQUIRE(out.notices.size() == 1);
  REQUIRE(out.notices.front().kind == NoticeKind::unreachable);
  REQUIRE(out.notices.front().status == -ETIMEDOUT);
  REQUIRE(out.send.front().reason == reject_reason::timeout);
  REQUIRE(ends.active.state() == State::idle);
}

TEST_CASE("who takes its time says so when it is asked again") {
  Ends ends;
  Actions out;
  ends.passive.receive(kStart, ends.request, out);
  const Mad mra = only_message(out);
  REQUIRE((mra.attribute == Attribute::mra && mra.about == About::req));
  out = {};
  ends.active.receive(kStart, mra, out);
  REQUIRE(out.send.empty());
  REQUIRE(ends.active.deadline().count ==
          kStart.count + (std::int64_t{4096} << mra.service_timeout));
}

TEST_CASE("lost answers are sent again when the question is") {
  Ends ends;
  const Mad rep = ends.accept();
  Actions out;
  ends.passive.receive(kStart, ends.request, out);
  REQUIRE(only_message(out) == rep);
  out = {};
  ends.active.receive(kStart, rep, out);
  ends.active.receive(kStart, rep, out);  // the program has not answered yet
  REQUIRE(only_notice(out).kind == NoticeKind::response);
  out = {};
  ends.active.confirm(out);
  const Mad rtu = only_message(out);
  out = {};
  ends.active.receive(kStart, rep, out);
  REQUIRE(only_message(out) == rtu);
  // A DREP, too.
  out = {};
  ends.passive.receive(kStart, rtu, out);
  ends.passive.disconnect(kStart, out);
  const Mad dreq = out.send.back();
  ends.active.receive(kStart, dreq, out);
  ends.active.disconnect(kStart, out);
  const Mad drep = out.send.back();
  out = {};
  ends.active.receive(kStart, dreq, out);
  REQUIRE(only_message(out) == drep);
}

TEST_CASE("a rejection carries its reason and words, and ends either side") {
  Ends ends;
  const std::byte word[] = {std::byte{'n'}, std::byte{'o'}};
  Actions out;
  REQUIRE(ends.passive.reject(reject_reason::consumer_defined, word, out) == 0);
  const Mad rej = only_message(out);
  REQUIRE((rej.about == About::req && rej.remote_id == 0xA));
  out = {};
  REQUIRE(ends.passive.reject(reject_reason::consumer_defined, word, out) == EINVAL);
  ends.active.receive(kStart, rej, out);
  const Notice told = only_notice(out);
  REQUIRE((told.kind == NoticeKind::rejected && told.status == 28));
  REQUIRE(told.cause.private_data[1] == std::byte{'o'});
  REQUIRE(ends.active.state() == State::idle);
  REQUIRE_FALSE(ends.active.under_way());
}

TEST_CASE("an end that goes leaves nobody waiting") {
  SECTION("before the answer") {
    Ends ends;
    Actions out;
    ends.active.end(kStart, out);
    REQUIRE(only_message(out).reason == reject_reason::timeout);
  }
  SECTION("asked") {
    Ends ends;
    Actions out;
    ends.passive.end(kStart, out);
    REQUIRE(only_message(out).reason == reject_reason::consumer_defined);
  }
  SECTION("connected") {
    Ends ends;
    ends.establish();
    Actions out;
    ends.passive.end(kStart, out);
    const Mad dreq = only_message(out);
    out = {};
    ends.active.receive(kStart, dreq, out);
    REQUIRE(only_notice(out).kind == NoticeKind::disconnected);
    out = {};
    ends.active.end(kStart, out);
    REQUIRE(only_message(out).attribute == Attribute::drep);
  }
}

TEST_CASE("what the state does not allow is EINVAL, and changes nothing") {
  Connection fresh(1, 1, 1);
  Actions out;
  REQUIRE(fresh.accept(kStart, {}, out) == EINVAL);
  REQUIRE(fresh.confirm(out) == EINVAL);
  REQUIRE(fresh.reject(28, {}, out) == EINVAL);
  REQUIRE(fresh.disconnect(kStart, out) == EINVAL);
  REQUIRE(fresh.data_has_come(out) == EINVAL);
  Ends ends;
  REQUIRE(ends.active.connect(kStart, {}, {}, out) == EINVAL);
  REQUIRE(ends.active.accept(kStart, {}, out) == EINVAL);
  REQUIRE(ends.passive.take_request(ends.request) == EINVAL);
  REQUIRE(out.send.empty());
  REQUIRE(out.notices.empty());
}

TEST_CASE("data before the RTU establishes the connection") {
  Ends ends;
  const Mad rtu = ends.confirm();
  Actions out;
  REQUIRE(ends.passive.data_has_come(out) == 0);
  REQUIRE(only_notice(out).kind == NoticeKind::established);
  out = {};
  REQUIRE(ends.passive.data_has_come(out) == EISCONN);
  ends.passive.receive(kStart, rtu, out);
  REQUIRE(out.notices.empty());
}

TEST_CASE("a lookup asks again until it is answered") {
  Lookup lookup;
  Actions out;
  lookup.ask(kStart, {}, out);
  const Mad asked = only_message(out);
  REQUIRE(asked.attribute == Attribute::sidr_req);
  out = {};
  REQUIRE_FALSE(lookup.expire({kStart.count + kPatience}, out));
  REQUIRE(only_message(out) == asked);
  Mad answer;
  answer.attribute = Attribute::sidr_rep;
  REQUIRE(lookup.receive(answer));
  REQUIRE_FALSE(lookup.receive(answer));
  REQUIRE(lookup.deadline().count == kNeverNanos.count);
}

}  // namespace paceline::service::cm
