// Congestion control changed under way, two arms at a time, and random worlds that meet all of this
// at once.
#include <array>
#include <memory>
#include <utility>

#include "dataplane/base/numbers/random.h"
#include "tests/sim/identity.h"

namespace paceline::simtest::identity {

namespace {

using Step = std::function<void(VirtualWorld&, std::uint8_t epoch)>;

transport::CcSetup setup_of(const VirtualWorld& world, const std::string& algorithm,
                            std::vector<config::ParamValue> params = {}) {
  config::CcConfig cc;
  cc.algorithm = algorithm;
  cc.params = std::move(params);
  return world.cc_setup(cc);
}

// Does one step at each call, and then nothing.
std::function<Control()> in_steps(std::vector<Step> steps) {
  return [steps = std::move(steps)]() -> Control {
    return [&steps = steps, next = std::size_t{0}](VirtualWorld& world, Picos) mutable {
      if (next == steps.size()) return;
      const Step& step = steps[next++];
      if (step) step(world, static_cast<std::uint8_t>(next));
    };
  };
}

Step all_to(const std::string& algorithm, std::vector<config::ParamValue> params = {}) {
  return [=](VirtualWorld& world, std::uint8_t epoch) {
    world.reconfigure(setup_of(world, algorithm, params), 0, epoch);
  };
}
Step some_to(const std::string& algorithm, std::vector<std::uint32_t> hosts) {
  return [=](VirtualWorld& world, std::uint8_t epoch) {
    world.reconfigure(setup_of(world, algorithm), 1, epoch, hosts);
  };
}
Step arms(const std::string& first, const std::string& second, std::vector<std::uint8_t> of) {
  return [=](VirtualWorld& world, std::uint8_t epoch) {
    world.reconfigure_by_receiver({setup_of(world, first), setup_of(world, second)}, of, epoch);
  };
}

// Changes, arms and ways back, drawn from a seed.
class Meddling {
 public:
  explicit Meddling(std::uint64_t seed) : random_(seed, 17) {}

  void operator()(VirtualWorld& world, Picos now) {
    if (now < next_) return;
    next_ = now + picos_from_micros(static_cast<std::int64_t>(10U << random_.below(5)));
    const auto epoch = static_cast<std::uint8_t>(++changes_);
    const char* const reactive[] = {"dcqcn", "swift", "fixed", "timely", "nscc"};
    const char* const any[] = {"dcqcn", "swift", "dctcp", "cadence", "eqds", "homa", "sird"};
    const std::string first = reactive[random_.below(std::size(reactive))];
    const std::string second = any[random_.below(std::size(any))];
    std::vector<std::uint8_t> of;
    std::vector<std::uint32_t> some;
    for (std::uint32_t h = 0; h < world.hosts(); ++h) {
      of.push_back(random_.below(8) == 0 ? telemetry::kNoCluster
                                         : static_cast<std::uint8_t>(random_.below(2)));
      if (random_.below(2) == 0) some.push_back(h);
    }
    switch (random_.below(3)) {
      case 0:
        return all_to(second)(world, epoch);
      case 1:
        return some_to(second, some)(world, epoch);
      default:
        return arms(first, second, of)(world, epoch);
    }
  }

 private:
  Random random_;
  Picos next_ = picos_from_micros(10);
  std::uint32_t changes_ = 0;
};

}  // namespace

std::vector<World> change_worlds() {
  const std::string selective = "reliability = \"selective\"";
  const std::string fabric =
      "[fabric]\nhosts = 6\nloss = 1e-3\necn = { kmin = \"20kB\", kmax = \"80kB\" }\n";
  const std::string work =
      "[workload]\nkind = \"all_to_all\"\nmessage_bytes = \"120kB\"\nskew = 1.0\n"
      "start_jitter = \"50us\"\n";
  constexpr std::uint8_t kNone = telemetry::kNoCluster;
  std::vector<World> out;
  const auto add = [&](const char* name, const std::string& cc, const std::string& transport,
                       std::int64_t every_us, std::vector<Step> steps) {
    World w;
    w.name = std::string("change/") + name;
    w.toml = "seed = 9\n" + cc + transport_line(transport) + fabric + work;
    w.control = in_steps(std::move(steps));
    w.control_interval = picos_from_micros(every_us);
    out.push_back(w);
  };
  add("values", cc_line("dcqcn"), "", 10,
      {all_to("dcqcn", {{"alpha_gain", 0.05}}), all_to("dcqcn"),
       all_to("fixed", {{"rate_mbps", 20'000}})});
  add("reactive", cc_line("dcqcn"), "ack_every = 2", 10,
      {all_to("swift"), all_to("timely"), all_to("dctcp"), all_to("nscc"), all_to("dcqcn")});
  add("reactive_selective", cc_line("swift"), selective, 12,
      {all_to("dcqcn"), all_to("theta-powertcp"), all_to("fixed"), all_to("swift")});
  add("granting", cc_line("dcqcn"), "", 15,
      {all_to("cadence"), all_to("dcqcn"), all_to("eqds"), all_to("homa"), all_to("sird"),
       all_to("cadence")});
  add("granting_selective", cc_line("cadence"), selective, 25,
      {all_to("eqds"), all_to("swift"), all_to("homa"), all_to("dcqcn"), all_to("sird")});
  add("granting_many_paths", cc_line("cadence"), selective + ", multipath = \"packet\"", 25,
      {all_to("dcqcn"), all_to("cadence"), all_to("homa"), all_to("fixed")});
  add("discovered", cc_line("dcqcn"), selective + ", peers = \"discover\", foreign_hosts = [2]", 20,
      {all_to("cadence"), all_to("dcqcn"), some_to("sird", {0, 1, 3})});
  add("some_hosts", cc_line("dcqcn"), "ack_every = 4", 20,
      {some_to("cadence", {0, 1, 2}), some_to("eqds", {3, 4}), some_to("swift", {0, 5}),
       all_to("dcqcn")});
  add("arms_reactive", cc_line("dcqcn"), "", 15,
      {arms("dcqcn", "swift", {0, 0, 1, 1, 0, 1}), arms("dcqcn", "swift", {1, 0, 1, 0, kNone, 1}),
       arms("timely", "fixed", {0, 1, 0, 1, 0, 1}), all_to("dcqcn")});
  add("arms_granting", cc_line("dcqcn"), selective, 25,
      {arms("dcqcn", "cadence", {0, 1, 0, 1, 0, 1}), arms("dcqcn", "cadence", {1, 0, 1, 0, 1, 0}),
       arms("swift", "eqds", {1, 1, 0, kNone, 1, 0}), all_to("cadence")});
  add("arms_one_algorithm", cc_line("cadence"), "", 25,
      {[](VirtualWorld& world, std::uint8_t epoch) {
         world.reconfigure_by_receiver(
             {setup_of(world, "cadence"), setup_of(world, "cadence", {{"eta", 0.85}})},
             std::array<std::uint8_t, 6>{0, 1, 1, 0, 1, 0}, epoch);
       },
       arms("cadence", "dcqcn", {0, 1, 0, 1, 1, 1})});
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    World w;
    w.name = std::string("random/") + (seed < 10 ? "0" : "") + std::to_string(seed);
    w.random_seed = 7000 + seed;
    if (seed % 2 == 0) {
      w.control = [seed]() -> Control { return Meddling(seed); };
      w.control_interval = picos_from_micros(5);
    }
    out.push_back(w);
  }
  return out;
}

}  // namespace paceline::simtest::identity
