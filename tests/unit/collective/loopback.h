// The staging memories of a group of ranks, and what is on its way between them, in one process.
// Messages of a pair of ranks land in order, at any time; the receiver may see that one has landed
// later, and the sender may learn of it before or after that.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tools/collective/rank/rank_link.h"

namespace paceline::rank::loopback {

struct Message {
  std::uint64_t own_offset;
  std::uint64_t peer_offset;
  std::uint64_t bytes;
  std::uint32_t word;
};

// From one rank to another. What has landed is seen and acknowledged later.
struct Pair {
  std::deque<Message> posted;
  std::deque<std::uint32_t> not_seen;  // words
  std::deque<std::uint32_t> not_acknowledged;
};

class Network;

class LoopbackLink final : public RankLink {
 public:
  LoopbackLink(Network& network, std::uint32_t rank, std::uint64_t bytes)
      : network_(network), rank_(rank), memory_(bytes) {}

  std::byte* staging() override { return memory_.data(); }
  void write(const LinkRoute& to, std::uint64_t own_offset, std::uint64_t peer_offset,
             std::uint64_t bytes, std::uint32_t word) override;
  void tell(const LinkRoute& to, std::uint32_t word) override;
  void wait(std::vector<LinkEvent>& events, LinkWake, LinkTime) override { events.clear(); }

 private:
  Network& network_;
  std::uint32_t rank_;
  std::vector<std::byte> memory_;
};

class Network {
 public:
  Network(std::uint32_t ranks, std::uint64_t seed)
      : random_(seed), ranks_(ranks), pairs_(std::size_t{ranks} * ranks) {}

  LoopbackLink& add(std::uint64_t bytes) {
    links_.push_back(
        std::make_unique<LoopbackLink>(*this, static_cast<std::uint32_t>(links_.size()), bytes));
    return *links_.back();
  }

  Pair& pair(std::uint32_t from, std::uint32_t to) { return pairs_[from * ranks_ + to]; }

  std::vector<Message> written;  // by any rank, in their order

  bool idle() const {
    for (const Pair& p : pairs_) {
      if (!p.posted.empty() || !p.not_seen.empty() || !p.not_acknowledged.empty()) return false;
    }
    return true;
  }

  // Something happens. The rank that learns of it and what, if one does. `wakes` tells by what a
  // rank is woken: acknowledgements alone do not reach those that wait for an arrival.
  std::optional<std::pair<std::uint32_t, LinkEvent>> step(
      const std::function<LinkWake(std::uint32_t)>& wakes) {
    std::vector<std::pair<std::size_t, int>> possible;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (!pairs_[i].posted.empty()) possible.emplace_back(i, 0);
      if (!pairs_[i].not_seen.empty()) possible.emplace_back(i, 1);
      const bool woken = wakes(static_cast<std::uint32_t>(i / ranks_)) == LinkWake::any;
      if (woken && !pairs_[i].not_acknowledged.empty()) possible.emplace_back(i, 2);
    }
    if (possible.empty()) throw std::runtime_error("all ranks sleep, and nothing wakes one");
    const auto [at, what] = possible[random_.below(possible.size())];
    const auto from = static_cast<std::uint32_t>(at / ranks_);
    const auto to = static_cast<std::uint32_t>(at % ranks_);
    Pair& pair = pairs_[at];
    if (what == 0) {
      land(pair, from, to);
      return std::nullopt;
    }
    std::deque<std::uint32_t>& words = what == 1 ? pair.not_seen : pair.not_acknowledged;
    const std::uint32_t word = words.front();
    words.pop_front();
    if (what == 1) return std::pair(to, LinkEvent{true, from, word, 0});
    return std::pair(from, LinkEvent{false, to, word, 0});
  }

 private:
  void land(Pair& pair, std::uint32_t from, std::uint32_t to) {
    const Message message = pair.posted.front();
    pair.posted.pop_front();
    if (message.bytes > 0) {
      std::memcpy(links_[to]->staging() + message.peer_offset,
                  links_[from]->staging() + message.own_offset, message.bytes);
    }
    pair.not_seen.push_back(message.word);
    pair.not_acknowledged.push_back(message.word);
  }

  Random random_;
  std::uint32_t ranks_;
  std::vector<Pair> pairs_;
  std::vector<std::unique_ptr<LoopbackLink>> links_;
};

inline void LoopbackLink::write(const LinkRoute& to, std::uint64_t own_offset,
                                std::uint64_t peer_offset, std::uint64_t bytes,
                                std::uint32_t word) {
  const Message message{own_offset, peer_offset, bytes, word};
  network_.written.push_back(message);
  network_.pair(rank_, to.peer).posted.push_back(message);
}

inline void LoopbackLink::tell(const LinkRoute& to, std::uint32_t word) {
  network_.pair(rank_, to.peer).posted.push_back({0, 0, 0, word});
}

}  // namespace paceline::rank::loopback
