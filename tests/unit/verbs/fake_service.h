// The service's end of attach connections, as far as the library can see it: objects are made as
// asked, refusals and completions are the test's.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/attach/doorbell.h"
#include "dataplane/attach/message_socket.h"
#include "dataplane/attach/protocol.h"
#include "dataplane/attach/queues.h"
#include "dataplane/attach/shared_memory.h"

namespace paceline::verbs_test {

struct FakePair {
  std::uint32_t number = 0;
  attach::SharedMemory memory;
  attach::WorkQueueShape send;
  attach::WorkQueueShape receive;
  std::uint32_t receive_offset = 0;
  std::uint32_t doorbell = 0;
  attach::QpValues values;

  std::uint32_t send_tail() const { return header(0).tail.value.load(); }
  std::uint32_t receive_tail() const { return header(receive_offset).tail.value.load(); }
  const attach::SendSlot& send_slot(std::uint32_t index) const {
    return *reinterpret_cast<const attach::SendSlot*>(memory.data() + send.offset(index));
  }
  const attach::ReceiveSlot& receive_slot(std::uint32_t index) const {
    return *reinterpret_cast<const attach::ReceiveSlot*>(memory.data() + receive_offset +
                                                         receive.offset(index));
  }

 private:
  const attach::WorkQueueHeader& header(std::size_t offset) const {
    return *reinterpret_cast<const attach::WorkQueueHeader*>(memory.data() + offset);
  }
};

struct FakeQueue {
  attach::SharedMemory memory;
  std::uint32_t slots = 0;
  std::uint32_t channel = 0;
  std::uint64_t cookie = 0;
  attach::CompletionQueueHeader& header() {
    return *reinterpret_cast<attach::CompletionQueueHeader*>(memory.data());
  }
};

class FakeService {
 public:
  FakeService();
  ~FakeService();
  FakeService(const FakeService&) = delete;
  FakeService& operator=(const FakeService&) = delete;

  // All ends of everything are closed, as when the process is killed.
  void die();

  // The next requests of this kind get this errno; 0: no more.
  void refuse(attach::Operation operation, int error);
  std::size_t requests(attach::Operation operation);
  // The last request of its kind.
  attach::Message last(attach::Operation operation);

  // Objects of the only session, by the handle that the library chose.
  FakePair& pair(std::uint32_t handle) { return *pairs_.at(handle); }
  FakeQueue& queue(std::uint32_t handle) { return *queues_.at(handle); }
  attach::WorkQueueHeader& shared_receives(std::uint32_t handle) {
    return *reinterpret_cast<attach::WorkQueueHeader*>(srqs_.at(handle)->data());
  }
  attach::WorkerPage& worker() { return *reinterpret_cast<attach::WorkerPage*>(worker_.data()); }
  attach::DoorbellPage& bells() { return *reinterpret_cast<attach::DoorbellPage*>(bells_.data()); }
  std::uint64_t wakes();  // what the eventfd was given

  // Puts an entry into a queue and does what the program wants done then.
  void complete(std::uint32_t queue, const attach::CompletionEntry& entry);
  void notice(std::uint32_t event, std::uint32_t handle);

 private:
  void serve();
  bool answer(int socket);
  int act(const attach::Message& request, attach::Message& reply, std::vector<int>& descriptors);

  std::string path_;
  attach::Descriptor listener_;
  attach::Descriptor stop_;
  std::vector<attach::Descriptor> sockets_;
  std::mutex mutex_;
  std::map<attach::Operation, int> refusals_;
  std::map<attach::Operation, std::size_t> counts_;
  std::map<attach::Operation, std::vector<std::byte>> bodies_;
  std::map<std::uint32_t, std::unique_ptr<FakePair>> pairs_;
  std::map<std::uint32_t, std::unique_ptr<FakeQueue>> queues_;
  std::map<std::uint32_t, std::unique_ptr<attach::SharedMemory>> srqs_;
  std::map<std::uint32_t, attach::Descriptor> channels_;
  std::vector<attach::Descriptor> given_;  // reading ends, once they were sent
  attach::SharedMemory bells_;
  attach::SharedMemory worker_;
  attach::Descriptor wake_;
  attach::Descriptor notices_;
  std::uint32_t next_handle_ = 1;
  std::uint32_t next_bell_ = 0;
  std::thread thread_;
};

attach::NicInfo fake_nic(const char* name, std::uint16_t local_id);

}  // namespace paceline::verbs_test
