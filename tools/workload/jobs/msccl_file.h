// Algorithms of collectives in MSCCL XML, as schedules.
//
//   algo(name, proto, nchannels, nchunksperloop, ngpus, coll, inplace [, outofplace, minBytes,
//        maxBytes]) > gpu(id, i_chunks, o_chunks, s_chunks) > tb(id, send, recv, chan) >
//   step(s, type, srcbuf, srcoff, dstbuf, dstoff, cnt, depid, deps, hasdep)
//   type  s, r, cpy, re (dst += src), nop; with `in` as what is received: rcs (dst = in, sent on),
//         rrc (dst = src + in), rrs (src + in is sent on), rrcs (dst = src + in, sent on)
//
// coll is allreduce, allgather, reduce_scatter or alltoall. Where a sum is made, only algorithms
// that work in place are taken: i and o are then both `result`; of alltoall only those that work
// out of place, as i is `input`. A chunk is a block.
//
// A send is one transfer. What it brings stays in a place of scratch of its own, behind those of s,
// until its receiver comes to the step, which moves it by transfers within the rank; only what the
// first step of a thread block receives, waiting for nothing, goes where it belongs at once. So
// steps have the order of thread blocks and dependencies, whatever arrives when.
// A step does not wait for an earlier send to arrive, only for what that send waits for; but one
// that writes over what the send reads waits for the send. Connections hold any number of messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/config/toml/diagnostics.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::workload {

struct MscclAlgorithm {
  std::string name;
  std::uint64_t min_bytes = 0;  // sizes of the whole buffer that it is meant for
  std::uint64_t max_bytes = UINT64_MAX;
  Schedule schedule;
};

config::Read<MscclAlgorithm> parse_msccl(std::string_view text, const std::string& source);
config::Read<MscclAlgorithm> read_msccl_file(const std::string& path);

}  // namespace paceline::workload
