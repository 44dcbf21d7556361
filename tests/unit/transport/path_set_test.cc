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

// With four planes and two paths on each.
constexpr unsigned kPlanes = 4;
unsigned plane_of(std::uint16_t port) { return port % kPlanes; }

TEST_CASE("paths: planes are used in strict turn, whatever is known of their paths",
          "[transport]") {
  PathSet paths(kBase, 8, 1, kPlanes);
  std::set<std::uint16_t> used;
  unsigned plane = plane_of(paths.next_port());
  for (int i = 0; i < 80; ++i) {
    paths.marked(kBase + 2);
    paths.marked(kBase + 5);
    paths.marked(kBase + 1);
    const std::uint16_t port = paths.next_port();
    CHECK(plane_of(port) == (plane + 1) % kPlanes);
    plane = plane_of(port);
    used.insert(port);
  }
  CHECK(used.size() >= 7);  // of the plane of 1 and 5 either path is as good
  CHECK(used.count(kBase + 2) == 0);
}

TEST_CASE("paths: a plane that carries nothing is left out, tried again, and used when it works",
          "[transport]") {
  PathSet paths(kBase, 8, 1, kPlanes);
  const auto dead = [](std::uint16_t port) { return plane_of(port) == plane_of(kBase + 1); };
  CHECK_FALSE(paths.failed(kBase + 1));
  unsigned tried = 0, last_tried = 0;
  for (unsigned i = 0; i < 4000; ++i) {
    const std::uint16_t port = paths.next_port();
    if (!dead(port)) {
      paths.arrived(port);
      continue;
    }
    CHECK(paths.failed(port) == (tried >= 4));  // the first two losses of a path may be congestion
    paths.lost(port);
    ++tried;
    last_tried = i;
  }
  CHECK(tried < 60);
  CHECK(last_tried > 3000);
  CHECK(paths.failed(kBase + 5));
  unsigned used = 0;
  for (unsigned i = 0; i < 1600; ++i) {
    const std::uint16_t port = paths.next_port();
    paths.arrived(port);
    used += i >= 1200 && dead(port) ? 1U : 0U;
  }
  CHECK(used == 100);
  CHECK_FALSE(paths.failed(kBase + 1));
}

// A sender of little has a few packets until its retries are used up: one must find the plane that
// has come back.
TEST_CASE("paths: where every plane has failed, each is tried in turn", "[transport]") {
  PathSet paths(kBase, 8, 1, kPlanes);
  for (int times = 0; times < 5; ++times) {
    for (std::uint16_t i = 0; i < 8; ++i) paths.lost(static_cast<std::uint16_t>(kBase + i));
  }
  std::map<unsigned, int> used;
  for (unsigned i = 0; i < 2 * kPlanes; ++i) ++used[plane_of(paths.next_port())];
  CHECK(used.size() == kPlanes);
  for (const auto& [plane, count] : used) CHECK(count == 2);
  const auto up = static_cast<std::uint8_t>(0xF & ~(1U << plane_of(kBase + 3)));
  for (unsigned i = 0; i < 8; ++i) CHECK(plane_of(paths.next_port(up)) != plane_of(kBase + 3));
}

TEST_CASE("paths: a plane that was left out is used again when all is forgotten", "[transport]") {
  PathSet paths(kBase, 8, 1, kPlanes);
  const std::uint16_t dead = kBase + 1;
  for (int times = 0; times < 5; ++times) {
    paths.lost(dead);
    paths.lost(dead + kPlanes);
  }
  const auto uses = [&paths] {
    int used = 0;
    for (unsigned i = 0; i < 2 * kPlanes; ++i)
      used += plane_of(paths.next_port()) == plane_of(dead);
    return used;
  };
  CHECK(uses() == 0);
  paths.forget();
  CHECK(uses() == 2);
}

TEST_CASE("paths: a plane whose link is down here is left out at once", "[transport]") {
  PathSet paths(kBase, 8, 1, kPlanes);
  const auto up = static_cast<std::uint8_t>(0xF & ~(1U << plane_of(kBase + 3)));
  std::map<unsigned, unsigned> used;
  for (int i = 0; i < 300; ++i) ++used[plane_of(paths.next_port(up))];
  CHECK(used.size() == 3);
  for (const auto& [plane, count] : used) CHECK(count == 100);
  for (int i = 0; i < 40; ++i) ++used[plane_of(paths.next_port(0xF))];
  CHECK(used[plane_of(kBase + 3)] == 10);
  CHECK(paths.next_port(0) != 0);  // with none up any will do
  // What was lost there before does not count once the link is back.
  for (int i = 0; i < 4; ++i) paths.lost(kBase + 3);
  for (int i = 0; i < 12; ++i) paths.next_port(up);
  CHECK(paths.penalty(kBase + 3) != 0);
  for (int i = 0; i < 4; ++i) paths.next_port(0xF);
  CHECK(paths.penalty(kBase + 3) == 0);
}

TEST_CASE("paths: with one plane, losses are never taken for its failure", "[transport]") {
  PathSet paths(kBase, 8, 1);
  for (int i = 0; i < 10; ++i) paths.lost(kBase);
  CHECK_FALSE(paths.failed(kBase));
}

}  // namespace
}  // namespace paceline::transport::test
