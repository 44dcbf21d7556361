// Traces of an inference service, a request a line: Mooncake's JSON lines, with the blocks of the
// prompt, and the CSV files of the Azure LLM traces.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/workload/jobs/imported.h"

namespace paceline::workload {

inline constexpr std::uint32_t kBlockTokens = 512;             // of Mooncake; the last has the rest
inline constexpr std::uint64_t kMostTraceTokens = 1ULL << 24;  // of a prompt, or of an answer
inline constexpr std::int64_t kTicksPerSecond = 10'000'000;    // TraceRequest::ticks

struct TraceRequest {
  std::int64_t ticks = 0;    // of 100 ns, since the first request
  std::uint32_t input = 1;   // tokens of the prompt
  std::uint32_t output = 0;  // tokens of the answer
  std::uint32_t first_block = 0;
  std::uint32_t blocks = 0;  // in RequestTrace::blocks; 0: not known
};

struct RequestTrace {
  std::vector<TraceRequest> requests;  // in the order of their times
  // Equal numbers are equal tokens behind equal prefixes: their keys and values are the same.
  std::vector<std::uint64_t> blocks;

  std::span<const std::uint64_t> blocks_of(const TraceRequest& request) const {
    return std::span(blocks).subspan(request.first_block, request.blocks);
  }
};

// Errors, each with file, line and what is allowed: lines that are not of the format, values out of
// range, times that decrease, blocks that are not as many as the prompt has, a NUL byte, a last
// line that is cut off, no request.
Imported<RequestTrace> parse_request_trace(std::string_view text, const std::string& source);
Imported<RequestTrace> read_request_trace(const std::string& path);

}  // namespace paceline::workload
