// Plug-ins that come while the service runs: which files are let in, what is told of them, and what
// happens to one that is put into quarantine.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cc/plugin/plugin.h"
#include "dataplane/config/sha256.h"
#include "dataplane/service/congestion/congestion_controller.h"
#include "dataplane/service/congestion/plugin_shelf.h"
#include "dataplane/service/control/control_operations.h"
#include "dataplane/service/limits/privileges.h"
#include "tests/unit/service/service_support.h"

#include <nlohmann/json.hpp>

using namespace paceline;
using namespace paceline::test;
using Json = nlohmann::json;

namespace {

// A folder that only this user can write, with plug-ins in it.
class PluginFolder {
 public:
  PluginFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "paceline-plug-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = std::filesystem::canonical(name).string();
  }
  ~PluginFolder() { std::filesystem::remove_all(path_); }
  PluginFolder(const PluginFolder&) = delete;
  PluginFolder& operator=(const PluginFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string put(const std::string& plugin, const std::string& name) const {
    std::filesystem::copy_file(PACELINE_PLUGINS + plugin + ".so", file(name));
    REQUIRE(::chmod(file(name).c_str(), 0644) == 0);
    return file(name);
  }

 private:
  std::string path_;
};

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool says(const std::string& text, const std::string& what) {
  UNSCOPED_INFO(text);
  return text.find(what) != std::string::npos;
}

struct Desk {
  explicit Desk(std::vector<std::string> folders) : running(settings_of(std::move(folders))) {
    running.on_control([&] {
      controller = std::make_unique<service::CongestionController>(running.service());
      operations = std::make_unique<service::ControlOperations>(
          running.service(), *controller, "there",
          service::SessionOperations{[] { return "{}"; }, {}});
    });
  }
  // The controller belongs to the control thread: that ends first.
  ~Desk() { running.stop(); }
  static service::ServiceSettings settings_of(std::vector<std::string> folders) {
    service::ServiceSettings settings;
    settings.plugin_folders = std::move(folders);
    return settings;
  }
  Json ask(const std::string& op, Json members = Json::object()) {
    members["schema"] = 1;
    members["id"] = 7;
    members["op"] = op;
    Json out;
    running.on_control([&] { out = Json::parse(operations->answer(members.dump()).text); });
    UNSCOPED_INFO(out.dump());
    return out;
  }
  std::string error(const std::string& op, Json members) {
    const Json answer = ask(op, std::move(members));
    CHECK(answer.at("ok") == false);
    return answer.value("errors", Json::array()).dump();
  }

  RunningService running;
  std::unique_ptr<service::CongestionController> controller;
  std::unique_ptr<service::ControlOperations> operations;
};

}  // namespace

TEST_CASE("plug-ins come from folders that are allowed, in files that nobody else could write") {
  const PluginFolder folder;
  const PluginFolder elsewhere;
  const std::string good = folder.put("aimd", "aimd.so");
  const auto refusal = [](const service::PluginShelf& shelf, const std::string& path,
                          const std::string& sha256 = {}) {
    const cc::Registered loaded = shelf.load(path, sha256);
    CHECK(loaded.info == nullptr);
    CHECK(loaded.error.find(path) == 0);
    return loaded.error;
  };
  const service::PluginShelf shelf({folder.path()});
  CHECK(says(refusal(service::PluginShelf({}), good), "service.plugin_folders names no folder"));
  CHECK(says(refusal(shelf, "aimd.so"), "absolute path"));
  CHECK(says(refusal(shelf, folder.file("none.so")), "No such file"));
  CHECK(says(refusal(shelf, folder.path()), "not in a folder"));
  CHECK(says(refusal(shelf, elsewhere.put("aimd", "aimd.so")), "not in a folder"));
  std::filesystem::create_symlink(elsewhere.file("aimd.so"), folder.file("link.so"));
  CHECK(says(refusal(shelf, folder.file("link.so")), ", but " + elsewhere.path()));
  // A folder whose name only begins the same.
  const service::PluginShelf shorter({folder.path().substr(0, folder.path().size() - 1)});
  CHECK(says(refusal(shorter, good), "not in a folder"));

  std::filesystem::create_directory(folder.file("sub"));
  CHECK(says(refusal(shelf, folder.file("sub")), "not a file"));
  for (const mode_t mode : {0664U, 0646U}) {
    REQUIRE(::chmod(good.c_str(), mode) == 0);
    CHECK(says(refusal(shelf, good), "is writable by others"));
  }
  REQUIRE(::chmod(good.c_str(), 0644) == 0);
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  CHECK(says(refusal(shelf, good), "the folder " + folder.path() + " is writable by others"));
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  if (::geteuid() == 0) {
    REQUIRE(::chown(good.c_str(), 12345, static_cast<gid_t>(-1)) == 0);
    CHECK(says(refusal(shelf, good), "belongs to user 12345"));
    REQUIRE(::chown(good.c_str(), 0, static_cast<gid_t>(-1)) == 0);
  }
  CHECK(says(refusal(shelf, good, std::string(64, '0')), "its content has sha256"));
  CHECK(says(refusal(shelf, folder.put("wrong_state", "state.so")), "state_bytes"));

  const std::string digest = sha256(content_of(good));
  const cc::Registered loaded = shelf.load(good, digest);
  INFO(loaded.error);
  REQUIRE(loaded.info != nullptr);
  CHECK(loaded.info->name == "aimd");
  CHECK(cc::plugin_of(loaded.info->id)->sha256 == digest);
  CHECK(shelf.load(good, {}).info == loaded.info);
  // What runs is a copy: a file that is written over, as compilers' scripts do, changes nothing.
  std::ofstream(good, std::ios::binary | std::ios::trunc)
      << content_of(PACELINE_PLUGINS "blaster.so");
  if (cc::plugin_of(loaded.info->id)->path == good) {  // else another test had it before
    CHECK(says(refusal(shelf, good), "has changed since it was loaded"));
  }
  CHECK(loaded.info->params.size() == 3);
  CHECK(loaded.info->params[0].name == cc::find("aimd")->params[0].name);
}

TEST_CASE("an operator names a plug-in's file, and everybody is told which code it is",
          "[threads]") {
  const PluginFolder folder;
  const std::string file = folder.put("aimd", "aimd.so");
  const std::string digest = sha256(content_of(file));
  Desk controller({folder.path()});
  const std::string named = "plugin:" + file;

  CHECK(
      says(controller.error("configure", {{"algorithm", "plugin:relative.so"}}), "absolute path"));
  CHECK(
      says(controller.error("configure", {{"algorithm", named}, {"sha256", std::string(64, '1')}}),
           "its content has sha256"));
  CHECK(says(controller.error("configure", {{"algorithm", named}, {"sha256", "1"}}),
             "64 hexadecimal digits"));
  CHECK(says(controller.error("configure", {{"algorithm", "dcqcn"}, {"sha256", digest}}),
             "sha256 needs a plug-in"));
  CHECK(says(controller.error("configure", {{"algorithm", named}, {"params", {{"nonsense", 1}}}}),
             "nonsense"));
  CHECK(controller.ask("parameters").at("nics")[0].at("algorithm") == "dcqcn");
  CHECK_FALSE(controller.ask("parameters").at("nics")[0].contains("plugin"));

  const Json table = controller.ask("load_plugin", {{"path", file}}).at("plugin");
  CHECK(table.at("name") == "aimd");
  CHECK(table.at("params").size() == 3);
  CHECK(table.at("plugin").at("sha256") == digest);
  bool listed = false;
  const Json all = controller.ask("plugins");
  for (const Json& plugin : all.at("plugins")) listed |= plugin == table;
  CHECK(listed);
  CHECK(controller.ask("parameters").at("nics")[0].at("algorithm") == "dcqcn");

  CHECK(controller.ask("configure", {{"algorithm", named}, {"sha256", digest}, {"dry_run", true}})
            .at("nics")[0]
            .at("changed") == true);
  CHECK(controller.ask("parameters").at("nics")[0].at("algorithm") == "dcqcn");
  CHECK(controller.ask("configure", {{"algorithm", named}, {"params", {{"decrease", 0.75}}}})
            .at("ok") == true);
  const Json in_force = controller.ask("parameters");
  for (const Json& nic : in_force.at("nics")) {
    CHECK(nic.at("algorithm") == "aimd");
    CHECK(nic.at("values").at("decrease") == 0.75);
    CHECK(nic.at("plugin").at("sha256") == digest);
  }
  CHECK(controller.ask("configure", {{"algorithm", "dcqcn"}}).at("ok") == true);

  // A candidate of a trial, too; by now its name is enough.
  for (const std::string& algorithm : {named, std::string("aimd")}) {
    const Json arms =
        controller
            .ask("trial",
                 {{"name", "t"}, {"candidate", {{"algorithm", algorithm}}}, {"hold_ms", 5000}})
            .at("arms");
    CHECK(arms[1].at("algorithm") == "aimd");
    CHECK(controller.ask("end_trial", {{"name", "t"}, {"keep", "champion"}}).at("ok") == true);
  }
}

// Traffic is what makes a plug-in be called: messages until the engine has seen 16 decisions of
// nonsense; each is completed, by the fallback at the latest.
TEST_CASE("a candidate that is put into quarantine is taken back, and not tried again",
          "[threads]") {
  const PluginFolder folder;
  const std::string file = folder.put("wrong_nan", "nan.so");
  Desk controller({folder.path()});
  End a(controller.running, "h0");
  End b(controller.running, "h1");
  REQUIRE(a.pair.create(a.client, a.request()) == 0);
  REQUIRE(b.pair.create(b.client, b.request()) == 0);
  connect(a, b);
  REQUIRE(controller
              .ask("trial", {{"name", "t"},
                             {"candidate", {{"algorithm", "plugin:" + file}}},
                             {"hold_ms", 3'600'000}})
              .at("ok") == true);
  REQUIRE(controller.ask("use_arm", {{"name", "t"}, {"arm", 1}, {"epoch", 1}}).at("ok") == true);
  bool over = false;
  std::uint64_t now_ms = 0;
  for (int i = 0; i < 2000 && !over; ++i) {
    attach::SendSlot slot = signaled_slot(attach::SendOpcode::write, 1);
    slot.remote_address = reinterpret_cast<std::uint64_t>(b.memory.data());
    slot.remote_key = b.region.remote_key;
    a.pair.post_send(slot, std::array{a.piece(0, 60'000)});
    attach::CompletionEntry entry;
    REQUIRE(a.cq.wait(entry));
    REQUIRE(entry.status == attach::EntryStatus::success);
    ::usleep(1000);
    controller.running.on_control([&] {
      now_ms += service::kGuardLookMs;
      controller.controller->tick(now_ms);
      over = controller.controller->trials().front().state == service::TrialState::tripped;
    });
  }
  REQUIRE(over);
  const Json trial = controller.ask("trials").at("trials")[0];
  CHECK(says(trial.at("why").get<std::string>(), "quarantine because it answered with nonsense"));
  const Json back = controller.ask("parameters");
  for (const Json& nic : back.at("nics")) CHECK(nic.at("algorithm") == "dcqcn");
  const Json trip = controller.ask("guard").at("nics")[0].at("trips")[0];
  CHECK(trip.at("rule") == "plugin_quarantine");
  CHECK(trip.at("action") == "reverted");
  CHECK(says(trip.at("detail").get<std::string>(), "wrong_nan"));
  CHECK(controller.ask("end_trial", {{"name", "t"}, {"keep", "champion"}}).at("ok") == true);
  CHECK(controller.ask("clear_guard").at("ok") == true);
  // Where it was caught it is not called again; nobody should wonder why the fallback runs.
  CHECK(says(controller.error("configure", {{"algorithm", "wrong_nan"}}),
             "h0: wrong_nan is in quarantine"));
  CHECK(says(
      controller.error(
          "trial", {{"name", "u"}, {"candidate", {{"algorithm", "wrong_nan"}}}, {"hold_ms", 5000}}),
      "does not call it again"));
}

// An attacker who breaks into the service could rewrite such a file.
TEST_CASE("a plug-in of the user that root's service has become is refused, root's is not",
          "[may_skip]") {
  if (::geteuid() != 0) {
    WARN("skipped: root only");
    return;
  }
  const PluginFolder folder;
  const std::string file = folder.put("aimd", "aimd.so");
  // In a process of its own: there is no way back.
  const auto load_as = [&](uid_t owner, uid_t& becomes) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    REQUIRE(::chown(file.c_str(), owner, owner) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const service::PluginShelf shelf({folder.path()});
      service::Privileges kept;
      std::string text = service::drop_privileges({}, kept);
      text = std::to_string(kept.user) + " " + text + shelf.load(file, {}).error;
      ::_exit(::write(ends[1], text.data(), text.size()) < 0 ? 1 : 0);
    }
    ::close(ends[1]);
    std::string said(4096, '\0');
    const ssize_t n = ::read(ends[0], said.data(), said.size());
    said.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    becomes = static_cast<uid_t>(std::strtoul(said.c_str(), nullptr, 10));
    return said;
  };
  uid_t becomes = 0;
  const std::string roots = load_as(0, becomes);
  CHECK(roots == std::to_string(becomes) + " ");
  if (becomes == 0) {
    WARN("skipped: root may not become another user here");
    return;
  }
  const uid_t service = becomes;
  CHECK(says(load_as(service, becomes), "the service's own user"));
  CHECK(says(load_as(54'321, becomes), "belongs to user 54321: it must belong to root"));
}
