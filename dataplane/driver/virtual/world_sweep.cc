// A window of time, node by node (see fabric/sweep/fabric_sweep.h for why that may be): a host is
// polled for all of the window while its engine lies in the first-level cache, and who comes next
// is known, so that what it will touch can be fetched meanwhile.
#include <bit>

#include "dataplane/base/prefetch.h"
#include "dataplane/driver/virtual/world_part.h"

namespace paceline {

void WorldPart::prepare_sweeps() {
  network_.sweep().prepare();
  const std::size_t nodes = std::size_t{hosts_->size()} + network_.spec().switches;
  nodes_.assign(nodes / 64 + 1, 0);
  due_links_of_.assign(nodes, 0);
  due_at_.assign(hosts_->size(), kNever);
}

// Takes what is due before `end` out of the wheel: the nodes that have any of it, with the links
// that end there.
void WorldPart::collect(Picos end) {
  taken_.clear();
  wheel_.take_before(end, [this](std::uint32_t actor, Picos time) {
    std::uint32_t node = actor - first_host_actor_;
    if (actor < first_host_actor_) {
      node = network_.sweep().node_of(actor);
      ++due_links_of_[node];
      taken_.push_back(actor);
    } else {
      due_at_[node] = time;
    }
    nodes_[node >> 6] |= std::uint64_t{1} << (node & 63);
  });
  visits_.clear();
  std::uint32_t end_of_links = 0;
  const std::vector<std::uint64_t>& backlogged = network_.sweep().backlogged_nodes();
  for (std::size_t word = 0; word < nodes_.size(); ++word) {
    for (std::uint64_t bits = nodes_[word] | backlogged[word]; bits != 0; bits &= bits - 1) {
      const auto node =
          static_cast<std::uint32_t>(word << 6 | static_cast<std::size_t>(std::countr_zero(bits)));
      const std::uint32_t links = due_links_of_[node];
      due_links_of_[node] = end_of_links;  // where the next of its links goes
      visits_.push_back({node, end_of_links, end_of_links + links});
      end_of_links += links;
    }
    nodes_[word] = 0;
  }
  due_links_.resize(end_of_links);
  for (const std::uint32_t link : taken_)
    due_links_[due_links_of_[network_.sweep().node_of(link)]++] = link;
  for (const Visit& visit : visits_) due_links_of_[visit.node] = 0;
}

Picos WorldPart::sweep(Picos begin, Picos end) {
  collect(end);
  Picos latest = now_;
  network_.sweep().begin(begin, end);
  const auto hosts = static_cast<std::uint32_t>(hosts_->size());
  for (std::size_t i = 0; i < visits_.size(); ++i) {
    if (prefetching_) prefetch_visits(i);
    const Visit& visit = visits_[i];
    if (visit.node < hosts) {
      now_ = begin;
      sweep_host(visit.node, end);
    } else {
      now_ = network_.sweep().sweep_switch(visit.node - hosts, links_of(visit));
    }
    latest = later(latest, now_);
  }
  now_ = latest;
  return network_.sweep().end();
}

// Those behind the one whose turn it is.
void WorldPart::prefetch_visits(std::size_t current) const {
  const auto hosts = static_cast<std::uint32_t>(hosts_->size());
  for (unsigned ahead = fabric::FabricSweep::kAhead; ahead != 0; --ahead) {
    if (current + ahead >= visits_.size()) continue;
    const Visit& visit = visits_[current + ahead];
    if (visit.node < hosts) {
      prefetch_host(visit.node, ahead);
    } else {
      network_.sweep().prefetch_switch(visit.node - hosts, links_of(visit), ahead);
    }
  }
}

void WorldPart::prefetch_host(std::uint32_t host, unsigned ahead) const {
  if (ahead > 1) network_.sweep().prefetch_arrivals(host, ahead);
  const transport::Engine& engine = (*hosts_)[host].engine;
  const Packet* const packet =
      ahead < 4 ? network_.ahead().first_on(network_.sweep().downlink(host)) : nullptr;
  if (ahead == 5) {
    engine.prefetch_state();
    prefetch_line(&(*hosts_)[host].app);
  } else if (ahead == 4) {
    engine.prefetch_deadlines();
    engine.prefetch_flow(nullptr);
  } else if (ahead == 3) {
    if (packet != nullptr) engine.prefetch_flow(packet);
    engine.prefetch_flow_parts(nullptr);
  } else if (ahead == 2) {
    if (packet != nullptr) engine.prefetch_flow_parts(packet);
    engine.prefetch_request(nullptr);
  } else if (packet != nullptr) {
    engine.prefetch_request(packet);
  }
}

}  // namespace paceline
