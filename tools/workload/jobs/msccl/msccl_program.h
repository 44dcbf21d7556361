// The content of an MSCCL file, checked by itself: numbers, counts, bounds of buffers and names of
// steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/workload/files/text_table.h"
#include "tools/workload/jobs/msccl/xml_elements.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::workload {

// Limits of RCCL's runtime.
inline constexpr std::size_t kMostMscclBlocks = 64;  // thread blocks of a GPU
inline constexpr std::size_t kMostMscclSteps = 64;   // of a thread block

enum class MscclBuffer : std::uint8_t { input, output, scratch };

struct MscclPlace {
  MscclBuffer buffer = MscclBuffer::input;
  std::uint32_t chunk = 0;
};

// What a step does, by its type, in this order.
struct MscclAction {
  std::string_view name;
  bool receives = false;
  bool reads = false;   // its source
  bool writes = false;  // its destination
  bool sums = false;
  bool sends = false;
};

struct MscclStep {
  const MscclAction* action = nullptr;
  MscclPlace source;
  MscclPlace target;
  std::uint32_t chunks = 0;
  std::int64_t depends_block = -1;  // an id; -1: none
  std::int64_t depends_step = -1;
  XmlPlace place;
};

struct MscclBlock {
  std::uint32_t id = 0;
  std::int64_t send = -1;  // peers; -1: none
  std::int64_t receive = -1;
  std::uint32_t channel = 0;
  std::vector<MscclStep> steps;
  XmlPlace place;
};

struct MscclGpu {
  std::uint32_t chunks[3] = {};  // of each buffer
  std::vector<MscclBlock> blocks;
  bool given = false;
};

struct MscclProgram {
  std::string name;
  CollectiveOp op = CollectiveOp::all_reduce;
  std::uint32_t chunks = 0;  // of the whole buffer
  std::uint32_t channels = 0;
  std::uint64_t min_bytes = 0;
  std::uint64_t max_bytes = UINT64_MAX;
  std::vector<MscclGpu> gpus;
};

// Adds errors to `errors`.
MscclProgram parse_msccl_program(std::string_view text, const std::string& source,
                                 TableErrors& errors);

}  // namespace paceline::workload
