// A node of a Chakra execution trace as it is in the file: only what a job needs, the rest is
// skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/workload/jobs/chakra/protobuf_reader.h"

namespace paceline::workload {

enum class ChakraType : std::uint8_t {
  invalid,
  metadata,
  load,
  store,
  compute,
  send,
  receive,
  collective,
};
inline constexpr std::uint64_t kChakraTypes = 8;

// Views are into the bytes of the file. A member without a field in the file has the format's
// default, or none.
struct ChakraNode {
  std::uint64_t offset = 0;  // in the file
  std::uint64_t id = 0;
  std::uint64_t type = 0;
  std::uint64_t duration_us = 0;
  std::string_view name;
  std::vector<std::uint64_t> waits;  // ids; control and data
  std::optional<std::int64_t> comm_type;
  std::optional<std::int64_t> comm_size;
  std::optional<std::int64_t> comm_src;
  std::optional<std::int64_t> comm_dst;
  std::int64_t comm_tag = 0;
  std::optional<std::string> group;  // pg_name
  bool counts_operations = false;    // num_ops
  bool some_dimensions = false;      // involved_dim has a false
};

// False, with the error, if the bytes are not such a message.
bool read_chakra_node(const ProtobufField& message, ChakraNode& node, ProtobufError& error);

}  // namespace paceline::workload
