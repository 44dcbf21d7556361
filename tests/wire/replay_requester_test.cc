// The responder's side of every capture, replayed against our requester: given the work requests
// that the captured packets add up to, and the answers that rxe gave, it sends the packets that
// rxe sent, byte for byte from the IP header on, but for the fields named in kOurOwn. Where it
// sends others, the table below says so, and why.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <string_view>

#include "tests/wire/replay.h"

namespace paceline::test {
namespace {

using namespace transport;
using wire::Operation;

// What belongs to the sender of a packet and not to the request: bytes of the headers, counted
// from the IPv4 header on. The ICRC, which covers most of them, is verified instead.
struct Field {
  std::size_t at, bytes;
  unsigned mask;  // of each byte
  const char* what;
};
constexpr Field kOurOwn[] = {
    {1, 1, 0xFF,
     "type of service: we send DSCP 26 and ECT(0), the captures 0 or what a queue made of it"},
    {4, 2, 0xFF, "identification: ours is 0, as of all that may not be fragmented (RFC 6864)"},
    {10, 2, 0xFF, "header checksum"},
    {20, 2, 0xFF, "UDP source port: the path's entropy"},
    {29, 1, 0x40, "M bit of the BTH: ours says migrated (17.2.8), rxe leaves it 0"},
};

constexpr std::size_t kAckRequestAt = 20 + 8 + 8;

// How the captured requester had been set up, where it is not by default.
struct Setup {
  const char* capture;
  std::uint8_t retry_count, rnr_retry;
};
constexpr Setup kSetups[] = {
    {"rnr_exceeded", 7, 2},
    {"retry_exceeded", 3, 7},
};

// Captures in which the order of packets depends on when an answer was taken notice of.
struct RequestDifference {
  std::string_view capture;
  std::size_t only_ours, only_rxes;  // packets beyond the common ones
  const char* reason;
};
constexpr RequestDifference kRequestDifferences[] = {
    {"loss_read", 1, 1,
     "a READ is asked for again when the first response beyond the gap comes; rxe had the next "
     "READ "
     "out by then"},
    {"loss_write", 28, 28,
     "packets lost ahead of the capture are missing from rxe's; every NAK goes back at once, rxe "
     "waits for its timer after the first"},
    {"reorder", 14, 14, "rxe's packets were captured in another order than they were sent in"},
    {"rnr_nak", 2, 2,
     "an RNR NAK stops what follows at once; one reached rxe (packet 104) with two packets on "
     "their way out"},
};

// The frame from the IP header to the pad, without what is each sender's own.
std::vector<std::byte> comparable(const CapturedPacket& p) {
  const auto begin = p.frame.begin() + p.parsed.l3_offset;
  const std::size_t end = p.parsed.header_bytes + p.parsed.padded_bytes();
  std::vector<std::byte> bytes(begin, p.frame.begin() + static_cast<std::ptrdiff_t>(end));
  for (const Field& field : kOurOwn) {
    for (std::size_t i = 0; i < field.bytes; ++i) {
      bytes[field.at + i] &= static_cast<std::byte>(~field.mask);
    }
  }
  // Whether a packet that does not end a message asks for an acknowledgement is the requester's
  // choice (9.7.5.1.2): check_requests_for_acks.
  if (!p.parsed.properties.ends_message()) bytes[kAckRequestAt] &= std::byte{0x7F};
  return bytes;
}

std::string first_difference(const CapturedPacket& ours, const CapturedPacket& theirs) {
  const auto a = comparable(ours);
  const auto b = comparable(theirs);
  const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return label_of(ours.parsed) + " psn " + std::to_string(ours.parsed.psn.value()) + " against " +
         label_of(theirs.parsed) + " psn " + std::to_string(theirs.parsed.psn.value()) +
         " (packet " + std::to_string(theirs.number) + "), byte " +
         std::to_string(at.first - a.begin());
}

WorkOpcode opcode_of(const Message& m) {
  switch (m.operation) {
    case Operation::write:
      return m.has_immediate ? WorkOpcode::write_imm : WorkOpcode::write;
    case Operation::read_request:
      return WorkOpcode::read;
    case Operation::fetch_add:
      return WorkOpcode::fetch_add;
    case Operation::compare_swap:
      return WorkOpcode::compare_swap;
    default:
      return m.has_immediate ? WorkOpcode::send_imm : WorkOpcode::send;
  }
}

class RequesterReplay {
 public:
  RequesterReplay(const std::string& capture, const Conversation& conversation)
      : messages_(messages_of(conversation)) {
    QpConfig qp;
    for (const Setup& setup : kSetups) {
      if (capture != setup.capture) continue;
      qp.retry_count = setup.retry_count;
      qp.rnr_retry = setup.rnr_retry;
    }
    end_ = std::make_unique<ReplayEnd>(conversation.requester, conversation.responder,
                                       conversation.qpn, Psn(1), conversation.first_psn(), qp);
    memory_.resize(messages_.size() << kRoomShift);
    end_->add_region(kLocalKey, 0, memory_);
    for (std::size_t i = 0; i < messages_.size(); ++i) post(i);
    end_->touch();
    for (const CapturedPacket& p : conversation.packets) {
      take();
      if (!Conversation::is_request(p)) {
        end_->feed(p);
        continue;
      }
      theirs.push_back(&p);
      while (ours.size() < theirs.size() && end_->step()) take();
    }
    take();
    // Nothing more is to come but a last timer.
    while (end_->step()) take();
  }

  // Packets that both sent, in order, are the same; how many only one of them sent.
  std::size_t common() {
    const std::size_t n = ours.size();
    const std::size_t m = theirs.size();
    std::vector<std::vector<std::byte>> a(n), b(m);
    for (std::size_t i = 0; i < n; ++i) a[i] = comparable(ours[i]);
    for (std::size_t j = 0; j < m; ++j) b[j] = comparable(*theirs[j]);
    std::vector<std::vector<std::size_t>> best(n + 1, std::vector<std::size_t>(m + 1, 0));
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t j = m; j-- > 0;) {
        best[i][j] =
            a[i] == b[j] ? best[i + 1][j + 1] + 1 : std::max(best[i + 1][j], best[i][j + 1]);
      }
    }
    return best[0][0];
  }

  // rxe asks for acknowledgements at the end of messages. So do we here, and with the first packet
  // of a queue pair besides (a round trip is measured early), and with the first one sent again.
  void check_requests_for_acks(std::size_t most) const {
    const auto early = [](const CapturedPacket& p) {
      return p.parsed.ack_request && !p.parsed.properties.ends_message();
    };
    for (const CapturedPacket* p : theirs) CHECK(!early(*p));
    CHECK(static_cast<std::size_t>(std::count_if(ours.begin(), ours.end(), early)) <= most);
    for (const CapturedPacket& p : ours) {
      if (p.parsed.properties.ends_message()) CHECK(p.parsed.ack_request);
    }
  }

  // Every request completed, with the result that rxe's answers gave it.
  void check_completions(CompletionStatus last) {
    const auto done = end_->completions(end_->sends);
    REQUIRE(done.size() == messages_.size());
    for (std::size_t i = 0; i < done.size(); ++i) {
      const Message& m = messages_[i];
      INFO("message " << i);
      CHECK(done[i].wr_id == i);
      CHECK(done[i].status == (i + 1 == done.size() ? last : CompletionStatus::success));
      CHECK(done[i].opcode == completion_opcode(opcode_of(m)));
      if (done[i].status != CompletionStatus::success) continue;
      const auto at = memory_.begin() + static_cast<std::ptrdiff_t>(i << kRoomShift);
      if (m.operation == Operation::read_request) {
        CHECK(std::equal(m.data.begin(), m.data.end(), at));
      } else if (m.answered) {
        std::uint64_t original;
        std::memcpy(&original, &*at, sizeof original);
        CHECK(original == m.original);
      }
    }
  }

  std::vector<CapturedPacket> ours;
  std::vector<const CapturedPacket*> theirs;

 private:
  static constexpr unsigned kRoomShift = 17;
  static constexpr std::uint32_t kLocalKey = 1;

  void post(std::size_t i) {
    const Message& m = messages_[i];
    WorkRequest request;
    request.wr_id = i;
    request.opcode = opcode_of(m);
    request.immediate = m.immediate;
    request.solicited = m.solicited;
    request.local_key = end_->key_of(kLocalKey);
    request.local_address = i << kRoomShift;
    request.remote_address = m.address;
    request.remote_key = m.rkey;
    request.compare = m.atomic.compare;
    request.swap_add = m.atomic.swap_add;
    request.length = is_atomic(request.opcode)                ? kAtomicBytes
                     : m.operation == Operation::read_request ? m.length
                                                              : m.data.size();
    REQUIRE(request.length <= std::size_t{1} << kRoomShift);
    if (!expects_response(request.opcode)) {
      std::copy(m.data.begin(), m.data.end(),
                memory_.begin() + static_cast<std::ptrdiff_t>(i << kRoomShift));
    }
    REQUIRE(end_->engine().post_send(end_->now(), end_->qp(), request) == PostResult::ok);
  }

  void take() {
    for (CapturedPacket& p : end_->take_sent()) {
      if (Conversation::is_request(p)) ours.push_back(std::move(p));
    }
  }

  std::vector<Message> messages_;
  std::unique_ptr<ReplayEnd> end_;
  std::vector<std::byte> memory_;
};

CompletionStatus end_of(const std::string& capture) {
  if (capture == "rnr_exceeded") return CompletionStatus::rnr_retry_exceeded;
  if (capture == "retry_exceeded") return CompletionStatus::retry_exceeded;
  if (capture == "nak_access") return CompletionStatus::remote_access_error;
  return CompletionStatus::success;
}

}  // namespace

TEST_CASE("replay: our requester sends what every captured one sent, or differs as listed") {
  std::size_t compared = 0;
  for (const std::string& capture : golden_captures()) {
    if (capture == "ud_send") continue;  // below
    const auto* listed =
        std::find_if(std::begin(kRequestDifferences), std::end(kRequestDifferences),
                     [&](const RequestDifference& d) { return capture == d.capture; });
    const bool known = listed != std::end(kRequestDifferences);
    std::size_t only_ours = 0;
    std::size_t only_rxes = 0;
    std::string first;
    for (const Conversation& conversation : conversations_of(capture)) {
      INFO(capture << ", queue pair " << conversation.qpn);
      RequesterReplay replay(capture, conversation);
      const std::size_t common = replay.common();
      only_ours += replay.ours.size() - common;
      only_rxes += replay.theirs.size() - common;
      compared += common;
      for (std::size_t i = 0; i < replay.ours.size() && i < replay.theirs.size(); ++i) {
        if (!first.empty() || comparable(replay.ours[i]) == comparable(*replay.theirs[i])) continue;
        first = first_difference(replay.ours[i], *replay.theirs[i]);
      }
      replay.check_requests_for_acks(1 + (known ? replay.ours.size() : 0));
      replay.check_completions(end_of(capture));
    }
    INFO(capture << ": " << first);
    CHECK(only_ours == (known ? listed->only_ours : 0));
    CHECK(only_rxes == (known ? listed->only_rxes : 0));
  }
  CHECK(compared == 455);
}

}  // namespace paceline::test
