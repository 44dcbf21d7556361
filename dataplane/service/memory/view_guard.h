// Keeps views of a program's shared memory from costing the service memory. A program may take
// pages out of its file at any time (fallocate), or never have written them; without a guard the
// kernel would then make new ones when the service touches the view, and charge them to the
// service: as many as there are in all views.
//
// A guarded view is watched by userfaultfd with UFFD_FEATURE_SIGBUS, for which no privilege is
// needed: the kernel makes no page. Populating one that is missing fails; touching it raises
// SIGBUS, whose handler puts a page of waste in its place and tells the service, which ends the
// session: what the worker still does there until then is lost, and the page goes with the view.
// The handler of a signal is the process's, and so is the guard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline::service::view_guard {

// Any thread. False: this kernel, or a filter of system calls, has no such userfaultfd (Linux 5.14
// is needed): then missing pages are made, and charged to the service, as they are touched.
bool guard(std::byte* view, std::size_t bytes);

// An event descriptor that counts when a page was missing, or -1 where nothing is guarded; it stays
// the guard's. take_spoilt() gives the addresses that were touched since, and empties it; if more
// were touched than it remembers, some of them.
int spoilt_event();
std::size_t take_spoilt(std::span<std::uintptr_t> out);
inline constexpr std::size_t kRemembered = 64;

}  // namespace paceline::service::view_guard
