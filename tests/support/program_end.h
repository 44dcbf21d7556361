// A program's end on an engine: a queue pair with its queues and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/transport/engine.h"

namespace paceline::test {

struct ProgramEnd {
  static constexpr std::uint64_t kBase = 0x10'0000;  // virtual address of its memory

  // All queues have `depth` places.
  ProgramEnd(transport::Engine& of, std::uint32_t depth, std::size_t bytes)
      : engine(of), sends(depth), receives(depth), receive_queue(depth), memory(bytes) {
    key = engine.regions().add_plain(kBase, memory,
                                     transport::access::remote | transport::access::local_write);
    transport::QpConfig config;
    config.send_cq = &sends;
    config.receive_cq = &receives;
    config.receive_queue = &receive_queue;
    qp = engine.create_qp(config);
  }

  transport::WorkRequest write(std::uint64_t id, std::uint64_t length, const ProgramEnd& to) const {
    transport::WorkRequest request;
    request.opcode = transport::WorkOpcode::write;
    request.wr_id = id;
    request.length = length;
    request.local_address = request.remote_address = kBase;
    request.local_key = key;
    request.remote_key = to.key;
    return request;
  }
  // False: it cannot be connected. PSNs begin with 7.
  bool connect(Picos now, const transport::QpPath& path, const ProgramEnd& to) {
    return engine.connect(now, qp, {path.ip, path.mac, to.qp, Psn(7)}, Psn(7), path.source_port);
  }

  transport::Engine& engine;
  transport::CompletionQueue sends;
  transport::CompletionQueue receives;
  transport::ReceiveQueue receive_queue;
  std::vector<std::byte> memory;
  std::uint32_t key = 0;
  std::uint32_t qp = 0;
};

}  // namespace paceline::test
