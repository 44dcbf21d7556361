// Records of tasks as lines of files. A line has the task, the record and a checksum, which shows
// whether the line was cut off or changed. Lines do not depend on one another: files may be
// joined, and lines may have any order.
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

// A line of JSON, with its end of line.
std::string record_line(const RecordLine& line);

// `text`: a line without its end. Returns an error, or an empty text: then `out` is filled, and
// out.record points into `text`.
std::string parse_record_line(std::string_view text, RecordLine& out);

}  // namespace paceline::tools
