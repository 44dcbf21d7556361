// The page as text: what it says, that nothing in names becomes markup, that it needs no network.
// What a browser makes of it is tested in tests/report.
#include "control/experiment/page/report_page.h"

#include <catch2/catch.hpp>

#include "control/experiment/page/html_text.h"
#include "control/experiment/page/page_assets.h"
#include "control/experiment/report/verdict_words.h"
#include "control/experiment/results/reproduce.h"
#include "tests/unit/experiment/runs.h"

using namespace paceline;
using namespace paceline::experiment;
using Catch::Matchers::Contains;

namespace {

// `gain`: of the second arm's efficiency; `noise` alternates between repetitions.
Results results_with(double gain, double noise = 0.001, std::uint32_t repetitions = 12) {
  Results results;
  results.version = "0.1.0";
  results.plan = test::plan_with({"incast"}, repetitions);
  results.runs =
      test::runs_of(results.plan, [&](RunResult& run, std::size_t, std::size_t a, std::uint32_t r) {
        const double sign = r % 2 == 0 ? 1 : -1;
        run.metrics[Metric::collective_efficiency] =
            0.8 * (a == 0 ? 1 : (1 + gain) * (1 + sign * noise));
        run.metrics[Metric::drops] = 0;
        run.metrics[Metric::control_overhead] = a == 0 ? 0.02 : 0.03 + sign * 1e-4;
      });
  return results;
}

std::string page_of(const Results& results) {
  return report_page(results, analyse(results.runs, results.plan), "r.json");
}

VerdictWords words_of(const Results& results) {
  const Analysis analysis = analyse(results.runs, results.plan);
  return verdict_words(analysis.comparisons.at(0), results.plan);
}

}  // namespace

TEST_CASE("verdicts in words: who wins by how much, how sure, where it loses") {
  const VerdictWords better = words_of(results_with(0.125));
  CHECK(better.verdict == Verdict::better);
  CHECK_THAT(better.sentence,
             Contains("cadence is better than dcqcn: collective efficiency 90 % against") &&
                 Contains("80 %, +12.5 % (95 % interval [+12.4, +12.6], 12 pairs, p <.001)."));
  CHECK_THAT(better.losses, Contains("cadence is worse in control overhead +1.000 pp."));

  CHECK_THAT(words_of(results_with(-0.1)).sentence, Contains("cadence is worse than dcqcn"));
  const VerdictWords none = words_of(results_with(0.0001, 0.01));
  CHECK_THAT(none.sentence, Contains("No difference between cadence and dcqcn was shown") &&
                                Contains("with 80 % power"));
  CHECK_THAT(words_of(results_with(0, 0)).sentence, Contains("are identical"));
  CHECK_THAT(words_of(results_with(0.1, 0.001, 1)).sentence, Contains("Too few complete pairs"));
  Results failed = results_with(0.1);
  for (RunResult& run : failed.runs) run.status = RunStatus::failed;
  CHECK_THAT(words_of(failed).sentence, Contains("No pair of runs"));
  CHECK_THAT(page_of(failed), Contains("no primary metric could be compared"));
}

TEST_CASE("text becomes text, whatever it holds") {
  CHECK(html_escaped("a<b>&\"c\"") == "a&lt;b&gt;&amp;&quot;c&quot;");
  CHECK(json_in_script("{\"a\": \"</script>\"}") == "{\"a\": \"\\u003c/script>\"}");

  Results results = results_with(0.1);
  const std::string evil = "</script><script>alert(1)</script>\"'&";
  results.plan.name = results.plan.scenarios[0] = results.configuration = evil;
  results.plan.arms[1] = "<b>";
  for (RunResult& run : results.runs) {
    run.scenario = evil;
    if (run.arm == "cadence") run.arm = "<b>";
  }
  const std::string page = page_of(results);
  CHECK(page.find("alert(1)</script>") == std::string::npos);
  CHECK(page.find("<b><b>") == std::string::npos);
  std::size_t ends = 0;
  for (std::size_t at = 0; (at = page.find("</script>", at)) != std::string::npos; ++at) ++ends;
  CHECK(ends == (report_has_charts() ? 3U : 2U));
}

TEST_CASE("the page forbids itself the network, and is the same every time") {
  const std::string page = page_of(results_with(0.1));
  CHECK(page == page_of(results_with(0.1)));
  CHECK_THAT(page, Contains("Content-Security-Policy\" content=\"default-src 'none';"));
  for (const char* part : {"src=\"http", "href=\"http", "url(http", "@import", "src=\"//"}) {
    CHECK_FALSE(page.substr(0, page.find("<script>")).find(part) != std::string::npos);
    CHECK(page_style().find(part) == std::string::npos);
    CHECK(page_script().find(part) == std::string::npos);
  }
  CHECK(report_has_charts() == !page_chart_library().empty());
  if (report_has_charts()) {
    CHECK_THAT(page, Contains("Michael Bostock") && !Contains("Charts were left out"));
  } else {
    CHECK_THAT(page, Contains("Charts were left out"));
  }
}

TEST_CASE("commands repeat the experiment as it was run") {
  Results results = results_with(0.1);
  results.detail.file = "my files/x.toml";
  results.detail.overrides = {"seed=9", "fabric.rate=400Gb/s", "workload.cdf_file=it's.cdf"};
  const Reproduce named(results, "r.json");
  CHECK(named.knows_file());
  CHECK(named.experiment() ==
        "paceline ab 'my files/x.toml' --seed 9 --set fabric.rate=400Gb/s --set "
        "'workload.cdf_file=it'\\''s.cdf' --out r.json");
  CHECK(named.run("a b", "dcqcn", 77) ==
        "paceline emulate 'my files/x.toml' --scenario 'a b' --arm dcqcn --set "
        "fabric.rate=400Gb/s --set 'workload.cdf_file=it'\\''s.cdf' --seed 77 --series-out "
        "'a b.dcqcn.csv'");

  results.detail = {};
  results.configuration = "# --set not=this\nname = \"x\"\n# --set a=1\n# --set seed=4\n";
  const Reproduce unnamed(results, "r.json");
  CHECK_FALSE(unnamed.knows_file());
  CHECK(unnamed.experiment() == "paceline ab experiment.toml --set a=1 --seed 4 --out r.json");
  CHECK_THAT(page_of(results), Contains("do not name the file"));
  CHECK(shell_word("") == "''");
  CHECK(shell_word("$(rm)") == "'$(rm)'");
}
