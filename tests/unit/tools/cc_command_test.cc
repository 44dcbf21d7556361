#include "tools/plugin/cc_command.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>

#include "cc/cadence/cadence.h"
#include "cc/eqds/eqds.h"
#include "cc/grants/grant_channel.h"
#include "cc/params.h"
#include "cc/rate/dcqcn.h"
#include "cc/rate/switch_notified.h"
#include "cc/rate/timely.h"
#include "cc/registry.h"
#include "cc/window/dctcp.h"
#include "cc/window/hpcc.h"
#include "cc/window/nscc.h"
#include "cc/window/powertcp.h"
#include "cc/window/swift.h"
#include "cc/window/theta_powertcp.h"

using namespace paceline;
using namespace paceline::tools;

namespace {

struct Shown {
  int code = 0;
  std::string out, err;
};

Shown show(const std::string& name, const std::string& profile, CcFormat format,
           Rate link = rate_from_gbps(100)) {
  std::ostringstream out, err;
  CcShowOptions options;
  options.name = name;
  options.profile = profile;
  options.format = format;
  options.link_rate = link;
  Shown shown;
  shown.code = run_cc_show(out, err, options);
  shown.out = out.str();
  shown.err = err.str();
  return shown;
}

// Without line breaks and indentation.
std::string flat(const std::string& text) {
  std::istringstream words(text);
  std::string out;
  for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

double shown_value(const Shown& shown, const std::string& parameter) {
  const auto json = nlohmann::json::parse(shown.out);
  for (const auto& param : json.at("params")) {
    if (param.at("name") == parameter) return param.at("value").get<double>();
  }
  FAIL("not shown: " + parameter);
  return 0;
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file.is_open());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string reference_page(std::string_view algorithm) {
  return read(PACELINE_SOURCE_DIR "/docs/algorithms/" + std::string(algorithm) + ".md");
}

// Headings of a page as links name them: lower case, blanks as hyphens, no other punctuation.
std::set<std::string> anchors_of(const std::string& page) {
  std::set<std::string> anchors;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("##", 0) != 0) continue;
    std::string anchor;
    for (const char c : line.substr(line.find(' ') + 1)) {
      const auto u = static_cast<unsigned char>(c);
      if (c == ' ') anchor += '-';
      if (c == '-' || c == '_' || std::isalnum(u) != 0) {
        anchor += static_cast<char>(std::tolower(u));
      }
    }
    anchors.insert(anchor);
  }
  return anchors;
}

}  // namespace

TEST_CASE("cc list: every algorithm with its profiles, as text and JSON") {
  for (const CcFormat format : {CcFormat::text, CcFormat::json}) {
    std::ostringstream out;
    CHECK(run_cc_list(out, format) == 0);
    if (format == CcFormat::text) CHECK(widest_line(out.str()) <= kTextColumns);
    const std::string all = flat(out.str());
    for (const cc::AlgorithmInfo& info : cc::algorithms()) {
      CHECK(all.find(info.name) != std::string::npos);
      CHECK(all.find(info.summary) != std::string::npos);
      for (const cc::Profile& profile : info.profiles) {
        CHECK(all.find(profile.name) != std::string::npos);
      }
    }
    if (format == CcFormat::json) {
      const auto json = nlohmann::json::parse(out.str());
      CHECK(json.at("schema") == 1);
      CHECK(json.at("algorithms").size() == cc::algorithms().size());
    }
  }
}

TEST_CASE("cc show: every parameter with unit, range, meaning and source") {
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    const Shown shown = show(std::string(info.name), "", CcFormat::text);
    CHECK(shown.code == 0);
    CHECK(shown.err.empty());
    CHECK(widest_line(shown.out) <= kTextColumns);
    const std::string all = flat(shown.out);
    for (const cc::ParamSpec& spec : info.params) {
      for (const std::string_view part : {spec.name, spec.unit, spec.meaning, spec.source}) {
        CHECK(all.find(part) != std::string::npos);
      }
      CHECK(shown.out.find(cc::number_text(spec.max)) != std::string::npos);
    }
  }
}

TEST_CASE("cc list: as narrow as the terminal") {
  std::ostringstream out;
  CHECK(run_cc_list(out, CcFormat::text, 60) == 0);
  CHECK(widest_line(out.str()) <= 60);
}

TEST_CASE("cc show: every short name of a source is explained") {
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    const Shown shown = show(std::string(info.name), "", CcFormat::text);
    const std::size_t legend = shown.out.find("\nsources in brackets\n");
    CAPTURE(info.name);
    REQUIRE((legend != std::string::npos || info.params.empty()));
    std::set<std::string> explained;
    std::istringstream lines(legend == std::string::npos ? "" : shown.out.substr(legend));
    for (std::string line, name; std::getline(lines, line);) {
      if (std::istringstream(line) >> name) explained.insert(name);
    }
    for (const cc::ParamSpec& spec : info.params) {
      // A source begins with the name of where it is from, and so does what follows a semicolon.
      std::istringstream sources{std::string(spec.source)};
      for (std::string source, name; std::getline(sources, source, ';');) {
        std::istringstream(source) >> name;
        while (!name.empty() &&
               std::string_view(":,").find(name.back()) != std::string_view::npos) {
          name.pop_back();
        }
        CAPTURE(spec.name, spec.source, name);
        const bool short_name =
            name.find('\'') != std::string::npos ||
            (name.size() >= 2 && name.size() <= 3 &&
             std::isupper(static_cast<unsigned char>(name[0])) != 0 && name != "RFC");
        if (short_name) CHECK(explained.count(name) == 1);
      }
    }
  }
}

TEST_CASE("cc show: values of the profile, scaled to the link") {
  const std::string step = "additive_increase_mbps";
  CHECK(shown_value(show("dcqcn", "", CcFormat::json), step) == 40);
  CHECK(shown_value(show("dcqcn", "hpcc-repo", CcFormat::json), step) == 20);
  CHECK(shown_value(show("dcqcn", "hpcc-repo", CcFormat::json, rate_from_gbps(400)), step) == 80);
  const Shown text = show("dcqcn", "hpcc-repo", CcFormat::text, rate_from_gbps(400));
  CHECK(text.out.find("values of profile hpcc-repo, link 400000 Mb/s") != std::string::npos);
  const auto json = nlohmann::json::parse(show("dcqcn", "mellanox", CcFormat::json).out);
  CHECK(json.at("schema") == 1);
  CHECK(json.at("profile") == "mellanox");
  CHECK(json.at("link_mbps") == 100'000);
}

TEST_CASE("cc show: an unknown name is explained, exit code 2, nothing printed") {
  const Shown algorithm = show("dcqnc", "", CcFormat::text);
  CHECK(algorithm.code == 2);
  CHECK(algorithm.out.empty());
  CHECK(algorithm.err == "paceline: error: no algorithm 'dcqnc'; the nearest is 'dcqcn'\n");
  const Shown profile = show("dcqcn", "melanox", CcFormat::json);
  CHECK(profile.code == 2);
  CHECK(profile.out.empty());
  CHECK(profile.err ==
        "paceline: error: dcqcn has no profile 'melanox'; the nearest is 'mellanox'\n");
}

TEST_CASE("cc show: a profile that does not fit the link is an error") {
  const Shown shown = show("dcqcn", "hpcc-repo", CcFormat::text, rate_from_mbps(900));
  CHECK(shown.code == 2);
  CHECK(shown.err.find("min_rate_mbps = 1000 Mb/s is above the link rate of 900 Mb/s") !=
        std::string::npos);
}

TEST_CASE("reference pages name every parameter and profile, and the command that prints them") {
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    const std::string page = reference_page(info.name);
    const auto names = [&page](std::string_view name) {
      CAPTURE(name);
      CHECK(page.find("`" + std::string(name) + "`") != std::string::npos);
    };
    CAPTURE(info.name);
    CHECK(page.find("`paceline cc show " + std::string(info.name)) != std::string::npos);
    for (const cc::ParamSpec& spec : info.params) names(spec.name);
    for (const cc::Profile& profile : info.profiles) {
      if (profile.name != "default") names(profile.name);
    }
  }
}

TEST_CASE("reference pages say how much state an algorithm keeps") {
  const std::map<std::string_view, std::size_t> sizes = {
      {"dcqcn", sizeof(cc::Dcqcn::State)},
      {"timely", sizeof(cc::Timely::State)},
      {"swift", sizeof(cc::Swift::State)},
      {"dctcp", sizeof(cc::Dctcp::State)},
      {"nscc", sizeof(cc::Nscc::State)},
      {"theta-powertcp", sizeof(cc::ThetaPowerTcp::State)},
      {"hpcc", sizeof(cc::Hpcc::State)},
      {"powertcp", sizeof(cc::PowerTcp::State)},
      {"cadence", sizeof(cc::Cadence::State)},
      {"eqds", sizeof(cc::Eqds::State)},
      {"sird", sizeof(cc::GrantChannel)},
      {"homa", sizeof(cc::GrantChannel)},
      {"switch-notified", sizeof(cc::SwitchNotified::State)}};
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    if (info.name == "fixed") continue;  // keeps none
    CAPTURE(info.name);
    REQUIRE(sizes.count(info.name) == 1);
    const std::string words = std::to_string(sizes.at(info.name)) + " bytes per ";
    CHECK(reference_page(info.name).find(words) != std::string::npos);
  }
}

TEST_CASE("reference pages name the figure they reproduce, and where it is shown") {
  const std::set<std::string> shown = anchors_of(read(PACELINE_SOURCE_DIR "/docs/fidelity.md"));
  CHECK(shown.count("swift-2020") == 1);
  const std::string link = "(../fidelity.md#";
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    const std::string page = reference_page(info.name);
    CAPTURE(info.name);
    // Nobody has published one of cadence; its page has our own.
    const bool own = info.id == cc::AlgorithmId::cadence;
    CHECK(page.find(own ? "\n## Figures\n" : "\n## The figure it reproduces\n") !=
          std::string::npos);
    for (std::size_t at = page.find(link); at != std::string::npos; at = page.find(link, at + 1)) {
      const std::size_t begin = at + link.size();
      const std::string anchor = page.substr(begin, page.find(')', begin) - begin);
      CAPTURE(anchor);
      CHECK(shown.count(anchor) == 1);
    }
  }
}
