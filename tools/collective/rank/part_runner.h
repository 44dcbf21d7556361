// Runs a collective operation at one rank: its transfers, part by part, over a link.
//
// A transfer is read into a slot of the sender's staging memory when it begins, written to its slot
// at the receiver, and copied from there into the receiver's buffers. So buffers are read and
// written when the schedule says so, whatever the network still does. If InPlace says that no other
// transfer can interfere, and the pieces follow one another in memory, the transfer is sent from
// the buffers, or lands in them.
//
// A rank has `window` parts in progress. It begins part p when it has ended part p - window: it has
// received everything, and everything that it sent is acknowledged. Parts end in any order. The
// rank then tells its senders, because they write into the same slots; a part ends after these
// messages are acknowledged. The first `window` parts need no message: all ranks have ended the
// operation before.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tools/collective/rank/collective_data.h"
#include "tools/collective/rank/in_place.h"
#include "tools/collective/rank/part_cut.h"
#include "tools/collective/rank/rank_link.h"
#include "tools/collective/rank/slot_layout.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::rank {

inline constexpr std::uint32_t kMostWindow = 64;
inline constexpr std::uint32_t kMostTransfers = 1U << 24;

class PartRunner {
 public:
  PartRunner(const workload::Schedule& schedule, const PartCut& cut, const SlotLayout& layout,
             const InPlace& in_place, std::uint32_t rank, std::uint32_t window);

  // Every rank must have ended the operation before. Throws RankError.
  void run(CollectiveData& data, RankLink& link);

  // The same step by step: begin, then every event of the link, until it is done.
  void begin(CollectiveData& data, RankLink& link);
  void take(const LinkEvent& event);
  // What ends a sleep. While transfers are due, acknowledgements can wait for the next transfer:
  // they end a part and release its slots, which are not needed before all parts in progress
  // continue.
  LinkWake wakes_by() const;
  bool done() const { return ended_ == cut_.parts(); }

  // What the operation waits for, for a report that it is stuck.
  std::string waits_for() const;

 private:
  struct Begun {
    std::uint64_t part = 0;
    std::uint32_t unfinished = 0;      // arrivals and acknowledgements
    std::vector<std::uint32_t> waits;  // by transfer: what it still waits for
    std::vector<bool> finished;        // by transfer: arrived or acknowledged here
  };
  struct Step {
    std::uint32_t slot;
    std::uint32_t transfer;
  };

  void list_transfers();
  void list_waiters();
  void begin_part(std::uint64_t part);
  void end_part(std::uint32_t slot);
  void begin_ready();
  void begin_transfer(const Step& step);
  void send_transfer(const Step& step);
  // Where it lands in the receiver's buffers, if it lands there.
  std::optional<std::uint64_t> landing(std::uint32_t transfer, std::uint64_t part) const;
  void handle_transfer(const LinkEvent& event, const Step& step);
  void handle_word(const LinkEvent& event, std::uint32_t slot);
  void finish(const Step& step);
  void count_finished(std::uint32_t slot);

  const workload::Schedule& schedule_;
  const PartCut& cut_;
  const SlotLayout& layout_;
  const InPlace& in_place_;
  std::uint32_t rank_;
  std::uint32_t window_;
  CollectiveData* data_ = nullptr;  // of run()
  RankLink* link_ = nullptr;
  std::vector<std::uint32_t> own_;           // transfers that this rank sends
  std::vector<std::uint32_t> senders_;       // peers that send to it
  std::uint32_t finishes_ = 0;               // of a part: arrivals and acknowledgements
  std::uint32_t arrivals_ = 0;               // of a part
  std::uint64_t due_ = 0;                    // arrivals of the parts in progress
  bool sends_wait_for_sends_ = false;        // so acknowledgements release transfers
  std::vector<std::uint32_t> first_waiter_;  // by transfer, into waiters_
  std::vector<std::uint32_t> waiters_;       // own transfers that wait for it
  std::vector<Begun> begun_;                 // by slot
  std::deque<Step> ready_;
  std::vector<std::vector<Step>> not_cleared_;       // by peer
  std::vector<std::vector<std::uint64_t>> cleared_;  // by peer and slot: parts that may be sent
  std::uint64_t ended_ = 0;                          // parts
};

}  // namespace paceline::rank
