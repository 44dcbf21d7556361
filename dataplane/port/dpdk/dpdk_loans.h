// Payload that leaves a port without a copy: the frame that a device gets for a packet whose
// payload is lent (packet_pool.h). It has three segments: the packet's own mbuf with the headers,
// the payload in place (an external buffer, whose last release DPDK reports), the ICRC.
//
// Between the port that lends and the one that receives, on two threads of one process, each loan
// is in one state at a time. To reclaim the memory, a payload that no thread has begun to read is
// copied, and one that is being read is waited for:
//
//   free -> lent -> taken (a receiver reads it) -> free
//             \ -> moving -> moved (the bytes are in the packet's own buffer) -> taken -> free
//
// Most drivers copy within the call that sends: their loans are free again when it returns.
//
// Cache lines written by one thread are slow to read or write for another. So the ICRC is in the
// loan, and a loan keeps its segments: the receiving port gives the loan back and does not touch
// them. If a driver frees the segments, the loan gets new ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "dataplane/port/packet.h"

struct rte_mbuf;
struct rte_mempool;

namespace paceline {

class DpdkLoans;

struct DpdkLoansMade {
  std::unique_ptr<DpdkLoans> loans;  // null: see error
  std::string error;
};

// The loans of one port, on whose thread they are used; taken() and DPDK's callbacks run on any
// thread. Lives as long as the packet memory, because payloads may be in flight when the port
// closes.
class DpdkLoans {
 public:
  // name: unlike any other, at most 24 characters. most: loans at a time.
  static DpdkLoansMade make(const std::string& name, std::uint32_t most, int socket);
  ~DpdkLoans();
  DpdkLoans(const DpdkLoans&) = delete;
  DpdkLoans& operator=(const DpdkLoans&) = delete;

  // At most this many are about to be attached: fetches now the lines that will be written.
  void expect(std::size_t count);
  // Attaches the payload at `bytes` to the frame `head`, which already has the packet's headers.
  // False: there are too many loans; nothing was done.
  bool attach(rte_mbuf* head, const Packet& packet, const std::byte* bytes);
  // The frames come back from a driver that did not take them, the last `count` that were attached:
  // detached one by one, and their loans are the next ones again.
  void take_back(std::size_t count) { next_ -= count; }
  // `head`, that was attached here or taken, alone again; the loan has ended.
  static void detach(rte_mbuf* head);
  // For a frame that was taken.
  static std::uint32_t icrc_of(const rte_mbuf* head);
  // After this call, no frame of this port in flight refers to memory elsewhere. Returns how many
  // had to be copied. It waits for payloads that a receiver is reading, at most a tenth of a
  // second; overdue() counts those that took longer.
  std::size_t recall();
  // Loans that are not free. Any thread.
  std::size_t out() const;
  std::uint64_t overdue() const { return overdue_; }

  // A received frame: a loan of this process? It is the caller's to read then, until its segments
  // are freed or detached.
  static bool take(rte_mbuf* head);
  // For frames that another thread has just handed over, whose lines are all in its processor's
  // cache: starts to fetch them all together, instead of waiting for one after the other.
  static void fetch(std::span<rte_mbuf* const> heads);

 private:
  struct Loan;
  DpdkLoans(rte_mempool* pool, std::uint32_t most);
  static void returned(void* address, void* loan);
  static bool settle(Loan& loan, bool patient, std::size_t& copied);
  static Loan* loan_of(const rte_mbuf* head);
  bool give_segments(Loan& loan);

  rte_mempool* pool_;  // of segments: they have no bytes of their own
  std::uint32_t most_;
  std::unique_ptr<Loan[]> loans_;
  std::uint64_t next_ = 0;    // the loan that is made next
  std::uint64_t oldest_ = 0;  // all before it are free
  std::uint64_t overdue_ = 0;
};

}  // namespace paceline
