#include "tools/workload/inference/request_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "dataplane/base/text/comma_list.h"
#include "dataplane/base/text/json_limits.h"
#include "tools/workload/files/foreign_format.h"
#include "tools/workload/files/text_table.h"
#include "tools/workload/inference/azure_time.h"
#include "tools/workload/jobs/import_limits.h"

namespace paceline::workload {

namespace {

using TraceJson = nlohmann::json;

constexpr std::string_view kAzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";
constexpr std::size_t kAzureColumns = 3;
constexpr std::int64_t kTicksPerMilli = kTicksPerSecond / 1000;
constexpr std::uint64_t kMostTraceMillis = kMostJobNanos / 1'000'000;
constexpr std::uint64_t kMostBlockNumber = 0xFFFF'FFFF'FFFF'FFFF;
constexpr std::size_t kMostTraceBlocks = std::size_t{1} << 28;

class RequestTraceParser {
 public:
  RequestTraceParser(std::string_view text, const std::string& source)
      : text_(text), rest_(text), source_(source) {}

  Imported<RequestTrace> parse() {
    const std::size_t nul = text_.find('\0');
    if (nul != std::string_view::npos) {
      errors_.add({source_, 0, 0}, fmt::format("byte {}: a NUL byte: expected text", nul));
    } else if (!next_line()) {
      wrong("the file is empty: expected a trace of requests");
    } else if (line_.front() == '{') {
      do mooncake_line();
      while (!errors_.full() && next_line());
    } else if (line_ == kAzureHeader) {
      while (!errors_.full() && next_line()) azure_line();
      if (out_.requests.empty() && errors_.empty()) wrong("expected a request behind this line");
    } else {
      unknown_format();
    }
    Imported<RequestTrace> out;
    out.errors = errors_.list();
    if (out.ok()) out.value = std::move(out_);
    return out;
  }

 private:
  // The next that is not blank, without its end.
  bool next_line() {
    while (!rest_.empty()) {
      ++number_;
      const std::size_t length = std::min(rest_.find('\n'), rest_.size());
      ended_ = length < rest_.size();
      line_ = rest_.substr(0, length);
      rest_.remove_prefix(length + (ended_ ? 1 : 0));
      if (line_.ends_with('\r')) line_.remove_suffix(1);
      if (line_.find_first_not_of(" \t") != std::string_view::npos) return true;
    }
    return false;
  }

  void wrong(const std::string& message) {
    errors_.add({source_, std::max(number_, 1U), 1}, message);
  }

  void unknown_format() {
    const std::string expected = fmt::format(
        "a trace of requests: Mooncake's JSON lines, or CSV that begins with {}", kAzureHeader);
    if (report_known_format(text_, {source_, number_, 1}, expected, errors_)) return;
    wrong(fmt::format("\"{}\": expected {}", line_, expected));
  }

  // Takes a request whose time is `ticks` in the file's count.
  void add(std::int64_t ticks, std::string_view time, TraceRequest request) {
    if (!first_) first_ = last_ = ticks;
    if (ticks < last_) {
      wrong(
          fmt::format("time {} is before that of the request before: expected times that do not "
                      "decrease",
                      time));
      return;
    }
    last_ = ticks;
    request.ticks = ticks - *first_;
    out_.requests.push_back(request);
  }

  void mooncake_line() {
    if (const JsonExcess excess = json_excess(line_)) {
      errors_.add({source_, number_, static_cast<std::uint32_t>(excess.at + 1)},
                  std::string(excess.what) + ": expected a request as a JSON object");
      return;
    }
    const std::optional<TraceJson> object = parse_object();
    if (!object) return;
    std::uint64_t time = 0, input = 0, output = 0;
    const bool good = integer(*object, "timestamp", 0, kMostTraceMillis, time) &&
                      integer(*object, "input_length", 1, kMostTraceTokens, input) &&
                      integer(*object, "output_length", 0, kMostTraceTokens, output);
    TraceRequest request{.input = static_cast<std::uint32_t>(input),
                         .output = static_cast<std::uint32_t>(output)};
    if (!good || !take_blocks(*object, request)) return;
    add(static_cast<std::int64_t>(time) * kTicksPerMilli, fmt::format("{} ms", time), request);
  }

  // Each name is given once.
  std::optional<TraceJson> parse_object() {
    std::set<std::string> names;
    std::string twice;
    const auto see_name = [&](int depth, TraceJson::parse_event_t event, TraceJson& value) {
      if (depth == 1 && event == TraceJson::parse_event_t::key &&
          !names.insert(value.get<std::string>()).second) {
        twice = value.get<std::string>();
      }
      return true;
    };
    try {
      TraceJson object = TraceJson::parse(line_, see_name);
      if (!object.is_object()) {
        wrong("expected a request as a JSON object");
      } else if (!twice.empty()) {
        wrong(fmt::format("\"{}\" is given twice: expected each name once", twice));
      } else {
        return object;
      }
    } catch (const TraceJson::parse_error& error) {
      errors_.add({source_, number_, static_cast<std::uint32_t>(error.byte)},
                  "this is not JSON: expected a request as a JSON object");
    } catch (const TraceJson::out_of_range&) {
      wrong("a number is out of range: expected integers");
    }
    return std::nullopt;
  }

  bool integer(const TraceJson& object, const char* name, std::uint64_t min, std::uint64_t max,
               std::uint64_t& out) {
    const auto at = object.find(name);
    if (at == object.end()) {
      wrong(fmt::format("no \"{}\": expected an integer in [{} .. {}]", name, min, max));
      return false;
    }
    if (at->is_number_unsigned()) out = at->get<std::uint64_t>();
    if (at->is_number_unsigned() && out >= min && out <= max) return true;
    wrong(fmt::format("{} = {}: expected an integer in [{} .. {}]", name, at->dump(), min, max));
    return false;
  }

  bool take_blocks(const TraceJson& object, TraceRequest& request) {
    const auto list = object.find("hash_ids");
    const std::uint32_t expected = (request.input + kBlockTokens - 1) / kBlockTokens;
    if (list == object.end() || !list->is_array() || list->size() != expected) {
      const std::size_t given = list != object.end() && list->is_array() ? list->size() : 0;
      wrong(fmt::format("{} numbers in \"hash_ids\": expected {}, one for each {} tokens of {}",
                        given, expected, kBlockTokens, request.input));
      return false;
    }
    if (out_.blocks.size() + expected > kMostTraceBlocks) {
      wrong(fmt::format("more blocks than fit: allowed are {}", kMostTraceBlocks));
      return false;
    }
    request.first_block = static_cast<std::uint32_t>(out_.blocks.size());
    request.blocks = expected;
    for (const TraceJson& block : *list) {
      if (!block.is_number_unsigned()) {
        wrong(fmt::format("{} in \"hash_ids\": expected an integer in [0 .. {}]", block.dump(),
                          kMostBlockNumber));
        return false;
      }
      out_.blocks.push_back(block.get<std::uint64_t>());
    }
    return true;
  }

  void azure_line() {
    // A number may have lost its last digits.
    if (!ended_) return wrong("this line has no end: expected a line break behind the last one");
    const std::vector<std::string_view> fields = comma_list(line_);
    if (fields.size() != kAzureColumns) {
      return wrong(
          fmt::format("{} columns: expected {}: {}", fields.size(), kAzureColumns, kAzureHeader));
    }
    const std::optional<std::int64_t> time = parse_azure_time(fields[0]);
    if (!time) {
      return wrong(fmt::format(
          "TIMESTAMP = \"{}\": expected a time such as 2023-11-16 18:15:46.6805900", fields[0]));
    }
    TraceRequest request;
    if (!azure_tokens("ContextTokens", fields[1], 1, request.input)) return;
    if (!azure_tokens("GeneratedTokens", fields[2], 0, request.output)) return;
    add(*time, fields[0], request);
  }

  bool azure_tokens(std::string_view name, std::string_view text, std::uint32_t min,
                    std::uint32_t& out) {
    const char* const end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data(), end, out);
    if (code == std::errc{} && stop == end && out >= min && out <= kMostTraceTokens) return true;
    wrong(fmt::format("{} = \"{}\": expected an integer in [{} .. {}]", name, text, min,
                      kMostTraceTokens));
    return false;
  }

  std::string_view text_;
  std::string_view rest_;  // behind line_
  std::string source_;
  std::string_view line_;
  std::uint32_t number_ = 0;  // of line_
  bool ended_ = true;         // line_ by a line break
  std::optional<std::int64_t> first_;
  std::int64_t last_ = 0;
  TableErrors errors_;
  RequestTrace out_;
};

}  // namespace

Imported<RequestTrace> parse_request_trace(std::string_view text, const std::string& source) {
  return RequestTraceParser(text, source).parse();
}

Imported<RequestTrace> read_request_trace(const std::string& path) {
  const config::Read<std::string> text = read_table_file(path, kLongestJobFile);
  if (!text.ok()) return {{}, text.errors, {}};
  return parse_request_trace(text.value, path);
}

}  // namespace paceline::workload
