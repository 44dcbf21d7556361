// ibv_open_device and ibv_close_device.
#include "dataplane/verbs/device/context.h"

#include <pthread.h>
#include <unistd.h>

#include <limits>
#include <memory>

#include "dataplane/attach/few_processors.h"
#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/device/operations.h"
#include "dataplane/verbs/device/process_memory.h"

namespace paceline::verbs {

namespace {

// An empty poll and the loop around it take some ten nanoseconds. With too few processors for two
// spinning programs and a worker, each spin delays the work that is waited for.
constexpr std::uint32_t kSpinsAlone = 4000;
constexpr std::uint32_t kSpinsCrowded = 40;

int attach_to(Context& context) {
  Context& c = context;
  if (const int error = c.presence.make(); error != 0) return error;
  if (const int error = c.session.connect(c.device->settings, &c.presence); error != 0)
    return error;
  attach::OpenRequest request;
  request.nic = c.device->nic.name;
  attach::Message reply;
  if (const int error = c.session.ask(attach::Operation::open_nic, request, reply); error != 0) {
    return error;
  }
  if (reply.descriptors.size() != 4) return EPROTO;
  c.nic = reply.as<attach::OpenReply>().nic;
  c.nic.name.back() = '\0';
  auto& given = reply.descriptors;
  if (!c.doorbells.open(std::move(given[0]), sizeof(attach::DoorbellPage), true) ||
      !c.worker.open(std::move(given[1]), sizeof(attach::WorkerPage), false)) {
    return errno;
  }
  c.doorbells.close_descriptor();
  c.worker.close_descriptor();
  c.wake = std::move(given[2]);
  c.notices = std::move(given[3]);
  return 0;
}

// If this fails, the service copies all registered memory.
void share_memory(Context& c) {
  RegistrationMap& memory = process_memory();
  const int descriptor = memory.descriptor();
  if (descriptor < 0) return;
  const attach::ShareMemoryRequest request;
  attach::Message reply;
  const int error =
      c.session.exchange(attach::Operation::share_memory, std::as_bytes(std::span(&request, 1)),
                         reply, std::span(&descriptor, 1));
  c.shares_memory = error == 0;
  if (reply.descriptors.empty()) reply.descriptors.emplace_back();  // then what this user has
  if (c.shares_memory) memory.hold_with(reply.descriptors[0]);
}

// Sets up what paceline exec wants broken or checked. 0, or EINVAL if the environment makes no
// sense.
int watch(Context& c) {
  std::string error;
  const std::string nic = c.nic.name.data();
  c.faults = fault_injector_of_environment(c.device->settings.socket, nic, c.notices.get(), error);
  if (error.empty()) c.order = order_check_of_environment(nic, error);
  if (error.empty()) return 0;
  say(error);
  return EINVAL;
}

ibv_context* open_device(Device& device) {
  auto context = std::make_unique<Context>();
  context->device = &device;
  if (const int error = attach_to(*context); error != 0) return refuse(error);
  if (const int error = watch(*context); error != 0) return refuse(error);
  share_memory(*context);
  context->spins = attach::few_processors() ? kSpinsCrowded : kSpinsAlone;
  set_operations(context->verbs);
  ibv_context& c = context->verbs.context;
  if (context->watched()) c.ops.post_send = post_send_watched;
  c.device = &device.device;
  c.cmd_fd = context->session.descriptor();
  c.async_fd = context->notices.get();
  c.num_comp_vectors = 1;
  ::pthread_mutex_init(&c.mutex, nullptr);
  c.abi_compat = __VERBS_ABI_IS_EXTENDED;
  device.hold();
  return context.release()->handle();
}

}  // namespace

void Context::ring(std::uint32_t bell) noexcept {
  attach::ring(*reinterpret_cast<attach::DoorbellPage*>(doorbells.data()), bell);
  const auto& page = *reinterpret_cast<const attach::WorkerPage*>(worker.data());
  if (page.asleep.load(std::memory_order_seq_cst) == 0) return;
  const std::uint64_t one = 1;
  // A full counter (EAGAIN) wakes as well; nothing else can go wrong that would help to know.
  [[maybe_unused]] const ssize_t written = ::write(wake.get(), &one, sizeof(one));
}

}  // namespace paceline::verbs

using paceline::verbs::Context;
using paceline::verbs::Device;

PACELINE_VERBS_EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  return paceline::verbs::guarded(static_cast<ibv_context*>(nullptr), [&] {
    return paceline::verbs::open_device(*Device::of(device));
  });
}

// Objects that the program has not destroyed end with the connection.
PACELINE_VERBS_EXPORT int ibv_close_device(ibv_context* context) {
  Context* const c = &Context::of(context);
  Device* const device = c->device;
  ::pthread_mutex_destroy(&context->mutex);
  // Its thread is the parent's; there is nothing to wait for.
  if (c->presence.forked()) static_cast<void>(c->faults.release());
  delete c;
  device->release();
  return 0;
}
