// A completion queue between an engine and a program: completions of the engine are translated into
// the ring that the program polls, and waiting threads are woken. For the worker's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/attach/queues.h"
#include "dataplane/attach/shared_memory.h"
#include "dataplane/transport/interface/completion_queue.h"

namespace paceline::service {

class PairAdapter;
class SharedReceives;

// Queue pairs by their number; nullptr: none.
class PairTable {
 public:
  PairAdapter* find(std::uint32_t qp_number) const;
  // May allocate: between turns.
  void add(std::uint32_t qp_number, PairAdapter* pair);
  void remove(std::uint32_t qp_number);
  std::size_t size() const { return size_; }
  // Places, taken or free, and the queue pair of each; nullptr: it is free.
  std::size_t places() const { return pairs_.size(); }
  PairAdapter* at(std::size_t place) const { return pairs_[place]; }

 private:
  std::vector<PairAdapter*> pairs_;  // by the low bits of the number
  std::size_t size_ = 0;
};

class CompletionAdapter {
 public:
  // `memory` holds the shape and outlives the adapter, or the next resize. `channel`: the pipe that
  // events go to, -1: none.
  CompletionAdapter(std::uint32_t handle, attach::CompletionQueueShape shape, std::byte* memory,
                    int channel, std::uint64_t cookie);

  transport::CompletionQueue& queue() { return *queue_; }
  std::uint32_t handle() const { return handle_; }

  bool idle() const { return queue_->empty() && !event_owed_; }
  // Hands over what the engine has completed. True if there was anything.
  bool drain(const PairTable& pairs);
  // A shared XRC receive queue completes here, whichever queue pair receives; for as long as it
  // exists.
  void serve(SharedReceives& receives) { domain_receives_.push_back(&receives); }
  void leave(SharedReceives& receives) { std::erase(domain_receives_, &receives); }
  // Adds an entry that the service itself makes, after what the engine has completed.
  void push(const PairTable& pairs, const attach::CompletionEntry& entry);

  // More completions came than fit: entries are lost, and no more follow (vol. 1, 11.2.6).
  bool overrun() const { return overrun_ || queue_->overflowed(); }
  // True once after that: raise the event.
  bool report_overrun();

  // Copies waiting entries into new memory and continues there. False, with nothing changed, if
  // more wait than fit, or if it has overrun. Call it after drain(); may allocate.
  bool resize(attach::CompletionQueueShape shape, std::byte* memory);
  // Entries that wait for the program; more than there are slots when it has corrupted its index.
  std::uint32_t waiting() const;
  std::uint32_t slots() const { return shape_.slots; }

 private:
  attach::CompletionQueueHeader& header() const {
    return *reinterpret_cast<attach::CompletionQueueHeader*>(memory_);
  }
  attach::CompletionEntry* entry_at(std::uint32_t index) const;
  bool write(const attach::CompletionEntry& entry);
  // Writes a receive of XRC. False: its queue is gone.
  bool write_from_domain(const transport::Completion& completion);
  // Makes the tail visible and wakes threads that asked for it.
  void publish();
  void tell();

  std::uint32_t handle_;
  attach::CompletionQueueShape shape_;
  std::byte* memory_;
  int channel_;
  std::uint64_t cookie_;
  std::unique_ptr<transport::CompletionQueue> queue_;
  std::vector<SharedReceives*> domain_receives_;
  std::uint32_t tail_ = 0;
  bool solicited_ = false;   // among the entries written since the last publish
  bool event_owed_ = false;  // it did not fit into the channel
  bool overrun_ = false;
  bool reported_ = false;
};

}  // namespace paceline::service
