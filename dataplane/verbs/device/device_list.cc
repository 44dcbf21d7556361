// ibv_get_device_list and what can be asked of a device that is not open.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dataplane/attach/text.h"
#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/device/device.h"
#include "dataplane/verbs/service_link/session.h"

namespace paceline::verbs {

namespace {

void copy_text(char* to, std::size_t room, const std::string& from) {
  std::memset(to, 0, room);
  from.copy(to, room - 1);
}

Device* make_device(const attach::NicInfo& nic, const Settings& settings, int index) {
  auto device = std::make_unique<Device>();
  device->nic = nic;
  device->nic.name.back() = '\0';
  device->settings = settings;
  device->index = index;
  ibv_device& d = device->device;
  d.node_type = IBV_NODE_CA;
  d.transport_type = IBV_TRANSPORT_IB;
  const std::string name = device->nic.name.data();
  const std::string uverbs = "uverbs" + std::to_string(index);
  copy_text(d.name, sizeof(d.name), name);
  copy_text(d.dev_name, sizeof(d.dev_name), uverbs);
  copy_text(d.dev_path, sizeof(d.dev_path), "/sys/class/infiniband_verbs/" + uverbs);
  copy_text(d.ibdev_path, sizeof(d.ibdev_path), "/sys/class/infiniband/" + name);
  return device.release();
}

// The service's NICs; none, with a line on standard error, if there is no service.
std::vector<attach::NicInfo> ask_for_nics(const Settings& settings) {
  Session session;
  int error = session.connect(settings);
  attach::Message reply;
  if (error == 0) error = session.exchange(attach::Operation::list_nics, {}, reply);
  if (error != 0) {
    say(error == EACCES
            ? "the service at " + settings.socket +
                  " belongs to another user, and its testbed file does not let this one attach "
                  "(service.users, service.open): no RDMA devices"
        : error == ETIMEDOUT
            ? "the service at " + settings.socket +
                  " does not answer; is it stopped? No RDMA devices"
            : "no service answers at " + settings.socket + " (" + std::strerror(error) +
                  "): no RDMA devices; start one, or set PACELINE_SOCKET");
    return {};
  }
  const auto bytes = reply.beyond<attach::NicList>();
  const std::size_t count =
      std::min<std::size_t>({reply.as<attach::NicList>().count,
                             bytes.size() / sizeof(attach::NicInfo), attach::kMaxNics});
  std::vector<attach::NicInfo> nics(count);
  if (count != 0) std::memcpy(nics.data(), bytes.data(), count * sizeof(attach::NicInfo));
  return nics;
}

// The devices of the last list. As with the real library, a device that is still there is the same
// object in the next list: librdmacm takes another one for a device that was plugged in.
class Known {
 public:
  Device* get(const attach::NicInfo& nic, const Settings& settings, int index) {
    for (Device* device : devices_) {
      if (device->index != index || device->settings.socket != settings.socket) continue;
      if (device->nic.name != nic.name || device->nic.guid != nic.guid) continue;
      if (device->nic.gids == nic.gids && device->nic.more_ports == nic.more_ports &&
          device->nic.rate_mbps == nic.rate_mbps) {
        return hold(device);
      }
    }
    return hold(make_device(nic, settings, index));
  }
  // After the last get() of a list: those that are in it stay.
  void settle() {
    std::swap(devices_, next_);
    for (Device* device : next_) device->release();
    next_.clear();
  }
  std::mutex mutex;

 private:
  // One reference for the list that is being made, one for this table.
  Device* hold(Device* device) {
    next_.reserve(next_.size() + 1);
    if (std::find(devices_.begin(), devices_.end(), device) != devices_.end()) device->hold();
    device->hold();
    next_.push_back(device);
    return device;
  }
  std::vector<Device*> devices_;
  std::vector<Device*> next_;
};

Known& known_devices() {
  static Known* const known = new Known;  // never freed: programs list devices until their very end
  return *known;
}

ibv_device** make_list(int* count) {
  const Settings settings = read_settings();
  const std::vector<attach::NicInfo> nics = ask_for_nics(settings);
  auto list = std::make_unique<ibv_device*[]>(nics.size() + 1);
  int found = 0;
  bool gone = false;
  Known& known = known_devices();
  const std::lock_guard hold(known.mutex);
  for (std::size_t i = 0; i < nics.size(); ++i) {
    if (!settings.nic.empty() && settings.nic != attach::text_of(nics[i].name)) continue;
    if (nics[i].gone != 0) {  // the others keep their numbers
      gone = true;
      continue;
    }
    list[static_cast<std::size_t>(found++)] =
        &known.get(nics[i], settings, static_cast<int>(i))->device;
  }
  known.settle();
  if (found == 0 && gone) {
    say("all NICs that this program may see were taken away (paceline testbed remove)");
  } else if (found == 0 && !nics.empty()) {
    say("the service has no NIC instance named " + settings.nic + " (PACELINE_NIC)");
  }
  if (count != nullptr) *count = found;
  return list.release();
}

}  // namespace

}  // namespace paceline::verbs

using paceline::verbs::Device;

PACELINE_VERBS_EXPORT ibv_device** ibv_get_device_list(int* num_devices) {
  if (num_devices != nullptr) *num_devices = 0;
  return paceline::verbs::guarded(static_cast<ibv_device**>(nullptr),
                                  [&] { return paceline::verbs::make_list(num_devices); });
}

PACELINE_VERBS_EXPORT void ibv_free_device_list(ibv_device** list) {
  if (list == nullptr) return;
  for (ibv_device** d = list; *d != nullptr; ++d) Device::of(*d)->release();
  delete[] list;
}

PACELINE_VERBS_EXPORT const char* ibv_get_device_name(ibv_device* device) { return device->name; }

PACELINE_VERBS_EXPORT int ibv_get_device_index(ibv_device* device) {
  return Device::of(device)->index;
}

PACELINE_VERBS_EXPORT __be64 ibv_get_device_guid(ibv_device* device) {
  return Device::of(device)->nic.guid;
}
