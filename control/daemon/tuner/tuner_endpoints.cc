#include "control/daemon/tuner/live_tuner.h"

namespace paceline::daemon {

using boost::asio::awaitable;

void add_tuner_endpoints(Endpoints& endpoints, LiveTuner& tuner) {
  Endpoint get;
  get.method = "GET";
  get.path = "/v1/tuner";
  get.summary = "What the tuner does, has found and would do";
  get.tag = "tuner";
  get.answer =
      "mode, doing, freeze, trouble, workload, signature, incumbent, order, pairs, accepted, "
      "evidence, would, kill_switch";
  get.handle = [&tuner](Request) -> awaitable<Reply> { co_return tuner.show(); };
  endpoints.add(std::move(get));

  Endpoint put;
  put.method = "PUT";
  put.path = "/v1/tuner";
  put.summary = "Switch the tuner: off, advise or auto";
  put.tag = "tuner";
  put.writes = true;
  put.body = {{"mode",
               FieldType::text,
               true,
               "leaving auto puts the champion back in force",
               {"off", "advise", "auto"}},
              {"why", FieldType::text, true, "the reason, for the journal"}};
  put.answer = "as of GET; 409 where the configuration does not allow it";
  put.handle = [&tuner](Request request) -> awaitable<Reply> {
    std::string mode = request.body.value("mode", std::string());
    std::string why = request.body.value("why", std::string());
    co_return co_await tuner.set_mode(request.caller, std::move(mode), std::move(why));
  };
  endpoints.add(std::move(put));

  Endpoint journal;
  journal.method = "GET";
  journal.path = "/v1/tuner/journal";
  journal.summary = "What the tuner did, would do or stopped doing, and on what evidence";
  journal.tag = "tuner";
  journal.query = {
      {"after", FieldType::whole, false, "entries after this number only", {}, 0, 9e15},
      {"limit", FieldType::whole, false, "at most so many, by default 100", {}, 1, 1000}};
  journal.answer =
      "entries: oldest first, each with number, at_unix_ns, event, name, reason, changes, evidence";
  journal.handle = [&tuner](Request request) -> awaitable<Reply> {
    co_return tuner.journal(static_cast<std::int64_t>(request.number_in_query("after", 0)),
                            static_cast<std::size_t>(request.number_in_query("limit", 100)));
  };
  endpoints.add(std::move(journal));
}

}  // namespace paceline::daemon
