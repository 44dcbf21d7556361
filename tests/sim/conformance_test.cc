// Every algorithm by name through the same suite: it lives, keeps its queue, is fair among its own,
// recovers from losses, flaps and rate changes, does not starve beside dcqcn, is deterministic, and
// bears every parameter at both ends of its range.
#include "tests/sim/conformance.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "cc/params.h"
#include "cc/registry.h"
#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

const std::string kQuickTimer = "transport = { retransmit_timeout = \"100us\" }\n";
const std::string kSelective =
    "transport = { reliability = \"selective\", retransmit_timeout = \"100us\" }\n";

template <class Check>
void for_each_algorithm(Check&& check) {
  for (const cc::AlgorithmInfo& algorithm : cc::algorithms()) {
    CAPTURE(algorithm.name);
    check(algorithm);
  }
}

TEST_CASE("conformance: every algorithm lives, under both ways to repair losses", "[conformance]") {
  for_each_algorithm([](const cc::AlgorithmInfo& algorithm) {
    for (const std::string& transport : {kQuickTimer, kSelective}) {
      settle(cc_line(algorithm) + transport + incast(1, 8, "200kB"));
      settle(cc_line(algorithm) + transport +
             "[fabric]\nhosts = 8\n[workload]\nkind = \"all_to_all\"\nmessage_bytes = \"20kB\"\n");
    }
  });
}

TEST_CASE("conformance: the queue is bounded by what the algorithm promises", "[conformance]") {
  for_each_algorithm([](const cc::AlgorithmInfo& algorithm) {
    const Promise& promise = promise_of(algorithm);
    CAPTURE(promise.reason);
    for (const std::string& transport : {kQuickTimer, kSelective}) {
      const Outcome out = settle(cc_line(algorithm) + transport + incast(1, 8, "1MB"));
      CHECK(out.stats.total_drops() == 0);
      CHECK(static_cast<double>(out.queue_max) < 8 * promise.start_bytes + promise.queue_bytes);
      CHECK(out.queue_max > 0);
    }
  });
}

TEST_CASE("conformance: alike flows get alike", "[conformance]") {
  for_each_algorithm([](const cc::AlgorithmInfo& algorithm) {
    const Outcome out = settle(cc_line(algorithm) + kSelective + incast(1, 8, "2MB"));
    CHECK(fairness(out, 0.2, 0.7) > promise_of(algorithm).jain);
  });
}

TEST_CASE("conformance: losses are recovered from", "[conformance]") {
  for_each_algorithm([](const cc::AlgorithmInfo& algorithm) {
    for (const std::string& transport : {kQuickTimer, kSelective}) {
      std::string toml = cc_line(algorithm) + transport + incast(3, 4, "500kB");
      toml.replace(toml.find("[fabric]\n"), 9, "[fabric]\nloss = 0.005\n");
      const Outcome out = settle(toml);
      CHECK(out.stats.total_drops() > 0);
      CHECK(out.ended < picos_from_micros(20'000));
    }
  });
}

TEST_CASE("conformance: a link that fails and returns is recovered from", "[conformance]") {
  for_each_algorithm([](const cc::AlgorithmInfo& algorithm) {
    const Outcome out = settle(cc_line(algorithm) + kQuickTimer + incast(3, 4, "500kB") +
                               "[[event]]\nat = \"40us\"\nlink = \"host0\"\naction = \"down\"\n"
                               "[[event]]\nat = \"140us\"\nlink = \"host0\"\naction = \"up\"\n");
    CHECK(out.stats.total_drops() > 0);
    CHECK(out.ended > picos_from_micros(260));  // 160 us of data and 100 us of nothing
    CHECK(out.ended < picos_from_micros(20'000));
  });
}

TEST_CASE("conformance: a port that slows down and recovers loses nothing", "[conformance]") {
  for_each_algorithm([](const cc::AlgorithmInfo& algorithm) {
    const Outcome out = settle(
        cc_line(algorithm) + kSelective + incast(3, 4, "500kB") +
        "[[event]]\nat = \"40us\"\nlink = \"host0\"\naction = \"rate\"\nrate = \"20Gb/s\"\n"
        "[[event]]\nat = \"240us\"\nlink = \"host0\"\naction = \"rate\"\nrate = \"100Gb/s\"\n");
    CHECK(out.stats.total_drops() == 0);
    CHECK(out.ended > picos_from_micros(320));  // 200 us at a fifth of the rate
    CHECK(out.ended < picos_from_micros(20'000));
  });
}

TEST_CASE("conformance: beside as many flows of dcqcn nobody starves", "[conformance]") {
  const std::vector<std::uint32_t> others{0, 1, 2};
  for_each_algorithm([&](const cc::AlgorithmInfo& algorithm) {
    const config::Scenario dcqcn = prepared(kDcqcnPaper + incast(1, 4, "2MB")).scenario;
    WorldOptions options;
    options.control_interval = picos_from_micros(1);
    bool changed = false;
    options.control = [&](VirtualWorld& world, Picos) {
      if (changed) return;
      changed = true;
      world.reconfigure(world.cc_setup(dcqcn.cc), 1, 1, others);
    };
    const Outcome out = settle(cc_line(algorithm) + kSelective + incast(1, 4, "2MB"), options);
    CHECK(changed);
    // While all four have something to send: up to when the first of them is done.
    const auto done = [](const std::vector<std::uint64_t>& sent) {
      return std::any_of(sent.begin() + 1, sent.end(),
                         [](auto bytes) { return bytes >= 2'000'000; });
    };
    const auto end = std::find_if(out.sent.begin(), out.sent.end(), done);
    REQUIRE(end != out.sent.end());
    const double theirs = static_cast<double>((*end)[1] + (*end)[2]);
    const double own = static_cast<double>((*end)[3] + (*end)[4]);
    CAPTURE(own / (own + theirs));
    CHECK(own / (own + theirs) > promise_of(algorithm).share);
    CHECK(theirs / (own + theirs) > 0.02);
  });
}

TEST_CASE("conformance: the same seed gives the same run, another one another", "[conformance]") {
  for_each_algorithm([](const cc::AlgorithmInfo& algorithm) {
    const std::uint64_t hash = settle(cc_line(algorithm) + kSelective + incast(5, 6, "150kB")).hash;
    CHECK(settle(cc_line(algorithm) + kSelective + incast(5, 6, "150kB")).hash == hash);
    CHECK(settle(cc_line(algorithm) + kSelective + incast(6, 6, "150kB")).hash != hash);
  });
}

TEST_CASE("conformance: every parameter at both ends of its range", "[conformance]") {
  cc::PortFacts facts;
  facts.link_rate = rate_from_gbps(100);
  unsigned runs = 0;
  for_each_algorithm([&](const cc::AlgorithmInfo& algorithm) {
    for (const cc::ParamSpec& spec : algorithm.params) {
      for (double value : {spec.min, spec.max}) {
        if (spec.unit == "Mb/s") value = std::min(value, 100'000.0);
        if (cc::is_whole_unit(spec.unit)) value = value < spec.max ? std::ceil(value) : value;
        const std::string param = std::string(spec.name) + " = " + cc::number_text(value);
        CAPTURE(param);
        // Two values of one parameter in a table are an error.
        if (promise_of(algorithm).params.starts_with(spec.name)) continue;
        try {
          for (const std::string& transport : {kQuickTimer, kSelective}) {
            settle(cc_line(algorithm, param) + transport + incast(1, 3, "30kB"));
            ++runs;
          }
        } catch (const std::invalid_argument& refused) {
          // What only fits together with other values may be refused, in words.
          CHECK_FALSE(std::string(refused.what()).empty());
        }
      }
    }
  });
  CHECK(runs > 100);
}

TEST_CASE("conformance: some thousand flows at once", "[conformance]") {
  for_each_algorithm([](const cc::AlgorithmInfo& algorithm) {
    // 65 x 64 = 4,160 queue pairs, 64 of them into every port.
    const Outcome out = settle(
        cc_line(algorithm) +
        "[fabric]\nhosts = 65\n[workload]\nkind = \"all_to_all\"\nmessage_bytes = \"9kB\"\n");
    CHECK(out.stats.total_drops() == 0);
  });
}

TEST_CASE("conformance: 4,096 flows into one port", "[conformance][slow]") {
  for_each_algorithm([](const cc::AlgorithmInfo& algorithm) {
    WorldOptions options;
    options.sample_interval = picos_from_micros(1000);
    std::string toml = cc_line(algorithm) + incast(1, 4096, "20kB");
    // Headroom for so many ports is more than the usual buffer.
    toml.replace(toml.find("[fabric]\n"), 9, "[fabric]\nbuffer = \"512MiB\"\n");
    const Outcome out = settle(toml, options);
    CHECK(out.stats.total_drops() == 0);
  });
}

}  // namespace
}  // namespace paceline::simtest
