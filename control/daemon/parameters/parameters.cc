#include "control/daemon/parameters/parameters.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace paceline::daemon {

using boost::asio::awaitable;

namespace {

constexpr const char* kChanges = "change";     // entries
constexpr const char* kWanted = "parameters";  // documents, by NIC
constexpr const char* kSeen = "seen";  // documents, by NIC: what was in force at the last look
constexpr const char* kService = "service";  // the one last connected to
constexpr std::size_t kMostChanges = 10'000;

Reply no_service(const ControlAnswer& answer) { return refusal(503, answer.errors); }

// NICs that are to get the same, in one request.
struct Group {
  ParamSet set;
  std::vector<std::string> nics;
};

std::vector<Group> groups_of(const std::map<std::string, ParamSet>& wanted) {
  std::vector<Group> groups;
  for (const auto& [nic, set] : wanted) {
    const auto at = std::find_if(groups.begin(), groups.end(),
                                 [&set = set](const Group& g) { return g.set == set; });
    if (at == groups.end()) {
      groups.push_back({set, {nic}});
    } else {
      at->nics.push_back(nic);
    }
  }
  return groups;
}

Json configure_members(const Group& group, bool dry_run) {
  Json members{{"nics", group.nics}, {"profile", group.set.profile}, {"params", group.set.values}};
  name_algorithm(group.set, members);
  if (dry_run) members["dry_run"] = true;
  return members;
}

Json nics_json(const std::vector<NicParams>& nics, std::string_view only) {
  Json out = Json::array();
  for (const NicParams& nic : nics) {
    if (!only.empty() && nic.nic != only) continue;
    Json entry = json_of(nic.set);
    entry["name"] = nic.nic;
    entry["generation"] = nic.generation;
    entry["arm"] = nic.arm;
    entry["epoch"] = nic.epoch;
    entry["fallback"] = nic.fallback;
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

Parameters::Parameters(boost::asio::io_context& context, ControlClient& service, Store& store,
                       EventHub& hub, const Clock& clock)
    : service_(service), store_(store), hub_(hub), clock_(clock), turns_(context) {}

awaitable<Parameters::InForce> Parameters::in_force() {
  InForce out;
  Json members = Json::object();
  const ControlAnswer answer = co_await service_.call("parameters", std::move(members));
  if (!answer.ok()) {
    out.refused = no_service(answer);
    co_return out;
  }
  std::string error;
  out.nics = nic_params_of(answer.body, error);
  if (!error.empty()) out.refused = refusal(502, {error});
  const bool known = std::all_of(out.nics.begin(), out.nics.end(), [&](const NicParams& nic) {
    return catalogue_.find(nic.set.algorithm) != nullptr;
  });
  if (!known) co_await learn_plugins();
  co_return out;
}

awaitable<void> Parameters::learn_plugins() {
  Json members = Json::object();
  const ControlAnswer answer = co_await service_.call("plugins", std::move(members));
  if (!answer.ok()) co_return;
  const auto plugins = answer.body.find("plugins");
  if (plugins == answer.body.end() || !plugins->is_array()) co_return;
  for (const Json& table : *plugins) {
    const std::string wrong = catalogue_.add(table);
    if (!wrong.empty()) spdlog::error("a plug-in of the service: {}", wrong);
  }
}

awaitable<Parameters::Loaded> Parameters::load_plugin(std::string path, std::string sha256) {
  Loaded out;
  Json members{{"path", path}};
  if (!sha256.empty()) members["sha256"] = sha256;
  const ControlAnswer answer = co_await service_.call("load_plugin", std::move(members));
  if (!answer.ok()) {
    out.refused = answer.kind == ControlAnswer::Kind::refused ? refusal(409, answer.errors)
                                                              : no_service(answer);
    co_return out;
  }
  Json table = answer.body.value("plugin", Json::object());
  table["asked"] = path;
  const std::string wrong = catalogue_.add(table);
  if (!wrong.empty()) {
    out.refused = refusal(502, {path + ": " + wrong});
    co_return out;
  }
  out.name = table.value("name", std::string());
  spdlog::info("plug-in {}: {}", out.name, table.value("plugin", Json::object()).dump());
  co_return out;
}

std::vector<Change> Parameters::changes() {
  std::vector<Change> out;
  for (const StoredEntry& entry : store_.newest(kChanges, kMostChanges)) {
    out.push_back(change_of(entry.number, entry.at_unix_ns, entry.body));
  }
  return out;
}

// Writes a change into the journal, new or updated. Returns what is wrong with the disk, or an
// empty text.
std::string Parameters::note(Change& change) {
  std::string wrong;
  if (change.number == 0) {
    change.at_unix_ns = clock_.unix_ns();
    wrong = store_.append(kChanges, change.who, json_of(change), change.at_unix_ns, change.number);
  } else {
    wrong = store_.replace(change.number, json_of(change));
  }
  if (!wrong.empty()) spdlog::error("a change of parameters is not in the journal: {}", wrong);
  return wrong;
}

void Parameters::keep(const std::vector<NicParams>& now, const Change& change) {
  for (const NicParams& nic : now) {
    if (!change.nics.contains(nic.nic)) continue;
    const std::string wrong = store_.put(kWanted, nic.nic, json_of(nic.set), clock_.unix_ns());
    if (!wrong.empty()) spdlog::error("parameters of {} are not kept: {}", nic.nic, wrong);
  }
}

awaitable<Reply> Parameters::show(std::string nic) {
  InForce now = co_await in_force();
  if (now.refused) co_return *now.refused;
  Json nics = nics_json(now.nics, nic);
  if (!nic.empty() && nics.empty())
    co_return refusal(404, {fmt::format("there is no NIC \"{}\"", nic)});
  Reply reply;
  reply.body["nics"] = std::move(nics);
  co_return reply;
}

awaitable<Reply> Parameters::change(Caller caller, Json body, ChangeAction action) {
  std::vector<std::string> errors;
  ParamsRequest request = params_request_of(body, errors);
  if (!errors.empty()) co_return refusal(400, errors);
  co_await turns_.enter();
  const AsyncMutex::Hold hold(turns_);
  if (request.change.names_file()) {
    std::string path = request.change.file();
    Loaded loaded = co_await load_plugin(std::move(path), {});
    if (loaded.refused) co_return *loaded.refused;
    request.change.algorithm = loaded.name;
  }
  InForce now = co_await in_force();
  if (now.refused) co_return *now.refused;

  Change change;
  change.action = action;
  change.who = caller.name;
  change.why = body.value("why", std::string());
  std::map<std::string, ParamSet> wanted;
  std::vector<std::string> named = request.nics;
  if (named.empty()) {
    for (const NicParams& nic : now.nics) named.push_back(nic.nic);
  }
  for (const std::string& name : named) {
    const auto nic = std::find_if(now.nics.begin(), now.nics.end(),
                                  [&](const NicParams& n) { return n.nic == name; });
    if (nic == now.nics.end()) {
      errors.push_back(fmt::format("nics: there is no NIC \"{}\"", name));
      continue;
    }
    std::vector<std::string> of_nic;
    const auto facts = nics_.find(name);
    ParamSet set = resolve(request.change, nic->set,
                           facts == nics_.end() ? 0 : facts->second.rate_mbps, of_nic, catalogue_);
    for (std::string& error : of_nic) {
      if (std::find(errors.begin(), errors.end(), error) == errors.end()) {
        errors.push_back(std::move(error));
      }
    }
    change.nics[name] = {nic->set, set, nic->generation};
    wanted[name] = std::move(set);
  }
  if (!errors.empty()) co_return refusal(400, errors);
  const bool dry_run = body.value("dry_run", false);
  co_return co_await apply(std::move(change), std::move(wanted), dry_run);
}

awaitable<Reply> Parameters::revert(Caller caller, std::optional<std::int64_t> to, std::string why,
                                    bool dry_run) {
  co_await turns_.enter();
  const AsyncMutex::Hold hold(turns_);
  InForce now = co_await in_force();
  if (now.refused) co_return *now.refused;
  std::vector<std::string> errors;
  RevertPlan plan = revert_to(changes(), to, errors);
  if (!errors.empty()) co_return refusal(409, errors);
  std::map<std::string, ParamSet> wanted = std::move(plan.wanted);
  Change change;
  change.action = ChangeAction::revert;
  change.restored = plan.restored;
  change.undone = plan.undone;
  change.who = caller.name;
  change.why = std::move(why);
  for (auto at = wanted.begin(); at != wanted.end();) {
    const auto nic = std::find_if(now.nics.begin(), now.nics.end(),
                                  [&](const NicParams& n) { return n.nic == at->first; });
    if (nic == now.nics.end()) {  // it is no longer there
      at = wanted.erase(at);
      continue;
    }
    change.nics[at->first] = {nic->set, at->second, nic->generation};
    ++at;
  }
  if (wanted.empty()) {
    std::vector<std::string> gone{"none of the NICs that were changed exists any more"};
    co_return refusal(409, gone);
  }
  co_return co_await apply(std::move(change), std::move(wanted), dry_run);
}

// Requires the turn. All groups are tried dry before the first is put in force. If a later one
// still fails, the earlier ones are put back.
awaitable<Reply> Parameters::apply(Change change, std::map<std::string, ParamSet> wanted,
                                   bool dry_run) {
  const std::vector<Group> groups = groups_of(wanted);
  for (const Group& group : groups) {
    if (groups.size() < 2 && !dry_run) break;
    Json members = configure_members(group, true);
    const ControlAnswer answer = co_await service_.call("configure", std::move(members));
    if (answer.kind == ControlAnswer::Kind::refused) co_return refusal(409, answer.errors);
    if (!answer.ok()) co_return no_service(answer);
  }
  Reply reply;
  if (dry_run) {
    change.state = ChangeState::dry_run;
    reply.body["change"] = json_of(change);
    co_return reply;
  }
  change.state = ChangeState::pending;
  std::vector<std::string> warnings;
  if (std::string wrong = note(change); !wrong.empty())
    warnings.push_back("not journalled: " + wrong);

  unsigned status = 200;
  std::size_t done = 0;
  for (const Group& group : groups) {
    Json members = configure_members(group, false);
    const ControlAnswer answer = co_await service_.call("configure", std::move(members));
    if (answer.ok()) {
      ++done;
      continue;
    }
    const bool refused = answer.kind == ControlAnswer::Kind::refused;
    status = refused ? 409 : 504;
    change.state = refused ? ChangeState::refused : ChangeState::unknown;
    change.errors = answer.errors;
    break;
  }
  if (status == 409 && done > 0) {
    std::map<std::string, ParamSet> before;
    for (std::size_t i = 0; i < done; ++i) {
      for (const std::string& nic : groups[i].nics) before[nic] = change.nics[nic].from;
    }
    for (const Group& group : groups_of(before)) {
      Json members = configure_members(group, false);
      const ControlAnswer answer = co_await service_.call("configure", std::move(members));
      if (!answer.ok()) change.state = ChangeState::unknown;
    }
  }
  if (status != 200) {
    note(change);
    co_return refusal(status, change.errors);
  }
  change.state = ChangeState::applied;
  InForce now = co_await in_force();
  for (const NicParams& nic : now.nics) {
    const auto at = change.nics.find(nic.nic);
    if (at == change.nics.end()) continue;
    at->second.to = nic.set;
    at->second.generation = nic.generation;
  }
  if (std::string wrong = note(change); !wrong.empty() && warnings.empty()) {
    warnings.push_back("not journalled: " + wrong);
  }
  keep(now.nics, change);
  remember(now.nics);
  Json body = json_of(change);
  body["number"] = change.number;
  body["at_unix_ns"] = change.at_unix_ns;
  if (!warnings.empty()) body["warnings"] = warnings;
  for (const auto& [nic, sets] : change.nics) {
    spdlog::info("parameters of {} by {}: {}{}", nic, change.who,
                 fmt::join(differences(sets.from, sets.to), ", "),
                 change.why.empty() ? std::string() : " (" + change.why + ")");
  }
  hub_.publish("parameters", body);
  reply.body["change"] = std::move(body);
  co_return reply;
}

Reply Parameters::history(std::int64_t after, std::size_t most) {
  Reply reply;
  reply.body["changes"] = store_.listed(kChanges, after, most);
  return reply;
}

awaitable<void> Parameters::settle(Json hello) {
  co_await turns_.enter();
  const AsyncMutex::Hold hold(turns_);
  nics_.clear();
  for (const Json& nic : hello.value("nics", Json::array())) {
    if (!nic.is_object()) continue;
    nics_[nic.value("name", std::string())] = {
        nic.value("rate_mbps", std::uint64_t{0}), nic.value("mtu", std::uint32_t{0}),
        nic.value("base_rtt_ns", std::uint64_t{0}), nic.value("worker", std::uint32_t{0})};
  }
  co_await learn_plugins();
  InForce now = co_await in_force();
  if (now.refused) {
    if (!service_.stopped()) {
      spdlog::warn("cannot report the parameters in force: {}", now.refused->body.dump());
    }
    co_return;
  }
  co_await settle_pending(now.nics);
  const std::optional<Json> before = store_.get(kService, "last");
  const std::uint64_t start = hello.value("start_unix_ns", std::uint64_t{0});
  const bool same = before && before->value("start_unix_ns", std::uint64_t{0}) == start;
  if (same) {
    take_over(now.nics);
  } else {
    // These are the testbed file's values, until the wanted ones are put back; that call remembers
    // its own.
    remember(now.nics);
    co_await put_back(now.nics);
  }
  const Json last{{"start_unix_ns", start}, {"pid", hello.value("pid", 0)}};
  if (std::string wrong = store_.put(kService, "last", last, clock_.unix_ns()); !wrong.empty()) {
    spdlog::error("cannot save which service this was: {}", wrong);
  }
}

// Finds out whether a change whose answer was lost is in force.
awaitable<void> Parameters::settle_pending(const std::vector<NicParams>& now) {
  for (Change& change : changes()) {
    if (change.state != ChangeState::pending && change.state != ChangeState::unknown) continue;
    bool in_force = !change.nics.empty();
    for (auto& [name, sets] : change.nics) {
      const auto nic = std::find_if(now.begin(), now.end(),
                                    [&name = name](const NicParams& n) { return n.nic == name; });
      in_force = in_force && nic != now.end() && nic->set == sets.to;
      if (in_force) sets.generation = nic->generation;
    }
    change.state = in_force ? ChangeState::applied : ChangeState::not_applied;
    spdlog::info("change {} by {} had no answer, and is settled now: {}", change.number, change.who,
                 to_text(change.state));
    note(change);
    if (!in_force) continue;
    keep(now, change);
    remember(now);
  }
  co_return;
}

awaitable<void> Parameters::put_back(const std::vector<NicParams>& now) {
  Change change;
  change.action = ChangeAction::put_back;
  change.who = "pacelined";
  change.why = "the service was restarted";
  std::map<std::string, ParamSet> wanted;
  for (const StoredDocument& document : store_.list(kWanted)) {
    const std::optional<ParamSet> set = param_set_of(document.body);
    const auto nic = std::find_if(now.begin(), now.end(),
                                  [&](const NicParams& n) { return n.nic == document.key; });
    if (!set || nic == now.end() || nic->set == *set || nic->arm != 0) continue;
    change.nics[document.key] = {nic->set, *set, nic->generation};
    wanted[document.key] = *set;
  }
  if (wanted.empty()) co_return;
  const Reply reply = co_await apply(std::move(change), std::move(wanted), false);
  if (reply.status != 200) {
    spdlog::error("parameters cannot be put back: {}", reply.body.dump());
    hub_.publish("dataplane", Json{{"event", "parameters not put back"}, {"why", reply.body}});
  }
}

// Later looks are compared with the sets in force now, except those of a trial's arms.
void Parameters::remember(const std::vector<NicParams>& now) {
  for (const NicParams& nic : now) {
    if (nic.arm != 0) continue;
    Json body = json_of(nic.set);
    if (store_.get(kSeen, nic.nic) == body) continue;
    const std::string wrong = store_.put(kSeen, nic.nic, body, clock_.unix_ns());
    if (!wrong.empty())
      spdlog::error("cannot save the parameters in force on {}: {}", nic.nic, wrong);
  }
}

// A set that differs from the last look was changed by another client, and is now the wanted one.
void Parameters::take_over(const std::vector<NicParams>& now) {
  Change change;
  change.action = ChangeAction::found;
  change.state = ChangeState::applied;
  change.who = "service";
  change.why = "changed by another than this daemon: a trial that was kept, or another tool";
  for (const NicParams& nic : now) {
    const std::optional<Json> seen = store_.get(kSeen, nic.nic);
    const std::optional<ParamSet> before = seen ? param_set_of(*seen) : std::nullopt;
    if (nic.arm != 0 || !before || *before == nic.set) continue;
    change.nics[nic.nic] = {*before, nic.set, nic.generation};
  }
  remember(now);
  if (change.nics.empty()) return;
  note(change);
  keep(now, change);
  hub_.publish("parameters", json_of(change));
}

awaitable<void> Parameters::adopt() {
  co_await turns_.enter();
  const AsyncMutex::Hold hold(turns_);
  const InForce now = co_await in_force();
  if (!now.refused) take_over(now.nics);
}

}  // namespace paceline::daemon
