#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <thread>

#include "control/daemon/api/private_file.h"
#include "control/daemon/api/server/tokens.h"
#include "control/daemon/api/server/unix_socket.h"
#include "tests/unit/daemon_api/served.h"

namespace paceline::test {
namespace {

using daemon::LocalAccess;
using daemon::Tokens;
using daemon::UnixListener;

const std::string kReader(40, 'r');
const std::string kWriter(32, 'w');

TEST_CASE("root, the own user and members of the group may write", "[daemon_api]") {
  const gid_t groups[] = {5, 7};
  const uid_t stranger = ::geteuid() + 4711;
  CHECK(daemon::may_write(0, nullptr, 0, {}));
  CHECK(daemon::may_write(::geteuid(), nullptr, 0, {}));
  CHECK(daemon::may_write(stranger, groups, 2, {.group = 7}));
  CHECK_FALSE(daemon::may_write(stranger, groups, 2, {.group = 6}));
  CHECK_FALSE(daemon::may_write(stranger, groups, 2, {}));
  CHECK_FALSE(daemon::may_write(stranger, groups, 2, {.group = {}, .world_readable = true}));
}

TEST_CASE("tokens are read with their rights, and compared whole", "[daemon_api]") {
  Tokens tokens;
  const std::string text =
      "# who\n\nci write " + kWriter + "\ngrafana  read\t" + kReader + " # new\n";
  REQUIRE(tokens.parse(text, "t").empty());
  CHECK(tokens.size() == 2);
  CHECK(tokens.caller_of(kWriter)->name == "token ci");
  CHECK(tokens.caller_of(kWriter)->may_write);
  CHECK_FALSE(tokens.caller_of(kReader)->may_write);
  for (const std::string& wrong :
       {std::string(), kWriter + "w", kWriter.substr(1), "x" + kReader}) {
    CHECK_FALSE(tokens.caller_of(wrong));
  }
  CHECK(tokens.caller_by_header("Bearer " + kReader));
  CHECK(tokens.caller_by_header("bearer   " + kReader + " "));
  for (const std::string& wrong : {std::string(), kReader, "Basic " + kReader, "Bearer" + kReader,
                                   "Bearer " + kReader + " x", std::string("Bearer ")}) {
    CHECK_FALSE(tokens.caller_by_header(wrong));
  }
}

TEST_CASE("a file of tokens that is wrong keeps none, and says where", "[daemon_api]") {
  Tokens tokens;
  const std::string good = "a read " + kReader + "\n";
  for (const std::string& wrong :
       {std::string(), std::string("# nothing\n"), good + "b admin " + kWriter,
        good + "b write short", good + "b write " + kWriter + " more", good + "a write " + kWriter,
        good + "b write " + kReader, good + "b", good + "b write " + kWriter + "\xc3\xa4"}) {
    REQUIRE(tokens.parse(good, "t").empty());
    const std::string why = tokens.parse(wrong, "t");
    INFO(why);
    CHECK(why.starts_with(wrong.size() > 20 ? "t:2: " : "t: "));
    CHECK(why.find(kWriter) == std::string::npos);
    CHECK(tokens.size() == 0);
  }
}

TEST_CASE("secrets are read from private files only", "[daemon_api]") {
  const OwnFolder folder;
  const std::string path = folder / "tokens";
  std::ofstream(path) << "a read " << kReader << "\n";
  Tokens tokens;
  ::chmod(path.c_str(), 0640);
  CHECK(tokens.read_file(path).find("0600") != std::string::npos);
  CHECK(tokens.size() == 0);
  ::chmod(path.c_str(), 0600);
  CHECK(tokens.read_file(path).empty());
  CHECK(tokens.size() == 1);
  CHECK(tokens.read_file(folder / "missing").find("No such file") != std::string::npos);
  CHECK(tokens.read_file(folder.path).find("not a regular file") != std::string::npos);
  CHECK(tokens.size() == 0);
}

TEST_CASE("a stale socket is replaced, one that answers and other files are not", "[daemon_api]") {
  const OwnFolder folder;
  const std::string path = folder / "s";
  UnixListener first;
  REQUIRE(first.open(path, 0660, {}).empty());
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0660);

  UnixListener second;
  CHECK(second.open(path, 0660, {}).find("answers there already") != std::string::npos);
  second.close();
  CHECK(std::filesystem::exists(path));

  ::close(first.release());  // as if it had been killed: the file is left
  // Files made within one tick of the kernel's clock are not told apart.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  REQUIRE(second.open(path, 0600, {}).empty());
  first.close();  // its file is someone else's by now
  CHECK(std::filesystem::exists(path));
  second.close();
  CHECK_FALSE(std::filesystem::exists(path));

  std::ofstream(path) << "precious";
  CHECK(second.open(path, 0600, {}).find("not a socket") != std::string::npos);
  CHECK(std::filesystem::file_size(path) == 8);
  CHECK(second.open(std::string(200, 'x'), 0600, {}).find("1 to 107 bytes") != std::string::npos);
  CHECK(second.open(folder / "no/such/folder", 0600, {}).find("No such file") != std::string::npos);
}

TEST_CASE("only a listening Unix socket is taken over", "[daemon_api]") {
  UnixListener listener;
  CHECK_FALSE(listener.adopt(12345).empty());
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  CHECK(listener.adopt(pair[0]).find("not a listening") != std::string::npos);
  CHECK(listener.descriptor() == -1);
  ::close(pair[0]);
  ::close(pair[1]);
  CHECK(daemon::group_number("root") == gid_t{0});
  CHECK(daemon::group_number("17") == gid_t{17});
  CHECK_FALSE(daemon::group_number("no such group"));
  CHECK_FALSE(daemon::group_number(""));
}

}  // namespace
}  // namespace paceline::test
