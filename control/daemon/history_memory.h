// Memory for a NIC's history: a file that is mapped, so that the next daemon finds it again, or
// plain memory where no file can be had. All of it is touched beforehand, but on a disk.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace paceline::daemon {

class HistoryMemory {
 public:
  HistoryMemory() = default;
  HistoryMemory(HistoryMemory&& other) noexcept;
  HistoryMemory& operator=(HistoryMemory&& other) noexcept;
  HistoryMemory(const HistoryMemory&) = delete;
  HistoryMemory& operator=(const HistoryMemory&) = delete;
  ~HistoryMemory();

  // Room for `bytes` in the file at `path`, made or resized; its blocks are there, so that a full
  // file system is told now and not by a signal later. Path empty, or no file to be had (what()
  // says why): anonymous memory, zeroed.
  static HistoryMemory take(const std::string& path, std::size_t bytes);

  std::span<std::byte> bytes() const { return {data_, size_}; }
  const std::string& what() const { return what_; }

 private:
  void unmap();
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string what_;
};

}  // namespace paceline::daemon
