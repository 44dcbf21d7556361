// Plug-ins at the desk: loaded when somebody names one, and heard of when an engine has put one
// into quarantine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cc/plugin/guard.h"
#include "dataplane/service/congestion/congestion_desk.h"

namespace paceline::service {

CcChange CongestionDesk::with_plugin(const CcChange& change,
                                     std::vector<std::string>& errors) const {
  CcChange out = change;
  const bool named = change.names_file();
  if (!named && !change.sha256.empty()) {
    errors.emplace_back("sha256 is of a plug-in: algorithm \"plugin:PATH\" is needed");
  }
  if (!named || !errors.empty()) return out;
  const cc::Registered loaded =
      shelf_.load(change.algorithm->substr(kPluginPrefix.size()), change.sha256);
  if (loaded.info == nullptr) {
    errors.push_back(loaded.error);
  } else {
    out.algorithm = loaded.info->name;
  }
  return out;
}

std::string CongestionDesk::quarantine_of(std::size_t nic, cc::AlgorithmId algorithm) {
  if (!cc::is_plugin(algorithm)) return {};
  const NicPlace place = nics_[nic].place;
  ServiceWorker& worker = service_.worker(place.worker);
  cc::plugin::Offence offence = cc::plugin::Offence::none;
  worker.call(place.nic, [&](Picos) {
    offence = worker.nics().nic(place.nic).engine->quarantined(algorithm);
  });
  if (offence == cc::plugin::Offence::none) return {};
  return fmt::format("{}: {} is in quarantine, for it {}: this service does not call it again",
                     nics_[nic].name, cc::find(algorithm)->name, cc::plugin::offence_text(offence));
}

// All that are in quarantine there: which one is new is not worth keeping count of.
void CongestionDesk::notice_quarantine(std::size_t nic) {
  std::vector<std::string> names;
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    std::string why = quarantine_of(nic, info.id);
    if (!why.empty()) names.push_back(why.substr(nics_[nic].name.size() + 2));
  }
  tripped(nic, {GuardRule::quarantined, static_cast<double>(nics_[nic].quarantines), 0},
          fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace paceline::service
