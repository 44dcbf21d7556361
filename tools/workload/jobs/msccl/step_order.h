// The steps of all thread blocks of an MSCCL program, which send belongs to which receive, and what
// comes before what.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/workload/files/text_table.h"
#include "tools/workload/jobs/msccl/msccl_program.h"

namespace paceline::workload {

inline constexpr std::uint32_t kNoStep = 0xFFFF'FFFF;

struct OrderedStep {
  const MscclStep* step = nullptr;
  std::uint32_t gpu = 0;
  std::uint32_t block = 0;           // of the GPU, as they are in the file
  std::uint32_t index = 0;           // in the block
  std::uint32_t previous = kNoStep;  // in the block
  std::uint32_t depends = kNoStep;   // depid, deps
  std::uint32_t partner = kNoStep;   // of a receive: the step that sends it
  std::uint32_t receiver = kNoStep;  // of a send: the step that receives it
  // How many steps of each block of the GPU are before this one, or this one itself, by the order
  // of blocks and dependencies alone.
  std::array<std::uint8_t, kMostMscclBlocks> before = {};
};

// In an order in which each step comes behind all that it waits for.
class StepOrder {
 public:
  // Adds errors to `errors`.
  StepOrder(const MscclProgram& program, const std::string& source, TableErrors& errors);

  const std::vector<std::uint32_t>& order() const { return order_; }
  const OrderedStep& step(std::uint32_t number) const { return steps_[number]; }
  std::size_t size() const { return steps_.size(); }

 private:
  void wrong(const XmlPlace& place, const std::string& what);
  void collect();
  void depend(const MscclGpu& gpu, const std::vector<std::uint32_t>& first);
  void match();
  void sort();

  const MscclProgram& program_;
  const std::string& source_;
  TableErrors& errors_;
  std::vector<OrderedStep> steps_;
  std::vector<std::uint32_t> order_;
};

}  // namespace paceline::workload
