#include "dataplane/service/protocol/control_request.h"

#include <catch2/catch.hpp>
#include <string>

#include "dataplane/base/numbers/random.h"
#include "dataplane/service/protocol/control_protocol.h"

namespace paceline::service {
namespace {

using Errors = std::vector<std::string>;

std::string with(const std::string& members) { return R"({"schema":1,"id":7,)" + members + "}"; }

TEST_CASE("requests are read as they were meant", "[control]") {
  const ParsedControl parsed = parse_control(with(
      R"("op":"configure","nics":["h0","h1"],"algorithm":"dcqcn","profile":"nic","params":{"g":0.5,"rai":40},"dry_run":true)"));
  REQUIRE(parsed.errors == Errors{});
  const ControlRequest& r = parsed.request;
  CHECK(r.id == 7);
  CHECK(r.op == ControlOp::configure);
  CHECK(r.nics == std::vector<std::string>{"h0", "h1"});
  CHECK(r.change.algorithm == "dcqcn");
  CHECK(r.change.profile == "nic");
  REQUIRE(r.change.params.size() == 2);
  CHECK(r.change.params.at("rai") == 40);
  CHECK(r.dry_run);

  const ParsedControl trial = parse_control(with(
      R"("op":"trial","name":"t","candidate":{"params":{"g":0.5}},"guard":{"stall_ms":5,"pause_share":null},"hold_ms":30000)"));
  REQUIRE(trial.errors == Errors{});
  CHECK_FALSE(trial.request.nics);
  CHECK(trial.request.hold_ms == 30'000);
  CHECK(trial.request.guard.stall_ms == 5);
  CHECK(trial.request.guard.pause_share < 0);
  CHECK(trial.request.guard.retransmitted_packets == 10);

  const ParsedControl use =
      parse_control(with(R"("op":"use_arm","name":"t","arm":1,"epoch":255,"renew":false)"));
  REQUIRE(use.errors == Errors{});
  CHECK(use.request.arm == 1);
  CHECK(use.request.epoch == 255);
  CHECK_FALSE(use.request.renew);
  CHECK(use.request.arms.empty());
  const ParsedControl clusters = parse_control(with(
      R"("op":"trial","name":"t","clusters":[["h0","h1"],["h2"]],"candidate":{"algorithm":"swift"},"hold_ms":500)"));
  REQUIRE(clusters.errors == Errors{});
  CHECK_FALSE(clusters.request.nics);
  CHECK(clusters.request.clusters == std::vector<std::vector<std::string>>{{"h0", "h1"}, {"h2"}});
  const ParsedControl arms =
      parse_control(with(R"("op":"use_arm","name":"t","arms":[0,1],"epoch":3)"));
  REQUIRE(arms.errors == Errors{});
  CHECK(arms.request.arms == std::vector<std::uint8_t>{0, 1});
  CHECK(parse_control(with(R"("op":"end_trial","name":"t","keep":"candidate")"))
            .request.keep_candidate);
  for (const char* op :
       {"hello", "telemetry", "status", "parameters", "trials", "guard", "clear_guard"}) {
    CHECK(parse_control(with(R"("op":")" + std::string(op) + "\"")).errors == Errors{});
  }
}

TEST_CASE("every error is told, and nothing unknown is taken", "[control]") {
  const auto errors = [](const std::string& text) { return parse_control(text).errors; };
  CHECK(errors("") == Errors{"the request is not a JSON object"});
  CHECK(errors("[]") == Errors{"the request is not a JSON object"});
  CHECK(errors("{\"a\":") == Errors{"the request is not a JSON object"});
  CHECK(errors("{}").size() == 3);
  CHECK(errors(R"({"schema":2,"id":1,"op":"hello"})") == Errors{"schema: 2; allowed: 1"});
  CHECK(errors(R"({"schema":1,"id":-1,"op":"hello"})").size() == 1);
  CHECK(errors(R"({"schema":1,"id":9007199254740992,"op":"hello"})").size() == 1);
  const Errors unknown = errors(with(R"("op":"reboot")"));
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0].starts_with("op: \"reboot\"; allowed: one of hello, telemetry, status"));
  CHECK(errors(with(R"("op":7)")).size() == 1);
  CHECK(errors(with(R"("op":"hello","nics":["h0"])")) ==
        Errors{"unknown member \"nics\"; known: schema id op"});
  CHECK(errors(with(R"("op":"use_arm","name":"t","arm":2,"epoch":0,"more":1)")).size() == 3);
  CHECK(errors(with(R"("op":"use_arm")")).size() == 2);
  CHECK(errors(with(R"("op":"use_arm","name":"t","epoch":1)")) ==
        Errors{"arm and arms: one of them"});
  CHECK(errors(with(R"("op":"use_arm","name":"t","arm":0.5,"epoch":1)")) ==
        Errors{"arm: 0.5; allowed: whole number from 0 to 1"});
  CHECK(errors(with(R"("op":"configure","nics":[])")).size() == 1);
  CHECK(errors(with(R"("op":"take_away","nics":["h0"])")).empty());
  CHECK(errors(with(R"("op":"take_away")")).size() == 1);
  CHECK(errors(with(R"("op":"configure","nics":["a","a"])")).size() == 1);
  CHECK(errors(with(R"("op":"configure","nics":"h0")")).size() == 1);
  CHECK(errors(with(R"("op":"configure","params":{"g":"x","h":null},"dry_run":1)")).size() == 3);
  CHECK(errors(with(R"("op":"trial","name":"t","candidate":{"profil":1},"hold_ms":5)")).size() ==
        2);
  CHECK(errors(with(R"("op":"trial","name":"","candidate":3,"guard":[],"hold_ms":"x")")).size() ==
        4);
  CHECK(
      errors(
          with(
              R"("op":"trial","name":"t","candidate":{},"hold_ms":500,"guard":{"pause_share":2,"stall_ms":-1,"x":1})"))
          .size() == 3);
  CHECK(errors(with(R"("op":"end_trial","name":"t","keep":"both")")).size() == 1);
  CHECK(errors(std::string(kMostControlBytes + 1, ' ')).size() == 1);
  // Deep nesting is refused before anything goes down into it.
  CHECK(errors(with("\"op\":" + std::string(30'000, '[') + std::string(30'000, ']'))) ==
        Errors{"the request is nested deeper than 8"});
  // A refusal carries the id, where there is one.
  CHECK(parse_control(R"({"schema":1,"id":55,"op":"x"})").request.id == 55);
}

TEST_CASE("clusters and their arms: what is wrong is told", "[control]") {
  const auto trial = [](const std::string& clusters) {
    return parse_control(with(R"("op":"trial","name":"t","candidate":{"algorithm":"swift"},)"
                              R"("hold_ms":500,"clusters":)" +
                              clusters))
        .errors;
  };
  const std::string names = "list of 1 to 256 entries, each a text of 1 to 63 characters";
  const std::string lists = "list of 2 to 16 entries, each a " + names;
  CHECK(trial(R"("h0")") == Errors{"clusters: \"h0\"; allowed: " + lists});
  CHECK(trial(R"([["h0"]])") == Errors{"clusters: a list; allowed: " + lists});
  CHECK(trial(R"([["h0"],[]])") == Errors{"clusters[1]: a list; allowed: " + names});
  CHECK(trial(R"([["h0"],"h1"])") == Errors{"clusters[1]: \"h1\"; allowed: " + names});
  CHECK(trial(R"([["h0"],[1]])") ==
        Errors{"clusters[1][0]: 1; allowed: text of 1 to 63 characters"});
  CHECK(trial(R"([["h0"],["h0"]])") == Errors{"clusters: \"h0\"; allowed: each name once"});
  CHECK(trial(R"([["h0"],["h1"]],"nics":["h0"])") ==
        Errors{"nics and clusters: a trial has one of them"});
  const auto use = [](const std::string& arms) {
    return parse_control(with(R"("op":"use_arm","name":"t","epoch":3,)" + arms)).errors;
  };
  CHECK(use(R"("arms":[0])") ==
        Errors{"arms: a list; allowed: list of 2 to 16 entries, each a whole number from 0 to 1"});
  CHECK(use(R"("arms":[0,2])") == Errors{"arms[1]: 2; allowed: whole number from 0 to 1"});
  CHECK(use(R"("arms":[0,1],"arm":1)") == Errors{"arm and arms: one of them"});
}

TEST_CASE("faults are read as they were meant", "[control]") {
  const ParsedControl parsed = parse_control(with(
      R"("op":"fault","events":[{"target":"h0.1","action":"down","after_us":1.5,"for_us":50000},)"
      R"({"target":"leaf0","action":"rate","rate_mbps":2500,"direction":"up"},)"
      R"({"target":"h1","action":"delay","delay_ns":20000.5},)"
      R"({"target":"h1","action":"loss","probability":0.25,"direction":"down"},)"
      R"({"target":"plane1","action":"clear"}])"));
  REQUIRE(parsed.errors == Errors{});
  CHECK(parsed.request.op == ControlOp::fault);
  const std::vector<config::LinkFault>& faults = parsed.request.faults;
  REQUIRE(faults.size() == 5);
  CHECK(faults[0].target == "h0.1");
  CHECK(faults[0].action == "down");
  CHECK(faults[0].direction == "both");
  CHECK(faults[0].after == picos_from_nanos(1'500));
  CHECK(faults[0].lasts == picos_from_micros(50'000));
  CHECK(faults[1].rate == rate_from_mbps(2500));
  CHECK(faults[1].direction == "up");
  CHECK(faults[1].after == Picos{0});
  CHECK(faults[1].lasts == Picos{0});
  CHECK(faults[2].delay == Picos{20'000'500});
  CHECK(faults[3].probability == 0.25);
  CHECK(faults[3].direction == "down");
  CHECK(faults[4].action == "clear");
}

TEST_CASE("faults of a kind are read, with severity and seed", "[control]") {
  const ParsedControl parsed = parse_control(
      with(R"("op":"fault","events":[{"target":"h1","action":"pcie_limit","severity":4},)"
           R"({"target":"leaf0-spine1","action":"lossy_link","seed":7,"direction":"up"},)"
           R"({"target":"h1","action":"clock_jump","severity":-20.5}])"));
  REQUIRE(parsed.errors == Errors{});
  REQUIRE(parsed.request.faults.size() == 3);
  CHECK(parsed.request.faults[0].severity == 4);
  CHECK(parsed.request.faults[0].seed == 0);
  CHECK_FALSE(parsed.request.faults[1].severity);
  CHECK(parsed.request.faults[1].seed == 7);
  CHECK(parsed.request.faults[1].direction == "up");
  CHECK(parsed.request.faults[2].severity == -20.5);
  const auto errors = [](const std::string& members) {
    return parse_control(with(R"("op":"fault","events":[{"target":"h0",)" + members + "}]")).errors;
  };
  CHECK(errors(R"("action":"slow_rank")") ==
        Errors{
            "events[0].action: slow_rank: ranks are programs there; `paceline job run` slows one"});
  CHECK(errors(R"("action":"slow_nic","severity":0.5)") ==
        Errors{"events[0].severity: 0.5: out of range, allowed with fault.kind = \"slow_nic\" is "
               "[1.1 .. 1000]: times as slow"});
  CHECK(errors(R"("action":"slow_nic","seed":3)") ==
        Errors{"events[0].seed: chance decides nothing in slow_nic"});
  CHECK(errors(R"("action":"slow_nic","direction":"up")") ==
        Errors{"events[0].direction: does nothing with action \"slow_nic\""});
  CHECK(errors(R"("action":"down","severity":1,"seed":3)") ==
        Errors{"events[0].severity: does nothing with action \"down\"",
               "events[0].seed: does nothing with action \"down\""});
  CHECK(errors(R"("action":"dead_port","severity":1)") ==
        Errors{"events[0].severity: 1: does nothing with fault.kind = \"dead_port\""});
}

TEST_CASE("faults: what is wrong is told", "[control]") {
  const auto events = [](const std::string& list) {
    return parse_control(with(R"("op":"fault","events":)" + list)).errors;
  };
  const auto event = [&](const std::string& members) {
    return events(R"([{"target":"h1","action":"up"},{"target":"h0",)" + members + "}]");
  };
  // A value goes with the action that it is for.
  CHECK(event(R"("action":"down","probability":1)") ==
        Errors{"events[1].probability: does nothing with action \"down\""});
  CHECK(event(R"("action":"loss","probability":1,"rate_mbps":10)") ==
        Errors{"events[1].rate_mbps: does nothing with action \"loss\""});
  CHECK(event(R"("action":"up","direction":"both")") ==
        Errors{"events[1].direction: does nothing with action \"up\""});
  CHECK(event(R"("action":"clear","delay_ns":10)") ==
        Errors{"events[1].delay_ns: does nothing with action \"clear\""});
  CHECK(event(R"("action":"rate")") == Errors{"events[1].rate_mbps: action \"rate\" needs it"});
  CHECK(event(R"("action":"delay","rate_mbps":10)") ==
        Errors{"events[1].rate_mbps: does nothing with action \"delay\"",
               "events[1].delay_ns: action \"delay\" needs it"});
  for (const char* action : {"loss", "corrupt", "duplicate", "reorder"}) {
    CHECK(event(R"("action":")" + std::string(action) + "\"") ==
          Errors{"events[1].probability: action \"" + std::string(action) + "\" needs it"});
  }
  for (const char* action : {"up", "clear"}) {
    CHECK(event(R"("for_us":5,"action":")" + std::string(action) + "\"") ==
          Errors{"events[1].for_us: does nothing with action \"" + std::string(action) + "\""});
  }
  // What no fabric takes.
  CHECK(event(R"("action":"rate","rate_mbps":0.5)") ==
        Errors{"events[1].rate_mbps: 0.5; allowed: number from 1 to 3200000"});
  CHECK(event(R"("action":"delay","delay_ns":0)").size() == 1);
  CHECK(event(R"("action":"loss","probability":1.01)").size() == 1);
  CHECK(event(R"("action":"loss","probability":1,"direction":"left")").size() == 1);
  CHECK(event(R"("action":"down","after_us":-1,"for_us":3600000001)").size() == 2);
  CHECK(event(R"("action":"dwon")").size() == 1);
  CHECK(event(R"("action":"down","at":1)").size() == 1);
  CHECK(events(R"([{"action":"down"}])").size() == 1);
  CHECK(events("[]").size() == 1);
  CHECK(parse_control(with(R"("op":"fault")")).errors.size() == 1);
}

TEST_CASE("no text of changed bytes breaks the parser", "[control]") {
  const std::string good = with(
      R"("op":"trial","name":"t","nics":["h0"],"candidate":{"algorithm":"swift","params":{"a":1}},"guard":{"stall_ms":5},"hold_ms":30000)");
  REQUIRE(parse_control(good).errors == Errors{});
  const std::uint64_t seed = 11;
  INFO("seed " << seed);
  Random random(seed);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string bad = good;
    const std::uint64_t changes = 1 + random.below(4);
    for (std::uint64_t c = 0; c < changes; ++c) {
      bad[random.below(bad.size())] = static_cast<char>(random.below(256));
    }
    refused += parse_control(bad).errors.empty() ? 0 : 1;
  }
  CHECK(refused > 4000);
  CHECK(refused < 5000);
}

}  // namespace
}  // namespace paceline::service
