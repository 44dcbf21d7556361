#include "control/daemon/parameters/parameters.h"

namespace paceline::daemon {

using boost::asio::awaitable;

namespace {

constexpr double kMostChange = 9e15;

Reply algorithms_reply(const config::AlgorithmCatalogue& catalogue) {
  Json algorithms = Json::array();
  for (const cc::AlgorithmInfo& algorithm : catalogue.algorithms()) {
    algorithms.push_back(catalogue.table(algorithm.name));
    algorithms.back().erase("asked");
  }
  Reply reply;
  reply.body["algorithms"] = std::move(algorithms);
  return reply;
}

Field why_field() { return {"why", FieldType::text, true, "the reason, for the journal"}; }
Field dry_run_field() {
  return {"dry_run", FieldType::flag, false,
          "check it, here and in the service, and change nothing"};
}

}  // namespace

void add_parameter_endpoints(Endpoints& endpoints, Parameters& parameters) {
  Endpoint get;
  get.method = "GET";
  get.path = "/v1/params";
  get.summary = "Congestion-control parameters in force";
  get.tag = "parameters";
  get.query = {{"nic", FieldType::text, false, "this NIC only"}};
  get.answer = "nics: of each its algorithm, profile, values, generation, arm and epoch";
  get.handle = [&parameters](Request request) -> awaitable<Reply> {
    std::string nic = request.in_query("nic");
    co_return co_await parameters.show(std::move(nic));
  };
  endpoints.add(std::move(get));

  Endpoint patch;
  patch.method = "PATCH";
  patch.path = "/v1/params";
  patch.summary = "Change parameters: of all NICs named, or of none";
  patch.tag = "parameters";
  patch.writes = true;
  patch.body = params_request_fields();
  patch.body.push_back(why_field());
  patch.body.push_back(dry_run_field());
  patch.answer = "change: its number in the journal, state and, by NIC, from, to and changes";
  patch.handle = [&parameters](Request request) -> awaitable<Reply> {
    co_return co_await parameters.change(request.caller, request.body, ChangeAction::set);
  };
  endpoints.add(std::move(patch));

  Endpoint profile;
  profile.method = "POST";
  profile.path = "/v1/params/profile";
  profile.summary = "Put a profile of the algorithm in force into force";
  profile.tag = "parameters";
  profile.writes = true;
  profile.body = {config::nic_names_field(),
                  {"profile", FieldType::text, true, "its name: see /v1/algorithms"},
                  why_field(),
                  dry_run_field()};
  profile.answer = "change: as of PATCH /v1/params";
  profile.handle = [&parameters](Request request) -> awaitable<Reply> {
    co_return co_await parameters.change(request.caller, request.body, ChangeAction::profile);
  };
  endpoints.add(std::move(profile));

  Endpoint history;
  history.method = "GET";
  history.path = "/v1/params/history";
  history.summary = "The journal of changes";
  history.tag = "parameters";
  history.query = {
      {"after", FieldType::whole, false, "changes after this number only", {}, 0, kMostChange},
      {"limit", FieldType::whole, false, "at most so many, by default 100", {}, 1, 1000}};
  history.answer =
      "changes: oldest first, each with number, at_unix_ns, action, state, who, why and nics";
  history.handle = [&parameters](Request request) -> awaitable<Reply> {
    co_return parameters.history(static_cast<std::int64_t>(request.number_in_query("after", 0)),
                                 static_cast<std::size_t>(request.number_in_query("limit", 100)));
  };
  endpoints.add(std::move(history));

  Endpoint revert;
  revert.method = "POST";
  revert.path = "/v1/params/revert";
  revert.summary = "Step back: undo the last change not undone yet, or all after a given one";
  revert.tag = "parameters";
  revert.writes = true;
  revert.body = {
      {"to",
       FieldType::whole,
       false,
       "everything as it was right after this change of the journal; 0: before the first",
       {},
       0,
       kMostChange},
      why_field(),
      dry_run_field()};
  revert.answer =
      "change: as of PATCH /v1/params, and restored: everything is as it was right after this "
      "change "
      "of the journal, 0 before the first; undone: the change that one step took back";
  revert.handle = [&parameters](Request request) -> awaitable<Reply> {
    std::optional<std::int64_t> to;
    if (request.body.contains("to")) to = request.body["to"].get<std::int64_t>();
    std::string why = request.body.value("why", std::string());
    const bool dry_run = request.body.value("dry_run", false);
    co_return co_await parameters.revert(request.caller, to, std::move(why), dry_run);
  };
  endpoints.add(std::move(revert));

  Endpoint algorithms;
  algorithms.method = "GET";
  algorithms.path = "/v1/algorithms";
  algorithms.summary = "Algorithms, their parameters with range and meaning, and their profiles";
  algorithms.tag = "parameters";
  algorithms.answer =
      "algorithms: name, summary, params, profiles; of plug-ins that the service has loaded "
      "plugin: "
      "path and sha256";
  algorithms.handle = [&parameters](Request) -> awaitable<Reply> {
    co_return algorithms_reply(parameters.catalogue());
  };
  endpoints.add(std::move(algorithms));
}

}  // namespace paceline::daemon
