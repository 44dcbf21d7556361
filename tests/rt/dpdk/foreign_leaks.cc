// For the leak sanitizer: what DPDK 22.11 and libxdp forget to free (the copy of a command line
// that was refused; the umem of a closed socket) is not ours to mend.
extern "C" const char* __lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)

extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:librte_eal.so\nleak:libxdp.so\n";
}
