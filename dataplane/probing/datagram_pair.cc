#include "dataplane/probing/datagram_pair.h"

#include <cassert>

namespace paceline::probing {

DatagramPair::DatagramPair(Picos now, transport::Engine& engine, const Shape& shape)
    : engine_(engine),
      shape_(shape),
      now_(now),
      memory_(shape.receives * slot_bytes()),
      key_(engine.regions().add_plain(reinterpret_cast<std::uint64_t>(memory_.data()), memory_,
                                      transport::access::local_write, shape.pd)),
      sent_(shape.receives),
      received_(shape.receives),
      receives_(shape.receives, transport::ReceiveSharing::owned) {
  using namespace transport;
  QpConfig config;
  config.type = QpType::ud;
  config.pd = shape.pd;
  config.access = 0;
  config.max_inline = shape.bytes;
  config.send_queue_depth = shape.receives;
  config.send_cq = &sent_;
  config.receive_cq = &received_;
  config.receive_queue = &receives_;
  number_ = engine.create_qp(config);
  if (number_ == 0) return;
  QpAttributes a;
  a.qkey = shape.qkey;
  for (const QpState to : {QpState::init, QpState::rtr, QpState::rts}) {
    a.state = to;
    const std::uint32_t needed =
        transition_rule(QpType::ud, engine.view().state_of(number_), to).required;
    [[maybe_unused]] const ModifyResult result =
        engine.modify_qp(now, number_, a, needed | qp_attribute::state);
    assert(result.ok());
  }
  for (std::uint64_t i = 0; i < shape.receives; ++i) post(i);
}

DatagramPair::~DatagramPair() {
  engine_.destroy_qp(now_, number_);
  engine_.regions().remove(key_);
}

void DatagramPair::post(std::uint64_t index) {
  transport::ReceiveRequest request;
  request.wr_id = index;
  request.address = reinterpret_cast<std::uint64_t>(slot(index));
  request.length = slot_bytes();
  request.local_key = key_;
  engine_.post_receive(now_, number_, request);
}

DatagramPair::Arrival DatagramPair::arrival(const transport::Completion& completion) {
  const std::byte* const at = slot(completion.wr_id);
  Arrival out;
  out.at = completion.at;
  out.source_qp_number = completion.source_qp_number;
  out.whole = completion.bytes == slot_bytes();
  if (completion.ipv6) {
    out.source = wire::IpAddress::load_v6(at + 8);
    out.destination = wire::IpAddress::load_v6(at + 24);
  } else {
    out.source = wire::IpAddress::load_v4(at + 32);
    out.destination = wire::IpAddress::load_v4(at + 36);
  }
  out.bytes = {at + transport::kGrhBytes, shape_.bytes};
  return out;
}

bool DatagramPair::send(Picos now, transport::WorkRequest to, std::span<const std::byte> bytes) {
  assert(bytes.size() == shape_.bytes);
  now_ = now;
  to.opcode = transport::WorkOpcode::send;
  to.length = bytes.size();
  to.inline_bytes = bytes.data();
  return engine_.post_send(now, number_, to) == transport::PostResult::ok;
}

}  // namespace paceline::probing
