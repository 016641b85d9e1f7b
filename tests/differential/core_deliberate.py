"""Differences between NVIDIA's `cuda.core` and ours that are meant, each with its reason.

A rule is (group, line, what differs, reason[, test of the two outcomes]): patterns; the group's is matched from its
beginning, the others anywhere. BELOW holds what one of the two cannot show on the machine at hand.
"""

BELOW = [
    (
        ".*",
        "",
        "cudaErrorNotSupported|raises|status",
        "the runtime inside NVIDIA's package does not run over the CPU device's driver",
        lambda peer, ours: "cudaErrorNotSupported" in peer.get("text", ""),
    ),
]

DELIBERATE = []
