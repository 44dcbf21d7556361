// DPDK's environment: started once in a process, by typed settings, before any device is opened.
// Nothing here ends the process: errors come back as text.
//
// DPDK (22.11) itself ends the process in three places, all of them when the system refuses a pipe,
// a thread or an affinity for a worker lcore; and for "--help", which no setting here can produce.
// For arguments that it does not understand, it also prints its options on standard output.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/port/dpdk/dpdk_gate.h"

namespace paceline {

struct EalSettings {
  std::string program = "paceline";
  // Ordinary pages: they need no privilege and no preparation; all of them are taken at the start.
  // They suffice for every virtual device; a physical one needs hugepages or an IOMMU.
  bool no_huge = true;
  // Hugepages without files, on demand: needs no rights on the mount. Not with no_huge, whose
  // memory has no files anyway.
  bool in_memory = false;
  // With no_huge: all memory there will ever be, at least 64. With hugepages: memory taken at the
  // start; 0: on demand.
  std::uint32_t memory_mb = 400;
  // Names this process's files where several share a machine, and lets dpdk-* tools attach. Empty:
  // no files at all.
  std::string file_prefix;
  // EAL's own syntax, "0@0,1@1". Empty: one lcore, the calling thread, on the processors it may use
  // now (EAL otherwise moves it).
  std::string lcores;
  // Devices made at the start, "net_null0,copy=1". A device that a port names need not be here.
  std::vector<std::string> vdevs;
  // PCI addresses that may be taken, "0000:3b:00.0". Empty: no PCI device is probed.
  std::vector<std::string> pci_allow;
};

// The command line for these settings, program name first. Empty, with `error` set, if they
// contradict each other or the machine.
std::vector<std::string> eal_arguments(const EalSettings& settings, std::string& error);

class Eal;

struct EalStart {
  std::unique_ptr<Eal> eal;  // null: see error
  std::string error;
};

class EalLog;

class Eal {
 public:
  // Works once in a process, whether it succeeds or not (a start that is refused for its arguments
  // may be tried again).
  static EalStart start(const EalSettings& settings);
  // Requires that no device is open and no registered thread runs. The environment cannot be
  // started again.
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  // Warnings and errors that DPDK and its drivers have logged since the last call, one line each;
  // the latest 64. Any thread.
  std::vector<std::string> take_warnings();
  // "VA" or "PA": how devices address memory.
  std::string_view iova_mode() const;
  bool no_huge() const { return no_huge_; }
  // The gate of the process's one interrupt thread; made at the first call. Null if the system
  // refuses it.
  InterruptGate* gate();

 private:
  Eal(std::unique_ptr<EalLog> log, bool no_huge);

  std::unique_ptr<EalLog> log_;
  InterruptGate* gate_ = nullptr;  // never destroyed
  bool no_huge_;
};

// While it lives, DPDK knows the thread that made it as an lcore: mempools then serve it from a
// cache of its own. For threads that DPDK has not started itself; at most 128 in all. Make and
// destroy it on the same thread.
class LcoreRegistration {
 public:
  LcoreRegistration();
  ~LcoreRegistration();
  LcoreRegistration(const LcoreRegistration&) = delete;
  LcoreRegistration& operator=(const LcoreRegistration&) = delete;
  // False: no number was left. Everything still works, only slower.
  bool registered() const { return registered_; }

 private:
  bool registered_;
};

}  // namespace paceline
