#include "dataplane/transport/ends/domain_receiver.h"

namespace paceline::transport {

bool DomainReceiver::select(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed) {
  ResponderState& r = qp.responder;
  QpConfig& config = qp.config;
  const std::uint32_t number = parsed.ext.xrc_srq;
  if (number == r.srq_number && number != 0) return !config.receive_cq->overflowed();
  if (r.message.open() || r.receive_taken) return false;
  const DomainQueue* const queue = core.domain_queues.find(number);
  if (queue == nullptr || queue->domain != config.domain || queue->completions->overflowed()) {
    return false;
  }
  r.srq_number = number;
  config.pd = queue->pd;
  config.receive_queue = queue->receives;
  config.receive_cq = queue->completions;
  return true;
}

std::uint32_t DomainReceiver::remove(EngineCore& core, std::uint32_t number) {
  const DomainQueue* const queue = core.domain_queues.find(number);
  if (queue == nullptr) return 0;
  const std::uint32_t domain = queue->domain;
  for (QueuePair* qp : core.qps) {
    if (qp == nullptr || qp->config.type != QpType::xrc_target) continue;
    if (qp->config.receive_queue != queue->receives) continue;
    qp->responder.srq_number = 0;
    qp->responder.receive_taken = false;
    qp->config.pd = 0;
    qp->config.receive_queue = nullptr;
    qp->config.receive_cq = nullptr;
  }
  core.domain_queues.remove(number);
  return domain;
}

}  // namespace paceline::transport
