#include "tools/workload/jobs/msccl/step_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "tools/workload/jobs/issue_order.h"

namespace paceline::workload {

StepOrder::StepOrder(const MscclProgram& program, const std::string& source, TableErrors& errors)
    : program_(program), source_(source), errors_(errors) {
  collect();
  match();
  if (errors_.empty()) sort();
}

void StepOrder::wrong(const XmlPlace& place, const std::string& what) {
  errors_.add({source_, place.line, place.column}, what);
}

void StepOrder::collect() {
  for (std::uint32_t rank = 0; rank < program_.gpus.size(); ++rank) {
    const MscclGpu& gpu = program_.gpus[rank];
    std::vector<std::uint32_t> first(kMostMscclBlocks, kNoStep);  // step of a block, by its id
    for (std::uint32_t block = 0; block < gpu.blocks.size(); ++block) {
      first[gpu.blocks[block].id] = static_cast<std::uint32_t>(steps_.size());
      for (std::uint32_t i = 0; i < gpu.blocks[block].steps.size(); ++i) {
        OrderedStep& out = steps_.emplace_back();
        out.step = &gpu.blocks[block].steps[i];
        out.gpu = rank;
        out.block = block;
        out.index = i;
        if (i != 0) out.previous = static_cast<std::uint32_t>(steps_.size()) - 2;
      }
    }
    depend(gpu, first);
  }
}

void StepOrder::depend(const MscclGpu& gpu, const std::vector<std::uint32_t>& first) {
  for (const MscclBlock& block : gpu.blocks) {
    for (std::uint32_t i = 0; i < block.steps.size(); ++i) {
      const MscclStep& step = block.steps[i];
      if (step.depends_block < 0) continue;
      const auto id = static_cast<std::uint32_t>(step.depends_block);
      const auto other = std::find_if(gpu.blocks.begin(), gpu.blocks.end(),
                                      [id](const MscclBlock& b) { return b.id == id; });
      const auto index = static_cast<std::uint32_t>(step.depends_step);
      if (other == gpu.blocks.end() || index >= other->steps.size()) {
        wrong(step.place,
              fmt::format("waits for step {} of tb {}, which this GPU does not have", index, id));
        continue;
      }
      steps_[first[block.id] + i].depends = first[id] + index;
    }
  }
}

// In the order of the steps, for each pair of GPUs and channel.
void StepOrder::match() {
  using Connection = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  struct Ends {
    std::vector<std::uint32_t> steps;
    std::uint32_t block = kNoStep;
  };
  std::map<Connection, Ends> sends, receives;
  const auto add = [&](std::map<Connection, Ends>& ends, const Connection& connection,
                       std::uint32_t number) {
    const OrderedStep& step = steps_[number];
    Ends& of = ends[connection];
    if (of.block != kNoStep && of.block != step.block) {
      wrong(step.step->place,
            fmt::format("another thread block uses this connection, {} to {} on channel {}",
                        std::get<0>(connection), std::get<1>(connection), std::get<2>(connection)));
    }
    of.block = step.block;
    of.steps.push_back(number);
  };
  for (std::uint32_t number = 0; number < steps_.size(); ++number) {
    const OrderedStep& at = steps_[number];
    const MscclBlock& block = program_.gpus[at.gpu].blocks[at.block];
    if (at.step->action->sends) {
      add(sends, {at.gpu, static_cast<std::uint32_t>(block.send), block.channel}, number);
    }
    if (at.step->action->receives) {
      add(receives, {static_cast<std::uint32_t>(block.receive), at.gpu, block.channel}, number);
    }
  }
  for (const auto& [connection, of] : sends) {
    const auto& to = receives[connection].steps;
    for (std::size_t i = 0; i < of.steps.size(); ++i) {
      OrderedStep& send = steps_[of.steps[i]];
      if (i >= to.size()) {
        wrong(send.step->place, fmt::format("GPU {} has no step on channel {} that receives this",
                                            std::get<1>(connection), std::get<2>(connection)));
        continue;
      }
      OrderedStep& receive = steps_[to[i]];
      send.receiver = to[i];
      receive.partner = of.steps[i];
      if (send.step->chunks != receive.step->chunks) {
        wrong(receive.step->place,
              fmt::format("cnt = {}: expected {}, as in the step that sends this, in line {}",
                          receive.step->chunks, send.step->chunks, send.step->place.line));
      }
    }
  }
  for (const auto& [connection, of] : receives) {
    for (const std::uint32_t number : of.steps) {
      if (steps_[number].partner != kNoStep) continue;
      wrong(steps_[number].step->place,
            fmt::format("GPU {} has no step on channel {} that sends this", std::get<0>(connection),
                        std::get<2>(connection)));
    }
  }
}

void StepOrder::sort() {
  std::vector<OpPair> waits;
  const auto count = static_cast<std::uint32_t>(steps_.size());
  for (std::uint32_t number = 0; number < count; ++number) {
    const OrderedStep& at = steps_[number];
    for (const std::uint32_t other : {at.previous, at.depends, at.partner}) {
      if (other != kNoStep) waits.emplace_back(number, other);
    }
  }
  sort_once(waits);
  order_ = issue_order(count, waits);
  if (order_.size() != count) {
    const std::vector<std::uint32_t> circle = find_circle(count, waits, order_);
    wrong(steps_[circle[0]].step->place,
          fmt::format("this step waits for itself, by way of that of line {}",
                      steps_[circle[1 % circle.size()]].step->place.line));
    return;
  }
  for (const std::uint32_t number : order_) {
    OrderedStep& at = steps_[number];
    for (const std::uint32_t other : {at.previous, at.depends}) {
      if (other == kNoStep) continue;
      for (std::size_t b = 0; b < kMostMscclBlocks; ++b) {
        at.before[b] = std::max(at.before[b], steps_[other].before[b]);
      }
    }
    at.before[at.block] = static_cast<std::uint8_t>(at.index + 1);
  }
}

}  // namespace paceline::workload
