// The life of queue pairs: created, led from state to state (InfiniBand vol. 1, 10.3.1 and
// 11.2.5.2), destroyed. These are control operations: they may allocate.
#pragma once

#include <cstdint>
#include <list>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/transport/interface/attributes.h"

namespace paceline::transport {

class CongestionManager;
class Migration;
class Requester;
class Responder;

class QpStatePart {
 public:
  QpStatePart(EngineCore& core, Requester& requester, Responder& responder,
              CongestionManager& congestion, Migration& migration)
      : core_(core),
        requester_(requester),
        responder_(responder),
        congestion_(congestion),
        migration_(migration) {}

  // Creates a queue pair in RESET. nullptr when numbers have run out. Throws std::bad_alloc; then
  // nothing has changed.
  QueuePair* create(const QpConfig& config);
  // Never throws because of a lack of memory.
  void destroy(QueuePair& qp);

  ModifyResult modify(QueuePair& qp, const QpAttributes& attributes, std::uint32_t mask);
  QpAttributes query(const QueuePair& qp) const;
  // Goes from RESET or INIT to RTS, with the attributes that the queue pair was created with.
  bool connect(QueuePair& qp, const QpAddress& remote, Psn first_psn, std::uint16_t source_port);

  // Completion queues that have overrun fail their queue pairs (vol. 1, 11.6.3.2).
  void fail_overrun();

 private:
  ModifyResult check_values(const QueuePair& qp, const QpAttributes& attributes,
                            std::uint32_t mask) const;
  void fail(QueuePair& qp);
  void to_reset(QueuePair& qp);
  void to_rtr(QueuePair& qp);
  void to_rts(QueuePair& qp, Psn first_psn);

  EngineCore& core_;
  Requester& requester_;
  Responder& responder_;
  CongestionManager& congestion_;
  Migration& migration_;
  std::list<QueuePair*> free_;  // destroyed ones, the longest free first
};

}  // namespace paceline::transport
