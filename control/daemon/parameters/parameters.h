// Live parameters: the service tells what is in force, changes go to the service and into the
// journal, and a restarted service gets back what was in force before. One change at a time.
//
// The journal has a change before the service is asked for it ("pending"), and its result
// afterwards. The result of a change during which the daemon died is determined at the next
// connection.
#pragma once

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/daemon/api/endpoint.h"
#include "control/daemon/parameters/parameter_sets.h"
#include "control/daemon/service_link/async_mutex.h"
#include "control/daemon/service_link/clock.h"
#include "control/daemon/service_link/control_client.h"
#include "control/daemon/store/store.h"

namespace paceline::daemon {

// A NIC, as the service describes it in `hello`.
struct NicFacts {
  std::uint64_t rate_mbps = 0;
  std::uint32_t mtu = 0;
  std::uint64_t base_rtt_ns = 0;
  std::uint32_t worker = 0;
};

class Parameters {
 public:
  // All arguments outlive it.
  Parameters(boost::asio::io_context& context, ControlClient& service, Store& store, EventHub& hub,
             const Clock& clock);

  // Call it after each connection, with the answer to hello: settles pending changes, and, if the
  // service is not the same as before, puts back what was in force. Spawn it once per connection.
  boost::asio::awaitable<void> settle(Json hello);
  // Parameters were changed from elsewhere: what is in force becomes what is wanted from now on (an
  // experiment's winner, another tool), unless a trial has an arm in force.
  boost::asio::awaitable<void> adopt();

  boost::asio::awaitable<Reply> show(std::string nic);
  boost::asio::awaitable<Reply> change(Caller caller, Json body, ChangeAction action);
  boost::asio::awaitable<Reply> revert(Caller caller, std::optional<std::int64_t> to,
                                       std::string why, bool dry_run);
  Reply history(std::int64_t after, std::size_t most);

  // Has the service load a plug-in, by the absolute path of its file on that host, and learns its
  // table. An empty sha256: any content.
  struct Loaded {
    std::string name;
    std::optional<Reply> refused;
  };
  boost::asio::awaitable<Loaded> load_plugin(std::string path, std::string sha256);

  const std::map<std::string, NicFacts>& nics() const { return nics_; }
  // The algorithms that the service has, plug-ins as well.
  const config::AlgorithmCatalogue& catalogue() const { return catalogue_; }
  // A change of this object is in progress: a growing generation is then no news.
  bool busy() const { return turns_.taken(); }

 private:
  struct InForce {
    std::vector<NicParams> nics;
    std::optional<Reply> refused;
  };
  boost::asio::awaitable<InForce> in_force();
  boost::asio::awaitable<void> learn_plugins();
  boost::asio::awaitable<Reply> apply(Change change, std::map<std::string, ParamSet> wanted,
                                      bool dry_run);
  boost::asio::awaitable<void> settle_pending(const std::vector<NicParams>& now);
  boost::asio::awaitable<void> put_back(const std::vector<NicParams>& now);
  void keep(const std::vector<NicParams>& now, const Change& change);
  void remember(const std::vector<NicParams>& now);
  void take_over(const std::vector<NicParams>& now);
  std::vector<Change> changes();
  std::string note(Change& change);

  ControlClient& service_;
  Store& store_;
  EventHub& hub_;
  const Clock& clock_;
  AsyncMutex turns_;
  std::map<std::string, NicFacts> nics_;
  config::AlgorithmCatalogue catalogue_;
};

// GET, PATCH /v1/params, /v1/params/profile, history, revert; /v1/algorithms.
void add_parameter_endpoints(Endpoints& endpoints, Parameters& parameters);

}  // namespace paceline::daemon
