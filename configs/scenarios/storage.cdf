# Sizes of storage requests in bytes, cumulative share. Made up for this example: small metadata,
# many 4 KiB and 64 KiB blocks, few of 1 MiB.
256      0
512      0.10
4096     0.55
65536    0.90
1048576  1
