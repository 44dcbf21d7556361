#include "dataplane/verbs/memory/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace paceline::verbs {

bool SharedFile::open() {
  attach::Descriptor file(::memfd_create("paceline-registered", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  struct stat status {};
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(kSlots * kSlotBytes)) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0 ||
      ::fstat(file.get(), &status) != 0) {
    return false;
  }
  inode_ = status.st_ino;
  device_ = status.st_dev;
  next_ = 0;
  free_.clear();
  file_ = std::move(file);
  return true;
}

void SharedFile::close() {
  file_.reset();
  inode_ = 0;
}

bool SharedFile::take_slot(std::uint64_t address, std::uint64_t& offset) {
  std::uint64_t slot = next_;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else if (next_ == kSlots) {
    return false;
  } else {
    ++next_;
  }
  offset = slot * kSlotBytes + address % kAlignment;
  return true;
}

void SharedFile::give_back(std::uint64_t offset, std::uint64_t bytes) {
  if (::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) {
    free_.push_back(offset / kSlotBytes);
  }
}

}  // namespace paceline::verbs
