// Bad input: exit 2, the place, the value and what is allowed on standard error, nothing else.

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/tools/command.h"

namespace paceline::tools {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Strings = std::vector<std::string>;

// Refused: exit 2, every text in an error line, no output, and no file left but those given.
void check_refused(const Folder& folder, Strings arguments, const Strings& texts) {
  const Strings before = folder.list();
  if (arguments[0] == "emulate") {
    for (const char* word : {"--out", "result.json", "--flows-out", "flows.csv"}) {
      arguments.emplace_back(word);
    }
  } else if (arguments[0] == "ab") {
    for (const char* word : {"--out", "result.json"}) arguments.emplace_back(word);
  }
  const Outcome outcome = paceline_command(folder, arguments);
  CAPTURE(arguments, outcome.out, outcome.err);
  CHECK(outcome.code == 2);
  CHECK(outcome.out == "");
  CHECK_THAT(outcome.err, StartsWith("paceline: error: "));
  for (const std::string& text : texts) CHECK_THAT(outcome.err, Contains(text));
  CHECK(folder.list() == before);
}

const std::string kScenario = R"(schema = 1
name = "small"
[fabric]
hosts = 3
[cc]
algorithm = "dcqcn"
[workload]
kind = "incast"
fan_in = 2
message_bytes = "20kB"
)";

TEST_CASE("bad input: a scenario file", "[cli]") {
  struct Case {
    const char* line;  // appended; line 11
    Strings texts;
  };
  const Case cases[] = {
      {"mesage_bytes = 5", {"bad.toml:11:1: ", "mesage_bytes", "message_bytes"}},
      {"start_jitter = \"-1us\"", {"bad.toml:11:16: ", "-1us"}},
      {"skew = 1.0", {"bad.toml:11:", "skew", "does nothing"}},
      {"receiver = 3", {"bad.toml:11:12: ", "receiver = 3", "0 .. 2"}},
      {"[cc.params]\nmin_rate_mbps = -5", {"bad.toml:12:17: ", "min_rate_mbps", "-5", "["}},
      {"[cc.params]\nmin_rate_mbp = 5", {"bad.toml:12:1: ", "min_rate_mbp", "min_rate_mbps"}},
      {"[transport]\npayload_bytes = 1000", {"bad.toml:12:17: ", "1000", "1024"}},
      {"[transport]\nretry_count = 8", {"bad.toml:12:15: ", "8", "[0 .. 7]"}},
      {"[fabrik]\n", {"bad.toml:11:", "fabrik", "fabric"}},
      {"fan_in = 2", {"bad.toml:11:"}},  // twice
      {"kind", {"bad.toml:11:"}},        // no TOML at all
  };
  for (const Case& c : cases) {
    const Folder folder;
    folder.write("bad.toml", kScenario + c.line + "\n");
    check_refused(folder, {"emulate", "bad.toml"}, c.texts);
  }
  const Folder folder;
  folder.write("bad.toml", "[fabric]\nrate = \"-100Gb/s\"\n");
  check_refused(folder, {"emulate", "bad.toml"}, {"bad.toml:2:8: ", "-100Gb/s", "negative"});
  folder.write("bad.toml", "[fabric]\nrate = \"4Tb/s\"\n");
  check_refused(folder, {"emulate", "bad.toml"},
                {"bad.toml:2:8: ", "4Tb/s", "[1Mb/s .. 3200Gb/s]"});
  folder.write("bad.toml", "[cc]\nalgorithm = \"dcqnc\"\n");
  check_refused(folder, {"emulate", "bad.toml"}, {"bad.toml:2:13: ", "dcqnc", "dcqcn"});
}

TEST_CASE("bad input: all errors of a file are reported", "[cli]") {
  const Folder folder;
  folder.write("bad.toml", "[fabric]\nrate = \"fast\"\nhosts = 1\n[cc]\nalgorithm = \"none\"\n");
  check_refused(folder, {"emulate", "bad.toml"},
                {"bad.toml:2:8: ", "bad.toml:3:9: ", "bad.toml:5:13: "});
}

TEST_CASE("bad input: overrides", "[cli]") {
  const Folder folder;
  folder.write("small.toml", kScenario);
  const auto refused = [&folder](const std::string& set, const Strings& texts) {
    Strings all = texts;
    all.push_back("--set " + set);
    check_refused(folder, {"emulate", "small.toml", "--set", set}, all);
  };
  refused("fabric.host=5", {"\"host\"", "did you mean \"hosts\"?"});
  refused("fabric.rate=-5Gb/s", {"-5Gb/s", "negative"});
  refused("cc.algorithm=cadense", {"cadense", "cadence"});
  refused("cc.params.min_rate_mbps=1e12", {"min_rate_mbps"});
  refused("fabric.hosts", {});
  refused("=5", {});
  check_refused(folder, {"emulate", "--set", "workload.fan_in=77"}, {"77", "31"});
}

TEST_CASE("bad input: an experiment file", "[cli]") {
  const Folder folder;
  const std::string good =
      "[[arm]]\nname = \"a\"\nalgorithm = \"dcqcn\"\n[[arm]]\nname = \"b\"\nalgorithm = "
      "\"cadence\"\n[[scenario]]\nname = \"s\"\n";
  folder.write("bad.toml", good + "[scenario.worklod]\n");
  check_refused(folder, {"ab", "bad.toml"}, {"bad.toml:9:", "worklod", "workload"});
  folder.write("bad.toml", "repetitions = 0\n" + good);
  check_refused(folder, {"ab", "bad.toml"}, {"bad.toml:1:15: ", "repetitions"});
  folder.write("bad.toml", good);
  check_refused(folder, {"ab", "bad.toml", "--set", "arm.c.profile=paper"}, {"arm.c.profile"});
  check_refused(folder, {"ab", "bad.toml", "--set", "scenario.t.seed=1"}, {"scenario.t.seed"});
}

const std::string kTopology = "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n";

TEST_CASE("bad input: topologies and flow lists", "[cli]") {
  const Folder folder;
  folder.write("good.topology", kTopology);
  folder.write("good.flows", "1\n0 1 3 100 1000 0\n");
  const auto topology = [&folder](const std::string& text, const Strings& texts) {
    folder.write("t", text);
    check_refused(folder, {"emulate", "--topology", "t", "--flows", "good.flows"}, texts);
  };
  topology("5 2 3\n3 4\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 4 100Gbps 1us 0\n",
           {"/t:", "2"});  // host 2 cannot be reached
  topology("3 1 2\n2\n0 2 -100Gbps 1us 0\n1 2 100Gbps 1us 0\n", {"/t:3:5: ", "-100Gbps"});
  topology("3 1 2\n2\n0 2 100Gbps 1us 0\n", {"/t:"});  // truncated
  topology("", {"/t:1:1: "});

  const auto flows = [&folder](const std::string& text, const Strings& texts) {
    folder.write("f", text);
    check_refused(folder, {"emulate", "--topology", "good.topology", "--flows", "f"}, texts);
  };
  flows("1\n1 1 3 100 1000 0\n", {"/f:2:", "itself"});
  flows("1\n0 2 3 100 1000 0\n", {"/f:2:3: ", "2"});  // the switch
  flows("1\n0 9 3 100 1000 0\n", {"/f:2:3: ", "9"});
  flows("2\n0 1 3 100 1000 0\n", {"/f:", "2"});
  flows("2\n0 1 3 100 1000 0\n0 1 3 10", {"/f:3:"});
  flows("1\n0 1 3 100 -5 0\n", {"/f:2:11: ", "-5"});
  flows("", {"/f:1:1: "});
}

TEST_CASE("bad input: a flow-size distribution", "[cli]") {
  const Folder folder;
  folder.write("s.toml", "[workload]\nkind = \"open_loop\"\ncdf_file = \"c\"\n");
  const auto cdf = [&folder](const std::string& text, const Strings& texts) {
    folder.write("c", text);
    check_refused(folder, {"emulate", "s.toml"}, texts);
  };
  cdf("100 0\n1000 0.9\n", {"c:2:", "0.9", "1"});  // does not end at 1
  cdf("100 0\n1000 0.5\n500 1\n", {"c:3:1: ", "500"});
  cdf("", {"c:1:1: "});
  folder.write("s.toml", "[workload]\nkind = \"open_loop\"\ncdf_file = \"missing\"\n");
  check_refused(folder, {"emulate", "s.toml"}, {"missing", "No such file"});
}

TEST_CASE("bad input: files that are none", "[cli]") {
  const Folder folder;
  folder.write("good.topology", kTopology);
  check_refused(folder, {"emulate", "missing.toml"}, {"missing.toml: ", "No such file"});
  check_refused(folder, {"ab", "missing.toml"}, {"missing.toml: ", "No such file"});
  check_refused(folder, {"emulate", "."}, {"folder"});
  check_refused(folder, {"ab", "."}, {"folder"});
  check_refused(folder, {"emulate", "--topology", ".", "--flows", "."}, {"folder"});
  check_refused(folder, {"emulate", "--topology", "good.topology", "--flows", "."}, {"folder"});
  folder.write("empty.toml", "");
  if (::geteuid() != 0) {  // root reads everything
    folder.write("secret.toml", kScenario);
    ::chmod(folder.path("secret.toml").c_str(), 0);
    check_refused(folder, {"emulate", "secret.toml"}, {"Permission denied"});
  }
  // Nobody will ever write into this pipe.
  REQUIRE(::mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  for (const char* nothing : {"pipe", "/dev/null", "empty.toml"}) {
    const std::string place = std::string(nothing) + ":1:1: ";
    check_refused(folder, {"emulate", nothing}, {place});
    check_refused(folder, {"ab", nothing}, {place});
    check_refused(folder, {"emulate", "--topology", nothing, "--flows", nothing}, {place});
    check_refused(folder, {"emulate", "--topology", "good.topology", "--flows", nothing}, {place});
  }
}

TEST_CASE("bad input: where results cannot be written is found out before the run", "[cli]") {
  const Folder folder;
  // A run that would not end; an experiment likewise.
  const std::string endless = "message_bytes = \"1000TB\"";
  std::string scenario = kScenario;
  scenario.replace(scenario.find("message_bytes = \"20kB\""), 22, endless);
  folder.write("endless.toml", scenario);
  folder.write("endless-ab.toml",
               "[[arm]]\nname = \"a\"\nalgorithm = \"dcqcn\"\n[[arm]]\nname = \"b\"\nalgorithm = "
               "\"fixed\"\n[[scenario]]\nname = \"s\"\n[scenario.workload]\n" +
                   endless + "\n");
  const Strings before = folder.list();
  for (const char* target : {"no/such/folder/x", ".", "endless.toml/x"}) {
    for (const Strings& arguments : {Strings{"emulate", "endless.toml", "--out", target},
                                     Strings{"emulate", "endless.toml", "--flows-out", target},
                                     Strings{"ab", "endless-ab.toml", "--out", target}}) {
      const Outcome outcome = paceline_command(folder, arguments);
      CAPTURE(arguments, outcome.err);
      CHECK(outcome.code == 2);
      CHECK(outcome.out == "");
      CHECK_THAT(outcome.err, StartsWith("paceline: error: ") && Contains(target));
      CHECK(folder.list() == before);
    }
  }
}

TEST_CASE("bad input: the command line itself", "[cli]") {
  const Folder folder;
  folder.write("small.toml", kScenario);
  for (const Strings& arguments :
       {Strings{}, Strings{"emulat"}, Strings{"emulate"}, Strings{"ab"},
        Strings{"emulate", "small.toml", "--seed", "x"},
        Strings{"emulate", "small.toml", "--seed", "-1"},
        Strings{"emulate", "small.toml", "--sed", "1"},
        Strings{"emulate", "small.toml", "again.toml"}, Strings{"ab", "small.toml", "--jobs", "0"},
        Strings{"cc"}, Strings{"cc", "show"}, Strings{"cc", "show", "dcqnc"}}) {
    const Outcome outcome = paceline_command(folder, arguments);
    CAPTURE(arguments, outcome.out, outcome.err);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, StartsWith("paceline"));
    CHECK(folder.list() == Strings{"small.toml"});
  }
}

TEST_CASE("bad input: of commands in real time and on ports", "[cli]") {
  const Folder folder;
  const auto refused = [&folder](const Strings& arguments, const std::string& why) {
    const Outcome outcome = paceline_command(folder, arguments);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Contains(why));
  };
  folder.write("bad.pcap", "no capture at all");
  folder.write("bed.toml", "schema = 1\n");
  const Strings ports = {"--testbed", "bed.toml", "--port", "p"};
  const auto with = [&ports](Strings arguments) {
    arguments.insert(arguments.end(), ports.begin(), ports.end());
    return arguments;
  };
  refused(with({"replay", "bad.pcap"}), "bad.pcap: byte 0: not a capture file");
  refused(with({"replay", "none.pcap"}), "none.pcap: cannot be opened");
  refused(with({"replay", "bad.pcap", "--speed", "x0"}), "--speed x0: allowed are original, max");
  refused(with({"capture", "-o", "no/where.pcapng"}), "no/where.pcapng");
  refused(with({"capture", "-o", "a.pcapng", "--limit", "3B"}), "allowed is 1kB or more");
  refused({"capture", "-w", "a.pcapng"}, "expected a NIC of a service (--nic), or a port");
  refused(with({"capture", "-w", "a.pcapng", "--nic", "h0"}), "expected a NIC of a service");
  refused({"capture", "-w", "a.pcapng", "--port", "p"}, "--testbed and --port belong together");
  refused(with({"capture", "-w", "a.pcapng", "--snap", "100"}), "are for a NIC of a service");
  const Strings nic = {"capture", "-w", "a.pcapng", "--nic", "h0", "--socket", "none.sock"};
  const auto nic_with = [&nic](const Strings& more) {
    Strings arguments = nic;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  refused(nic_with({"--snap", "63"}), "--snap 63: allowed is [64 .. 65535]");
  refused(nic_with({"--ring", "1kB"}), "--ring 1kB: allowed is 65536 to 134217728 bytes");
  refused(nic_with({"--duration", "0s"}), "--duration 0s: allowed is more than 0");
  const Outcome nobody = paceline_command(folder, nic);
  CHECK(nobody.code == 1);
  CHECK_THAT(nobody.err, Contains("no service answers at none.sock.control"));
  folder.write("s.toml", "schema = 1\n");
  refused({"join", "s.toml", "--testbed", "bed.toml", "--attach", "x=p"},
          "--attach x=p: allowed is HOST=PORT");
  refused({"join", "s.toml", "--testbed", "bed.toml", "--attach", "99=p"},
          "the hosts of s.toml are 0 to 31");
  refused({"agree", "s.toml", "--window", "10"}, "--window 10");
  refused({"emulate", "s.toml", "--on-stop", "hold"}, "--real-time");
}

TEST_CASE("no daemon answers: how to start one where there is none, and nowhere else", "[cli]") {
  const Folder folder;
  const Outcome none = paceline_command(folder, {"params", "history", "--daemon", "none"});
  CHECK(none.code == 1);
  CHECK(none.err ==
        "paceline: error: pacelined at none: no daemon answers there. Name its socket by --daemon, "
        "or "
        "start one:  pacelined --config configs/pacelined.toml\n");
  // Something listens that is not a daemon.
  const int other = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  const std::string path = folder.path("other");
  REQUIRE(path.size() < sizeof at.sun_path);
  std::memcpy(at.sun_path, path.c_str(), path.size());
  REQUIRE(::bind(other, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  REQUIRE(::listen(other, 1) == 0);
  Command asks(folder, {"guard", "--daemon", "other"});
  ::close(::accept(other, nullptr, nullptr));
  const Outcome ended = asks.wait();
  ::close(other);
  CHECK(ended.code == 1);
  CHECK_THAT(ended.err, StartsWith("paceline: error: pacelined at other: the daemon ended the "));
  CHECK_THAT(ended.err, !Contains("start"));
}

}  // namespace
}  // namespace paceline::tools
