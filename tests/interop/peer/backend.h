// What a test peer can do, in either implementation: the Linux kernel's verbs in the guest, or our
// engine beside it. commands.h drives either with the same lines, so that both ends of a test are
// the same program but for this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace paceline::interop {

enum class Operation : std::uint8_t {
  send,
  send_imm,
  write,
  write_imm,
  read,
  fetch_add,
  compare_swap,
};

struct QueuePairSpec {
  bool datagram = false;  // UD instead of RC
  std::uint32_t mtu = 1024;
  std::uint32_t first_psn = 0;
  std::uint32_t qkey = 0;
  unsigned timeout = 14;  // 4.096 us * 2^n
  unsigned retries = 7;
  unsigned rnr_retries = 7;  // 7: for ever
  unsigned rnr_timer = 12;   // code of vol. 1, table 45
  unsigned depth = 4;        // READs and atomics outstanding
  bool ecn = false;          // packets say that they may be marked; ours always do
};

struct Remote {
  std::string ip;
  std::uint32_t number = 0;
  std::uint32_t first_psn = 0;
};

struct Registered {
  std::byte* memory = nullptr;
  std::uint64_t address = 0;  // as work requests name it
  std::uint64_t bytes = 0;
  std::uint32_t local_key = 0;
  std::uint32_t remote_key = 0;
};

struct Work {
  std::uint64_t id = 0;
  Operation operation = Operation::send;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint32_t key = 0;
  std::uint64_t remote_address = 0;
  std::uint32_t remote_key = 0;
  std::uint32_t immediate = 0;
  std::uint64_t compare = 0;
  std::uint64_t swap_add = 0;
  // UD
  std::string ip;
  std::uint32_t number = 0;
  std::uint32_t qkey = 0;
};

struct Done {
  std::uint64_t id = 0;
  std::string status;  // as transport/interface/types.h says it
  std::string operation;
  std::uint64_t bytes = 0;
  std::optional<std::uint32_t> immediate;
  std::uint32_t source = 0;  // UD: the sender's queue pair
  bool grh = false;
};

// Failures are thrown as std::runtime_error with the reason.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // remote: rights for the peer (else only local ones).
  virtual Registered add_region(std::uint64_t bytes, bool remote) = 0;
  // Names it by a small number of the caller's; returns the queue pair's own.
  virtual std::uint32_t make_qp(unsigned id, const QueuePairSpec& spec) = 0;
  virtual void connect(unsigned id, const Remote& remote) = 0;
  virtual void post(unsigned id, const Work& work) = 0;
  virtual void receive(unsigned id, const Work& work) = 0;
  // What completed since the last call, of the send or of the receive side.
  virtual std::vector<Done> completed(unsigned id, bool receives) = 0;
  virtual std::string state(unsigned id) = 0;
  virtual void destroy(unsigned id) = 0;
  virtual std::string address() = 0;

  // Goes on with whatever is to be done, and otherwise sleeps until input is there at `fd`, or for
  // a millisecond.
  virtual void turn(int fd) = 0;
  // A command that only this backend knows; nullopt: it does not.
  virtual std::optional<std::string> other(std::span<const std::string> words) = 0;
};

}  // namespace paceline::interop
