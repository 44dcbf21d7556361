#include "tools/task/ranks/task_handout.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline::tools {

namespace {

using Verdict = TaskHandout::Verdict;
using Worker = TaskHandout::Worker;

std::vector<std::size_t> all_for(TaskHandout& handout, Worker worker, std::size_t most,
                                 double now = 0) {
  std::vector<std::size_t> tasks;
  while (tasks.size() < most) {
    const auto task = handout.next(worker, now);
    if (!task) break;
    tasks.push_back(*task);
  }
  return tasks;
}

}  // namespace

TEST_CASE("tasks are handed out in their order, each once", "[handout]") {
  TaskHandout handout(5);
  handout.skip(1);
  const Worker a = handout.add(1, false);
  const Worker b = handout.add(1, false);
  CHECK(all_for(handout, a, 2) == std::vector<std::size_t>{0, 2});
  CHECK(all_for(handout, b, 9) == std::vector<std::size_t>{3, 4});
  CHECK(handout.waiting() == 0);
  for (const std::size_t task : {0U, 2U}) CHECK(handout.take(a, task, 1) == Verdict::first);
  CHECK_FALSE(handout.over());
  for (const std::size_t task : {3U, 4U}) CHECK(handout.take(b, task, 1) == Verdict::first);
  CHECK(handout.over());
  CHECK(handout.done() == 5);
  CHECK(handout.failures().empty());
}

TEST_CASE("a record of a task that was not given is foreign", "[handout]") {
  TaskHandout handout(3);
  const Worker a = handout.add(1, false);
  const Worker b = handout.add(1, false);
  REQUIRE(handout.next(a, 0) == 0U);
  CHECK(handout.take(b, 0, 1) == Verdict::foreign);
  CHECK(handout.take(a, 1, 1) == Verdict::foreign);
  CHECK(handout.take(a, 99, 1) == Verdict::foreign);
  CHECK_FALSE(handout.broken(b, 0, "why"));
  CHECK(handout.take(a, 0, 1) == Verdict::first);
  CHECK(handout.take(a, 0, 1) == Verdict::foreign);
}

TEST_CASE("tasks of a lost worker come first, and only those under execution cost a try",
          "[handout]") {
  TaskHandout handout(8);
  const Worker a = handout.add(2, false);
  const Worker b = handout.add(2, false);
  REQUIRE(all_for(handout, a, 4) == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(handout.threads() == 4);
  handout.lose(a, "it ended");
  CHECK(handout.threads() == 2);
  // 0 and 1 may be what ended it; 2 and 3 waited behind them. A precious worker avoids the former.
  const Worker precious = handout.add(1, true);
  REQUIRE(handout.next(b, 0) == 0U);
  CHECK(all_for(handout, precious, 9) == std::vector<std::size_t>{2, 3, 4, 5, 6, 7});
  CHECK(all_for(handout, b, 9) == std::vector<std::size_t>{1});
}

TEST_CASE("a task that has cost three tries has failed, with the last reason", "[handout]") {
  TaskHandout handout(2);
  for (const char* reason : {"first", "second", "third"}) {
    CHECK_FALSE(handout.over());
    const Worker worker = handout.add(1, false);
    REQUIRE(handout.next(worker, 0) == 0U);
    handout.lose(worker, reason);
  }
  const Worker last = handout.add(1, true);
  REQUIRE(handout.next(last, 0) == 1U);
  CHECK_FALSE(handout.next(last, 0).has_value());
  CHECK(handout.take(last, 1, 0) == Verdict::first);
  CHECK(handout.over());
  REQUIRE(handout.failures().size() == 1);
  CHECK(handout.failures()[0].task == 0);
  CHECK(handout.failures()[0].reason == "tried 3 times; the last: third");
}

TEST_CASE("a task that cannot be executed goes to another worker", "[handout]") {
  TaskHandout handout(1);
  const Worker a = handout.add(1, false);
  const Worker b = handout.add(1, false);
  REQUIRE(handout.next(a, 0) == 0U);
  CHECK(handout.broken(a, 0, "no memory"));
  REQUIRE(handout.next(b, 0) == 0U);
  CHECK(handout.take(b, 0, 0) == Verdict::first);
}

TEST_CASE("a precious worker takes what cost a try when nobody else is left, or heard of",
          "[handout]") {
  TaskHandout handout(2);
  const Worker precious = handout.add(1, true);
  const Worker a = handout.add(1, false);
  const Worker silent = handout.add(1, false);
  REQUIRE(handout.next(a, 1) == 0U);
  REQUIRE(handout.next(silent, 1) == 1U);
  handout.lose(a, "it ended");
  CHECK_FALSE(handout.next(precious, 1.5).has_value());
  CHECK(handout.next(precious, 1 + TaskHandout::kLeastOutSeconds) == 0U);
}

TEST_CASE("a task that is out much longer than any other took is copied, once", "[handout]") {
  TaskHandout handout(3);
  const Worker stopped = handout.add(1, false);
  const Worker a = handout.add(1, false);
  const Worker b = handout.add(1, false);
  REQUIRE(handout.next(stopped, 0) == 0U);
  REQUIRE(handout.next(a, 0) == 1U);
  REQUIRE(handout.next(b, 0) == 2U);
  CHECK(handout.take(a, 1, 4) == Verdict::first);
  CHECK(handout.take(b, 2, 4) == Verdict::first);
  // The others took 4 s.
  CHECK_FALSE(handout.next(a, 7.9).has_value());
  CHECK(handout.next(a, 8) == 0U);
  CHECK_FALSE(handout.next(b, 100).has_value());
  CHECK(handout.take(a, 0, 12) == Verdict::first);
  CHECK(handout.over());
  CHECK(handout.take(stopped, 0, 99) == Verdict::again);
}

TEST_CASE("a lost copy is not handed out again while the other is under way", "[handout]") {
  TaskHandout handout(1);
  const Worker a = handout.add(1, false);
  const Worker b = handout.add(1, false);
  REQUIRE(handout.next(a, 0) == 0U);
  REQUIRE(handout.next(b, 5) == 0U);
  handout.lose(b, "it ended");
  CHECK(handout.waiting() == 0);
  CHECK(handout.take(a, 0, 6) == Verdict::first);
  CHECK(handout.over());
}

// Workers come, die and stop at random. Whatever they do, every task is over in the end: with one
// record that counts, or after three tries.
TEST_CASE("every task is over once, whoever dies", "[handout]") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const std::size_t tasks = 1 + random.below(60);
    TaskHandout handout(tasks);
    std::map<Worker, std::vector<std::size_t>> held;
    std::map<Worker, unsigned> threads;
    std::set<Worker> stopped;
    std::vector<unsigned> firsts(tasks, 0);
    std::vector<unsigned> tries(tasks, 0);
    const Worker own = handout.add(1, true);
    held[own];
    threads[own] = 1;
    double now = 0;
    for (unsigned step = 0; !handout.over(); ++step) {
      REQUIRE(step < 100'000);
      now += 0.1;
      const std::uint64_t dice = random.below(100);
      if (dice < 5 && held.size() < 6) {
        const unsigned count = 1 + static_cast<unsigned>(random.below(3));
        const Worker worker = handout.add(count, false);
        held[worker];
        threads[worker] = count;
        continue;
      }
      auto at = held.begin();
      std::advance(at, static_cast<std::ptrdiff_t>(random.below(held.size())));
      auto& [worker, theirs] = *at;
      if (dice < 9 && worker != own) {
        for (std::size_t i = 0; i < theirs.size() && i < threads[worker]; ++i) ++tries[theirs[i]];
        handout.lose(worker, "it ended");
        held.erase(at);
        continue;
      }
      if (dice < 12 && worker != own) stopped.insert(worker);
      if (stopped.contains(worker)) continue;
      if (dice < 50) {
        if (const auto task = handout.next(worker, now)) {
          REQUIRE(*task < tasks);
          REQUIRE(std::find(theirs.begin(), theirs.end(), *task) == theirs.end());
          theirs.push_back(*task);
        }
      } else if (!theirs.empty()) {
        const std::size_t task = theirs.front();
        theirs.erase(theirs.begin());
        const Verdict verdict = handout.take(worker, task, now);
        REQUIRE(verdict != Verdict::foreign);
        firsts[task] += verdict == Verdict::first;
      }
      REQUIRE(handout.held(worker) == theirs.size());
    }
    std::set<std::size_t> failed;
    for (const auto& failure : handout.failures()) failed.insert(failure.task);
    for (std::size_t task = 0; task < tasks; ++task) {
      REQUIRE(firsts[task] + failed.count(task) == 1);
      if (failed.contains(task)) REQUIRE(tries[task] >= TaskHandout::kMostTries);
    }
  }
}

}  // namespace paceline::tools
