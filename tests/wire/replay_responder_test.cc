// The requester's side of every capture, replayed against our responder: it answers as rxe did,
// puts the data where it belongs and completes the receives. Where it answers otherwise, the table
// below says so, and why it may.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <sstream>

#include "tests/wire/replay.h"

namespace paceline::test {
namespace {

using namespace transport;
using wire::Operation;

// Where the two differ, answer by answer. Any other difference, and a listed one that does not
// show, fails. Clauses are those of the InfiniBand Architecture Specification, volume 1.
struct Difference {
  const char* capture;
  // rxe's packets in the file; of an answer that only we gave, its sequence number.
  std::vector<std::uint32_t> packets;
  const char* field;  // "answer": one of the two gave none
  const char* ours;
  const char* rxes;
  const char* reason;
};

// A repeated READ that asks for the rest has an address, length and PSN of its own (9.7.4.3.1): its
// responses are those of a READ, First to Last. rxe goes on with Middle; as a requester it takes
// either.
constexpr const char* kRepeatedRead = "responses to the rest begin with First";
// A response answers for its own request: the MSN that counts it (9.7.7.1). rxe tells its newest.
constexpr const char* kMsn = "the MSN of the READ that is answered again";
// 9.7.5.1.2: acknowledgements may be coalesced. The packet that ends the message asks for one.
constexpr const char* kDuplicate = "a duplicate is acknowledged if it asks for it";
// 9.7.5.2.8: what follows a refused packet is dropped. The requester goes back for it anyway.
constexpr const char* kBehindRnr = "no second refusal behind an RNR NAK";

const std::vector<Difference>& differences() {
  static const std::vector<Difference> all{
      {"ecn_ce", {0}, "answer", "CNP", "none", "A17.9.3: a receiver may notify; rxe never does"},
      {"loss_ack", {7785973}, "answer", "RC ACK", "none", "rxe's was lost ahead of the capture"},
      {"loss_read",
       {3718201, 3718203, 3718204, 3718211, 3718230},
       "answer",
       "RC READ Resp Middle",
       "none",
       "rxe's was lost ahead of the capture"},
      {"loss_read",
       {3718223, 3718239},
       "answer",
       "RC READ Resp Last",
       "none",
       "rxe's was lost ahead of the capture"},
      {"loss_read",
       {3718230},
       "answer",
       "RC READ Resp First",
       "none",
       "rxe's was lost ahead of the capture"},
      {"loss_read",
       {18, 42, 84},
       "opcode",
       "RC READ Resp First",
       "RC READ Resp Middle",
       kRepeatedRead},
      {"loss_read", {24}, "msn", "1", "2", kMsn},
      {"loss_read", {46}, "msn", "2", "3", kMsn},
      {"loss_read", {73, 85}, "msn", "4", "5", kMsn},
      {"reorder", {27, 49}, "answer", "none", "RC ACK", kDuplicate},
      {"retry_exceeded",
       {8071268, 8071268, 8071268, 8071268},
       "answer",
       "RC ACK",
       "none",
       "rxe's queue pair was gone; ours is there"},
      {"rnr_nak",
       {6, 12, 18, 24, 30, 36, 42, 48, 54, 60, 66, 72, 78, 84, 90, 96, 102, 108, 114, 120},
       "answer",
       "none",
       "RC NAK PSN_SEQ",
       kBehindRnr},
  };
  return all;
}

// The one WRITE that was refused although its key is right: it ends beyond the region.
constexpr const char* kPastEndCapture = "nak_access";
constexpr std::uint32_t kPastEndQpn = 0x15;

struct Answer {
  std::string label;
  wire::ParsedPacket parsed;
  std::vector<std::byte> payload;
  std::size_t number;  // in the file; 0: ours

  // The same answer, as far as the place in the sequence and what it delivers go.
  bool matches(const Answer& o) const {
    return parsed.properties.operation == o.parsed.properties.operation &&
           parsed.psn == o.parsed.psn && parsed.ext.aeth.kind() == o.parsed.ext.aeth.kind() &&
           parsed.ext.atomic_original == o.parsed.ext.atomic_original && payload == o.payload;
  }
};

Answer answer_of(const CapturedPacket& p, bool ours) {
  const auto payload = p.payload();
  return {label_of(p.parsed), p.parsed, {payload.begin(), payload.end()}, ours ? 0 : p.number};
}

std::string line(std::uint32_t at, const char* field, const std::string& ours,
                 const std::string& rxes) {
  return "at " + std::to_string(at) + ", " + field + ": ours " + ours + ", rxe's " + rxes + "\n";
}

// One line per difference, sorted. Answers are paired along a longest common subsequence.
std::vector<std::string> compare(const std::vector<Answer>& ours,
                                 const std::vector<Answer>& theirs) {
  const std::size_t n = ours.size();
  const std::size_t m = theirs.size();
  std::vector<std::vector<unsigned>> best(n + 1, std::vector<unsigned>(m + 1, 0));
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = m; j-- > 0;) {
      best[i][j] = ours[i].matches(theirs[j]) ? best[i + 1][j + 1] + 1
                                              : std::max(best[i + 1][j], best[i][j + 1]);
    }
  }
  std::vector<std::string> lines;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && ours[i].matches(theirs[j])) {
      const Answer& a = ours[i++];
      const Answer& b = theirs[j++];
      const auto at = static_cast<std::uint32_t>(b.number);
      if (a.label != b.label) lines.push_back(line(at, "opcode", a.label, b.label));
      const wire::Aeth x = a.parsed.ext.aeth;
      const wire::Aeth y = b.parsed.ext.aeth;
      if (!a.parsed.properties.has_aeth() || !b.parsed.properties.has_aeth()) continue;
      if (x.msn != y.msn) {
        lines.push_back(line(at, "msn", std::to_string(x.msn), std::to_string(y.msn)));
      }
      if (x.syndrome != y.syndrome) {
        lines.push_back(
            line(at, "syndrome", std::to_string(x.syndrome), std::to_string(y.syndrome)));
      }
    } else if (j == m || (i < n && best[i + 1][j] >= best[i][j + 1])) {
      lines.push_back(line(ours[i].parsed.psn.value(), "answer", ours[i].label, "none"));
      ++i;
    } else {
      const auto at = static_cast<std::uint32_t>(theirs[j].number);
      lines.push_back(line(at, "answer", "none", theirs[j].label));
      ++j;
    }
  }
  return lines;
}

// Memory under the captured keys, as it was at rxe before the conversation, as far as that shows.
struct Memory {
  std::uint64_t base = 0;
  std::vector<std::byte> bytes;

  std::span<std::byte> at(std::uint64_t address, std::size_t length) {
    return std::span(bytes).subspan(address - base, length);
  }
};

bool touches_memory(const Message& m) { return m.operation != Operation::send; }

std::uint64_t bytes_touched(const Message& m) {
  switch (m.operation) {
    case Operation::write:
      return m.data.size();
    case Operation::read_request:
      return m.length;
    default:
      return kAtomicBytes;
  }
}

class ResponderReplay {
 public:
  ResponderReplay(const std::string& capture, const Conversation& conversation)
      : conversation_(conversation), messages_(messages_of(conversation)) {
    QpConfig qp;
    for (const CapturedPacket& p : conversation.packets) {
      if (Conversation::is_request(p)) continue;
      if (p.parsed.ext.aeth.kind() == wire::AethKind::rnr_nak &&
          p.parsed.properties.operation == Operation::acknowledge) {
        qp.min_rnr_timer = p.parsed.ext.aeth.value();
      }
    }
    const bool past_end = capture == kPastEndCapture && conversation.qpn == kPastEndQpn;
    end_ = std::make_unique<ReplayEnd>(conversation.responder, conversation.requester,
                                       conversation.qpn, conversation.first_psn(), Psn(1), qp);
    make_memory(past_end);
    constexpr std::size_t kReceiveRoom = 1 << 16;
    received_.resize(messages_.size() * kReceiveRoom);
    end_->add_region(kReceiveKey, 0, received_);
    for (std::size_t i = 0; i < conversation.packets.size(); ++i) {
      const CapturedPacket& p = conversation.packets[i];
      if (!Conversation::is_request(p)) {
        theirs.push_back(answer_of(p, false));
        continue;
      }
      post_receives(i, kReceiveRoom);
      end_->feed(p, kLong);
      for (const CapturedPacket& sent : end_->take_sent()) ours.push_back(answer_of(sent, true));
    }
  }

  std::vector<Answer> ours, theirs;

  // What was accepted is where it belongs, and nothing else has changed; receives have completed.
  void check_effects() {
    for (const Message& m : messages_) {
      if (!m.complete || refused(m)) continue;
      if (m.operation == Operation::write && !m.data.empty()) {
        const auto to = expected_.at(m.rkey).at(m.address, m.data.size());
        std::copy(m.data.begin(), m.data.end(), to.begin());
      } else if (m.answered) {
        apply(m);
      }
    }
    for (auto& [key, memory] : memory_) CHECK(memory.bytes == expected_.at(key).bytes);

    const auto receipts = end_->completions(end_->receipts);
    std::size_t next = 0;
    for (const Message& m : messages_) {
      if (!m.takes_receive() || !m.complete || refused(m)) continue;
      REQUIRE(next < receipts.size());
      const Completion& c = receipts[next];
      CHECK(c.wr_id == next);
      CHECK(c.status == CompletionStatus::success);
      CHECK(c.bytes == m.data.size());
      CHECK(c.has_immediate == m.has_immediate);
      CHECK(c.immediate == m.immediate);
      const bool send = m.operation == Operation::send;
      CHECK(c.opcode == (send ? CompletionOpcode::receive : CompletionOpcode::receive_write_imm));
      if (send) {
        const auto at = received_.begin() + static_cast<std::ptrdiff_t>(next << 16);
        CHECK(std::equal(m.data.begin(), m.data.end(), at));
      }
      ++next;
    }
    CHECK(next == receipts.size());
  }

 private:
  static constexpr std::uint32_t kReceiveKey = 0xFFFF'0000;
  static constexpr Picos kLong = picos_from_micros(1000);

  // By an access NAK, or by a last RNR NAK.
  bool refused(const Message& m) const {
    const CapturedPacket& last = conversation_.packets.back();
    if (Conversation::is_request(last)) return false;
    return last.parsed.properties.operation == Operation::acknowledge &&
           !last.parsed.ext.aeth.is_ack() && distance(last.parsed.psn, m.first_psn) <= 0;
  }

  void apply(const Message& m) {
    const auto word = expected_.at(m.rkey).at(m.address, kAtomicBytes);
    std::uint64_t value;
    std::memcpy(&value, word.data(), sizeof value);
    if (m.operation == Operation::fetch_add) {
      value += m.atomic.swap_add;
    } else if (value == m.atomic.compare) {
      value = m.atomic.swap_add;
    }
    std::memcpy(word.data(), &value, sizeof value);
  }

  void make_memory(bool past_end) {
    std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> ranges;
    for (const Message& m : messages_) {
      if (!touches_memory(m) || bytes_touched(m) == 0 || (refused(m) && !past_end)) continue;
      std::uint64_t end = m.address + bytes_touched(m);
      if (past_end) end -= bytes_touched(m) / 2;
      const auto [at, fresh] = ranges.try_emplace(m.rkey, m.address, end);
      if (fresh) continue;
      at->second.first = std::min(at->second.first, m.address);
      at->second.second = std::max(at->second.second, end);
    }
    for (const auto& [key, range] : ranges) {
      Memory& memory = memory_[key];
      memory.base = range.first & ~std::uint64_t{7};
      memory.bytes.resize(range.second - memory.base);
    }
    // Backwards, so that of several the first counts.
    for (auto m = messages_.rbegin(); m != messages_.rend(); ++m) {
      if (m->operation == Operation::read_request && memory_.count(m->rkey) != 0) {
        const auto to = memory_[m->rkey].at(m->address, m->length);
        std::copy(m->data.begin(), m->data.end(), to.begin());
      } else if (m->answered) {
        std::memcpy(memory_[m->rkey].at(m->address, kAtomicBytes).data(), &m->original, 8);
      }
    }
    expected_ = memory_;
    for (auto& [key, memory] : memory_) end_->add_region(key, memory.base, memory.bytes);
  }

  // The application's receive requests, as late as it posted them: a message finds one unless rxe
  // answered that there was none.
  void post_receives(std::size_t at, std::size_t room) {
    const CapturedPacket& p = conversation_.packets[at];
    while (next_receive_ < messages_.size() && !messages_[next_receive_].takes_receive()) {
      ++next_receive_;
    }
    if (next_receive_ == messages_.size()) return;
    const Psn psn = messages_[next_receive_].receive_psn();
    if (p.parsed.psn != psn) return;
    for (std::size_t i = at + 1; i < conversation_.packets.size(); ++i) {
      const CapturedPacket& later = conversation_.packets[i];
      if (later.parsed.psn != psn) continue;
      if (Conversation::is_request(later)) break;
      if (later.parsed.ext.aeth.kind() == wire::AethKind::rnr_nak) return;
      break;
    }
    ReceiveRequest request;
    request.wr_id = posted_;
    request.address = posted_ * room;
    request.length = room;
    request.local_key = end_->key_of(kReceiveKey);
    REQUIRE(end_->receives.post(request));
    ++posted_;
    ++next_receive_;
  }

  const Conversation& conversation_;
  std::vector<Message> messages_;
  std::unique_ptr<ReplayEnd> end_;
  std::map<std::uint32_t, Memory> memory_;
  std::map<std::uint32_t, Memory> expected_;
  std::vector<std::byte> received_;
  std::size_t next_receive_ = 0;
  std::uint64_t posted_ = 0;
};

std::string joined(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& l : lines) text += l;
  return text;
}

}  // namespace

TEST_CASE("replay: our responder answers every captured requester as rxe did, or as listed") {
  std::size_t compared = 0;
  for (const std::string& capture : golden_captures()) {
    if (capture == "ud_send") continue;  // answers nothing: below
    std::vector<std::string> found;
    for (const Conversation& conversation : conversations_of(capture)) {
      INFO(capture << ", queue pair " << conversation.qpn);
      ResponderReplay replay(capture, conversation);
      for (std::string& l : compare(replay.ours, replay.theirs)) found.push_back(std::move(l));
      compared += replay.theirs.size();
      replay.check_effects();
    }
    std::vector<std::string> listed;
    for (const Difference& d : differences()) {
      if (capture != d.capture) continue;
      for (const std::uint32_t at : d.packets) listed.push_back(line(at, d.field, d.ours, d.rxes));
    }
    INFO(capture);
    CHECK(joined(found) == joined(listed));
  }
  CHECK(compared == 306);
}

}  // namespace paceline::test
