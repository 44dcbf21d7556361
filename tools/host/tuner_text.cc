#include "tools/host/tuner_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "cc/params.h"
#include "dataplane/base/text/printable.h"

namespace paceline::tools {

namespace {

using TunerJson = nlohmann::json;

std::string word_of(const TunerJson& in, const char* key) {
  const auto at = in.find(key);
  return at != in.end() && at->is_string() ? printable(at->get<std::string>()) : std::string();
}

double figure_of(const TunerJson& in, const char* key) {
  const auto at = in.find(key);
  return at != in.end() && at->is_number() ? at->get<double>() : 0;
}

// "additive_increase_mbps 40 -> 50, ..."
std::string moves_text(const TunerJson& entry) {
  std::string out;
  const auto changes = entry.find("changes");
  if (changes == entry.end() || !changes->is_array()) return out;
  for (const TunerJson& change : *changes) {
    if (!change.is_object()) continue;
    out += fmt::format("{}{} {} -> {}", out.empty() ? "" : ", ", word_of(change, "param"),
                       cc::number_text(figure_of(change, "from")),
                       cc::number_text(figure_of(change, "to")));
  }
  return out;
}

std::string evidence_text(const TunerJson& in) {
  const auto evidence = in.find("evidence");
  if (evidence == in.end() || !evidence->is_object()) return {};
  const double pairs = figure_of(*evidence, "pairs");
  if (pairs < 1) return {};
  std::string out = fmt::format("change of J {:+.4f}", figure_of(*evidence, "mean"));
  if (evidence->contains("low") && (*evidence)["low"].is_number()) {
    out += fmt::format(" [{:+.4f}, {:+.4f}]", figure_of(*evidence, "low"),
                       figure_of(*evidence, "high"));
  }
  return out + fmt::format(", {:.0f} pairs", pairs);
}

}  // namespace

std::string tuner_text(const nlohmann::json& answer) {
  std::string out = fmt::format("mode {}: {}\n", word_of(answer, "mode"), word_of(answer, "doing"));
  const auto line = [&](const char* name, const std::string& text) {
    if (!text.empty()) out += fmt::format("  {:<10} {}\n", name, text);
  };
  line("trouble", word_of(answer, "trouble"));
  if (const auto kill = answer.find("kill_switch"); kill != answer.end() && kill->is_object()) {
    const bool set = kill->value("set", false);
    line("stop file", word_of(*kill, "file") + (set ? ": there" : ": not there"));
  }
  for (const TunerJson& problem : answer.value("problems", TunerJson::array())) {
    if (problem.is_string()) line("problem", printable(problem.get<std::string>()));
  }
  line("workload", word_of(answer, "workload"));
  if (const auto incumbent = answer.find("incumbent"); incumbent != answer.end()) {
    line("incumbent", fmt::format("{} of {} ({:.0f} pairs, {:.0f} accepted)",
                                  word_of(*incumbent, "name"), word_of(answer, "algorithm"),
                                  figure_of(answer, "pairs"), figure_of(answer, "accepted")));
  }
  line("evidence", evidence_text(answer));
  if (const auto order = answer.find("order"); order != answer.end() && order->is_object()) {
    line("last order", fmt::format("{} {}: {}{}", word_of(*order, "role"), word_of(*order, "name"),
                                   word_of(*order, "reason"),
                                   order->value("in_force", false) ? "" : " (not in force yet)"));
  }
  if (const auto would = answer.find("would"); would != answer.end() && would->is_object()) {
    line("would", word_of(*would, "reason"));
  }
  return out;
}

std::string tuner_journal_text(const nlohmann::json& answer) {
  std::string out;
  for (const TunerJson& entry : answer.value("entries", TunerJson::array())) {
    if (!entry.is_object()) continue;
    const auto seconds = static_cast<std::time_t>(figure_of(entry, "at_unix_ns") * 1e-9);
    const std::string name = word_of(entry, "name");
    const std::string who = word_of(entry, "who");
    out += fmt::format("{:%Y-%m-%d %H:%M:%S}  {:<10} {}{}{}{}\n", fmt::localtime(seconds),
                       word_of(entry, "event"), name, name.empty() ? "" : ": ",
                       word_of(entry, "reason"), who.empty() ? "" : " (" + who + ")");
    for (const std::string& more : {moves_text(entry), evidence_text(entry)}) {
      if (!more.empty()) out += fmt::format("{:>32}{}\n", "", more);
    }
  }
  return out.empty() ? "the tuner's journal is empty\n" : out;
}

}  // namespace paceline::tools
