// The window of a selective-repeat requester, alone.
#include "dataplane/transport/state/selective/sent_window.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint32_t kSize = 64;
constexpr std::uint32_t kFirst = 0xFF'FFB0;  // numbers wrap soon

// The model: every sequence number ever sent, by its distance from the first, each with what is
// known of it; all counts and marks are counted again for each question.
struct Model {
  struct Number {
    PacketFate fate = PacketFate::settled;
    std::uint32_t takes = 0;  // of a request's first: sequence numbers; 0: none of its own
    bool request = false;
    bool answer = false;
    bool ends = false;
    bool done = false;
    bool late = false;
  };
  std::vector<Number> numbers;
  std::uint32_t oldest = 0;
  std::uint32_t accepted = 0;  // the peer expects this one
  std::uint32_t arrived = 0;   // one past the highest

  std::uint32_t next() const { return static_cast<std::uint32_t>(numbers.size()); }
  std::uint32_t lost() const {
    return static_cast<std::uint32_t>(std::count_if(
        numbers.begin(), numbers.end(), [](const auto& n) { return n.fate == PacketFate::lost; }));
  }
  std::uint32_t late() const {
    return static_cast<std::uint32_t>(std::count_if(
        numbers.begin() + oldest, numbers.end(), [](const auto& n) { return n.late && !n.done; }));
  }
  void arrive(std::uint32_t i) {
    arrived = std::max(arrived, i + 1);
    if (numbers[i].fate == PacketFate::settled) return;
    numbers[i].fate = PacketFate::settled;
    if (!numbers[i].request) numbers[i].done = true;
  }
};

Psn psn_of(std::uint32_t i) { return Psn(kFirst) + i; }

SentPacket packet_of(const Model::Number& n, std::uint32_t step) {
  return {picos_from_nanos(step), 100, n.request ? n.takes : 64, 0xC000,
          n.request ? sent_flag::request : std::uint8_t{0}};
}

TEST_CASE("sent window: any order of sending, losing, arriving and answering, against a model",
          "[transport]") {
  const auto seed = GENERATE(1U, 2U, 3U, 4U, 5U, 6U);
  CAPTURE(seed);
  Random random(seed);
  SentWindow window(kSize);
  SendPosition position;
  position.start(psn_of(0), 0);
  window.start(psn_of(0));
  Model model;
  std::uint32_t answered_requests = 0;
  std::uint32_t ended = 0;
  for (std::uint32_t step = 0; step < 10'000; ++step) {
    CAPTURE(step);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random.below(n)); };
    const std::uint32_t kept = model.next() - model.oldest;
    // Often one of the oldest, that the window moves on.
    const std::uint32_t i = model.oldest + below(std::max(1U, std::min(kept, 1U << below(8))));
    switch (below(kept == 0 ? 1 : 8)) {
      case 0:
      case 1: {  // a packet leaves, or a request for some answers
        const std::uint32_t takes = below(3) == 0 ? 1 + below(4) : 0;
        if (kept + std::max(takes, 1U) > kSize) break;
        Model::Number n;
        n.fate = PacketFate::flying;
        n.request = n.answer = takes != 0;
        n.takes = takes;
        n.ends = takes == 1;
        window.send(psn_of(model.next()), packet_of(n, step));
        takes == 0 ? position.sent(true) : position.asked(takes, true);
        model.numbers.push_back(n);
        for (std::uint32_t k = 1; k < takes; ++k) {
          Model::Number more;
          more.answer = true;
          more.ends = k + 1 == takes;
          model.numbers.push_back(more);
        }
        break;
      }
      case 2: {  // it has arrived
        Model::Number& n = model.numbers[i];
        if (n.answer && !n.request) break;
        REQUIRE(window.deliver(psn_of(i)) == n.fate);
        model.arrive(i);
        break;
      }
      case 3: {  // it is lost, an atomic perhaps when it was accepted: only its result is missing
        Model::Number& n = model.numbers[i];
        if (n.answer && (!n.request || n.done || (i < model.accepted && n.takes != 1))) break;
        if (!n.answer && i < model.accepted) break;
        REQUIRE(window.lose(psn_of(i)) == n.fate);
        n.fate = PacketFate::lost;
        n.done = false;
        break;
      }
      case 4: {  // what is lost goes again
        if (model.lost() == 0) break;
        std::uint32_t oldest = model.oldest;
        while (model.numbers[oldest].fate != PacketFate::lost) ++oldest;
        REQUIRE(window.oldest_lost() == psn_of(oldest));
        window.send(psn_of(oldest), packet_of(model.numbers[oldest], step));
        model.numbers[oldest].fate = PacketFate::flying;
        REQUIRE(window.at(psn_of(oldest)).has(sent_flag::again));
        break;
      }
      case 5: {  // the peer has everything until here
        std::uint32_t end = i + 1;
        while (model.numbers[end - 1].answer && !model.numbers[end - 1].ends) ++end;
        if (end < model.accepted) break;
        std::vector<std::uint32_t> told;
        window.accept_before(position.oldest(), psn_of(end), [&](Psn psn) {
          told.push_back(static_cast<std::uint32_t>(distance(psn, psn_of(0))));
          window.deliver(psn);
        });
        std::vector<std::uint32_t> news;
        for (std::uint32_t k = model.accepted; k < end; ++k) {
          if (model.numbers[k].answer && !model.numbers[k].request) continue;
          news.push_back(k);
          model.arrive(k);
        }
        REQUIRE(told == news);
        model.accepted = end;
        model.arrived = std::max(model.arrived, end);
        break;
      }
      case 6: {  // an answer is here, and so should be those before it
        Model::Number& n = model.numbers[i];
        if (!n.answer || n.done || i >= model.accepted) break;
        if (n.request && n.fate != PacketFate::settled) {
          REQUIRE(window.deliver(psn_of(i)) == n.fate);
          model.arrive(i);
        }
        window.answer(psn_of(i));
        n.done = true;
        const std::uint32_t late = model.late();
        for (std::uint32_t k = model.oldest; k < i; ++k) model.numbers[k].late = true;
        REQUIRE(window.expect_answers(psn_of(i + 1), picos_from_nanos(step)) ==
                (model.late() != late));
        break;
      }
      default:
        for (; model.oldest < model.accepted && model.numbers[model.oldest].done; ++model.oldest) {
          if (model.numbers[model.oldest].ends) ++answered_requests;
        }
        ended += window.retire(position);
        REQUIRE(position.oldest() == psn_of(model.oldest));
        REQUIRE(ended == answered_requests);
    }
    REQUIRE(window.lost() == model.lost());
    REQUIRE(window.missing() == model.late());
    REQUIRE(window.peer_expected() == psn_of(model.accepted));
    REQUIRE(window.highest() == psn_of(model.arrived));
    REQUIRE(window.adds_up());
    std::vector<std::uint32_t> flying;
    const std::uint32_t from = model.oldest + below(kSize);
    const std::uint32_t end = std::min(model.next(), model.oldest + below(kSize));
    window.each_flying(psn_of(from), psn_of(end), [&](Psn psn, const SentPacket&) {
      flying.push_back(static_cast<std::uint32_t>(distance(psn, psn_of(0))));
    });
    std::vector<std::uint32_t> expected;
    for (std::uint32_t k = from; k < end; ++k) {
      if (model.numbers[k].fate == PacketFate::flying) expected.push_back(k);
    }
    REQUIRE(flying == expected);
  }
  CHECK(model.oldest > 4 * kSize);
}

TEST_CASE("sent window: as many numbers as it has room for, from the oldest on", "[transport]") {
  SentWindow window(kSize);
  SendPosition position;
  position.start(Psn(5), 0);
  window.start(Psn(5));
  for (std::uint32_t i = 0; i < kSize + 3; ++i) position.sent(true);
  CHECK(window.within(Psn(5), Psn(9)) == Psn(9));
  CHECK(window.within(Psn(5), Psn(5) + kSize) == Psn(5) + kSize);
  CHECK(window.within(Psn(5), Psn(6) + kSize) == Psn(5) + kSize);
  CHECK_FALSE(window.keeps(position, Psn(4)));
  CHECK(window.keeps(position, Psn(5)));
  CHECK(window.keeps(position, Psn(4) + kSize));
  CHECK_FALSE(window.keeps(position, Psn(5) + kSize));
}

TEST_CASE("sent window: when an answer was asked for, and that it was asked for twice",
          "[transport]") {
  SentWindow window(kSize);
  window.start(Psn(0));
  window.send(Psn(0), {picos_from_nanos(1), 100, 3, 0, sent_flag::request});
  CHECK(window.end_of_request(Psn(0)) == Psn(3));
  window.accept_before(Psn(0), Psn(3), [&](Psn psn) { window.deliver(psn); });
  window.answer(Psn(2));
  CHECK(window.expect_answers(Psn(3), picos_from_nanos(5)));
  CHECK_FALSE(window.expect_answers(Psn(3), picos_from_nanos(6)));
  CHECK(window.missing() == 2);
  CHECK(window.at(Psn(1)).sent_at == picos_from_nanos(5));
  window.ask(Psn(1), picos_from_nanos(7));
  CHECK_FALSE(window.at(Psn(1)).has(sent_flag::again));
  window.asked(Psn(0), 2, picos_from_nanos(8));
  CHECK(window.at(Psn(0)).sent_at == picos_from_nanos(8));
  CHECK(window.at(Psn(1)).sent_at == picos_from_nanos(8));
  window.ask(Psn(1), picos_from_nanos(9));
  CHECK(window.at(Psn(1)).has(sent_flag::again));
}

}  // namespace
}  // namespace paceline::transport::test
