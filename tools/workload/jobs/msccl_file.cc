#include "tools/workload/jobs/msccl_file.h"

#include <fmt/format.h>

#include <utility>

#include "tools/workload/files/foreign_format.h"
#include "tools/workload/files/text_table.h"
#include "tools/workload/jobs/msccl/msccl_program.h"
#include "tools/workload/jobs/msccl/msccl_schedule.h"

namespace paceline::workload {

config::Read<MscclAlgorithm> parse_msccl(std::string_view text, const std::string& source) {
  TableErrors errors;
  config::Read<MscclAlgorithm> out;
  const std::string_view known = known_format(text);
  if (!known.empty() && known != "XML") {
    report_known_format(text, {source, 1, 1}, "an algorithm in MSCCL XML", errors);
  } else {
    MscclProgram program = parse_msccl_program(text, source, errors);
    if (errors.empty()) out.value.schedule = make_msccl_schedule(program, source, errors);
    out.value.name = std::move(program.name);
    out.value.min_bytes = program.min_bytes;
    out.value.max_bytes = program.max_bytes;
  }
  out.errors = errors.list();
  if (!out.ok()) out.value = {};
  return out;
}

config::Read<MscclAlgorithm> read_msccl_file(const std::string& path) {
  constexpr std::size_t kLongestMscclFile = std::size_t{1} << 26;
  const config::Read<std::string> text = read_table_file(path, kLongestMscclFile);
  if (!text.ok()) return {{}, text.errors};
  return parse_msccl(text.value, path);
}

}  // namespace paceline::workload
