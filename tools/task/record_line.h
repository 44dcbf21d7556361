// Records of tasks as lines of files: what a record belongs to, the record itself, and a checksum
// by which a line that is cut off or changed is found out. Each line stands alone, so files may be
// put together, and lines be in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace paceline::tools {

struct RecordLine {
  std::uint64_t program = 0;  // program_key() (input_keys.h) of the program that executed the task
  std::uint64_t plan = 0;     // TaskList::key
  std::size_t task = 0;       // its number in that list
  std::uint64_t key = 0;      // TaskList::task_key
  std::string_view record;    // JSON on one line
};

// JSON with its end of line.
std::string record_line(const RecordLine& line);

// `text` without its end of line. What is wrong with it; empty: `out` is filled, and out.record is
// part of `text`.
std::string parse_record_line(std::string_view text, RecordLine& out);

}  // namespace paceline::tools
