// Two net_ring devices of one process, joined crosswise: what one sends, the other receives, and no
// byte is copied in between. For tests and for two engines of one process; ports at both ends want
// the same DpdkMemory, or every packet is copied on receive.
#pragma once

#include <memory>
#include <string>

struct rte_ring;

namespace paceline {

class DpdkRingCable;

struct DpdkRingCableMade {
  std::unique_ptr<DpdkRingCable> cable;  // null: see error
  std::string error;
};

class DpdkRingCable {
 public:
  // name: at most 8 characters. slots: of each direction, a power of two; it holds one less.
  static DpdkRingCableMade make(const std::string& name, unsigned slots);
  // The devices at its ends are closed. What is still inside goes back to its memory.
  ~DpdkRingCable();
  DpdkRingCable(const DpdkRingCable&) = delete;
  DpdkRingCable& operator=(const DpdkRingCable&) = delete;

  // The device's name, for DpdkDeviceSettings. index: 0 or 1.
  const std::string& device(unsigned index) const { return names_[index]; }

 private:
  DpdkRingCable() = default;

  rte_ring* rings_[2] = {nullptr, nullptr};  // [0]: from the first end to the second
  std::string names_[2];
};

}  // namespace paceline
