// The operation `capture` of the control socket: who may begin one, what he gets, and that it ends
// with his connection.
#include <sys/mman.h>

#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dataplane/port/capture/capture_ring_reader.h"
#include "dataplane/service/protocol/control_request.h"
#include "tests/unit/service/controlled_service.h"

using namespace paceline;
using namespace paceline::test;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

namespace {

// What is handed over for a capture, mapped.
struct Capturer {
  explicit Capturer(const std::string& path) : client(path) {}
  Json begin(const char* nic, Json more = Json::object()) {
    more["nic"] = nic;
    Json answer = client.ask("capture", std::move(more));
    if (!answer.value("ok", false)) return answer;
    REQUIRE(client.descriptor);
    REQUIRE(client.second_descriptor);
    const auto bytes = answer.at("bytes").get<std::size_t>();
    // The ring is the service's.
    CHECK(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, client.descriptor.get(), 0) ==
          MAP_FAILED);
    REQUIRE(ring.open(std::move(client.descriptor), bytes, false));
    REQUIRE(page.open(std::move(client.second_descriptor), sizeof(CaptureReaderPage), true));
    REQUIRE(reader.open(ring.bytes(), shared()) == "");
    return answer;
  }
  CaptureReaderPage& shared() { return *reinterpret_cast<CaptureReaderPage*>(page.data()); }

  ControlClient client;
  attach::SharedMemory ring;
  attach::SharedMemory page;
  CaptureRingReader reader;
};

// What status says of a NIC's capture, null: nothing.
Json capture_in_status(ControlClient& client, std::size_t nic) {
  const Json status = client.good("status").at("status");
  return status.at("workers")[0].at("nics")[nic].value("capture", Json());
}

bool comes(const std::function<bool()>& holds) {
  for (int i = 0; i < 10'000; ++i) {
    if (holds()) return true;
    ::usleep(1000);
  }
  return false;
}

// Messages from h0 to h1, one after another.
struct Talk {
  explicit Talk(RunningService& service) : a(service, "h0"), b(service, "h1") {
    REQUIRE(a.pair.create(a.client, a.request()) == 0);
    REQUIRE(b.pair.create(b.client, b.request()) == 0);
    connect(a, b);
  }
  void send(std::uint64_t times) {
    attach::CompletionEntry entry;
    for (std::uint64_t i = 0; i < times; ++i) {
      b.pair.post_receive(i, std::array{b.piece(0, 20'000)});
      a.pair.post_send(signaled_slot(attach::SendOpcode::send, i), std::array{a.piece(0, 20'000)});
      REQUIRE(a.cq.wait(entry));
      REQUIRE(entry.status == attach::EntryStatus::success);
      REQUIRE(b.cq.wait(entry));
    }
  }
  End a;
  End b;
};

}  // namespace

TEST_CASE("a capture of a NIC shows what crosses it, and ends with its connection", "[threads]") {
  ControlledService service;
  ControlClient looker(service.control->path());
  CHECK(capture_in_status(looker, 0).is_null());
  auto capturer = std::make_unique<Capturer>(service.control->path());
  const Json begun = capturer->begin("h0", {{"bytes", 1'000'000}, {"snap", 200}});
  REQUIRE(begun.at("ok") == true);
  CHECK(begun.at("bytes") == kCaptureRecordsAt + (1U << 20U));  // rounded up
  CHECK(capturer->reader.snap() == 200);

  Talk talk(service.running);
  talk.send(20);
  std::size_t frames = 0;
  std::size_t cut = 0;
  CapturedFrame frame;
  while (capturer->reader.next(frame)) {
    ++frames;
    CHECK(frame.bytes.size() <= 200);
    cut += frame.original_bytes > 1000 ? 1 : 0;
    CHECK(frame.direction != CaptureDirection::unknown);
  }
  CHECK(capturer->reader.error() == "");
  CHECK(frames > 100);
  CHECK(cut >= 20 * 20'000 / 4096);
  const Json told = capture_in_status(looker, 0);
  CHECK(told.at("frames") >= frames);
  CHECK(told.at("missed") == 0);
  CHECK(told.at("snap") == 200);
  CHECK(capture_in_status(looker, 1).is_null());

  SECTION("nobody else at a time; another NIC, yes") {
    Capturer second(service.control->path());
    CHECK(second.begin("h0").at("errors") ==
          Json({"nic: h0 is captured already, by process " + std::to_string(::getpid())}));
    CHECK(second.begin("h1").at("ok") == true);
    CHECK(capturer->begin("h0").contains("errors"));
  }
  SECTION("a reader that stands still or lies is not waited for") {
    std::uint64_t lie = 1;
    for (int i = 0; i < 20; ++i) {
      capturer->shared().read.store(lie *= 0x9E37'79B9'7F4A'7C15U, std::memory_order_relaxed);
      talk.send(10);
    }
    CHECK(capturer->reader.missed() > 0);
    CHECK(capture_in_status(looker, 0).at("missed") > 0);
  }
  SECTION("who goes, goes in the middle of it") {
    capturer.reset();
    talk.send(20);
    CHECK(comes([&] { return capture_in_status(looker, 0).is_null(); }));
    Capturer next(service.control->path());
    CHECK(next.begin("h0").at("ok") == true);
    talk.send(1);
    CHECK(next.reader.next(frame));
  }
  SECTION("the service ends in the middle of it") {
    service.running.stop();
    service.running.service().stop();
    service.control.reset();
    CHECK(capturer->reader.frames() >= frames);
  }
}

TEST_CASE("captures that cannot be are refused", "[threads]") {
  ControlledService service;
  ControlClient client(service.control->path());
  CHECK(client.errors("capture") == Strings{"nic: missing; allowed: text of 1 to 63 characters"});
  CHECK(client.errors("capture", {{"nic", "h9"}}) ==
        Strings{"nic: there is no h9 here, but h0, h1"});
  CHECK(client.errors("capture", {{"nic", "h0"}, {"bytes", 4096}, {"snap", 1}}) ==
        Strings{"bytes: 4096; allowed: whole number from 65536 to 134217728",
                "snap: 1; allowed: whole number from 64 to 65535"});
  CHECK(client.errors("capture", {{"nic", "h0"}, {"file", "x"}}).size() == 1);
  CHECK(capture_in_status(client, 0).is_null());
}
