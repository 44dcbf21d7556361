// Records of tasks as text: bit for bit there and back, and whatever happens to the files that hold
// them, gathered to the same list or refused.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "dataplane/base/hash.h"
#include "dataplane/base/numbers/random.h"
#include "tests/unit/tools/command.h"
#include "tools/run/run_record.h"
#include "tools/task/input_keys.h"
#include "tools/task/kept_tasks.h"
#include "tools/task/record_line.h"
#include "tools/task/run/workers.h"
#include "tools/task/task_threads.h"

namespace paceline::tools::task_records_test {
namespace {

using Catch::Matchers::Contains;
using Strings = std::vector<std::string>;

// Tasks whose record is a number that follows from their key.
class NumberTasks final : public TaskList {
 public:
  explicit NumberTasks(std::size_t size, std::uint64_t salt = 1) : salt_(salt), kept_(size) {}
  std::size_t size() const override { return kept_.size(); }
  experiment::WorkUnit unit(std::size_t task) const override {
    return {static_cast<std::uint32_t>(task % 7), 1};
  }
  std::string name(std::size_t task) const override { return "task " + std::to_string(task); }
  std::uint64_t task_key(std::size_t task) const override {
    return ContentHash().number(salt_).number(task).value();
  }
  TaskRecord execute(std::size_t task, const std::atomic<bool>&) const override {
    return {std::to_string(mix64(task_key(task))), 1};
  }
  std::string keep(std::size_t task, std::string_view record) override {
    if (!kept_[task].empty()) return "kept twice";
    kept_[task] = record;
    return {};
  }
  std::uint64_t hash() const {
    ContentHash hash;
    for (const std::string& record : kept_) hash.field(record);
    return hash.value();
  }

 private:
  std::uint64_t salt_;
  Strings kept_;
};

std::string line_of(const NumberTasks& tasks, std::size_t task, std::uint64_t program) {
  const std::atomic<bool> stop{false};
  const std::string record = tasks.execute(task, stop).text;
  return record_line({program, tasks.key(), task, tasks.task_key(task), record});
}

std::uint64_t whole_hash(std::size_t size) {
  NumberTasks tasks(size);
  const std::atomic<bool> stop{false};
  REQUIRE(execute_all(tasks, Workers(1), stop) == "");
  return tasks.hash();
}

template <class T>
void shuffle(std::vector<T>& items, Random& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
}

TEST_CASE("records: a double comes back bit for bit", "[records]") {
  Random random(1);
  std::vector<double> values{
      0.0, -0.0,     1e22, 9007199254740993.0,   5e-324,   1.7976931348623157e308,
      0.1, -1.0 / 3, 1e16, 123456789012345680.0, INFINITY, -INFINITY};
  for (int i = 0; i < 100'000; ++i) values.push_back(std::bit_cast<double>(random.next()));
  for (const double value : values) {
    const double back = exact_number_of(nlohmann::json::parse(exact_number_text(value)));
    if (std::isnan(value)) {
      CHECK(std::isnan(back));
    } else if (std::bit_cast<std::uint64_t>(back) != std::bit_cast<std::uint64_t>(value)) {
      FAIL(exact_number_text(value));
    }
  }
}

TEST_CASE("records: a run's result, distribution and series come back", "[records]") {
  experiment::RunResult result;
  result.status = experiment::RunStatus::unfinished;
  result.reason = "max_hops = \"1\"\n\xff";
  Random random(2);
  for (const experiment::MetricSpec& spec : experiment::metric_table()) {
    if (random.below(3) != 0) result.metrics[spec.metric] = random.uniform() * 1e9;
  }
  result.messages_started = 12;
  result.messages_completed = 7;
  result.hops = ~0ULL;
  result.events = 3;
  result.simulated = Picos{-1};
  result.trace_hash = 0xFFFF'0000'1234'5678;
  const std::string text = result_text(result);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(result_text(result_of(nlohmann::json::parse(text))) == text);

  for (int round = 0; round < 200; ++round) {
    experiment::Distribution made;
    made.runs = 1;
    const auto messages = random.below(50);
    for (std::uint64_t i = 0; i < messages; ++i) {
      made.add(1 + random.below(1ULL << random.below(40)),
               Picos{static_cast<std::int64_t>(1000 + random.below(1ULL << 50))}, Picos{1000});
    }
    const auto back = distribution_from(nlohmann::json::parse(distribution_text(made)));
    experiment::ArmDetail before;
    experiment::ArmDetail after;
    before.distribution = made;
    after.distribution = back;
    const experiment::ArmFigures a = figures_of(before);
    const experiment::ArmFigures b = figures_of(after);
    REQUIRE(a.messages == b.messages);
    REQUIRE(a.fct_ns.size() == b.fct_ns.size());
    for (std::size_t i = 0; i < a.fct_ns.size(); ++i) {
      CHECK(a.fct_ns[i].value == b.fct_ns[i].value);
      CHECK(a.fct_ns[i].count == b.fct_ns[i].count);
    }
    REQUIRE(a.slowdown.size() == b.slowdown.size());
    for (std::size_t i = 0; i < a.slowdown.size(); ++i) {
      CHECK(a.slowdown[i].messages == b.slowdown[i].messages);
      CHECK(a.slowdown[i].p50 == b.slowdown[i].p50);
      CHECK(a.slowdown[i].p99 == b.slowdown[i].p99);
      CHECK(a.slowdown[i].max == b.slowdown[i].max);
    }
  }

  experiment::TimeSeries series;
  series.interval = Picos{5};
  series.looks = 2;
  series.end = Picos{14};
  for (auto& values : series.values) values = {1, ~0ULL, random.next()};
  const std::string course = series_text(series);
  CHECK(series_of(nlohmann::json::parse(course)).values == series.values);
  CHECK(series_text(series_of(nlohmann::json::parse(course))) == course);
}

TEST_CASE("records: a line that is cut off or changed anywhere is no record", "[records]") {
  std::string line = record_line({1, 2, 3, 4, R"({"a":[1,2]})"});
  REQUIRE(line.back() == '\n');
  line.pop_back();
  RecordLine out;
  REQUIRE(parse_record_line(line, out) == "");
  CHECK(out.program == 1);
  CHECK(out.plan == 2);
  CHECK(out.task == 3);
  CHECK(out.key == 4);
  CHECK(out.record == R"({"a":[1,2]})");
  for (std::size_t n = 0; n < line.size(); ++n) {
    CHECK(parse_record_line(std::string_view(line).substr(0, n), out) != "");
    std::string changed = line;
    changed[n] = static_cast<char>(changed[n] ^ 1);
    CHECK(parse_record_line(changed, out) != "");
  }
}

TEST_CASE("tasks: any number of threads keeps the same records", "[records][threads]") {
  const std::uint64_t expected = whole_hash(500);
  for (const unsigned jobs : {2U, 7U}) {
    NumberTasks tasks(500);
    const std::atomic<bool> stop{false};
    CHECK(execute_all(tasks, Workers(jobs), stop) == "");
    CHECK(tasks.hash() == expected);
  }
}

TEST_CASE("shares: every task is in one, and each group is spread over all", "[records]") {
  for (const std::size_t size : {1U, 10U, 100U, 701U}) {
    for (const std::size_t of : {1U, 2U, 16U, 100U}) {
      NumberTasks tasks(size);
      KeptTasks kept(tasks);
      std::set<std::size_t> all;
      std::size_t sum = 0;
      for (std::size_t part = 1; part <= of; ++part) {
        const auto mine = kept.missing({part, of});
        all.insert(mine.begin(), mine.end());
        sum += mine.size();
        CHECK(mine.size() == kept.size_of({part, of}));
        std::vector<std::size_t> groups(7);
        for (const std::size_t task : mine) ++groups[task % 7];
        const auto [least, most] = std::minmax_element(groups.begin(), groups.end());
        if (size == 701) CHECK(*most - *least <= 1);
      }
      CHECK(all.size() == size);
      CHECK(sum == size);
    }
  }
}

// Files of random shares, their records in random order, some of them twice, some lost; then what
// is missing is executed. The result is that of one machine.
TEST_CASE("gather: any files of a plan's records give the result of one machine", "[records]") {
  constexpr std::size_t kTasks = 120;
  const std::uint64_t expected = whole_hash(kTasks);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const Folder folder;
    NumberTasks tasks(kTasks);
    const std::size_t files = 1 + random.below(9);
    std::vector<Strings> lines(files);
    for (std::size_t task = 0; task < kTasks; ++task) {
      if (random.below(10) == 0) continue;  // lost
      const std::size_t copies = 1 + (random.below(8) == 0 ? 1 : 0);
      for (std::size_t i = 0; i < copies; ++i) {
        lines[random.below(files)].push_back(line_of(tasks, task, program_key()));
      }
    }
    KeptTasks kept(tasks);
    for (std::size_t f = 0; f < files; ++f) {
      shuffle(lines[f], random);
      const std::string text = std::accumulate(lines[f].begin(), lines[f].end(), std::string());
      const std::string file = folder.path(folder.write(std::to_string(f) + ".jsonl", text));
      CHECK(kept.take_all(file) == Strings{});
    }
    std::atomic<bool> stop{false};
    ProgressLine quiet(true);
    TaskThreads threads;
    threads.run(kept, kept.missing(), 1, stop, quiet);
    CHECK(threads.error() == "");
    CHECK(kept.whole());
    CHECK(tasks.hash() == expected);
  }
}

TEST_CASE("gather: what does not belong to the plan is refused with line and reason", "[records]") {
  const Folder folder;
  NumberTasks tasks(10);
  const std::string good = line_of(tasks, 1, program_key());
  const auto refused = [&](const std::string& text, const std::string& says) {
    NumberTasks list(10);
    KeptTasks kept(list);
    const std::string file = folder.path(folder.write("1-of-2.jsonl", good + text));
    const Strings errors = kept.take_all(file);
    CAPTURE(text);
    REQUIRE(errors.size() == 1);
    CHECK_THAT(errors[0], Contains("1-of-2.jsonl:2: ") && Contains(says));
    CHECK(kept.kept() == 1);
  };
  refused(line_of(NumberTasks(10, 2), 2, program_key()), "another plan");
  refused(line_of(NumberTasks(11), 2, program_key()), "another plan");
  refused(line_of(tasks, 2, program_key() + 1), "another build");
  refused(record_line({program_key(), tasks.key(), 10, tasks.task_key(2), "1"}), "no such task");
  refused(record_line({program_key(), tasks.key(), 1, tasks.task_key(1), "1"}),
          "second record of task 1, and differs from the first (");
  const std::string other = line_of(tasks, 2, program_key());
  refused(other.substr(0, other.size() / 2), "is cut off, and it is the last one");
  refused(other.substr(0, other.size() / 2) + "\n", "is cut off");
  refused("{}\n", "is not a record");
  refused("\n", "is not a record");
  std::string changed = other;
  changed[changed.find("\"task\":2") + 7] = '3';
  refused(changed, "changed after it was written");
}

TEST_CASE("kept runs: what is known is taken, everything else is left alone", "[records]") {
  const Folder folder;
  NumberTasks tasks(10);
  const std::string last = line_of(tasks, 3, program_key());
  const std::string file = folder.path(folder.write(
      "runs.jsonl",
      line_of(tasks, 1, program_key()) + "\n{}\n" + line_of(NumberTasks(10, 2), 2, program_key()) +
          // A record from a longer list: the task is the same.
          line_of(NumberTasks(20), 7, program_key()) + last.substr(0, last.size() - 5)));
  {
    KeptTasks kept(tasks);
    CHECK(kept.take_known(file) == "");
    CHECK(kept.kept() == 2);
    CHECK(kept.append_to(file, false, RecordSharing::shared) == "");
    const std::atomic<bool> stop{false};
    for (const std::size_t task : kept.missing()) {
      CHECK(kept.keep(task, kept.execute(task, stop).text) == "");
    }
  }
  NumberTasks again(10);
  KeptTasks kept(again);
  CHECK(kept.take_known(file) == "");
  CHECK(kept.whole());
  CHECK(again.hash() == whole_hash(10));
}

TEST_CASE("records: a share has its file for itself, without a line that is cut off", "[records]") {
  const Folder folder;
  const std::string file = folder.path(folder.write("1-of-1.jsonl", "whole\nhal"));
  RecordFile first;
  CHECK(first.open(file, false, RecordSharing::sole) == "");
  CHECK(folder.read("1-of-1.jsonl") == "whole\n");
  RecordFile second;
  CHECK_THAT(second.open(file, false, RecordSharing::sole), Contains("another process"));
  CHECK(first.append("more\n") == "");
  CHECK(folder.read("1-of-1.jsonl") == "whole\nmore\n");
}

TEST_CASE("records: a full disk is said", "[records]") {
  RecordFile file;
  CHECK(file.open("/dev/full", false, RecordSharing::shared) == "");
  CHECK_THAT(file.append("line\n"), Contains("/dev/full: cannot be written: No space left"));
}

}  // namespace
}  // namespace paceline::tools::task_records_test
