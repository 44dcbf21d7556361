// Links between the ranks of a plan, in virtual time: messages of a channel land, are seen and are
// acknowledged in order, each after a random time.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <queue>
#include <tuple>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/base/units.h"
#include "tools/collective/rank/rank_link.h"

namespace paceline::rank::delays {

enum class Step : std::uint8_t { lands, is_seen, is_acknowledged };

struct Event {
  Picos at{0};
  std::uint64_t number = 0;  // ties go by it
  Step step = Step::lands;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint64_t channel = 0;
  std::uint64_t own_offset = 0;
  std::uint64_t peer_offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t word = 0;

  friend bool operator>(const Event& a, const Event& b) {
    return std::tuple(a.at, a.number) > std::tuple(b.at, b.number);
  }
};

class Network {
 public:
  Network(std::uint64_t seed, Picos longest) : random_(seed), longest_(longest) {}

  RankLink& add(std::uint64_t bytes) {
    links_.push_back(
        std::make_unique<Link>(*this, static_cast<std::uint32_t>(links_.size()), bytes));
    return *links_.back();
  }

  Picos next() const { return events_.empty() ? kNever : events_.top().at; }

  // The next event, which is now. What has landed is in the receiver's memory.
  Event take() {
    const Event event = events_.top();
    events_.pop();
    now = event.at;
    if (event.step == Step::lands) {
      if (event.bytes > 0) {
        std::memcpy(links_[event.to]->staging() + event.peer_offset,
                    links_[event.from]->staging() + event.own_offset, event.bytes);
      }
      schedule(event, Step::is_seen);
      schedule(event, Step::is_acknowledged);
    }
    return event;
  }

  Picos now{0};
  std::vector<Event> posted;  // in their order

 private:
  class Link final : public RankLink {
   public:
    Link(Network& network, std::uint32_t rank, std::uint64_t bytes)
        : network_(network), rank_(rank), memory_(bytes) {}

    std::byte* staging() override { return memory_.data(); }
    void write(const LinkRoute& to, std::uint64_t own_offset, std::uint64_t peer_offset,
               std::uint64_t bytes, std::uint32_t word) override {
      network_.post({network_.now, 0, Step::lands, rank_, to.peer, to.channel, own_offset,
                     peer_offset, static_cast<std::uint32_t>(bytes), word});
    }
    void tell(const LinkRoute&, std::uint32_t) override {}
    void wait(std::vector<LinkEvent>& events, LinkWake, LinkTime) override { events.clear(); }

   private:
    Network& network_;
    std::uint32_t rank_;
    std::vector<std::byte> memory_;
  };

  void post(const Event& event) {
    posted.push_back(event);
    schedule(event, Step::lands);
  }

  void schedule(Event event, Step step) {
    Picos& last = last_[{event.from, event.to, event.channel, step}];
    const auto delay =
        static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(longest_.count)));
    last = later(last, now + Picos{delay});
    event.at = last;
    event.step = step;
    event.number = scheduled_++;
    events_.push(event);
  }

  Random random_;
  Picos longest_;
  std::vector<std::unique_ptr<Link>> links_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, Step>, Picos> last_;
  std::uint64_t scheduled_ = 0;
};

}  // namespace paceline::rank::delays
