#include "tools/diagnose/testbed/fabric_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "dataplane/base/text/printable.h"

namespace paceline::tools {

namespace {

using Json = nlohmann::json;

// As its service tells them; values that are not addresses are left out.
std::vector<wire::IpAddress> addresses_of(const looks::SeenNic& nic) {
  std::vector<wire::IpAddress> out;
  const auto at = nic.status.find("addresses");
  if (at == nic.status.end() || !at->is_array()) return out;
  for (const Json& one : *at) {
    if (!one.is_string()) continue;
    if (const auto address = wire::ip_address_from_text(one.get_ref<const std::string&>())) {
      out.push_back(*address);
    }
  }
  return out;
}

std::uint32_t place_of(const fabric::FabricSpec& spec, const wire::IpAddress& address) {
  const std::uint32_t host = fabric::host_of(spec, address);
  return host < spec.hosts ? host % spec.nics() : spec.nics();
}

}  // namespace

std::string FabricPlaces::full_name(std::size_t host, const std::string& nic) const {
  const std::string clean = printable(nic);
  return hosts_.size() == 1 ? clean : fmt::format("{}:{}", hosts_[host].name, clean);
}

// By its addresses; nics(): they are not of the description.
std::uint32_t FabricPlaces::described(const looks::SeenNic& nic) const {
  std::uint32_t out = spec_.nics();
  for (const wire::IpAddress& address : addresses_of(nic)) {
    out = std::min(out, place_of(spec_, address));
  }
  return out;
}

std::vector<FabricPlaces::Listed> FabricPlaces::list(const std::vector<SightedHost>& first,
                                                     std::vector<std::string>& errors) const {
  std::vector<Listed> out;
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    const std::vector<looks::SeenNic>& all = first[h].host.nics;
    if (hosts_[h].nics.empty()) {
      for (const looks::SeenNic& nic : all) out.push_back({&nic, h, kNowhere});
    }
    for (std::size_t i = 0; i < hosts_[h].nics.size(); ++i) {
      const auto at = std::find_if(all.begin(), all.end(), [&](const looks::SeenNic& nic) {
        return nic.name == hosts_[h].nics[i];
      });
      if (at == all.end()) {
        std::string there;
        for (const looks::SeenNic& nic : all) there += " " + printable(nic.name);
        errors.push_back(fmt::format("host {}: it has no NIC {}; it has{}", hosts_[h].name,
                                     hosts_[h].nics[i], there.empty() ? " none" : there));
        continue;
      }
      out.push_back({&*at, h, hosts_[h].places.empty() ? kNowhere : hosts_[h].places[i]});
    }
  }
  return out;
}

std::vector<std::string> FabricPlaces::open(const std::vector<SightedHost>& first) {
  std::vector<std::string> errors;
  const std::vector<Listed> listed = list(first, errors);
  const bool by_address = std::all_of(listed.begin(), listed.end(), [&](const Listed& one) {
    return one.given != kNowhere || described(*one.nic) < spec_.nics();
  });
  std::vector<std::optional<std::string>> taken(spec_.nics());
  std::map<wire::IpAddress, std::string> owners;
  std::uint32_t next = 0;
  for (const Listed& one : listed) {
    const std::string name = full_name(one.host, one.nic->name);
    const std::uint32_t otherwise = by_address ? described(*one.nic) : next;
    const std::uint32_t place = one.given == kNowhere ? otherwise : one.given;
    next = place + 1;
    if (place >= spec_.nics()) {
      errors.push_back(fmt::format("{} would stand at place {}; the fabric has {} NICs, from 0 on",
                                   name, place, spec_.nics()));
    } else if (taken[place]) {
      errors.push_back(fmt::format("{} and {} stand both at place {} of the fabric", *taken[place],
                                   name, place));
    } else {
      taken[place] = name;
      names_[one.host].emplace(one.nic->name, place);
    }
    const std::vector<wire::IpAddress> addresses = addresses_of(*one.nic);
    if (addresses.empty()) {
      errors.push_back(fmt::format(
          "{}: its service does not tell its addresses: it is of another version", name));
    }
    for (const wire::IpAddress& address : addresses) {
      const auto [at, fresh] = owners.emplace(address, name);
      if (fresh) continue;
      errors.push_back(fmt::format("{} and {} have the same address, {}: these are not one network",
                                   at->second, name, wire::to_text(address)));
      break;
    }
  }
  return errors;
}

std::vector<TestbedEvidence::Sight> FabricPlaces::sights(
    const std::vector<SightedHost>& look) const {
  std::vector<TestbedEvidence::Sight> out(spec_.nics());
  for (std::size_t h = 0; h < look.size(); ++h) {
    if (!look[h].error.empty()) continue;
    for (const looks::SeenNic& nic : look[h].host.nics) {
      const auto place = names_[h].find(nic.name);
      if (place == names_[h].end()) continue;
      TestbedEvidence::Sight& sight = out[place->second];
      sight.seen = true;
      sight.instance = look[h].host.start_unix_ns;
      sight.name = full_name(h, nic.name);
      sight.addresses = addresses_of(nic);
      sight.hash_known = nic.emulated && described(nic) == place->second;
      sight.status = nic_status(nic.status);
      sight.queue_pairs = nic.queue_pairs;
    }
  }
  return out;
}

}  // namespace paceline::tools
