#include "dataplane/service/congestion/champions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dataplane/attach/text.h"

namespace paceline::service {

Champions::Champions(Service& service) : service_(service) {
  for (const NicPlace place : service.nics()) {
    const service::Nic& of = service.worker(place.worker).nics().nic(place.nic);
    Nic nic;
    nic.name = attach::text_of(of.info.name);
    nic.place = place;
    nic.facts = of.congestion.facts;
    nic.champion = nic.current = initial_arm(of.congestion);
    nic.in_force.algorithm = of.congestion.primary.algorithm;
    nics_.push_back(std::move(nic));
  }
}

std::vector<std::size_t> Champions::pick(const std::optional<std::vector<std::string>>& names,
                                         std::vector<std::string>& errors) const {
  std::vector<std::size_t> out;
  if (!names) {
    for (std::size_t i = 0; i < nics_.size(); ++i) out.push_back(i);
    return out;
  }
  for (const std::string& name : *names) {
    const auto at =
        std::find_if(nics_.begin(), nics_.end(), [&](const Nic& nic) { return nic.name == name; });
    if (at == nics_.end()) {
      errors.push_back(fmt::format("there is no NIC \"{}\"", name));
    } else {
      out.push_back(static_cast<std::size_t>(at - nics_.begin()));
    }
  }
  return out;
}

std::vector<std::string> Champions::apply(const std::vector<Change>& changes) {
  std::vector<std::string> errors;
  // First checks that every engine takes it, then applies it: each time one letter per worker.
  for (const bool in_earnest : {false, true}) {
    for (std::size_t w = 0; w < service_.workers(); ++w) {
      const auto first = std::find_if(changes.begin(), changes.end(), [&](const Change& change) {
        return nics_[change.nic].place.worker == w;
      });
      if (first == changes.end()) continue;
      ServiceWorker& worker = service_.worker(w);
      const bool ran = worker.call(nics_[first->nic].place.nic, [&](Picos now) {
        for (const Change& change : changes) {
          if (nics_[change.nic].place.worker != w) continue;
          if (in_earnest) {
            put(worker, now, change);
          } else {
            check(worker, change, errors);
          }
        }
      });
      if (!ran) errors.push_back(worker.name() + " has ended");
    }
    if (!errors.empty()) return errors;
  }
  for (const Change& change : changes) {
    Nic& nic = nics_[change.nic];
    nic.current = *change.arm;
    nic.in_force = in_force_after(change);
  }
  return errors;
}

void Champions::check(ServiceWorker& worker, const Change& change,
                      std::vector<std::string>& errors) const {
  const Nic& nic = nics_[change.nic];
  const transport::Engine& engine = *worker.nics().nic(nic.place.nic).engine;
  const std::string why = change.by_peer != nullptr ? engine.reconfigure_refusal(*change.by_peer)
                                                    : engine.reconfigure_refusal(change.arm->setup);
  if (!why.empty()) errors.push_back(nic.name + ": " + why);
}

void Champions::put(ServiceWorker& worker, Picos now, const Change& change) const {
  const std::size_t place = nics_[change.nic].place.nic;
  if (change.by_peer != nullptr) {
    worker.reconfigure(now, place, *change.by_peer, in_force_after(change));
  } else {
    worker.reconfigure(now, place, change.arm->setup, in_force_after(change));
  }
}

NicInForce Champions::in_force_after(const Change& change) const {
  NicInForce out{nics_[change.nic].in_force.generation + 1, change.arm->setup.primary.algorithm,
                 change.number, change.epoch};
  if (change.by_peer == nullptr) return out;
  out.clusters = change.clusters;
  out.own_cluster = change.by_peer->own_cluster;
  out.arm_of = change.by_peer->arm_of;
  return out;
}

std::string Champions::refusal(std::size_t n, const transport::ArmsByPeer& arms) {
  const Nic& nic = nics_[n];
  ServiceWorker& worker = worker_of(n);
  std::string why;
  const bool ran = worker.call(nic.place.nic, [&](Picos) {
    why = worker.nics().nic(nic.place.nic).engine->reconfigure_refusal(arms);
  });
  if (!ran) why = worker.name() + " has ended";
  return why;
}

cc::plugin::Offence Champions::quarantined(std::size_t n, cc::AlgorithmId algorithm) {
  cc::plugin::Offence offence = cc::plugin::Offence::none;
  if (!cc::is_plugin(algorithm)) return offence;
  ServiceWorker& worker = worker_of(n);
  const std::size_t place = nics_[n].place.nic;
  worker.call(place, [&](Picos) {
    offence = worker.nics().nic(place).engine->view().quarantined(algorithm);
  });
  return offence;
}

void Champions::note_guard(std::size_t n, std::uint32_t number) {
  ServiceWorker& worker = worker_of(n);
  const std::size_t place = nics_[n].place.nic;
  worker.call(place, [&](Picos) { worker.note_guard(place, number); });
}

std::vector<wire::IpAddress> Champions::addresses(std::size_t n) const {
  const NicPlace& place = nics_[n].place;
  const attach::NicInfo& info = service_.worker(place.worker).nics().nic(place.nic).info;
  std::vector<wire::IpAddress> out;
  attach::each_gid(info, [&](auto, auto, const auto& gid) { out.push_back({gid}); });
  return out;
}

}  // namespace paceline::service
