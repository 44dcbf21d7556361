// Whatever stands in a file of records or of looks: a line is one that could have been written, or
// is refused; and what a record holds is read as a run's result, or refused.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tests/fuzz/promise.h"
#include "tools/diagnose/testbed/look_file.h"
#include "tools/run/run_record.h"
#include "tools/task/record_line.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  tools::RecordLine line;
  if (data[0] == '0') {
    if (tools::parse_record_line(text, line).empty()) {
      fuzz::promise(tools::record_line(line) == std::string(text) + "\n", "a line reads back");
    }
    return 0;
  }
  if (data[0] == 'L') {
    tools::LookFileHead head;
    if (tools::read_head_line(text, head).empty()) {
      tools::LookFileHead again;
      fuzz::promise(tools::read_head_line(tools::head_line(head), again).empty(),
                    "a head reads back");
    }
    tools::KeptLook look;
    if (tools::read_look_line(text, 1, look).empty()) {
      tools::KeptLook again;
      const std::string line = tools::look_line(look.at, look.hosts);
      fuzz::promise(tools::read_look_line(line, 1, again).empty() &&
                        tools::look_line(again.at, again.hosts) == line,
                    "a look reads back");
    }
    return 0;
  }
  // Behind the checksum, which a fuzzer does not guess.
  const std::string whole = tools::record_line({1, 2, 3, 4, text});
  const bool read =
      tools::parse_record_line(std::string_view(whole).substr(0, whole.size() - 1), line).empty();
  fuzz::promise(read == !text.empty(), "what was written is read");
  fuzz::promise(!read || line.record == text, "and is what was written");
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    if (data[0] == '1') {
      const std::string result = tools::result_text(tools::result_of(json));
      const std::string again = tools::result_text(tools::result_of(nlohmann::json::parse(result)));
      fuzz::promise(result == again, "a result reads back");
    } else if (data[0] == '2') {
      const std::string values = tools::distribution_text(tools::distribution_from(json));
      const std::string again =
          tools::distribution_text(tools::distribution_from(nlohmann::json::parse(values)));
      fuzz::promise(values == again, "a distribution reads back");
    } else {
      const std::string course = tools::series_text(tools::series_of(json));
      fuzz::promise(course == tools::series_text(tools::series_of(nlohmann::json::parse(course))),
                    "a series reads back");
    }
  } catch (const std::exception&) {
    // Refused.
  }
  return 0;
}
