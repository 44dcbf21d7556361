#include "dataplane/driver/traffic/message_app.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace paceline {

namespace {

using transport::Completion;
using transport::CompletionOpcode;
using transport::CompletionStatus;
using transport::PostResult;
using transport::WorkOpcode;
using transport::WorkRequest;

constexpr std::uint64_t kPieceBytes = PlanIndex::kPieceBytes;
// Upper bounds on posted receive requests (for messages with immediate data) and on queued
// completions. A host that needs fewer has smaller queues, which are most of an idle host's memory.
constexpr std::uint64_t kReceives = 256;
constexpr std::uint64_t kCompletions = 1 << 10;
constexpr std::uint64_t kPieceFlag = std::uint64_t{1} << 63;  // wr_id: not the last piece

}  // namespace

std::vector<MessageRecord> fresh_records(const MessagePlan& plan) {
  std::vector<MessageRecord> records(plan.messages.size());
  for (std::uint32_t id = 0; id < records.size(); ++id) {
    if (plan.messages[id].after != kNoMessage) records[id].waits = 1;
  }
  for (const Join& join : plan.joins) ++records[join.message].waits;
  return records;
}

MessageApp::MessageApp(std::uint32_t host, const MessagePlan& plan, const PlanIndex& index,
                       std::vector<MessageRecord>& records, transport::Engine& engine,
                       Connector& connector, transport::MemoryProvider* memory)
    : completions_(std::min(kCompletions, index.posts(host) + index.announced(host))),
      host_(host),
      plan_(plan),
      records_(records),
      engine_(engine),
      connector_(connector),
      receives_(std::min(kReceives, index.announced(host))),
      own_(index.own(host)),
      dependants_(index.dependants(host)),
      receives_wanted_(static_cast<std::uint32_t>(std::min(kReceives, index.announced(host)))),
      planned_(index.planned(host)),
      limits_(plan.limits ? std::make_unique<SenderLimits>() : nullptr) {
  constexpr std::uint8_t kAccess = transport::access::local_write | transport::access::remote_write;
  transport::RegionTable& regions = engine_.regions();
  region_ = memory == nullptr ? regions.add_elided(0, kRegionBytes, kAccess)
                              : regions.add_provided(0, kRegionBytes, *memory, kAccess);
  find_next_start();
  replenish();
}

void MessageApp::replenish() {
  while (receives_posted_ < receives_wanted_) {
    transport::ReceiveRequest request;
    request.length = kRegionBytes;
    request.local_key = region_;
    if (!receives_.post(request)) break;
    ++receives_posted_;
  }
}

std::uint32_t MessageApp::open(Picos now, const PlannedMessage& message) {
  if (message.lane == kNoMessage) {
    std::vector<std::uint32_t>& pool = pools_[message.dst];
    for (const std::uint32_t lane : pool) {
      if (lanes_[lane].busy) continue;
      engine_.restart_congestion(now, lanes_[lane].qp);
      lanes_[lane].busy = true;
      return lane;
    }
    const auto lane = static_cast<std::uint32_t>(lanes_.size());
    lanes_.emplace_back();
    lanes_[lane].qp = connector_.connect(now, message);
    lanes_[lane].busy = true;
    lane_of_qp_[lanes_[lane].qp] = lane;
    pools_[message.dst].push_back(lane);
    return lane;
  }
  const std::uint64_t key = std::uint64_t{message.dst} << 32 | message.lane;
  const auto [it, created] =
      lane_index_.try_emplace(key, static_cast<std::uint32_t>(lanes_.size()));
  if (created) {
    lanes_.emplace_back();
    lanes_.back().qp = connector_.connect(now, message);
    lane_of_qp_[lanes_.back().qp] = it->second;
  }
  return it->second;
}

void MessageApp::start(Picos now, std::uint32_t id) {
  const PlannedMessage& message = plan_.messages[id];
  records_[id].ready = now;
  if (message.computes) {
    due_.push({now + computing_time(plan_, message, now), id});
    return;
  }
  if (message.nvlink) {
    due_.push({connector_.carry(now, id), id});
    return;
  }
  const std::uint32_t lane = open(now, message);
  if (limits_ != nullptr) limits_->begin(id, engine_.view().limiter_picos(now, lanes_[lane].qp));
  lanes_[lane].waiting.push(id);
  feed(now, lane);
}

// Posts as much as the send queue takes. True when something was posted.
bool MessageApp::feed(Picos now, std::uint32_t index) {
  Lane& lane = lanes_[index];
  bool any = false;
  while (lane.message != kNoMessage || !lane.waiting.empty()) {
    if (lane.message == kNoMessage) {
      lane.message = lane.waiting.front();
      lane.waiting.pop();
      lane.posted = 0;
    }
    const std::uint32_t id = lane.message;
    const PlannedMessage& message = plan_.messages[id];
    const std::uint64_t rest = message.bytes - lane.posted;
    const bool last = rest <= kPieceBytes;
    WorkRequest request;
    request.wr_id = id | (last ? 0 : kPieceFlag);
    request.opcode = last && message.notify ? WorkOpcode::write_imm : WorkOpcode::write;
    request.immediate = id;
    request.length = last ? rest : kPieceBytes;
    request.local_key = region_;
    request.remote_key = region_;
    request.local_address = (std::uint64_t{id} << 31) + lane.posted;
    request.remote_address = request.local_address;
    request.hint.job = message.job;
    request.hint.collective = message.collective;
    request.hint.degree = message.hint_degree;
    request.hint.kind = message.hint_kind;
    const PostResult result = engine_.post_send(now, lane.qp, request);
    if (result == PostResult::queue_full) break;
    if (result != PostResult::ok) {
      finish(now, id, true);
      lane.busy = false;
      lane.message = kNoMessage;
      continue;
    }
    any = true;
    posted_ = true;
    ++lane.outstanding;
    lane.posted += request.length;
    if (last) lane.message = kNoMessage;
  }
  return any;
}

void MessageApp::finish(Picos now, std::uint32_t id, bool failed) {
  MessageRecord& record = records_[id];
  record.completed = now;
  record.failed = failed;
  ++finished_;
  newly_finished_.push_back(id);
  if (plan_.messages[id].notify_sender && !failed) release(now, id);
}

// Message `id` has arrived or is complete: messages that waited only for it begin.
void MessageApp::release(Picos now, std::uint32_t id) {
  auto it = std::lower_bound(dependants_.begin(), dependants_.end(), std::pair{id, 0U});
  for (; it != dependants_.end() && it->first == id; ++it) {
    if (--records_[it->second].waits != 0) continue;
    const PlannedMessage& message = plan_.messages[it->second];
    const Picos gap = message.computes ? Picos{0} : message.gap;
    due_.push({later(message.start, now + gap), it->second});
  }
}

void MessageApp::take_completions(Picos now) {
  std::array<Completion, 16> batch;
  std::size_t n;
  while ((n = completions_.poll(batch)) != 0) {
    for (std::size_t i = 0; i < n; ++i) {
      const Completion& c = batch[i];
      const bool failed = c.status != CompletionStatus::success;
      if (c.opcode == CompletionOpcode::receive ||
          c.opcode == CompletionOpcode::receive_write_imm) {
        --receives_posted_;
        if (!failed && c.has_immediate) release(now, c.immediate);
        continue;
      }
      const std::uint32_t lane = lane_of_qp_.at(c.qp_number);
      --lanes_[lane].outstanding;
      const auto id = static_cast<std::uint32_t>(c.wr_id);
      if ((c.wr_id & kPieceFlag) == 0) {
        if (limits_ != nullptr) {
          limits_->end(id, plan_.messages[id].collective,
                       engine_.view().limiter_picos(now, c.qp_number));
        }
        finish(now, id, failed);
        lanes_[lane].busy = false;
      }
      feed(now, lane);
    }
    replenish();
  }
}

bool MessageApp::poll(Picos now) {
  posted_ = false;
  if (!completions_.empty()) take_completions(now);
  while (next_own_ < own_.size() && plan_.messages[own_[next_own_]].start <= now) {
    start(now, own_[next_own_++]);
  }
  while (!due_.empty() && due_.top().at <= now) {
    const std::uint32_t id = due_.top().message;
    due_.pop();
    if (plan_.messages[id].src != host_) {
      release(now, id);
    } else if (records_[id].ready.count < 0) {
      start(now, id);
    } else {
      finish(now, id, false);  // over NVLink, or computed
    }
  }
  find_next_start();
  return posted_;
}

void MessageApp::find_next_start() {
  next_start_ = kNever;
  if (next_own_ < own_.size()) next_start_ = plan_.messages[own_[next_own_]].start;
  if (!due_.empty()) next_start_ = earlier(next_start_, due_.top().at);
}

}  // namespace paceline
