// Experiments in the daemon: registered before they begin, driven to a verdict, and safe whatever
// goes away in the middle.
#include "control/daemon/experiments/experiments.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/unit/daemon/experiment_rig.h"

namespace paceline::daemon {

namespace {

std::string text_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

std::size_t lines_of(const std::string& path) {
  const std::string text = text_of(path);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

bool mentions(const Json& body, const char* text) {
  return body.dump().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("an experiment is registered, runs to a verdict and is promoted on request",
          "[experiments]") {
  const ScratchFolder folder;
  ExperimentRig rig(folder);
  std::vector<std::string> events;
  rig.hub.listen([&](std::string_view topic, const Json& data) {
    if (topic == "experiment") events.push_back(data.at("event").get<std::string>());
  });
  // Registered before the service is told.
  const auto begin = rig.service.operations["trial"];
  std::string digest_then;
  rig.service.operations["trial"] = [&](const Json& request) {
    const auto body = rig.store.get("experiment", "000001");
    REQUIRE(body.has_value());
    digest_then = body->at("schedule_sha256").get<std::string>();
    CHECK(text_of(folder.file("experiments/000001/schedule.json")).find(digest_then) !=
          std::string::npos);
    return begin(request);
  };
  const Reply reply = rig.start(quick_plan());
  REQUIRE(reply.status == 201);
  const Json started = reply.body["experiment"];
  CHECK(started["id"] == "1");
  CHECK(started["schedule_sha256"] == digest_then);
  CHECK(digest_then.size() == 64);

  REQUIRE(rig.run_until([&] {
    return rig.entry().contains("progress") && rig.entry()["progress"]["pairs_usable"] >= 3;
  }));
  const Json progress = rig.entry()["progress"];
  CHECK(progress["seconds_left_at_most"].get<double>() > 0);
  CHECK(progress["seconds_left_at_most"].get<double>() < 0.24);
  CHECK(progress["estimate"]["effect"].get<double>() == Approx(-0.5).margin(0.02));

  REQUIRE(rig.ends());
  const Json ended = rig.entry();
  INFO(ended.dump());
  CHECK(ended["state"] == "concluded");
  // Better, but without an A/A run nothing ships.
  CHECK(ended["verdict"] == "inconclusive");
  CHECK(rig.trial.empty());
  CHECK(rig.arm == 0);
  CHECK(rig.arms_seen == std::set<std::uint32_t>{0, 1});
  CHECK(lines_of(folder.file("experiments/000001/blocks.jsonl")) == 24);
  CHECK(std::count(events.begin(), events.end(), "block") == 24);
  CHECK(events.back() == "ended");
  CHECK_FALSE(rig.experiments->running());

  const Json report = Json::parse(rig.experiments->report("1", false).text);
  CHECK(report["schedule_sha256"] == digest_then);
  CHECK(report["pairs_usable"] == 12);
  CHECK(report["verdict"] == ended["verdict"]);
  CHECK(rig.experiments->report("1", true).text.find(digest_then) != std::string::npos);

  Reply promoted = rig.run(rig.experiments->promote({"alice", true}, "1", {{"why", "it is good"}}));
  CHECK(promoted.status == 409);
  CHECK(rig.champion.algorithm == "dcqcn");
  promoted = rig.run(
      rig.experiments->promote({"alice", true}, "1", {{"why", "it is good"}, {"override", true}}));
  REQUIRE(promoted.status == 200);
  CHECK(rig.champion.algorithm == "cadence");
  const Json change = rig.parameters->history(0, 10).body["changes"].back();
  CHECK(change["action"] == "promote");
  CHECK(mentions(change["why"], digest_then.substr(0, 16).c_str()));
  CHECK(rig.entry()["promoted_by_change"] == change["number"]);
}

TEST_CASE("with a calibrated A/A run a better candidate ships, and is promoted", "[experiments]") {
  const ScratchFolder folder;
  ExperimentRig rig(folder);
  std::string plan = quick_plan();
  rig.gain = 0;
  REQUIRE(rig.start(plan, {{"aa", true}}).status == 201);
  REQUIRE(rig.ends());
  INFO(rig.entry().dump());
  REQUIRE(rig.entry()["verdict"] == "calibrated");

  plan.replace(plan.find("none_because"), std::string("none_because = \"a test\"").size(),
               "results = \"1\"");
  rig.gain = -1;
  REQUIRE(rig.start(plan, {{"promote", true}}).status == 201);
  REQUIRE(rig.run_until([&] { return !rig.experiments->running(); }));
  INFO(rig.entry("2").dump());
  CHECK(rig.entry("2")["verdict"] == "ship");
  CHECK(rig.champion.algorithm == "cadence");
  CHECK(rig.entry("2")["promoted_by_change"].get<int>() > 0);

  // What is in force is no longer the plan's champion.
  const std::string champion = "algorithm = \"dcqcn\"\n";
  plan.insert(plan.find(champion) + champion.size(), "params = { additive_increase_mbps = 3 }\n");
  const Reply again = rig.start(plan);
  CHECK(again.status == 409);
  CHECK(mentions(again.body, "must be what is in force"));
  CHECK(mentions(again.body, "--profile default additive_increase_mbps=3 --why"));
}

TEST_CASE("bad plans, unfit hosts and refused trials begin nothing", "[experiments]") {
  const ScratchFolder folder;
  ExperimentRig rig(folder);
  Reply reply =
      rig.start(quick_plan("[[soft]]\nmetric = \"godput\"\nworse_by = 0\n"), {{"file", "my.toml"}});
  CHECK(reply.status == 400);
  INFO(reply.body.dump());
  CHECK(reply.body["errors"].size() == 2);
  CHECK(mentions(reply.body, "my.toml:24:"));
  CHECK(mentions(reply.body, "my.toml:23:"));

  std::string plan = quick_plan();
  plan.replace(plan.find("hold = \"2s\""), 11, "hold = \"1ms\"");
  CHECK(rig.start(plan).status == 400);
  plan = quick_plan();
  plan.replace(plan.find("seed = 7"), 8, "seed = 7\nnics = [\"h0\", \"h9\"]");
  CHECK(mentions(rig.start(plan).body, "h9"));
  plan = quick_plan();
  plan.replace(plan.find("none_because"), 12, "results");
  CHECK(mentions(rig.start(plan).body, "no calibrated A/A run"));

  reply = rig.start(quick_plan(), {{"dry_run", true}});
  CHECK(reply.status == 200);
  CHECK(reply.body["experiment"]["schedule_sha256"].get<std::string>().size() == 64);
  CHECK(rig.experiments->list(10).body["experiments"].empty());
  CHECK(rig.asked("trial") == 0);

  rig.refuse_trial = "h0: the guard's trip 3 is latched";
  reply = rig.start(quick_plan());
  CHECK(reply.status == 409);
  CHECK(mentions(reply.body, "latched"));
  CHECK(rig.entry()["state"] == "refused");
  CHECK_FALSE(rig.experiments->running());
  CHECK(rig.asked("use_arm") == 0);
}

TEST_CASE("a plan's beginning: the first block waits for it, the others keep their distance",
          "[experiments]") {
  const ScratchFolder folder;
  ExperimentRig rig(folder);
  std::string plan = quick_plan();
  const std::string length = "length = \"10ms\"";
  const auto begins = [&](const char* at) {
    std::string out = plan;
    out.replace(out.find(length), length.size(),
                "length = \"100ms\"\nbegin = \"" + std::string(at) + "\"");
    return out.replace(out.find("max = 12"), 8, "min = 12");
  };
  const Reply late =
      rig.start(begins("2023-11-14T22:13:20Z"));  // the rig's day begins a second later
  CHECK(late.status == 409);
  INFO(late.body.dump());
  CHECK(mentions(late.body, "is over; this host has 2023-11-14T22:13:21Z"));

  std::vector<std::int64_t> starts;
  const auto use = rig.service.operations["use_arm"];
  rig.service.operations["use_arm"] = [&](const Json& request) {
    starts.push_back(rig.now_ns);
    return use(request);
  };
  REQUIRE(rig.start(begins("2023-11-14T22:13:23Z")).status == 201);
  REQUIRE(rig.ends());
  CHECK(rig.entry()["state"] == "concluded");
  REQUIRE(starts.size() >= 24);
  for (std::size_t b = 0; b < 24; ++b) {
    INFO("block " << b);
    const std::int64_t due = 3'000'000'000 + static_cast<std::int64_t>(b) * 105'000'000;
    CHECK(starts[b] >= due);
    CHECK(starts[b] < due + 5'000'000);
  }
}

// Half a bit of log2 slowdown is spilt on the champion's half, so that side by side the candidate
// looks less good than it is.
TEST_CASE("receivers' ports in two arms at a time: naive, spillover and total effect",
          "[experiments]") {
  const ScratchFolder folder;
  ExperimentRig rig(folder);
  rig.spillover = -0.5;
  Json trial;
  const auto begin = rig.service.operations["trial"];
  rig.service.operations["trial"] = [&](const Json& request) {
    trial = request;
    return begin(request);
  };
  const Reply reply = rig.start(ports_plan("h0", "h1"));
  INFO(reply.body.dump());
  REQUIRE(reply.status == 201);
  CHECK_FALSE(reply.body.contains("warnings"));
  // One trial, which knows the clusters.
  CHECK(rig.asked("trial") == 1);
  CHECK(trial["clusters"] == Json::array({Json::array({"h0"}), Json::array({"h1"})}));
  CHECK_FALSE(trial.contains("nics"));
  REQUIRE(rig.ends());
  const Json ended = rig.entry();
  INFO(ended.dump());
  CHECK(ended["state"] == "concluded");
  CHECK(rig.asked("end_trial") == 1);
  // Halves both ways, and all in one: every fourth pair.
  CHECK(rig.halves_seen == std::set<std::vector<std::uint32_t>>{{0, 0}, {0, 1}, {1, 0}, {1, 1}});
  const Reply report = rig.experiments->report("1", false);
  const Json body = Json::parse(report.text);
  INFO(body.dump(1));
  const Json& found = body["interference"];
  // Logarithms: of the candidate -1 bit, and half of that of the champion beside it.
  const double bit = 0.6931;
  CHECK(found["naive"].get<double>() == Approx(-0.5 * bit).margin(0.01));
  CHECK(found["total"].get<double>() == Approx(-bit).margin(0.01));
  CHECK(found["spillover"].get<double>() == Approx(-0.5 * bit).margin(0.01));
}

TEST_CASE("receivers' ports: what does not fit is refused, with its place", "[experiments]") {
  const ScratchFolder folder;
  ExperimentRig rig(folder);
  const auto refused = [&](const std::string& plan, unsigned status) {
    const Reply reply = rig.start(plan, {{"file", "ports.toml"}});
    CHECK(reply.status == status);
    return reply.body.dump();
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(refused(ports_plan("h0", "h9"), 409),
             Contains("ports.toml:14: [[cluster]] \\\"right\\\": there is no NIC \\\"h9\\\"; this "
                      "service has h0, h1"));
  CHECK_THAT(refused(ports_plan("h0", "h0"), 400),
             Contains("\\\"h0\\\" belongs to another cluster already"));
  std::string proactive = ports_plan("h0", "h1");
  proactive.replace(proactive.find("algorithm = \"dcqcn\""), 19, "algorithm = \"sird\"");
  CHECK_THAT(refused(proactive, 400), Contains("sird and cadence both grant"));
  CHECK(rig.asked("trial") == 0);
}

TEST_CASE("a trip of the guard ends the experiment as harmful", "[experiments]") {
  const ScratchFolder folder;
  ExperimentRig rig(folder);
  REQUIRE(rig.start(quick_plan()).status == 201);
  // One at a time on a NIC.
  CHECK(mentions(rig.start(quick_plan()).body, "experiment 1 is running"));
  REQUIRE(rig.run_until([&] { return rig.arm == 1; }));
  rig.trip();
  REQUIRE(rig.ends());
  INFO(rig.entry().dump());
  CHECK(rig.entry()["state"] == "tripped");
  CHECK(rig.entry()["verdict"] == "harmful");
  CHECK(rig.entry()["ended"] == "guard of h0: stalled");
  CHECK(rig.trial.empty());
}

TEST_CASE("an experiment is stopped, and says by whom", "[experiments]") {
  const ScratchFolder folder;
  ExperimentRig rig(folder);
  CHECK(rig.experiments->stop({"bob", true}, "1", {{"why", "enough"}}).status == 404);
  REQUIRE(rig.start(quick_plan()).status == 201);
  REQUIRE(rig.run_until([&] { return rig.arms_seen.size() == 2; }));
  CHECK(rig.experiments->stop({"bob", true}, "1", {{"why", "enough"}}).status == 202);
  REQUIRE(rig.ends());
  CHECK(rig.entry()["state"] == "stopped");
  CHECK(rig.entry()["ended"] == "stopped by bob: enough");
  CHECK(rig.trial.empty());
  CHECK(rig.arm == 0);
  CHECK(rig.experiments->stop({"bob", true}, "1", {{"why", "enough"}}).status == 409);
}

TEST_CASE("a service that was started anew ends the experiment", "[experiments]") {
  const ScratchFolder folder;
  ExperimentRig rig(folder);
  REQUIRE(rig.start(quick_plan()).status == 201);
  REQUIRE(rig.run_until([&] { return rig.arm == 1; }));
  rig.trial.clear();
  rig.put_champion_back();
  rig.segment->messages = {};
  REQUIRE(rig.ends());
  INFO(rig.entry().dump());
  CHECK(rig.entry()["state"] == "failed");
  CHECK(mentions(rig.entry()["ended"], "was restarted"));
}

TEST_CASE("telemetry that is lost discards the pair, and the experiment waits", "[experiments]") {
  const ScratchFolder folder;
  ExperimentRig rig(folder);
  REQUIRE(rig.start(quick_plan()).status == 201);
  REQUIRE(rig.run_until([&] { return rig.arm == 1; }));
  rig.sampler->close();
  rig.telemetry = false;
  REQUIRE(rig.run_until([&] { return rig.entry()["progress"]["doing"] == "pause"; }));
  REQUIRE(rig.run_until([&] { return rig.arm == 0; }));
  REQUIRE(rig.sampler->open(rig.segment->bytes()).empty());
  rig.telemetry = true;
  REQUIRE(rig.ends());
  const Json report = Json::parse(rig.experiments->report("1", false).text);
  INFO(report.dump());
  CHECK(rig.entry()["state"] == "concluded");
  CHECK(report["pairs_attempted"] == 12);
  CHECK(report["pairs_usable"].get<int>() < 12);
  CHECK(mentions(report["discarded"], "telemetry"));
}

TEST_CASE("a daemon that was killed takes the experiment up again", "[experiments]") {
  const ScratchFolder folder;
  ExperimentRig rig(folder);
  REQUIRE(rig.start(quick_plan()).status == 201);
  const std::string blocks = folder.file("experiments/000001/blocks.jsonl");
  REQUIRE(rig.run_until([&] { return lines_of(blocks) == 7; }));
  rig.close_daemon();
  // A line that was cut off.
  std::ofstream(blocks, std::ios::app) << R"({"schema": 1, "block": 7, "clus)";
  rig.open_daemon();
  CHECK(rig.experiments->running());
  REQUIRE(rig.ends());
  INFO(rig.entry().dump());
  CHECK(rig.entry()["state"] == "concluded");
  CHECK(lines_of(blocks) == 24);
  const Json report = Json::parse(rig.experiments->report("1", false).text);
  CHECK(report["pairs_usable"] == 11);
  CHECK(mentions(report["discarded"], "interrupted"));
}

TEST_CASE("a daemon that was away too long finds why its experiment ended", "[experiments]") {
  const ScratchFolder folder;
  ExperimentRig rig(folder);
  REQUIRE(rig.start(quick_plan()).status == 201);
  REQUIRE(rig.run_until([&] { return rig.arm == 1; }));
  rig.close_daemon();
  rig.trial_state = "abandoned";
  rig.put_champion_back();
  rig.open_daemon();
  REQUIRE(rig.ends());
  CHECK(rig.entry()["state"] == "failed");
  CHECK(mentions(rig.entry()["ended"], "took the champion back"));
  CHECK(rig.trial.empty());
}

}  // namespace paceline::daemon
