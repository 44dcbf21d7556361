// Traces of inference services: totals of published files, and files that are none.
#include "tools/workload/inference/request_trace.h"

#include <catch2/catch.hpp>
#include <string>
#include <unordered_set>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/workload/inference_samples.h"
#include "tools/workload/inference/azure_time.h"

namespace paceline::workload::request_trace_test {
namespace {

using Lines = std::vector<std::string>;
using inference_samples::requests_path;

struct TraceTotals {
  std::uint64_t input = 0;
  std::uint64_t output = 0;
};

TraceTotals totals_of(const RequestTrace& trace) {
  TraceTotals sums;
  for (const TraceRequest& request : trace.requests) {
    sums.input += request.input;
    sums.output += request.output;
  }
  return sums;
}

Lines trace_errors(const std::string& text) { return parse_request_trace(text, "t").errors; }

const std::string kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

// The sums of the cut file were counted with awk and Python.
TEST_CASE("request traces: totals of Mooncake's first 400 requests", "[workload][inference]") {
  const auto read = read_request_trace(requests_path("mooncake_conversation_400.jsonl"));
  REQUIRE(read.errors == Lines{});
  const RequestTrace& trace = read.value;
  CHECK(trace.requests.size() == 400);
  CHECK(totals_of(trace).input == 5'710'530);
  CHECK(totals_of(trace).output == 146'073);
  CHECK(trace.blocks.size() == 11'349);
  CHECK(std::unordered_set(trace.blocks.begin(), trace.blocks.end()).size() == 9'821);
  CHECK(trace.requests.back().ticks == 141 * kTicksPerSecond);
  CHECK(trace.requests[0].input == 6'758);
  CHECK(trace.blocks_of(trace.requests[1])[1] == 14);
}

TEST_CASE("request traces: totals of the Azure LLM traces", "[workload][inference]") {
  const auto conversation = read_request_trace(requests_path("azure_llm_2023_conv_2000.csv"));
  REQUIRE(conversation.errors == Lines{});
  CHECK(conversation.value.requests.size() == 2'000);
  CHECK(totals_of(conversation.value).input == 2'209'565);
  CHECK(totals_of(conversation.value).output == 529'807);
  CHECK(conversation.value.requests[0].ticks == 0);
  // 18:15:46.6805900 to 18:22:50.9400470
  CHECK(conversation.value.requests.back().ticks == 4'242'594'570);
  const auto code = read_request_trace(requests_path("azure_llm_2023_code_2000.csv"));
  REQUIRE(code.errors == Lines{});
  CHECK(code.value.requests.size() == 2'000);
  CHECK(totals_of(code.value).input == 3'973'157);
  CHECK(totals_of(code.value).output == 59'024);
  // 18:17:03.9799600 to 18:31:17.0593070
  CHECK(code.value.requests.back().ticks == 8'530'793'470);
  CHECK(code.value.blocks.empty());
}

TEST_CASE("request traces: times", "[workload][inference]") {
  CHECK(parse_azure_time("1970-01-01 00:00:00") == 0);
  CHECK(parse_azure_time("1970-01-02 00:00:01.5") == 86'401 * kTicksPerSecond + 5'000'000);
  CHECK(parse_azure_time("2000-03-01 00:00:00.0000001") == 951'868'800 * kTicksPerSecond + 1);
  for (const char* wrong :
       {"", "2023-11-16", "2023-11-16 18:15", "2023-02-29 00:00:00", "2023-13-01 00:00:00",
        "2023-11-16 24:00:00", "2023-11-16 18:60:00", "2023-11-16 18:15:60", "2023-11-16T18:15:46",
        "2023-11-16 18:15:46.", "2023-11-16 18:15:46.12345678", "2023-11-16 18:15:46.1x",
        "2023-11-16 18:15:46Z", "-023-11-16 18:15:46"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_azure_time(wrong).has_value());
  }
}

TEST_CASE("request traces: lines that are not JSON lines of Mooncake", "[workload][inference]") {
  const std::string good =
      R"({"timestamp": 5, "input_length": 513, "output_length": 0, "hash_ids": [7, 8]})"
      "\n";
  CHECK(trace_errors(good + "\r\n" + good) == Lines{});
  const auto second = [&good](const std::string& line) {
    const Lines errors = trace_errors(good + line + "\n");
    return errors.size() == 1 ? errors.front() : std::to_string(errors.size()) + " errors";
  };
  CHECK(second(good.substr(0, good.size() - 9)) ==
        "t:2:70: this is not JSON: expected a request as a JSON object");
  CHECK(second("[1]") == "t:2:1: expected a request as a JSON object");
  CHECK(second(R"({"timestamp": 5})") ==
        "t:2:1: no \"input_length\": expected an integer in [1 .. 16777216]");
  CHECK(second(R"({"timestamp": -1})") ==
        "t:2:1: timestamp = -1: expected an integer in [0 .. 1000000000]");
  CHECK(second(R"({"timestamp": 5.5})") ==
        "t:2:1: timestamp = 5.5: expected an integer in [0 .. 1000000000]");
  CHECK(second(R"({"timestamp": 5, "input_length": 0})") ==
        "t:2:1: input_length = 0: expected an integer in [1 .. 16777216]");
  CHECK(second(R"({"timestamp": 5, "input_length": 1, "output_length": "2"})") ==
        "t:2:1: output_length = \"2\": expected an integer in [0 .. 16777216]");
  const std::string sizes = R"({"timestamp": 5, "input_length": 512, "output_length": 1)";
  CHECK(second(sizes + "}") ==
        "t:2:1: 0 numbers in \"hash_ids\": expected 1, one for each 512 tokens of 512");
  CHECK(second(sizes + R"(, "hash_ids": [1, 2]})") ==
        "t:2:1: 2 numbers in \"hash_ids\": expected 1, one for each 512 tokens of 512");
  CHECK(second(sizes + R"(, "hash_ids": [-1]})") ==
        "t:2:1: -1 in \"hash_ids\": expected an integer in [0 .. 18446744073709551615]");
  CHECK(second(R"({"timestamp": 5, "timestamp": 5})") ==
        "t:2:1: \"timestamp\" is given twice: expected each name once");
  CHECK(second(R"({"timestamp": 4, "input_length": 1, "output_length": 1, "hash_ids": [1]})") ==
        "t:2:1: time 4 ms is before that of the request before: expected times that do not "
        "decrease");
  CHECK(second("{\"timestamp\": " + std::string(100, '1') + "}") ==
        "t:2:15: a number of more than 64 characters: expected a request as a JSON object");
  CHECK(second(R"({"timestamp": 1e999})") == "t:2:1: a number is out of range: expected integers");
}

TEST_CASE("request traces: lines that are not CSV of Azure", "[workload][inference]") {
  const std::string good = "2023-11-16 18:15:46.6805900,374,44\n";
  CHECK(trace_errors(kHeader + good + "\n" + good) == Lines{});
  const auto third = [&good](const std::string& line) {
    const Lines errors = trace_errors(kHeader + good + line);
    return errors.size() == 1 ? errors.front() : std::to_string(errors.size()) + " errors";
  };
  CHECK(third(good.substr(0, good.size() - 1)) ==
        "t:3:1: this line has no end: expected a line break behind the last one");
  CHECK(third("2023-11-16 18:15:46.6805900,374\n") ==
        "t:3:1: 2 columns: expected 3: TIMESTAMP,ContextTokens,GeneratedTokens");
  CHECK(third("2023-11-16 18:15:46.6805900,374,44,\n") ==
        "t:3:1: 4 columns: expected 3: TIMESTAMP,ContextTokens,GeneratedTokens");
  CHECK(third("16.11.2023 18:15:46,374,44\n") ==
        "t:3:1: TIMESTAMP = \"16.11.2023 18:15:46\": expected a time such as 2023-11-16 "
        "18:15:46.6805900");
  CHECK(third("2023-11-16 18:15:46.6805900,0,44\n") ==
        "t:3:1: ContextTokens = \"0\": expected an integer in [1 .. 16777216]");
  CHECK(third("2023-11-16 18:15:46.6805900,3,4x\n") ==
        "t:3:1: GeneratedTokens = \"4x\": expected an integer in [0 .. 16777216]");
  CHECK(third("2023-11-16 18:15:46.6805899,3,4\n") ==
        "t:3:1: time 2023-11-16 18:15:46.6805899 is before that of the request before: expected "
        "times that do not decrease");
}

TEST_CASE("request traces: files of other kinds", "[workload][inference]") {
  const std::string expected =
      "a trace of requests: Mooncake's JSON lines, or CSV that begins with "
      "TIMESTAMP,ContextTokens,GeneratedTokens";
  CHECK(trace_errors("") == Lines{"t:1:1: the file is empty: expected a trace of requests"});
  CHECK(trace_errors(" \n\n") == Lines{"t:2:1: the file is empty: expected a trace of requests"});
  CHECK(trace_errors(kHeader) == Lines{"t:1:1: expected a request behind this line"});
  CHECK(trace_errors("num_ranks 2\n") ==
        Lines{"t:1:1: this seems to be a GOAL schedule: expected " + expected});
  CHECK(trace_errors("requests\n") == Lines{"t:1:1: \"requests\": expected " + expected});
  CHECK(trace_errors(kHeader + std::string(1, '\0')) ==
        Lines{"t: byte 40: a NUL byte: expected text"});
  CHECK(read_request_trace("no-such-file").errors.size() == 1);
  // One error a line, up to the limit of all tables.
  std::string many = kHeader;
  for (int i = 0; i < 100; ++i) many += std::to_string(i) + "\n";
  CHECK(trace_errors(many).size() == 50);
}

TEST_CASE("request traces: damaged files are refused or read, and never crash",
          "[workload][inference]") {
  const std::string json =
      R"({"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]})"
      "\n"
      R"({"timestamp": 3000, "input_length": 20, "output_length": 1, "hash_ids": [2]})"
      "\n";
  const std::string csv =
      kHeader + "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n";
  const std::uint64_t seed = 11;
  CAPTURE(seed);
  Random random(seed, 0);
  std::uint32_t read = 0;
  for (const std::string& text : {json, csv}) {
    for (std::size_t length = 0; length < text.size(); ++length) {
      const auto cut = parse_request_trace(text.substr(0, length), "t");
      if (cut.ok()) CHECK(cut.value.requests.size() == (length < text.size() - 1 ? 1 : 2));
    }
    for (std::uint32_t i = 0; i < 2'000; ++i) {
      std::string damaged = text;
      damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
      const auto result = parse_request_trace(damaged, "t");
      if (!result.ok()) continue;
      ++read;
      for (const TraceRequest& request : result.value.requests) CHECK(request.input >= 1);
    }
  }
  CHECK(read > 0);
}

}  // namespace
}  // namespace paceline::workload::request_trace_test
