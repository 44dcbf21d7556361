#include "tools/workload/jobs/msccl/msccl_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tools/workload/jobs/msccl/step_order.h"

namespace paceline::workload {

namespace {

constexpr std::size_t kMostPieces = std::size_t{1} << 22;
constexpr std::size_t kMostScheduleWaits = std::size_t{1} << 24;

// Chunks of a buffer of a rank.
struct Range {
  ScheduleBuffer buffer = ScheduleBuffer::result;
  std::uint32_t first = 0;
  bool operator==(const Range&) const = default;
};

using TransferList = std::vector<std::uint32_t>;

class ScheduleMaker {
 public:
  ScheduleMaker(const MscclProgram& program, const std::string& source, TableErrors& errors)
      : program_(program),
        source_(source),
        errors_(errors),
        steps_(program, source, errors),
        done_(steps_.size()),
        landing_(program.gpus.size()) {}

  Schedule make() {
    const auto ranks = static_cast<std::uint32_t>(program_.gpus.size());
    out_.op = program_.op;
    out_.ranks = ranks;
    out_.blocks = program_.chunks;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      landing_[rank] = program_.gpus[rank].chunks[2];
    }
    for (const std::uint32_t number : steps_.order()) {
      if (!errors_.empty()) return {};
      step(number);
    }
    for (const std::uint32_t places : landing_) out_.scratch = std::max(out_.scratch, places);
    return std::move(out_);
  }

 private:
  // The results of steps.
  struct Done {
    TransferList ends;       // all of them at an end: so is the step, but for what it sends
    std::uint32_t sent = 0;  // of a send: the transfer to its receiver
    Range landed;            // of a send: where, at the receiver
  };
  struct PendingSend {
    std::uint32_t step = 0;
    std::uint32_t transfer = 0;
  };

  void step(std::uint32_t number) {
    const OrderedStep& at = steps_.step(number);
    const MscclAction& action = *at.step->action;
    TransferList ends = ends_before(at);
    now_ = &at;
    Range last = range(at.step->target);
    if (action.receives) {
      last = receive(at, ends);
    } else if (action.writes) {
      move(range(at.step->source), last, action.sums, ends);
    } else if (action.reads) {
      last = range(at.step->source);
    }
    if (action.sends) send(number, last, ends);
    done_[number].ends = std::move(ends);
  }

  TransferList ends_before(const OrderedStep& at) const {
    TransferList out;
    for (const std::uint32_t other : {at.previous, at.depends}) {
      if (other == kNoStep) continue;
      out.insert(out.end(), done_[other].ends.begin(), done_[other].ends.end());
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  // Where received data is in the end. `ends`: what the step waits for, then what it ends with.
  Range receive(const OrderedStep& at, TransferList& ends) {
    const MscclAction& action = *at.step->action;
    const Done& sent = done_[at.partner];
    const Range landed = sent.landed;
    const Range source = range(at.step->source);
    const Range target = range(at.step->target);
    ends.push_back(sent.sent);
    if (!action.sums) {
      if (landed != target) move(landed, target, false, ends);
      return target;
    }
    if (action.writes && source == target) {
      move(landed, target, true, ends);
      return target;
    }
    move(source, landed, true, ends);
    if (!action.writes) return landed;
    move(landed, target, false, ends);
    return target;
  }

  // A transfer within the rank that waits for `ends` and, itself alone, takes their place. It also
  // waits for sends that come before it and read what it writes.
  void move(const Range& source, const Range& target, bool sum, TransferList& ends) {
    if (source == target && !sum) return;
    TransferList waits = ends;
    for (std::uint32_t i = 0; i < now_->step->chunks; ++i) {
      const auto pending = pending_.find(key(now_->gpu, target, i));
      if (pending == pending_.end()) continue;
      for (const auto& [reader, transfer] : pending->second) {
        const OrderedStep& other = steps_.step(reader);
        if (now_->before[other.block] > other.index) waits.push_back(transfer);
      }
    }
    ends = {transfer(now_->gpu, now_->gpu, source, target, sum, waits)};
  }

  void send(std::uint32_t number, const Range& source, const TransferList& ends) {
    const OrderedStep& receiver = steps_.step(now_->receiver);
    const bool at_once = receiver.step->action->name == "r" && receiver.previous == kNoStep &&
                         receiver.depends == kNoStep;
    Range target{ScheduleBuffer::scratch, landing_[receiver.gpu]};
    if (at_once) {
      target = range_of(receiver.gpu, receiver.step->target);
    } else {
      landing_[receiver.gpu] += now_->step->chunks;
    }
    Done& done = done_[number];
    done.landed = target;
    done.sent = transfer(now_->gpu, receiver.gpu, source, target, false, ends);
    for (std::uint32_t i = 0; i < now_->step->chunks; ++i) {
      pending_[key(now_->gpu, source, i)].push_back({number, done.sent});
    }
  }

  std::uint32_t transfer(std::uint32_t from, std::uint32_t to, const Range& source,
                         const Range& target, bool sum, TransferList waits) {
    std::sort(waits.begin(), waits.end());
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    Transfer out;
    out.from = from;
    out.to = to;
    out.sum = sum;
    out.first_piece = static_cast<std::uint32_t>(out_.pieces.size());
    out.pieces = now_->step->chunks;
    out.first_wait = static_cast<std::uint32_t>(out_.waits.size());
    out.waits = static_cast<std::uint32_t>(waits.size());
    if (out_.pieces.size() + out.pieces > kMostPieces ||
        out_.waits.size() + waits.size() > kMostScheduleWaits) {
      wrong(fmt::format("more than {} chunks moved or {} dependencies", kMostPieces,
                        kMostScheduleWaits));
      return 0;
    }
    out_.waits.insert(out_.waits.end(), waits.begin(), waits.end());
    std::vector<std::uint32_t> blocks(out.pieces);
    for (std::uint32_t i = 0; i < out.pieces; ++i) {
      if (!block_at(from, source, i, blocks[i])) return 0;
    }
    for (std::uint32_t i = 0; i < out.pieces; ++i) {
      if (!put(to, target, i, blocks[i], sum)) return 0;
      out_.pieces.push_back(
          {blocks[i], source.first + i, target.first + i, source.buffer, target.buffer});
    }
    out_.transfers.push_back(out);
    return static_cast<std::uint32_t>(out_.transfers.size()) - 1;
  }

  // The block whose size the chunk at a place has.
  bool block_at(std::uint32_t rank, const Range& range, std::uint32_t i, std::uint32_t& block) {
    block = range.first + i;
    if (range.buffer == ScheduleBuffer::scratch) {
      const auto held = held_.find(key(rank, range, i));
      if (held == held_.end()) {
        wrong(fmt::format("reads chunk {} of s, which holds nothing", block));
        return false;
      }
      block = held->second;
    } else if (program_.op == CollectiveOp::all_to_all && range.buffer == ScheduleBuffer::result) {
      block = rank;
    }
    return true;
  }

  bool put(std::uint32_t rank, const Range& range, std::uint32_t i, std::uint32_t block, bool sum) {
    if (range.buffer == ScheduleBuffer::scratch && !sum) {
      held_[key(rank, range, i)] = block;
      return true;
    }
    std::uint32_t there = 0;
    if (!block_at(rank, range, i, there)) return false;
    if (there == block) return true;
    wrong(
        fmt::format("puts chunk {} where chunk {} belongs, which may be shorter: expected s as "
                    "its place",
                    block, there));
    return false;
  }

  static std::uint64_t key(std::uint32_t rank, const Range& range, std::uint32_t i) {
    return std::uint64_t{rank} << 34 | static_cast<std::uint64_t>(range.buffer) << 32 |
           (range.first + i);
  }

  Range range(const MscclPlace& place) const { return range_of(now_->gpu, place); }

  Range range_of(std::uint32_t rank, const MscclPlace& place) const {
    if (place.buffer == MscclBuffer::scratch) return {ScheduleBuffer::scratch, place.chunk};
    const std::uint32_t part = program_.chunks / out_.ranks;
    const bool input = place.buffer == MscclBuffer::input;
    if (program_.op == CollectiveOp::all_to_all && input) {
      return {ScheduleBuffer::input, place.chunk};
    }
    const bool own_part =
        program_.op == (input ? CollectiveOp::all_gather : CollectiveOp::reduce_scatter);
    return {ScheduleBuffer::result, place.chunk + (own_part ? rank * part : 0)};
  }

  void wrong(const std::string& what) {
    const XmlPlace& place = now_->step->place;
    errors_.add({source_, place.line, place.column}, what);
  }

  const MscclProgram& program_;
  const std::string& source_;
  TableErrors& errors_;
  StepOrder steps_;
  Schedule out_;
  std::vector<Done> done_;                                 // by step
  std::vector<std::uint32_t> landing_;                     // places of scratch in use, by rank
  const OrderedStep* now_ = nullptr;                       // the step that is being made
  std::unordered_map<std::uint64_t, std::uint32_t> held_;  // blocks in scratch, by key
  std::unordered_map<std::uint64_t, std::vector<PendingSend>> pending_;  // by what they read
};

}  // namespace

Schedule make_msccl_schedule(const MscclProgram& program, const std::string& source,
                             TableErrors& errors) {
  return ScheduleMaker(program, source, errors).make();
}

}  // namespace paceline::workload
