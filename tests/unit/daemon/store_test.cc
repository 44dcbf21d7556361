// What the store has acknowledged is there again, whatever happened to the process or the file.
#include "control/daemon/store/store.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/unit/daemon/scratch_folder.h"

namespace paceline::daemon {

using nlohmann::json;

TEST_CASE("documents are put, replaced, listed by key and erased", "[store]") {
  const ScratchFolder folder;
  Store store;
  REQUIRE(store.open(folder.file("a.db"), 1).empty());
  REQUIRE(store.put("preset", "b", json{{"x", 1}}, 10).empty());
  REQUIRE(store.put("preset", "a", json{{"x", 2}}, 11).empty());
  REQUIRE(store.put("other", "a", json{{"x", 3}}, 12).empty());
  REQUIRE(store.put("preset", "b", json{{"x", 4}}, 13).empty());
  CHECK(store.get("preset", "b") == json{{"x", 4}});
  CHECK_FALSE(store.get("preset", "c").has_value());
  const auto all = store.list("preset");
  REQUIRE(all.size() == 2);
  CHECK(all[0].key == "a");
  CHECK(all[1].at_unix_ns == 13);
  REQUIRE(store.erase("preset", "a").empty());
  CHECK(store.list("preset").size() == 1);
  CHECK(store.list("other").size() == 1);
}

TEST_CASE("entries keep their order, and numbers are never used twice", "[store]") {
  const ScratchFolder folder;
  Store store;
  REQUIRE(store.open(folder.file("a.db"), 1).empty());
  std::int64_t number = 0;
  std::int64_t last = 0;
  for (int i = 0; i < 20; ++i) {
    REQUIRE(store.append("event", i % 2 == 0 ? "even" : "odd", json{{"i", i}}, i, number).empty());
    CHECK(number > last);
    last = number;
  }
  CHECK(store.entries("event", "odd").size() == 10);
  CHECK(store.entries("event", {}, last - 3).size() == 3);
  CHECK(store.entries("event", {}, 0, 7).size() == 7);
  CHECK(store.newest("event", 1).front().body == json{{"i", 19}});
  CHECK(store.newest("event", 3).front().body == json{{"i", 17}});
  REQUIRE(store.replace(last, json{{"i", "new"}}).empty());
  CHECK(store.newest("event", 1).front().body == json{{"i", "new"}});
  REQUIRE(store.prune("event", 5).empty());
  CHECK(store.entries("event").size() == 5);
  REQUIRE(store.prune("event", 0).empty());
  REQUIRE(store.append("event", "", json::object(), 0, number).empty());
  CHECK(number > last);
}

TEST_CASE("bytes that are no UTF-8 are kept as well as may be", "[store]") {
  const ScratchFolder folder;
  Store store;
  REQUIRE(store.open(folder.file("a.db"), 1).empty());
  CHECK(store.put("k", "a", json{{"name", "\xff\xfe"}}, 1).empty());
  CHECK(store.get("k", "a").has_value());
}

TEST_CASE("a process that is killed loses nothing it was told is kept", "[store]") {
  const ScratchFolder folder;
  const std::string path = folder.file("a.db");
  int told[2];
  REQUIRE(::pipe(told) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(told[0]);
    Store store;
    if (!store.open(path, 1).empty()) ::_exit(1);
    for (std::int64_t i = 1;; ++i) {
      std::int64_t number = 0;
      if (!store.append("event", "", json{{"i", i}}, i, number).empty()) ::_exit(2);
      if (::write(told[1], &number, sizeof(number)) != sizeof(number)) ::_exit(3);
    }
  }
  ::close(told[1]);
  std::int64_t acknowledged = 0;
  std::int64_t number = 0;
  while (acknowledged < 40 && ::read(told[0], &number, sizeof(number)) == sizeof(number)) {
    acknowledged = number;
  }
  ::kill(child, SIGKILL);
  while (::read(told[0], &number, sizeof(number)) == sizeof(number)) acknowledged = number;
  ::close(told[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(acknowledged >= 40);

  Store store;
  REQUIRE(store.open(path, 2).empty());
  CHECK(store.notes().empty());
  const auto entries = store.entries("event");
  REQUIRE(static_cast<std::int64_t>(entries.size()) >= acknowledged);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    CHECK(entries[i].body == json{{"i", static_cast<std::int64_t>(i) + 1}});
  }
}

TEST_CASE("a damaged file is moved aside, with its log, and work goes on", "[store]") {
  const ScratchFolder folder;
  const std::string path = folder.file("a.db");
  std::ofstream(path) << std::string(8192, 'x');
  std::ofstream(path + "-wal") << "leftover";
  Store store;
  REQUIRE(store.open(path, 1'700'000'000'000'000'000).empty());
  REQUIRE(store.notes().size() == 1);
  CHECK(store.notes()[0].find("damaged") != std::string::npos);
  CHECK(std::filesystem::exists(path + ".damaged-1700000000"));
  CHECK(store.put("k", "a", json::object(), 1).empty());
  struct stat facts {};
  REQUIRE(::stat(path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
}

TEST_CASE("a file with pages overwritten is found damaged when it is opened", "[store]") {
  const ScratchFolder folder;
  const std::string path = folder.file("a.db");
  {
    Store store;
    REQUIRE(store.open(path, 1).empty());
    std::int64_t number = 0;
    for (int i = 0; i < 400; ++i) {
      REQUIRE(store.append("event", "", json{{"text", std::string(200, 'y')}}, i, number).empty());
    }
  }
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8192);
    file << std::string(20000, '\x5a');
  }
  Store store;
  REQUIRE(store.open(path, 5'000'000'000).empty());
  CHECK(store.notes().size() == 1);
  CHECK(store.entries("event").empty());
  CHECK(std::filesystem::exists(path + ".damaged-5"));
}

TEST_CASE("a newer schema is refused and left as it is", "[store]") {
  const ScratchFolder folder;
  const std::string path = folder.file("a.db");
  {
    Database database;
    REQUIRE(database.open(path).ok());
    REQUIRE(
        database.run("PRAGMA user_version=99; CREATE TABLE t(x); INSERT INTO t VALUES(7)").ok());
  }
  Store store;
  const std::string wrong = store.open(path, 1);
  CHECK(wrong.find("schema 99") != std::string::npos);
  Database database;
  REQUIRE(database.open(path).ok());
  CHECK(database.ask("SELECT x FROM t", 0) == 7);
}

TEST_CASE("two daemons do not share a file", "[store]") {
  const ScratchFolder folder;
  Store first;
  REQUIRE(first.open(folder.file("a.db"), 1).empty());
  Store second;
  CHECK(second.open(folder.file("a.db"), 1).find("another pacelined") != std::string::npos);
}

TEST_CASE("a full disk is told, reading goes on, and writing when there is room", "[store]") {
  const ScratchFolder folder;
  Store store;
  REQUIRE(store.open(folder.file("a.db"), 1).empty());
  REQUIRE(store.put("k", "a", json{{"x", 1}}, 1).empty());
  store.limit_pages(8);
  std::string wrong;
  for (int i = 0; i < 100 && wrong.empty(); ++i) {
    std::int64_t number = 0;
    wrong = store.append("event", "", json{{"t", std::string(4000, 'z')}}, i, number);
  }
  REQUIRE(wrong.find("full") != std::string::npos);
  CHECK(store.trouble() == wrong);
  CHECK(store.get("k", "a") == json{{"x", 1}});
  store.limit_pages(1'000'000);
  CHECK(store.put("k", "b", json{{"t", std::string(40000, 'z')}}, 1).empty());
  CHECK(store.trouble().empty());
}

}  // namespace paceline::daemon
