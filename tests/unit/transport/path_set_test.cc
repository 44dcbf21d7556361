// Paths in turn; bad ones left out for a while.
#include "dataplane/transport/state/selective/path_set.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>

namespace paceline::transport::test {
namespace {

constexpr std::uint16_t kBase = wire::kFirstSourcePort + 100;

TEST_CASE("paths: one path is one port", "[transport]") {
  PathSet paths(kBase, 1, 1);
  for (int i = 0; i < 5; ++i) CHECK(paths.next_port() == kBase);
  paths.marked(kBase);
  paths.lost(kBase);
  CHECK(paths.next_port() == kBase);
  CHECK(paths.last_port() == kBase);
}

TEST_CASE("paths: each in turn, for as many packets as the run has", "[transport]") {
  PathSet paths(kBase, 4, 3);
  std::map<std::uint16_t, int> used;
  std::uint16_t before = 0;
  int changes = 0;
  for (int i = 0; i < 24; ++i) {
    const std::uint16_t port = paths.next_port();
    CHECK(port == paths.last_port());
    changes += port != before ? 1 : 0;
    before = port;
    ++used[port];
  }
  CHECK(used.size() == 4);
  for (const auto& [port, count] : used) CHECK(count == 6);
  CHECK(changes == 8);
}

TEST_CASE("paths: ports stay in the range that RoCE uses for entropy", "[transport]") {
  PathSet paths(0xFFFE, 8, 1);
  std::set<std::uint16_t> used;
  for (int i = 0; i < 16; ++i) {
    const std::uint16_t port = paths.next_port();
    CHECK(port >= wire::kFirstSourcePort);
    used.insert(port);
  }
  CHECK(used.size() == 8);
  paths.lost(wire::kFirstSourcePort);  // beyond the wrap: still one of them
  CHECK(paths.penalty(wire::kFirstSourcePort) != 0);
}

TEST_CASE("paths: a marked one is left out once, a lost one longer, and both come back",
          "[transport]") {
  PathSet paths(kBase, 8, 1);
  for (int i = 0; i < 8; ++i) paths.next_port();
  paths.marked(kBase + 2);
  paths.lost(kBase + 5);
  std::map<std::uint16_t, int> used;
  for (int i = 0; i < 200; ++i) ++used[paths.next_port()];
  CHECK(used[kBase + 2] == used[kBase + 3] - 1);
  CHECK(used[kBase + 5] == used[kBase + 3] - 4);
  CHECK(paths.penalty(kBase + 2) == 0);
  CHECK(paths.penalty(kBase + 5) == 0);
}

TEST_CASE("paths: losses in a row cost more and more, until something arrives", "[transport]") {
  PathSet paths(kBase, 2, 1);
  for (const unsigned turns : {4U, 8U, 16U, 32U, 64U, 64U}) {
    paths.lost(kBase);
    CHECK(paths.penalty(kBase) == turns);
    for (unsigned i = 0; i < 2 * turns; ++i) paths.next_port();
    CHECK(paths.penalty(kBase) == 0);
  }
  paths.arrived(kBase);
  paths.lost(kBase);
  CHECK(paths.penalty(kBase) == 4);
}

TEST_CASE("paths: when all are bad none is left out for ever; strange ports do nothing",
          "[transport]") {
  PathSet paths(kBase, 4, 1);
  std::set<std::uint16_t> used;
  for (int round = 0; round < 50; ++round) {
    for (std::uint16_t i = 0; i < 4; ++i) paths.lost(static_cast<std::uint16_t>(kBase + i));
    used.insert(paths.next_port());
  }
  CHECK(used.size() == 4);
  paths.lost(4791);
  paths.marked(kBase + 4);
  CHECK(paths.penalty(4791) == 0);
  CHECK(paths.penalty(kBase + 4) == 0);
}

}  // namespace
}  // namespace paceline::transport::test
