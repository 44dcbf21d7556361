#include "control/daemon/experiments/experiments.h"

namespace paceline::daemon {

using boost::asio::awaitable;

namespace {

Endpoint experiment_endpoint(const char* method, const char* path, const char* summary,
                             const char* answer) {
  Endpoint out;
  out.method = method;
  out.path = path;
  out.summary = summary;
  out.tag = "experiments";
  out.writes = out.method != "GET";
  out.answer = answer;
  if (out.path.find("{id}") != std::string::npos) {
    out.path_fields = {{"id", FieldType::text, true, "number of the experiment"}};
  }
  return out;
}

}  // namespace

void add_experiment_endpoints(Endpoints& endpoints, Experiments& experiments) {
  Endpoint start = experiment_endpoint(
      "POST", "/v1/experiments", "Begin a live experiment: register its schedule, and run it",
      "experiment: id, state, schedule_sha256, progress; warnings");
  start.body = {
      {"plan", FieldType::text, true, "the plan file (TOML): docs/experiments.md"},
      {"file", FieldType::text, false, "its name, for messages"},
      {"aa", FieldType::flag, false, "the champion in both arms: calibrates"},
      {"promote", FieldType::flag, false, "on a verdict of \"ship\" put the candidate in force"},
      {"dry_run", FieldType::flag, false, "check it against this host, and begin nothing"},
      {"why", FieldType::text, true, "the reason, for the journal"}};
  start.handle = [&experiments](Request request) -> awaitable<Reply> {
    co_return co_await experiments.start(request.caller, request.body);
  };
  endpoints.add(std::move(start));

  Endpoint list = experiment_endpoint("GET", "/v1/experiments", "Experiments of this host",
                                      "experiments: newest first");
  list.query = {{"limit", FieldType::whole, false, "at most so many, by default 100", {}, 1, 1000}};
  list.handle = [&experiments](Request request) -> awaitable<Reply> {
    co_return experiments.list(static_cast<std::size_t>(request.number_in_query("limit", 100)));
  };
  endpoints.add(std::move(list));

  Endpoint show = experiment_endpoint(
      "GET", "/v1/experiments/{id}", "An experiment: where it is, and what can be said so far",
      "experiment: state, verdict, reasons; while it runs progress: "
      "pairs, seconds_left_at_most, estimate");
  show.handle = [&experiments](Request request) -> awaitable<Reply> {
    co_return experiments.show(request.in_path("id"));
  };
  endpoints.add(std::move(show));

  Endpoint stop =
      experiment_endpoint("POST", "/v1/experiments/{id}/stop",
                          "End an experiment now, with the champion in force", "experiment");
  stop.body = {{"why", FieldType::text, true, "the reason, for the report"}};
  stop.handle = [&experiments](Request request) -> awaitable<Reply> {
    co_return experiments.stop(request.caller, request.in_path("id"), request.body);
  };
  endpoints.add(std::move(stop));

  Endpoint promote = experiment_endpoint("POST", "/v1/experiments/{id}/promote",
                                         "Put the candidate of an experiment that is over in force",
                                         "change: as of PATCH /v1/params");
  promote.body = {{"override", FieldType::flag, false, "although the verdict is not \"ship\""},
                  {"why", FieldType::text, true, "the reason, for the journal"}};
  promote.handle = [&experiments](Request request) -> awaitable<Reply> {
    std::string id(request.in_path("id"));
    co_return co_await experiments.promote(request.caller, std::move(id), request.body);
  };
  endpoints.add(std::move(promote));

  Endpoint page = experiment_endpoint("GET", "/v1/experiments/{id}/report",
                                      "The report of an experiment as a page", "a page (HTML)");
  page.handle = [&experiments](Request request) -> awaitable<Reply> {
    co_return experiments.report(request.in_path("id"), true);
  };
  endpoints.add(std::move(page));

  Endpoint json = experiment_endpoint(
      "GET", "/v1/experiments/{id}/report.json", "The report of an experiment for programs",
      "verdict, reasons, metrics with their intervals, balance, schedule_sha256, replay");
  json.handle = [&experiments](Request request) -> awaitable<Reply> {
    co_return experiments.report(request.in_path("id"), false);
  };
  endpoints.add(std::move(json));
}

}  // namespace paceline::daemon
