// What the service itself takes for a tenant is bounded: memory of queues, descriptors, mappings.
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/unit/service/service_support.h"

using namespace paceline;
using namespace paceline::test;
using attach::Operation;

namespace {

nlohmann::json tenant_of(AttachClient& client) {
  const Answer answer = client.ask(Operation::status);
  REQUIRE(answer.ok());
  const auto* const text = reinterpret_cast<const char*>(answer.message.body.data());
  return nlohmann::json::parse(text, text + answer.message.body.size())["tenants"][0];
}

// Extents of one page each, so that no two are one mapping.
int register_pages(AttachClient& client, std::uint32_t pd, std::uint32_t pages,
                   attach::RegisterReply* made = nullptr) {
  constexpr std::uint64_t kPage = 4096;
  attach::RegisterRequest r;
  r.address = r.iova = std::uint64_t{1} << 32U;
  r.length = pages * kPage;
  r.access = 1;
  r.pd = pd;
  r.extents = pages;
  attach::Message m;
  m.append(r);
  for (std::uint32_t i = 0; i < pages; ++i) {
    attach::Extent extent;
    extent.length = kPage;
    extent.offset = i % 2 * 2 * kPage;
    extent.kind = attach::ExtentKind::shared;
    m.append(extent);
  }
  const Answer answer = client.ask_bytes(Operation::register_region, m.body);
  if (made != nullptr) *made = answer.message.as<attach::RegisterReply>();
  return answer.error;
}

}  // namespace

TEST_CASE("memory of a tenant's queues is bounded, and comes back", "[threads]") {
  service::ServiceSettings settings;
  settings.quota.queue_bytes = 4 << 20;
  RunningService service(settings);
  End a(service, "h0");
  const auto before = tenant_of(a.client)["queue_bytes"]["used"].get<std::uint64_t>();
  CHECK(before >= 64 * sizeof(attach::CompletionEntry));

  ClientQueue deep;
  CHECK_FALSE(deep.create(a.client, 65536));
  attach::CreateQpRequest large = a.request();
  large.send_requests = large.receive_requests = 16384;
  CHECK(a.pair.create(a.client, large) == ENOMEM);
  attach::CreateSrqRequest shared;
  shared.pd = a.pd;
  shared.requests = 16384;
  shared.segments = 16;
  CHECK(a.client.ask(Operation::create_srq, shared).error == ENOMEM);
  CHECK(tenant_of(a.client)["queue_bytes"]["used"] == before);

  REQUIRE(a.pair.create(a.client, a.request()) == 0);
  const auto pair = tenant_of(a.client)["queue_bytes"]["used"].get<std::uint64_t>();
  CHECK(pair > before);
  attach::ResizeCqRequest resize;
  resize.handle = a.cq.handle;
  resize.entries = 65536;
  CHECK(a.client.ask(Operation::resize_cq, resize).error == ENOMEM);
  resize.entries = 1024;
  CHECK(a.client.ask(Operation::resize_cq, resize).ok());
  CHECK(tenant_of(a.client)["queue_bytes"]["used"] > pair);
  resize.entries = 64;
  CHECK(a.client.ask(Operation::resize_cq, resize).ok());
  CHECK(tenant_of(a.client)["queue_bytes"]["used"] == pair);
  REQUIRE(a.client.ask(Operation::destroy_qp, attach::HandleBody{a.pair.reply.handle, 0}).ok());
  CHECK(tenant_of(a.client)["queue_bytes"]["used"] == before);
}

TEST_CASE("a tenant has its part of the service's descriptors and no more", "[threads]") {
  service::ServiceSettings settings;
  settings.quota.descriptors = 64;
  RunningService service(settings);
  AttachClient a(service.path());
  REQUIRE(a.open("h0"));
  std::vector<Answer> channels;
  while (channels.size() < 64) {
    channels.push_back(a.ask(Operation::create_channel));
    if (!channels.back().ok()) break;
  }
  CHECK(channels.back().error == ENOMEM);
  CHECK(channels.size() > 10);
  CHECK(channels.size() <= 28);
  AttachClient second(service.path());
  CHECK_FALSE(second.open("h1"));

  for (int i = 0; i < 6; ++i) {
    REQUIRE(a.ask(Operation::destroy_channel,
                  channels[static_cast<std::size_t>(i)].message.as<attach::HandleBody>())
                .ok());
  }

  AttachClient third(service.path());
  CHECK(third.open("h1"));
}

TEST_CASE("a tenant has its part of the service's mappings and no more", "[threads]") {
  service::ServiceSettings settings;
  settings.quota.mappings = 100;
  RunningService service(settings);
  AttachClient a(service.path());
  REQUIRE(a.open("h0"));
  const std::uint32_t pd = a.create_pd();
  attach::SharedMemory memory;
  REQUIRE(memory.make("bounds", 4 * 4096));
  std::memset(memory.data(), 1, memory.size());
  const attach::ShareMemoryRequest share;
  const int descriptor = memory.descriptor();
  REQUIRE(
      a.ask_bytes(Operation::share_memory, std::as_bytes(std::span(&share, 1)), {&descriptor, 1})
          .ok());
  attach::RegisterReply region{};
  CHECK(register_pages(a, pd, 101) == ENOMEM);
  CHECK(register_pages(a, pd, 60, &region) == 0);
  CHECK(register_pages(a, pd, 60) == ENOMEM);
  CHECK(register_pages(a, pd, 40) == 0);
  CHECK(tenant_of(a)["mappings"]["used"] == 100);
  REQUIRE(a.ask(Operation::deregister_region, attach::HandleBody{region.handle, 0}).ok());
  CHECK(tenant_of(a)["mappings"]["used"] == 40);
  CHECK(register_pages(a, pd, 60) == 0);
}

// They may arrive between a glance at the socket and the taking of what is there.
TEST_CASE("descriptors that come at any time are taken by whoever may take them", "[threads]") {
  RunningService service;
  attach::SharedMemory memory;
  REQUIRE(memory.make("bounds", 4096));
  const attach::ShareMemoryRequest share;
  const int descriptor = memory.descriptor();
  attach::Header first;
  first.operation = Operation::query_port;
  attach::Header second;
  second.operation = Operation::share_memory;
  for (int i = 0; i < 3000; ++i) {
    AttachClient a(service.path());
    REQUIRE(a.open("h0"));
    CAPTURE(i);
    REQUIRE(attach::send_message(a.socket(), first, {}, {}) == attach::Transfer::done);
    const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(20 * i);
    while (std::chrono::steady_clock::now() < until) {
    }
    REQUIRE(attach::send_message(a.socket(), second, std::as_bytes(std::span(&share, 1)),
                                 {&descriptor, 1}) == attach::Transfer::done);
    attach::Message reply;
    REQUIRE(attach::receive_message(a.socket(), reply) == attach::Transfer::done);
    REQUIRE(attach::receive_message(a.socket(), reply) == attach::Transfer::done);
    REQUIRE(reply.header.error == 0);
  }
}
