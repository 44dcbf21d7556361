// A test peer's conversation with the test: a command a line, answered with any number of lines and
// then one that begins with "ok" or "error"; before the first, a line "ready". rxe_test.py holds
// the other end.
//
//   region NAME BYTES remote|local           ok ADDRESS KEY (of the remote end)
//   fill NAME OFFSET BYTES SEED              pattern(SEED, i) from OFFSET on; seed 0: zeros
//   verify NAME OFFSET:BYTES:SEED:FROM ...   all zeros but for these pieces of patterns
//   word NAME OFFSET [VALUE]                 ok VALUE: 64 bits, in the host's order
//   bytes NAME OFFSET BYTES                  ok HEX
//   qp ID rc|ud [name=value]...              ok NUMBER; names are QueuePairSpec's
//   connect ID IP NUMBER PSN
//   post ID OPERATION WR NAME:OFFSET:BYTES [to=ADDRESS:KEY] [imm=N] [compare=N] [swap=N]
//                     [ip=IP qpn=N qkey=N]
//   receive ID WR NAME:OFFSET:BYTES
//   wait ID send|receive COUNT MILLISECONDS  "wc ..." per completion, then ok COUNT; fewer when the
//                                            time is over
//   pingpong listen|IP BYTES COUNT MTU       ok BYTES: as the other end of ibv_rc_pingpong
//   state ID | destroy ID | idle MILLISECONDS | address
#pragma once

#include <map>
#include <span>
#include <string>

#include "tests/interop/peer/backend.h"

namespace paceline::interop {

class Commands {
 public:
  explicit Commands(Backend& backend) : backend_(backend) {}
  // Reads and answers until the input ends. An exception ends a command, not the conversation.
  void run(int in, int out);

 private:
  std::string answer(std::span<const std::string> words);
  std::string region(std::span<const std::string> words);
  std::string fill(std::span<const std::string> words);
  std::string verify(std::span<const std::string> words);
  std::string word(std::span<const std::string> words);
  std::string bytes(std::span<const std::string> words);
  std::string make_qp(std::span<const std::string> words);
  std::string post(std::span<const std::string> words);
  std::string wait(std::span<const std::string> words);
  Registered& named(const std::string& name, std::uint64_t offset, std::uint64_t bytes);
  Work placed(const std::string& text);

  Backend& backend_;
  std::map<std::string, Registered> regions_;
};

}  // namespace paceline::interop
