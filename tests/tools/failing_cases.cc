// What tests/support/run_cases.py must tell apart. All are hidden: run_cases_test.py names them.
#include <chrono>
#include <csignal>
#include <thread>

#include <catch2/catch.hpp>

namespace {
int runs = 0;
}  // namespace

TEST_CASE("passes, in [0, 1)", "[.good][.mixed][.hangs]") {
  ++runs;
  CHECK(true);
}
TEST_CASE("passes, too", "[.good][.crash]") { ++runs; }
TEST_CASE("fails", "[.mixed]") { CHECK(1 == 2); }
TEST_CASE("crashes", "[.crash]") { std::raise(SIGKILL); }
TEST_CASE("hangs", "[.hangs]") { std::this_thread::sleep_for(std::chrono::seconds(60)); }
TEST_CASE("skips", "[.skips]") { WARN("skipped: no such device"); }
TEST_CASE("fails in company", "[.good_alone]") {
  CHECK(runs == 0);
  ++runs;
}
TEST_CASE("fails in company, too", "[.good_alone]") {
  CHECK(runs == 0);
  ++runs;
}
