// The control socket of a running service: what is told, changed, refused, and taken back.
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "dataplane/service/congestion/congestion_controller.h"
#include "dataplane/service/control/control_server.h"
#include "dataplane/service/protocol/control_protocol.h"
#include "dataplane/telemetry/segment_reader.h"
#include "dataplane/telemetry/series.h"
#include "tests/unit/service/controlled_service.h"

using namespace paceline;
using namespace paceline::test;
using Json = nlohmann::json;

namespace {

// What a reader of the segment sees, once `holds` says that it is what was waited for.
struct Watcher {
  explicit Watcher(ControlClient& client) {
    const Json answer = client.good("telemetry");
    REQUIRE(client.descriptor);
    bytes = answer.at("bytes").get<std::size_t>();
    // Nobody who gets it can write.
    CHECK(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, client.descriptor.get(), 0) ==
          MAP_FAILED);
    REQUIRE(memory.open(std::move(client.descriptor), bytes, false));
    REQUIRE(reader.open(memory.bytes()) == "");
  }
  template <class Holds>
  bool comes(std::size_t nic, Holds holds) {
    for (int i = 0; i < 10'000; ++i) {
      if (reader.read(nic, sample) && holds(sample)) return true;
      ::usleep(1000);
    }
    return false;
  }
  std::uint64_t value(const char* name) const { return sample.values[*reader.find(name)]; }

  std::size_t bytes = 0;
  attach::SharedMemory memory;
  telemetry::SegmentReader reader;
  telemetry::NicSample sample;
};

}  // namespace

TEST_CASE("the control socket tells what there is", "[threads]") {
  ControlledService service;
  ControlClient client(service.control->path());
  const Json hello = client.good("hello");
  CHECK(hello.at("pid") == ::getpid());
  REQUIRE(hello.at("nics").size() == 2);
  CHECK(hello.at("nics")[1].at("name") == "h1");
  CHECK(hello.at("nics")[0].at("rate_mbps") == 25'000);
  CHECK(hello.at("nics")[0].at("base_rtt_ns") > 0);
  CHECK(hello.at("attach_socket") == service.running.path());
  const Json parameters = client.good("parameters").at("nics");
  REQUIRE(parameters.size() == 2);
  CHECK(parameters[0].at("algorithm") == "dcqcn");
  CHECK(parameters[0].at("values").size() == cc::find("dcqcn")->params.size());
  CHECK(parameters[0].at("generation") == 1);
  CHECK(parameters[0].at("arm") == 0);
  CHECK(client.good("status").at("status").at("workers").size() == 1);
  CHECK(client.good("trials").at("trials").empty());
  CHECK(client.good("guard").at("nics")[0].at("latched") == false);

  SECTION("what is no request is refused, and the next one is served") {
    REQUIRE(client.send("nonsense"));
    const Json refused = client.receive();
    CHECK(refused.at("ok") == false);
    CHECK(refused.at("id") == 0);
    REQUIRE(client.send(std::string(service::kMostControlBytes + 10, ' ')));
    CHECK(client.receive().at("errors")[0] == "the request is longer than 65536 bytes");
    client.good("hello");
  }
  SECTION("there are only so many clients") {
    std::vector<std::unique_ptr<ControlClient>> more;
    for (std::size_t i = 1; i < service::ControlServer::kMostClients; ++i) {
      more.push_back(std::make_unique<ControlClient>(service.control->path()));
      more.back()->good("hello");
    }
    ControlClient late(service.control->path());
    CHECK(late.receive().at("ok") == false);
    more.pop_back();
  }
}

TEST_CASE("parameters change on all NICs, or on none", "[threads]") {
  ControlledService service;
  ControlClient client(service.control->path());
  Watcher watcher(client);
  const auto value = [&](const char* nic, const char* name) {
    const Json answer = client.good("parameters");
    for (const Json& of : answer.at("nics")) {
      if (of.at("name") == nic) return of.at("values").at(name).get<double>();
    }
    return -1.0;
  };
  const std::string name(cc::find("dcqcn")->params.front().name);
  const cc::ParamSpec& spec = cc::find("dcqcn")->params.front();
  const double before = value("h0", name.c_str());
  const double other = before == spec.min ? spec.max : spec.min;
  const Json change = {{"params", {{name, other}}}};

  Json dry = change;
  dry["dry_run"] = true;
  CHECK(client.good("configure", dry).at("nics")[0].at("changed") == true);
  CHECK(value("h0", name.c_str()) == before);

  CHECK(client.errors("configure", {{"params", {{name, spec.max * 10 + 1}, {"nonsense", 1}}}})
            .size() == 4);  // two for each NIC
  CHECK(client.errors("configure", {{"algorithm", "dcqn"}}).size() == 2);
  CHECK(client.errors("configure", {{"nics", {"h9", "h1"}}, {"params", {{name, other}}}}) ==
        std::vector<std::string>{"there is no NIC \"h9\""});
  CHECK(client.errors("configure") ==
        std::vector<std::string>{"nothing to change: algorithm, profile or params is needed"});
  CHECK(value("h1", name.c_str()) == before);

  Json one = change;
  one["nics"] = {"h1"};
  const Json changed = client.good("configure", one).at("nics");
  REQUIRE(changed.size() == 1);
  CHECK(changed[0].at("generation") == 2);
  CHECK(value("h0", name.c_str()) == before);
  CHECK(value("h1", name.c_str()) == other);
  CHECK(watcher.comes(1, [](const auto& s) { return s.body.generation == 2; }));
  CHECK(client.good("configure", one).at("nics")[0].at("changed") == false);

  client.good("configure", {{"algorithm", "swift"}});
  CHECK(watcher.comes(0, [](const auto& s) {
    return std::string(s.body.algorithm.data()) == "swift" && s.body.generation == 2;
  }));
  CHECK(watcher.comes(1, [](const auto& s) { return s.body.generation == 3; }));
}

TEST_CASE("workers publish messages, queue pairs and what is in force", "[threads]") {
  ControlledService service;
  ControlClient client(service.control->path());
  Watcher watcher(client);
  End a(service.running, "h0");
  End b(service.running, "h1");
  REQUIRE(a.pair.create(a.client, a.request()) == 0);
  REQUIRE(b.pair.create(b.client, b.request()) == 0);
  connect(a, b);

  // A thread that a slow machine holds up for a while is not what this is about.
  client.good("trial", {{"name", "t"},
                        {"candidate", {{"algorithm", "swift"}}},
                        {"guard", {{"stall_ms", nullptr}}},
                        {"hold_ms", 60'000}});
  CHECK(client.errors("configure", {{"algorithm", "swift"}}).size() == 2);  // a trial runs
  CHECK(client.errors("trial", {{"name", "t"}, {"candidate", Json::object()}, {"hold_ms", 500}})
            .size() == 3);
  client.good("use_arm", {{"name", "t"}, {"arm", 1}, {"epoch", 9}});
  REQUIRE(watcher.comes(0, [](const auto& s) { return s.body.arm == 1 && s.body.epoch == 9; }));
  CHECK(std::string(watcher.sample.body.algorithm.data()) == "swift");

  const auto send = [&](std::uint64_t id, std::uint32_t bytes, bool signaled) {
    b.pair.post_receive(id, std::array{b.piece(0, 60'000)});
    attach::SendSlot slot = signaled_slot(attach::SendOpcode::send, id);
    if (!signaled) slot.flags = 0;
    a.pair.post_send(slot, std::array{a.piece(0, bytes)});
  };
  // Silent ones count with the next that is told.
  send(1, 100, false);
  send(2, 60'000, false);
  send(3, 100, true);
  attach::CompletionEntry entry;
  REQUIRE(a.cq.wait(entry));
  REQUIRE(watcher.comes(0, [](const auto& s) { return s.messages[0].completed == 3; }));
  const telemetry::MessageFigures& figures = watcher.sample.messages[0];
  CHECK(figures.begun == 3);
  CHECK(figures.begun_bytes == 60'200);
  CHECK(figures.completed_bytes == 60'200);
  CHECK(figures.failed + figures.crossed == 0);
  CHECK(figures.fct_ns > 0);
  CHECK(watcher.value("tx_data_bytes") == 60'200);
  CHECK(watcher.value("queue_pairs") == 1);
  CHECK(watcher.value("sessions") == 1);
  CHECK(watcher.value("contexts") >= 1);
  CHECK(watcher.sample.messages[2].begun == 0);
  // 15 packets of a path's MTU and more, each sent by one NIC of this worker and received by
  // another.
  CHECK(watcher.value("worker_packets") > 30);
  CHECK(watcher.value("worker_busy_cycles") > 0);

  telemetry::QueuePairRecord record;
  bool found = false;
  for (int i = 0; i < 5000 && !found; ++i) {
    for (std::size_t r = 0; r < watcher.reader.records() && !found; ++r) {
      found = watcher.reader.read_record(0, r, record) && record.number == a.pair.reply.qp_number &&
              record.tx_bytes == 60'200;
    }
    if (!found) ::usleep(1000);
  }
  REQUIRE(found);
  CHECK(record.peer_number == b.pair.reply.qp_number);
  CHECK(record.pid == static_cast<std::uint32_t>(::getpid()));
  CHECK(record.user == ::geteuid());
  CHECK(std::string(record.algorithm.data()) == "swift");

  const Json kept = client.good("end_trial", {{"name", "t"}, {"keep", "candidate"}});
  CHECK(kept.at("nics").size() == 2);
  CHECK(client.good("parameters").at("nics")[0].at("algorithm") == "swift");
  CHECK(client.good("parameters").at("nics")[0].at("arm") == 0);
  // What is gone leaves its record.
  REQUIRE(
      a.client.ask(attach::Operation::destroy_qp, attach::HandleBody{a.pair.reply.handle, 0}).ok());
  CHECK(watcher.comes(0, [&](const auto&) { return watcher.value("queue_pairs") == 0; }));
}

TEST_CASE("a trial that nobody renews goes back to the champion", "[threads]") {
  RunningService running;
  std::unique_ptr<service::CongestionController> controller;
  running.on_control([&] {
    controller = std::make_unique<service::CongestionController>(running.service());
    service::ControlRequest request;
    request.name = "t";
    request.change.algorithm = "swift";
    request.hold_ms = 1000;
    CHECK(controller->begin_trial(request).empty());
    request.arm = 1;
    request.epoch = 2;
    CHECK(controller->use_arm(request).errors.empty());
    controller->tick(900);
    CHECK(controller->renew(request).errors.empty());
    controller->tick(1800);
    CHECK(controller->trials().front().state == service::TrialState::running);
    CHECK(controller->remaining_ms(controller->trials().front()) == 100);
    CHECK(controller->nics()[1].in_force.arm == 1);
    controller->tick(1900);
    CHECK(controller->trials().front().state == service::TrialState::abandoned);
    CHECK(controller->nics()[1].in_force.arm == 0);
    CHECK(controller->nics()[1].in_force.epoch == 0);
    CHECK(controller->nics()[1].current.setup.primary.algorithm == cc::AlgorithmId::dcqcn);
    CHECK(running.service().worker(0).nics().nic(1).engine->view().setup().primary.algorithm ==
          cc::AlgorithmId::dcqcn);
    // It stays until a client has seen it, and what it tried is not kept.
    CHECK_FALSE(controller->use_arm(request).errors.empty());
    request.keep_candidate = true;
    CHECK_FALSE(controller->end_trial(request).errors.empty());
    request.keep_candidate = false;
    CHECK(controller->end_trial(request).errors.empty());
    CHECK(controller->trials().empty());
  });
}

// Three senders at line rate into one port with a small buffer and no pauses: the candidate floods
// it. The guard is given a look for each time that so many messages have come through.
TEST_CASE("the guard takes back what floods the network", "[threads]") {
  RunningService running({}, floodable_hosts());
  End sink(running, "h0", 1 << 20);
  std::vector<std::unique_ptr<End>> senders;
  std::vector<std::unique_ptr<ClientPair>> sinks;
  for (int i = 1; i <= 3; ++i) {
    End& from =
        *senders.emplace_back(std::make_unique<End>(running, "h" + std::to_string(i), 1 << 20));
    REQUIRE(from.pair.create(from.client, from.request()) == 0);
    sink.pair = ClientPair{};
    REQUIRE(sink.pair.create(sink.client, sink.request()) == 0);
    connect(from, sink);
    sinks.push_back(std::make_unique<ClientPair>(std::move(sink.pair)));
  }
  std::unique_ptr<service::CongestionController> controller;
  service::ControlRequest request;
  request.name = "flood";
  request.change.algorithm = "fixed";
  request.hold_ms = 3'600'000;
  std::uint64_t now_ms = 0;
  running.on_control([&] {
    controller = std::make_unique<service::CongestionController>(running.service());
    CHECK(controller->begin_trial(request).empty());
    request.arm = 1;
    request.epoch = 1;
    CHECK(controller->use_arm(request).errors.empty());
    CHECK(controller->nics()[2].in_force.arm == 1);
  });
  const auto round = [&] {
    for (auto& from : senders) {
      for (int m = 0; m < 4; ++m) {
        attach::SendSlot slot = signaled_slot(attach::SendOpcode::write, 1);
        slot.remote_address = reinterpret_cast<std::uint64_t>(sink.memory.data());
        slot.remote_key = sink.region.remote_key;
        from->pair.post_send(slot, std::array{from->piece(0, 64 << 10)});
      }
    }
    for (auto& from : senders) {
      attach::CompletionEntry entry;
      for (int m = 0; m < 4; ++m) {
        REQUIRE(from->cq.wait(entry));
        REQUIRE(entry.status == attach::EntryStatus::success);
      }
    }
    ::usleep(20'000);  // several times the interval of publishing
  };
  // Three looks do, each at something new; publishing may be late.
  bool over = false;
  for (int looks = 0; looks < 20 && !over; ++looks) {
    round();
    running.on_control([&] {
      now_ms += service::kGuardLookMs;
      controller->tick(now_ms);
      over = controller->trials().front().state == service::TrialState::tripped;
    });
  }
  CHECK(over);
  running.on_control([&] {
    const service::Trial& trial = controller->trials().front();
    CHECK(trial.state == service::TrialState::tripped);
    CHECK(trial.why.find("guard of") == 0);
    for (std::size_t n = 0; n < controller->nics().size(); ++n) {
      const service::Champions::Nic& nic = controller->nics()[n];
      const auto& events = controller->guard().events(n);
      CHECK(controller->guard().latched(n) == 1);
      CHECK(nic.in_force.arm == 0);
      CHECK_FALSE(events.empty());  // another limit may be passed by then, too
      if (events.empty()) continue;
      CHECK(events.front().reverted);
      CHECK(events.front().trial == "flood");
      CHECK(running.service()
                .worker(0)
                .nics()
                .nic(nic.place.nic)
                .engine->view()
                .setup()
                .primary.algorithm == cc::AlgorithmId::dcqcn);
    }
    // A latched NIC has no further trial until an operator clears it.
    service::ControlRequest again = request;
    again.name = "again";
    CHECK(controller->begin_trial(again).size() == 4);
    CHECK(controller->clear_guard({}).errors.empty());
    CHECK(controller->begin_trial(again).empty());
  });
}
