"""tshark guesses what a SEND carries: for RC it tries RPC over RDMA, for UD Mellanox' EoIB. Their dissectors
read payload that may not be there, or that only looks like a header of theirs, and call right packets
malformed: always SENDs in one packet with 0 to 3 bytes, now and then another, by what its bytes happen to be.
Without the two, nothing is wrong with any."""

GUESSING = ("rpcordma", "infiniband.eoib")
WITHOUT_GUESSING = [word for name in GUESSING for word in ("--disable-protocol", name)]
