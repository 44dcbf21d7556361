// Prevents views of a program's shared memory from costing the service memory. A program may remove
// pages from its file at any time (fallocate), or may never have written them. Without a guard, the
// kernel would make new ones when the service touches the view, and charge them to the service: up
// to all pages of all views.
//
// A guarded view is watched by userfaultfd with UFFD_FEATURE_SIGBUS, which needs no privilege: the
// kernel makes no page. Populating a missing page fails; touching it raises SIGBUS. The handler
// puts a page of waste in its place and tells the service, which ends the session. What the worker
// does there until then is lost, and the page disappears with the view. A signal handler belongs to
// the process, and so does the guard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline::service::view_guard {

// Any thread. False: this kernel (before Linux 5.14), or a filter of system calls, has no such
// userfaultfd. Then missing pages are made, and charged to the service, when they are touched.
bool guard(std::byte* view, std::size_t bytes);

// An event descriptor that counts touched missing pages, or -1 if nothing is guarded; it stays the
// guard's. take_spoilt() returns the addresses touched since, and forgets them; if there are more
// than it remembers, some of them.
int spoilt_event();
std::size_t take_spoilt(std::span<std::uintptr_t> out);
inline constexpr std::size_t kRemembered = 64;

}  // namespace paceline::service::view_guard
