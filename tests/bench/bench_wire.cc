// What a packet costs in this room: parse, build, mark, invariant CRC. Not a test: nothing is
// asserted.
//
//   build/release/tests/bench/bench_wire [--benchmark_filter=...]
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/wire/bytes/crc32.h"
#include "dataplane/wire/extensions/control.h"
#include "dataplane/wire/packet/icrc.h"
#include "dataplane/wire/packet/parse.h"
#include "dataplane/wire/packet/patch.h"

namespace {

using namespace paceline;
using namespace paceline::wire;

constexpr std::size_t kConnections = 64;  // enough that templates are not always the same lines

FlowAddressing flow(bool ipv6) {
  FlowAddressing f;
  f.source = ipv6 ? *ip_address_from_text("fd00::1") : IpAddress::v4(0x0A000001);
  f.destination = ipv6 ? *ip_address_from_text("fd00::2") : IpAddress::v4(0x0A000002);
  return f;
}

struct Headers {
  std::array<std::byte, kHeaderBufferBytes> bytes;
  std::size_t size = 0;
  std::span<const std::byte> span() const { return std::span(bytes).first(size); }
};

Headers write_middle(bool ipv6) {
  Headers h;
  TransportFields f;
  f.opcode = Opcode::rc_write_middle;
  f.payload_bytes = 4096;
  h.size = build_data(make_header_template(flow(ipv6)), h.bytes, f);
  return h;
}

void parse_loop(benchmark::State& state, const Headers& h, std::uint32_t payload,
                const ParseOptions& options) {
  ParsedPacket p;
  for (auto _ : state) {
    benchmark::DoNotOptimize(parse_headers(h.span(), payload, options, p));
    benchmark::DoNotOptimize(p);
  }
}

void parse_write_ipv4(benchmark::State& state) { parse_loop(state, write_middle(false), 4096, {}); }
BENCHMARK(parse_write_ipv4);

void parse_write_ipv4_trusted_checksum(benchmark::State& state) {
  parse_loop(state, write_middle(false), 4096, {false, false});
}
BENCHMARK(parse_write_ipv4_trusted_checksum);

void parse_write_ipv6(benchmark::State& state) { parse_loop(state, write_middle(true), 4096, {}); }
BENCHMARK(parse_write_ipv6);

void parse_ack(benchmark::State& state) {
  Headers h;
  h.size = build_acknowledge(make_header_template(flow(false)), h.bytes, 5, Psn(6), Aeth::ack(7));
  parse_loop(state, h, 0, {});
}
BENCHMARK(parse_ack);

template <class Build>
void build_loop(benchmark::State& state, bool ipv6, const Build& build) {
  const std::vector<HeaderTemplate> headers(kConnections, make_header_template(flow(ipv6)));
  Headers h;
  std::uint32_t psn = 0;
  for (auto _ : state) {
    h.size = build(headers[psn % kConnections], h.bytes, psn);
    ++psn;
    benchmark::DoNotOptimize(h);
    benchmark::ClobberMemory();
  }
}

std::size_t build_middle(const HeaderTemplate& t, HeaderBuffer out, std::uint32_t psn) {
  TransportFields f;
  f.opcode = Opcode::rc_write_middle;
  f.dest_qpn = 17;
  f.psn = Psn(psn);
  f.payload_bytes = 4096;
  return build_data(t, out, f);
}

void build_write_ipv4(benchmark::State& state) { build_loop(state, false, build_middle); }
BENCHMARK(build_write_ipv4);

void build_write_ipv6(benchmark::State& state) { build_loop(state, true, build_middle); }
BENCHMARK(build_write_ipv6);

void build_ack(benchmark::State& state) {
  build_loop(state, false, [](const HeaderTemplate& t, HeaderBuffer out, std::uint32_t psn) {
    return build_acknowledge(t, out, 17, Psn(psn), Aeth::ack(psn));
  });
}
BENCHMARK(build_ack);

void build_request(benchmark::State& state) {
  build_loop(state, false, [](const HeaderTemplate& t, HeaderBuffer out, std::uint32_t psn) {
    RequestMessage m;
    m.sent_total = psn;
    return build_control(t, out, Psn(psn), m);
  });
}
BENCHMARK(build_request);

void mark_ce_ipv4(benchmark::State& state) {
  Headers h = write_middle(false);
  for (auto _ : state) {
    benchmark::DoNotOptimize(mark_ce(std::span(h.bytes).first(h.size)));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(mark_ce_ipv4);

std::vector<std::byte> random_payload(std::size_t n) {
  Random random(1);
  std::vector<std::byte> bytes(n);
  for (auto& b : bytes) b = static_cast<std::byte>(random.next());
  return bytes;
}

void icrc_packet(benchmark::State& state) {
  const auto payload = random_payload(static_cast<std::size_t>(state.range(0)));
  const Headers h = write_middle(false);
  for (auto _ : state) benchmark::DoNotOptimize(icrc(h.span(), kEthernetBytes, payload));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(icrc_packet)->Arg(0)->Arg(64)->Arg(256)->Arg(1024)->Arg(4096);

template <std::uint32_t (*kKernel)(std::uint32_t, std::span<const std::byte>)>
void crc(benchmark::State& state) {
  const auto data = random_payload(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(kKernel(0, data));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(crc<crc32_portable>)->Arg(64)->Arg(4096);

// The kernels that this processor has.
const bool registered = [] {
  if (crc32_has_pclmul()) {
    benchmark::RegisterBenchmark("crc<crc32_pclmul>", crc<crc32_pclmul>)->Arg(64)->Arg(4096);
  }
  if (crc32_has_vpclmul()) {
    benchmark::RegisterBenchmark("crc<crc32_vpclmul>", crc<crc32_vpclmul>)->Arg(64)->Arg(4096);
  }
  return true;
}();

}  // namespace
