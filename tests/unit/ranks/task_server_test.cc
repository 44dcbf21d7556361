// Rank 0 and other ranks in one process, over sockets of this machine; among them some that break
// the rules.
#include "tools/task/ranks/task_server.h"

#include <poll.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/unit/ranks/square_tasks.h"
#include "tools/task/input_keys.h"
#include "tools/task/ranks/meeting_point.h"
#include "tools/task/ranks/rank_proof.h"
#include "tools/task/ranks/task_worker.h"

namespace paceline::tools {

namespace {

constexpr double kPatience = 20;
const std::string kToken(kTokenBytes, 't');

MeetingPoint meeting_of(const TaskServer& server) { return {kToken, server.port(), {"127.0.0.1"}}; }

RankRun serve(TaskServer& server, SquareTasks& tasks, double patience = kPatience) {
  return server.run(tasks, tasks.all(), 1, Keepers::first_rank, patience, true);
}

// A rank that keeps the rules, on a thread.
class GoodRank {
 public:
  GoodRank(const TaskServer& server, std::uint32_t rank, SquareTasks& tasks,
           Keepers keepers = Keepers::first_rank)
      : worker_(meeting_of(server), rank) {
    REQUIRE(worker_.connect().empty());
    thread_ = std::thread([this, &tasks, keepers] {
      if (worker_.wait_for_first(2)) run_ = worker_.run(tasks, 2, keepers);
    });
  }
  ~GoodRank() {
    if (thread_.joinable()) thread_.join();
  }
  RankRun end() {
    thread_.join();
    RankRun stopped;  // told to stop before it had begun
    stopped.end = RankRun::End::interrupted;
    return run_.value_or(stopped);
  }

 private:
  TaskWorker worker_;
  std::optional<RankRun> run_;
  std::thread thread_;
};

// One that says what a test wants.
class RawRank {
 public:
  explicit RawRank(const TaskServer& server) {
    auto connected = connect_to("127.0.0.1", server.port(), 5);
    REQUIRE(connected.ok());
    socket_ = std::make_unique<RankSocket>(std::move(connected.value), kMostFrame);
  }

  // The payload of the next frame; none: rank 0 has closed the connection.
  std::optional<std::string> read(FrameKind kind) {
    for (int tries = 0; tries < 1000; ++tries) {
      if (const auto frame = socket_->frames().next()) {
        if (frame->kind != kind) throw std::runtime_error("another frame has come");
        return std::string(frame->payload);
      }
      pollfd wait{socket_->descriptor(), POLLIN, 0};
      ::poll(&wait, 1, 20);
      if (!socket_->receive(cost_)) return {};
    }
    throw std::runtime_error("nothing has come");
  }
  bool closed() {
    for (int tries = 0; tries < 1000; ++tries) {
      pollfd wait{socket_->descriptor(), POLLIN, 0};
      ::poll(&wait, 1, 20);
      if (!socket_->receive(cost_)) return true;
    }
    return false;
  }
  void send(const std::string& bytes) { socket_->send(bytes, cost_); }
  void hello(std::uint32_t rank, const std::string& token = kToken) {
    const auto challenge = to_challenge(read(FrameKind::challenge).value());
    Hello hello;
    hello.nonce = std::string(kNonceBytes, 'n');
    hello.proof = rank_proof(token, RankRole::other, challenge->nonce, hello.nonce);
    hello.rank = rank;
    hello.program = program_key();
    hello.host = "raw";
    hello.version = "test";
    send(to_frame(hello));
  }
  // Up to the first tasks that it is given.
  std::vector<std::uint64_t> take_tasks(std::uint32_t rank, const SquareTasks& tasks) {
    hello(rank);
    read(FrameKind::welcome).value();
    send(to_frame(Ready{0, tasks.key(), tasks.size(), {}}));
    return to_task_numbers(read(FrameKind::tasks).value())->tasks;
  }
  void close() { socket_.reset(); }

 private:
  std::unique_ptr<RankSocket> socket_;
  SocketCost cost_;
};

// Long enough that other ranks get their part.
void give_others_time(std::size_t, const std::atomic<bool>&) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace

TEST_CASE("ranks execute a list together, and rank 0 keeps the records", "[ranks][threads]") {
  TaskServer server(kToken, 3);
  SquareTasks tasks(200);
  SquareTasks first(200);
  SquareTasks second(200);
  tasks.before = first.before = second.before = give_others_time;
  GoodRank one(server, 1, first);
  GoodRank two(server, 2, second);
  const RankRun run = serve(server, tasks);
  CHECK(run.end == RankRun::End::complete);
  CHECK(run.error.empty());
  CHECK(run.failures.empty());
  CHECK(run.executed == 200);
  CHECK(run.hops == 200);
  CHECK(tasks.whole());
  CHECK(one.end().end == RankRun::End::complete);
  CHECK(two.end().end == RankRun::End::complete);
  CHECK(first.kept + second.kept == 0);
  CHECK(first.executed > 0);
  CHECK(second.executed > 0);
  CHECK(tasks.executed + first.executed + second.executed >= 200);
}

TEST_CASE("where the next list depends on it, every rank keeps every record", "[ranks][threads]") {
  TaskServer server(kToken, 3);
  std::vector<std::thread> threads;
  std::atomic<unsigned> good{0};
  for (std::uint32_t rank : {1U, 2U}) {
    threads.emplace_back([&, rank, meeting = meeting_of(server)] {
      TaskWorker worker(meeting, rank);
      if (!worker.connect().empty() || !worker.wait_for_first(1)) return;
      for (std::size_t list = 0; list < 3; ++list) {
        SquareTasks mine(20 + list);
        const RankRun run = worker.run(mine, 1, Keepers::every_rank);
        good += run.end == RankRun::End::complete && mine.whole();
      }
    });
  }
  for (std::size_t list = 0; list < 3; ++list) {
    SquareTasks mine(20 + list);
    const RankRun run = server.run(mine, mine.all(), 1, Keepers::every_rank, kPatience, true);
    CHECK(run.end == RankRun::End::complete);
    CHECK(mine.whole());
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good == 6);
}

TEST_CASE("tasks that are not wanted are not executed", "[ranks][threads]") {
  TaskServer server(kToken, 2);
  SquareTasks tasks(10);
  SquareTasks other(10);
  GoodRank one(server, 1, other);
  const std::vector<std::size_t> wanted = {3, 7};
  const RankRun run = server.run(tasks, wanted, 1, Keepers::first_rank, kPatience, true);
  CHECK(run.end == RankRun::End::complete);
  CHECK(run.executed == 2);
  CHECK(tasks.records[3] == "9");
  CHECK(tasks.records[7] == "49");
  CHECK(tasks.kept == 2);
  CHECK(one.end().end == RankRun::End::complete);
}

TEST_CASE("a rank with other files ends the command before the first run", "[ranks][threads]") {
  TaskServer server(kToken, 3);
  SquareTasks tasks(10);
  SquareTasks same(10);
  SquareTasks other(10, 1);
  GoodRank one(server, 1, same);
  GoodRank two(server, 2, other);
  const RankRun run = serve(server, tasks);
  CHECK(run.end == RankRun::End::failed);
  CHECK_THAT(run.error, Catch::StartsWith("rank 2 on "));
  CHECK_THAT(run.error,
             Catch::EndsWith(" has other files, plug-ins or options than rank 0 for square 5"));
  CHECK(tasks.executed + same.executed + other.executed == 0);
  CHECK(one.end().end == RankRun::End::interrupted);
  CHECK(two.end().end == RankRun::End::interrupted);
}

TEST_CASE("a rank with another number of runs is told apart", "[ranks][threads]") {
  TaskServer server(kToken, 2);
  SquareTasks tasks(10);
  SquareTasks other(11);
  GoodRank one(server, 1, other);
  const RankRun run = serve(server, tasks);
  CHECK_THAT(run.error, Catch::EndsWith(" has 11 runs to do and rank 0 has 10: its files or "
                                        "options are others"));
}

TEST_CASE("strangers are dropped, and nothing else happens", "[ranks][threads]") {
  TaskServer server(kToken, 2);
  SquareTasks tasks(50);
  SquareTasks other(50);
  RawRank wrong_token(server);
  RawRank http(server);
  RawRank long_frame(server);
  RawRank free_rank(server);
  RawRank silent(server);
  std::thread strangers([&] {
    http.send("GET / HTTP/1.1\r\nHost: rank0\r\n\r\n");
    long_frame.send(std::string("\xFF\xFF\xFF\x7F\x02", 5));
    wrong_token.hello(1, std::string(kTokenBytes, 'x'));
    free_rank.hello(2);  // there are ranks 0 and 1
    for (RawRank* stranger : {&http, &long_frame}) {
      stranger->read(FrameKind::challenge);
      if (!stranger->closed()) throw std::runtime_error("still connected");
    }
    if (!wrong_token.closed() || !free_rank.closed()) throw std::runtime_error("let in");
  });
  std::optional<GoodRank> one;
  std::thread later([&] {
    strangers.join();
    one.emplace(server, 1, other);
  });
  const RankRun run = serve(server, tasks);
  later.join();
  CHECK(run.end == RankRun::End::complete);
  CHECK(tasks.whole());
  CHECK(one->end().end == RankRun::End::complete);
}

TEST_CASE("what a lost rank had to do is done elsewhere", "[ranks][threads]") {
  TaskServer server(kToken, 2);
  SquareTasks tasks(20);
  tasks.before = give_others_time;
  const auto end_of_rank =
      GENERATE(as<std::string>{}, "", "\x10", "\xFF\xFF\xFF\xFF\x06", "\x01\x02\x03\x04\x05\x06");
  std::thread rank([&] {
    RawRank raw(server);
    if (raw.take_tasks(1, tasks).empty()) throw std::runtime_error("no tasks");
    raw.send(end_of_rank);
    raw.close();
  });
  const RankRun run = serve(server, tasks);
  rank.join();
  CHECK(run.end == RankRun::End::complete);
  CHECK(run.failures.empty());
  CHECK(run.executed == 20);
  CHECK(tasks.whole());
}

TEST_CASE("a record that nobody asked for costs a rank its place", "[ranks][threads]") {
  TaskServer server(kToken, 2);
  SquareTasks tasks(20);
  tasks.before = give_others_time;
  std::atomic<bool> dropped{false};
  std::thread rank([&] {
    RawRank raw(server);
    raw.take_tasks(1, tasks);
    raw.send(to_frames(
        {0, {{19, TaskEnd::record, 0, 0, 0, "361"}, {19, TaskEnd::record, 0, 0, 0, "-1"}}}));
    dropped = raw.closed();
  });
  const RankRun run = serve(server, tasks);
  rank.join();
  CHECK(dropped);
  CHECK(run.end == RankRun::End::complete);
  CHECK(tasks.whole());
}

TEST_CASE("a task that ends three processes has failed; the others are done", "[ranks][threads]") {
  TaskServer server(kToken, 4);
  SquareTasks tasks(1 + 20);
  tasks.before = [](std::size_t task, const std::atomic<bool>&) {
    // Rank 0 begins with task 0, and is busy until the others have had theirs.
    std::this_thread::sleep_for(std::chrono::milliseconds(task == 0 ? 1500 : 1));
  };
  std::vector<std::uint64_t> ended;
  std::thread ranks([&] {
    for (std::uint32_t rank = 1; rank < 4; ++rank) {
      RawRank raw(server);
      ended.push_back(raw.take_tasks(rank, tasks).front());
      raw.close();
    }
  });
  const RankRun run = serve(server, tasks, 0);
  ranks.join();
  REQUIRE(ended.size() == 3);
  CHECK(ended[1] == ended[0]);
  CHECK(ended[2] == ended[0]);
  CHECK(run.end == RankRun::End::complete);
  REQUIRE(run.failures.size() == 1);
  CHECK(run.failures[0] == "square " + std::to_string(ended[0]) +
                               ": tried 3 times; the last: rank 3 on raw has ended");
  CHECK(run.executed == 20);
}

TEST_CASE("a record that cannot be kept ends the command", "[ranks][threads]") {
  TaskServer server(kToken, 2);
  SquareTasks tasks(50);
  SquareTasks other(50);
  tasks.full_after = 7;
  tasks.before = other.before = give_others_time;
  GoodRank one(server, 1, other);
  const RankRun run = serve(server, tasks);
  CHECK(run.end == RankRun::End::failed);
  CHECK(run.error == "the disk is full");
  CHECK(tasks.kept == 7);
  CHECK(one.end().end == RankRun::End::interrupted);
}

TEST_CASE("a world that cannot be built ends the command, wherever it was tried",
          "[ranks][threads]") {
  TaskServer server(kToken, 2);
  SquareTasks tasks(50);
  SquareTasks other(50);
  tasks.before = give_others_time;
  other.before = [](std::size_t, const std::atomic<bool>&) {
    throw std::invalid_argument("no such switch");
  };
  GoodRank one(server, 1, other);
  const RankRun run = serve(server, tasks);
  CHECK(run.end == RankRun::End::failed);
  CHECK_THAT(run.error, Catch::StartsWith("square "));
  CHECK_THAT(run.error, Catch::EndsWith(": no such switch"));
  CHECK(one.end().end == RankRun::End::interrupted);
}

TEST_CASE("a rank without memory for a task leaves it to others", "[ranks][threads]") {
  TaskServer server(kToken, 2);
  SquareTasks tasks(20);
  SquareTasks other(20);
  tasks.before = give_others_time;
  std::atomic<bool> once{false};
  other.before = [&](std::size_t, const std::atomic<bool>&) {
    if (!once.exchange(true)) throw std::bad_alloc();
  };
  GoodRank one(server, 1, other);
  const RankRun run = serve(server, tasks);
  CHECK(run.end == RankRun::End::complete);
  CHECK(run.failures.empty());
  CHECK(tasks.whole());
  CHECK(one.end().end == RankRun::End::complete);
}

TEST_CASE("a rank that hangs is waited for no longer than a copy of its task takes",
          "[ranks][threads]") {
  TaskServer server(kToken, 2);
  SquareTasks tasks(10);
  SquareTasks other(10);
  std::atomic<bool> hung{false};
  other.before = [&](std::size_t, const std::atomic<bool>& stop) {
    hung = true;
    while (!stop.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  tasks.before = give_others_time;
  GoodRank one(server, 1, other);
  const RankRun run = serve(server, tasks);
  CHECK(hung);
  CHECK(run.end == RankRun::End::complete);
  CHECK(tasks.whole());
  CHECK(one.end().end == RankRun::End::complete);
}

TEST_CASE("a rank that was never let in does not wait for a rank 0 that stops",
          "[ranks][threads]") {
  TaskServer server(kToken, 2);
  TaskWorker worker(meeting_of(server), 1);
  REQUIRE(worker.connect().empty());
  server.stop();
  CHECK_FALSE(worker.wait_for_first(1));
}

TEST_CASE("a rank says why it cannot reach rank 0", "[ranks][threads]") {
  std::uint16_t port = 0;
  { const attach::Descriptor nobody = listen_on_all(port); }
  TaskWorker worker({kToken, port, {"127.0.0.1", "::1"}}, 3);
  const std::string problem = worker.connect();
  CHECK_THAT(problem, Catch::StartsWith("rank 3 on "));
  CHECK_THAT(problem, Catch::Contains("127.0.0.1 port " + std::to_string(port) + ": "));
  CHECK_THAT(problem, Catch::Contains("; ::1 port "));
}

}  // namespace paceline::tools
