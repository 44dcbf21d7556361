#include "tools/task/ranks/frames.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>

namespace paceline::tools {

namespace {

Frame only_frame(FrameReader& reader, const std::string& bytes) {
  reader.append(bytes);
  const auto frame = reader.next();
  REQUIRE(frame.has_value());
  return *frame;
}

const std::string kNonce(kNonceBytes, 'n');
const std::string kProof(64, 'a');

}  // namespace

TEST_CASE("what one rank writes another one reads", "[frames]") {
  FrameReader reader(kMostFrame);
  SECTION("hello") {
    const Hello hello{kNonce, kProof, 7, 3, 0x1234'5678'9ABC'DEF0U, "node7", "0.2.0"};
    const auto read = to_hello(only_frame(reader, to_frame(hello)).payload);
    REQUIRE(read.has_value());
    CHECK(read->nonce == kNonce);
    CHECK(read->proof == kProof);
    CHECK(read->rank == 7);
    CHECK(read->threads == 3);
    CHECK(read->program == 0x1234'5678'9ABC'DEF0U);
    CHECK(read->host == "node7");
    CHECK(read->version == "0.2.0");
  }
  SECTION("ready, tasks") {
    const auto ready = to_ready(only_frame(reader, to_frame(Ready{2, 11, 3, {5, 6, 7}})).payload);
    REQUIRE(ready.has_value());
    CHECK(ready->list == 2);
    CHECK(ready->key == 11);
    CHECK(ready->size == 3);
    CHECK(ready->task_keys == std::vector<std::uint64_t>{5, 6, 7});
    const auto tasks =
        to_task_numbers(only_frame(reader, to_frame(TaskNumbers{2, {9, 1}})).payload);
    REQUIRE(tasks.has_value());
    CHECK(tasks->tasks == std::vector<std::uint64_t>{9, 1});
  }
  SECTION("records, also several frames of them") {
    DoneTasks done{4, {}};
    for (std::uint64_t task = 0; task < 5; ++task) {
      done.tasks.push_back({task, TaskEnd::record, task, 0.5, 0.25, std::string(700'000, 'r')});
    }
    done.tasks.push_back({5, TaskEnd::refused, 0, 0, 0, "why"});
    reader.append(to_frames(done));
    std::size_t seen = 0;
    std::size_t frames = 0;
    while (const auto frame = reader.next()) {
      ++frames;
      const auto read = to_done_tasks(frame->payload);
      REQUIRE(read.has_value());
      CHECK(read->list == 4);
      for (const DoneTask& task : read->tasks) {
        CHECK(task.task == seen);
        CHECK(task.end == done.tasks[seen].end);
        CHECK(task.text == done.tasks[seen].text);
        CHECK(task.seconds == done.tasks[seen].seconds);
        ++seen;
      }
    }
    CHECK(seen == 6);
    CHECK(frames == 3);
    CHECK(reader.error().empty());
    CHECK(reader.empty());
  }
  SECTION("challenge, welcome, finish, stop") {
    CHECK(to_challenge(only_frame(reader, to_frame(Challenge{kNonce})).payload)->nonce == kNonce);
    CHECK(to_welcome(only_frame(reader, to_frame(Welcome{kProof})).payload)->proof == kProof);
    CHECK(to_finish(only_frame(reader, to_frame(Finish{3})).payload)->list == 3);
    CHECK(to_stop(only_frame(reader, to_frame(Stop{true})).payload)->whole);
  }
}

TEST_CASE("a frame may come byte by byte", "[frames]") {
  const std::string bytes = to_frame(Ready{1, 2, 3, {4}}) + to_frame(Finish{9});
  FrameReader reader(100);
  std::size_t frames = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    reader.append(bytes.substr(i, 1));
    while (reader.next()) ++frames;
    CHECK(reader.empty() == (frames == 2 || i + 1 == to_frame(Ready{1, 2, 3, {4}}).size()));
  }
  CHECK(frames == 2);
}

TEST_CASE("frames that are too long, empty or unknown stop the reader", "[frames]") {
  SECTION("too long: refused before its bytes have come") {
    FrameReader reader(100);
    reader.append(std::string("\x65\0\0\0\x01", 5));
    CHECK_FALSE(reader.next().has_value());
    CHECK(reader.error() == "a frame of 101 bytes; 1 to 100 are allowed");
    reader.append(to_frame(Finish{1}));
    CHECK_FALSE(reader.next().has_value());
  }
  SECTION("4 GiB") {
    FrameReader reader(kMostFrame);
    reader.append("\xFF\xFF\xFF\xFF\x06");
    CHECK_FALSE(reader.next().has_value());
    CHECK(reader.error() == "a frame of 4294967295 bytes; 1 to 268435456 are allowed");
  }
  SECTION("empty") {
    FrameReader reader(100);
    reader.append(std::string("\0\0\0\0\x01", 5));
    CHECK_FALSE(reader.next().has_value());
    CHECK_FALSE(reader.error().empty());
  }
  SECTION("unknown") {
    FrameReader reader(100);
    reader.append(std::string("\x01\0\0\0\x63", 5));
    CHECK_FALSE(reader.next().has_value());
    CHECK(reader.error() == "a frame of the unknown kind 99");
  }
}

TEST_CASE("a payload that is cut short or goes on gives no value", "[frames]") {
  const auto payload = [](const std::string& frame) { return frame.substr(kFrameHead); };
  const std::string hello = payload(to_frame(Hello{kNonce, kProof, 1, 1, 2, "host", "0.2.0"}));
  const std::string ready = payload(to_frame(Ready{1, 2, 3, {4, 5}}));
  const std::string tasks = payload(to_frame(TaskNumbers{1, {2, 3}}));
  const std::string records =
      payload(to_frames({1, {{2, TaskEnd::record, 3, 0.5, 0.5, "record"}}}));
  for (std::size_t length = 0; length < hello.size(); ++length) {
    CHECK_FALSE(to_hello(hello.substr(0, length)).has_value());
  }
  for (std::size_t length = 0; length < ready.size(); ++length) {
    CHECK_FALSE(to_ready(ready.substr(0, length)).has_value());
  }
  for (std::size_t length = 0; length < tasks.size(); ++length) {
    CHECK_FALSE(to_task_numbers(tasks.substr(0, length)).has_value());
  }
  for (std::size_t length = 0; length < records.size(); ++length) {
    // Four bytes are the number of a list without records.
    CHECK(to_done_tasks(records.substr(0, length)).has_value() == (length == 4));
  }
  CHECK_FALSE(to_hello(hello + "x").has_value());
  CHECK_FALSE(to_ready(ready + "x").has_value());
  CHECK_FALSE(to_task_numbers(tasks + "x").has_value());
  CHECK_FALSE(to_done_tasks(records + "x").has_value());
}

TEST_CASE("a payload with impossible values gives no value", "[frames]") {
  const auto records = [](TaskEnd end, double seconds, const std::string& text) {
    return to_done_tasks(to_frames({1, {{2, end, 3, 0.5, seconds, text}}}).substr(kFrameHead));
  };
  CHECK(records(TaskEnd::broken, 0, "why").has_value());
  CHECK_FALSE(records(static_cast<TaskEnd>(3), 0, "why").has_value());
  CHECK_FALSE(records(TaskEnd::record, -1, "why").has_value());
  CHECK_FALSE(
      records(TaskEnd::record, std::numeric_limits<double>::quiet_NaN(), "why").has_value());
  CHECK_FALSE(records(TaskEnd::record, std::numeric_limits<double>::infinity(), "why").has_value());
  CHECK_FALSE(records(TaskEnd::record, 0, "").has_value());
  // A count of numbers that are not there allocates nothing.
  CHECK_FALSE(to_task_numbers(std::string("\1\0\0\0\xFF\xFF\xFF\xFF", 8)).has_value());
}

}  // namespace paceline::tools
