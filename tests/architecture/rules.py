"""The rules of the house as data; check.py applies them, CONTRIBUTING.md says why they exist."""

# Folders that are checked. The longest room that is a prefix of a file's path owns the file.
CHECKED = ("cc", "control", "dataplane", "tools")

# Who may include whom. An entry is a room without its sub-rooms, a room with them as "room/*", or a header
# given without ".h" as "room/header".
BASE_FOR_CC = (
    "dataplane/base/units", "dataplane/base/protocol", "dataplane/base/numbers/random",
    "dataplane/base/numbers/math",
)
FABRIC = (
    "dataplane/fabric", "dataplane/fabric/topology", "dataplane/fabric/wire",
    "dataplane/fabric/switching", "dataplane/fabric/forwarding", "dataplane/fabric/sweep",
)
INTERFACE = ("dataplane/base/*", "dataplane/wire/*", "dataplane/transport/memory")
QP = INTERFACE + (
    "dataplane/port/packet", "dataplane/telemetry", "dataplane/transport/interface", "dataplane/transport/state/*",
)
CORE = QP + (
    "cc/*", "dataplane/pacing", "dataplane/port/port", "dataplane/port/packet_pool", "dataplane/transport/qp",
)
TRANSPORT = (
    "dataplane/transport/core", "dataplane/transport/message", "dataplane/transport/read",
    "dataplane/transport/datagram", "dataplane/transport/selective", "dataplane/transport/ends",
    "dataplane/transport/congestion",
)
BELOW_DRIVER = (
    "cc/*", "dataplane/base/*", "dataplane/config/*", "dataplane/wire/*", "dataplane/telemetry",
    "dataplane/pacing", "dataplane/port/*", "dataplane/transport", "dataplane/transport/memory",
    "dataplane/transport/core", "dataplane/transport/interface", "dataplane/fabric/*",
    "dataplane/neighbour",
)
BELOW_SERVICE = BELOW_DRIVER + ("dataplane/driver/*", "dataplane/attach/*", "dataplane/probing")
BELOW_TOOLS = BELOW_DRIVER + (
    "dataplane/driver/*", "dataplane/attach/*", "dataplane/service/protocol/control_protocol",
    "control/daemon/api", "control/daemon/api/client", "control/diagnosis", "control/experiment/*",
    "control/league/*", "control/looks", "control/sweep", "control/tuner", "control/tuner/online/*",
)
# What experiments and the tuner of pacelined are built on.
DAEMON_ROOMS = (
    "control/daemon/api", "control/daemon/parameters", "control/daemon/service_link",
    "control/daemon/store", "control/daemon/telemetry",
)
CM = (
    "dataplane/service/cm/mad", "dataplane/service/cm/tables", "dataplane/service/cm/states",
    "dataplane/service/cm/ids", "dataplane/service/cm/manager", "dataplane/service/cm/abi",
)
EXPERIMENT = (
    "control/experiment/text", "control/experiment", "control/experiment/analysis", "control/experiment/results",
    "control/experiment/report", "control/experiment/page",
)
LIVE = (
    "control/experiment/live/blocks", "control/experiment/live/plan", "control/experiment/live/analysis",
)
VERBS = (
    "dataplane/verbs/memory", "dataplane/verbs/abi", "dataplane/verbs/service_link", "dataplane/verbs/injection",
    "dataplane/verbs/device", "dataplane/verbs/regions", "dataplane/verbs/completion", "dataplane/verbs/queue_pair",
)
MAY_INCLUDE = {
    "dataplane/base": (),
    "dataplane/base/containers": ("dataplane/base",),
    "dataplane/base/numbers": (),
    # What stands in packets and what congestion control knows of them.
    "dataplane/base/protocol": (),
    "dataplane/base/text": (),
    # What an algorithm is: events, decisions, parameters, the parts of a port.
    "cc/interface": BASE_FOR_CC,
    "cc": BASE_FOR_CC + ("cc/interface",),
    "dataplane/telemetry": ("dataplane/base/*",),
    # Byte order and checksums; addresses and headers as values; what any host on an Ethernet says; packets
    # of RoCEv2, written and read; what Paceline's packets have beyond.
    "dataplane/wire/bytes": (),
    "dataplane/wire/headers": ("dataplane/base/*", "dataplane/wire/bytes"),
    "dataplane/wire/host": ("dataplane/wire/bytes", "dataplane/wire/headers"),
    "dataplane/wire/packet": ("dataplane/base/*", "dataplane/wire/bytes", "dataplane/wire/headers"),
    "dataplane/wire/extensions": (
        "dataplane/base/*", "dataplane/wire/bytes", "dataplane/wire/headers", "dataplane/wire/packet",
    ),
    "dataplane/config/toml": ("cc/nearest_name", "dataplane/base/*"),
    "dataplane/config/command": (),
    "dataplane/config": ("cc/*", "dataplane/base/*", "dataplane/config/command", "dataplane/config/toml"),
    "dataplane/config/keys": ("cc/*", "dataplane/base/*", "dataplane/config", "dataplane/config/toml"),
    "dataplane/config/scenario": (
        "cc/*", "dataplane/base/*", "dataplane/config", "dataplane/config/toml", "dataplane/config/keys",
    ),
    # Rules between keys; called by the reader, which declares them.
    "dataplane/config/scenario/checks": (
        "cc/*", "dataplane/config", "dataplane/config/keys", "dataplane/config/scenario", "dataplane/config/toml",
    ),
    # Addresses in a testbed file are read by the one parser there is.
    "dataplane/config/testbed": (
        "cc/*", "dataplane/base/*", "dataplane/wire/headers/addresses", "dataplane/config", "dataplane/config/toml",
        "dataplane/config/keys", "dataplane/config/scenario",
    ),
    "dataplane/pacing": ("dataplane/base/*", "dataplane/telemetry"),
    "dataplane/port": ("dataplane/base/*", "dataplane/wire/*", "dataplane/telemetry"),
    "dataplane/port/capture": ("dataplane/base/*", "dataplane/wire/*", "dataplane/telemetry", "dataplane/port"),
    # The only room that may know DPDK.
    "dataplane/port/dpdk": ("dataplane/base/*", "dataplane/wire/*", "dataplane/telemetry", "dataplane/port"),
    # Registered memory, and what reads and writes it.
    "dataplane/transport/memory": (
        "dataplane/base/*", "dataplane/port/packet", "dataplane/port/packet_pool",
    ),
    # Sub-rooms, the lowest first: small classes, each with one piece of a queue pair's state, and those
    # of selective repeat; work requests and completions; queue pairs; what an engine has; messages;
    # READs and atomics; datagrams; selective repeat; requester and responder; congestion. Engine and
    # paths stand above them all.
    "dataplane/transport/state": ("dataplane/base/*", "dataplane/wire/*", "dataplane/port/packet"),
    "dataplane/transport/state/selective": (
        "dataplane/base/*", "dataplane/wire/*", "dataplane/port/packet", "dataplane/transport/state",
    ),
    "dataplane/transport/interface": INTERFACE,
    "dataplane/transport/qp": QP,
    "dataplane/transport/core": CORE,
    "dataplane/transport/message": CORE + TRANSPORT[:1],
    "dataplane/transport/read": CORE + TRANSPORT[:2],
    "dataplane/transport/datagram": CORE + TRANSPORT[:2],
    "dataplane/transport/selective": CORE + TRANSPORT[:3],
    "dataplane/transport/ends": CORE + TRANSPORT[:5],
    "dataplane/transport/congestion": CORE + TRANSPORT[:6],
    "dataplane/transport": CORE + TRANSPORT,
    # Sub-rooms, the lowest first: what a fabric is; links and what is on them; what a switch holds; the
    # paths of packets; ways of looking ahead and of working off a window. Network stands above them all.
    "dataplane/fabric/topology": (
        "dataplane/base/*", "dataplane/wire/*", "dataplane/port/port", "dataplane/port/packet",
    ),
    "dataplane/fabric/wire": (
        "dataplane/base/*", "dataplane/wire/*", "dataplane/port/port", "dataplane/port/packet",
        "dataplane/port/packet_pool", "dataplane/port/capture/capture", "dataplane/fabric/topology",
    ),
    "dataplane/fabric/switching": (
        "dataplane/base/*", "dataplane/wire/*", "dataplane/port/packet", "dataplane/port/packet_pool",
        "dataplane/fabric/topology", "dataplane/fabric/wire",
    ),
    "dataplane/fabric/forwarding": (
        "dataplane/base/*", "dataplane/wire/*", "dataplane/port/port", "dataplane/port/packet",
        "dataplane/port/packet_pool", "dataplane/port/capture/capture", "dataplane/fabric/topology",
        "dataplane/fabric/wire", "dataplane/fabric/switching",
    ),
    "dataplane/fabric/sweep": (
        "dataplane/base/*", "dataplane/port/packet", "dataplane/fabric/topology", "dataplane/fabric/wire",
        "dataplane/fabric/switching", "dataplane/fabric/forwarding",
    ),
    "dataplane/fabric": (
        "dataplane/base/*", "dataplane/wire/*", "dataplane/telemetry", "dataplane/port/port",
        "dataplane/port/packet", "dataplane/port/packet_pool", "dataplane/port/capture/capture",
    ) + FABRIC,
    "dataplane/neighbour": (
        "dataplane/base/*", "dataplane/wire/*", "dataplane/port/port", "dataplane/port/packet",
        "dataplane/port/packet_pool", "dataplane/port/capture/capture",
    ),
    # What hosts ask each other: delays, and how their clocks differ. On top of engines, beside their drivers.
    "dataplane/probing": (
        "dataplane/base/*", "dataplane/wire/*", "dataplane/transport", "dataplane/transport/interface",
    ),
    "dataplane/driver": BELOW_DRIVER,
    "dataplane/driver/clock": ("dataplane/base/*", "dataplane/port"),
    "dataplane/driver/traffic": BELOW_DRIVER,
    "dataplane/driver/scenario": BELOW_DRIVER + ("dataplane/driver/clock", "dataplane/driver/traffic"),
    "dataplane/driver/virtual": BELOW_DRIVER + (
        "dataplane/driver/clock", "dataplane/driver/traffic", "dataplane/driver/scenario", "dataplane/probing",
    ),
    "dataplane/driver/loop": BELOW_DRIVER + ("dataplane/driver/clock",),
    "dataplane/driver/ports": BELOW_DRIVER + (
        "dataplane/driver/clock", "dataplane/driver/scenario", "dataplane/driver/loop",
    ),
    # What a program and the service say to each other: both include it, and it knows neither.
    "dataplane/attach": ("dataplane/base/*", "dataplane/attach/descriptors"),
    # What `paceline exec` wants broken.
    "dataplane/attach/injection": ("dataplane/base/*",),
    # File descriptors: one's own, and those that strangers send.
    "dataplane/attach/descriptors": (),
    "dataplane/service/memory": ("dataplane/attach/*", "dataplane/base/*", "dataplane/transport/memory/region"),
    "dataplane/service/limits": BELOW_SERVICE + ("dataplane/service/memory",),
    # What is behind a NicSet.
    "dataplane/service/nics": BELOW_SERVICE,
    # Between queues in shared memory and engines.
    "dataplane/service/adapters": BELOW_SERVICE + ("dataplane/service/limits", "dataplane/service/memory"),
    "dataplane/service/workers": BELOW_SERVICE + (
        "dataplane/service/adapters", "dataplane/service/limits", "dataplane/service/memory",
        "dataplane/service/nics",
    ),
    # rdma_cm, from below: its datagrams; who has which address and port; the states of a connection; CM
    # ids; the commands of librdmacm. The manager and its sockets stand above them.
    "dataplane/service/cm/mad": ("dataplane/wire/*",),
    "dataplane/service/cm/tables": ("dataplane/attach/*", "dataplane/base/*", "dataplane/wire/*") + CM[:1],
    "dataplane/service/cm/states": ("dataplane/base/*",) + CM[:1],
    "dataplane/service/cm/ids": ("dataplane/base/*", "dataplane/wire/*") + CM[:3],
    "dataplane/service/cm/manager": ("dataplane/base/*", "dataplane/wire/*") + CM[:4],
    "dataplane/service/cm/abi": ("dataplane/base/*", "dataplane/wire/*") + CM[:5],
    "dataplane/service/cm": (
        "dataplane/attach/*", "dataplane/base/*", "dataplane/driver/clock", "dataplane/service/limits",
    ) + CM,
    "dataplane/service/sessions": BELOW_SERVICE + (
        "dataplane/service/cm", "dataplane/service/cm/mad", "dataplane/service/cm/tables",
        "dataplane/service/adapters", "dataplane/service/limits", "dataplane/service/memory",
        "dataplane/service/nics", "dataplane/service/workers",
    ),
    "dataplane/service/protocol": BELOW_SERVICE,
    "dataplane/service/congestion": BELOW_SERVICE + (
        "dataplane/service/memory/credentials", "dataplane/service/nics",
        "dataplane/service/protocol", "dataplane/service/workers",
    ),
    "dataplane/service/control": BELOW_SERVICE + (
        "dataplane/service/congestion", "dataplane/service/memory/credentials", "dataplane/service/nics",
        "dataplane/service/protocol", "dataplane/service/workers",
    ),
    # main().
    "dataplane/service": BELOW_SERVICE + (
        "dataplane/service/control", "dataplane/service/limits", "dataplane/service/nics",
        "dataplane/service/protocol", "dataplane/service/sessions", "dataplane/service/workers",
    ),
    # Loaded into other people's programs: nothing but the standard library below it.
    # From below: registered memory; the interface of libibverbs; the connection to the service; what is broken on purpose;
    # devices and contexts; memory regions; completion queues; queue pairs and what belongs to them; what is called per
    # message. Events of all of them stand above.
    "dataplane/verbs/memory": ("dataplane/base/*", "dataplane/attach/*"),
    "dataplane/verbs/abi": (),
    "dataplane/verbs/service_link": ("dataplane/attach/*",),
    "dataplane/verbs/injection": (
        "dataplane/attach/*", "dataplane/base/*", "dataplane/service/protocol/control_protocol",
        "dataplane/verbs/service_link",
    ),
    "dataplane/verbs/device": ("dataplane/base/*", "dataplane/attach/*") + VERBS[:4],
    "dataplane/verbs/regions": ("dataplane/base/*", "dataplane/attach/*") + VERBS[:5],
    "dataplane/verbs/completion": ("dataplane/base/*", "dataplane/attach/*") + VERBS[:6],
    "dataplane/verbs/queue_pair": ("dataplane/base/*", "dataplane/attach/*") + VERBS[:7],
    "dataplane/verbs/data_path": ("dataplane/base/*", "dataplane/attach/*") + VERBS,
    "dataplane/verbs": ("dataplane/base/*", "dataplane/attach/*") + VERBS,
    "dataplane/verbs/files": ("dataplane/attach/*", "dataplane/verbs/service_link"),
    # pacelined: puts its rooms together. It speaks to the service by the control protocol and reads
    # its segment; it knows no engine.
    "control/daemon": DAEMON_ROOMS + (
        "control/daemon/api/server", "control/daemon/experiments", "control/daemon/process",
        "control/daemon/tuner", "control/daemon/config", "dataplane/attach/*", "dataplane/base/*", "dataplane/config/*",
        "dataplane/service/protocol/control_protocol",
    ),
    "control/daemon/config": ("control/tuner/online/*", "dataplane/base/*", "dataplane/config/*"),
    "control/daemon/experiments": DAEMON_ROOMS + (
        "cc/*", "control/experiment/live/*", "dataplane/base/*", "dataplane/config/*",
    ),
    "control/daemon/parameters": (
        "cc/*", "control/daemon/api", "control/daemon/service_link", "control/daemon/store",
        "dataplane/base/*", "dataplane/config/*",
    ),
    "control/daemon/process": ("control/daemon/service_link", "dataplane/attach/*", "dataplane/base/*"),
    "control/daemon/service_link": (
        "control/experiment/text/json_reader", "dataplane/attach/*", "dataplane/base/*",
        "dataplane/service/protocol/control_protocol",
    ),
    "control/daemon/store": ("control/experiment/text/json_reader", "dataplane/attach/*"),
    "control/daemon/telemetry": (
        "cc/*", "control/daemon/api", "control/daemon/service_link", "control/looks", "dataplane/attach/*",
        "dataplane/base/*", "dataplane/telemetry",
    ),
    "control/daemon/tuner": DAEMON_ROOMS + ("cc/*", "control/tuner/online/*", "dataplane/base/*"),
    # HTTP: requests and endpoints, which come from others; then a server and a client of them. Unknown names
    # are answered with the nearest known one. Of the service's protocol only how a stranger's descriptors
    # are kept away.
    "control/daemon/api": ("cc/nearest_name", "dataplane/base/*", "dataplane/config/record"),
    "control/daemon/api/stream": ("dataplane/attach/descriptors",),
    "control/daemon/api/client": ("control/daemon/api", "dataplane/base/*"),
    "control/daemon/api/server": (
        "control/daemon/api", "control/daemon/api/stream", "dataplane/attach/descriptors", "dataplane/base/*",
    ),
    # A look at a host as JSON: pacelined writes it, who compares hosts reads it.
    "control/looks": ("dataplane/telemetry",),
    # What is wrong, and where, from what the edge knows: neither emulator nor engine.
    "control/diagnosis": ("dataplane/base/*",),
    # From below: numbers and JSON as text; runs and their figures; effects and verdicts; results files; both
    # in words; the page of a report.
    "control/experiment/text": ("dataplane/base/*", "dataplane/config/*"),
    "control/experiment": ("cc/*", "dataplane/base/*", "dataplane/config/*"),
    "control/experiment/analysis": ("dataplane/base/*", "dataplane/config/*") + EXPERIMENT[:2],
    "control/experiment/results": ("dataplane/base/*", "dataplane/config/*") + EXPERIMENT[:3],
    "control/experiment/report": EXPERIMENT[:3],
    "control/experiment/page": EXPERIMENT[:5],
    # Experiments over time blocks: design, schedule, analysis; of virtual time and live alike. From below:
    # blocks of time; plan and schedule; verdicts; reports. The runner stands above.
    "control/experiment/live/blocks": (
        "dataplane/base/*", "dataplane/config/*", "dataplane/telemetry", "control/experiment",
        "control/experiment/analysis", "control/experiment/report", "control/experiment/text",
    ),
    "control/experiment/live/plan": (
        "cc/*", "dataplane/base/*", "dataplane/config/*", "control/experiment/analysis", "control/experiment/text",
    ) + LIVE[:1],
    "control/experiment/live/analysis": (
        "dataplane/base/*", "control/experiment/analysis", "control/experiment/report",
    ) + LIVE[:2],
    "control/experiment/live/report": (
        "control/experiment/page", "control/experiment/report", "control/experiment/text",
    ) + LIVE,
    "control/experiment/live": (
        "cc/*", "dataplane/base/*", "dataplane/config/*", "control/experiment/text",
    ) + LIVE,
    # Every algorithm over the reference scenarios: plan, figures, ranks, page; runs nothing itself.
    "control/league/plan": (
        "cc/*", "dataplane/base/*", "dataplane/config/*", "control/experiment/results/reproduce",
    ),
    "control/league": ("cc/*", "dataplane/base/*", "dataplane/config/*", "control/league/plan") + EXPERIMENT,
    "control/league/page": ("control/league", "control/league/plan") + EXPERIMENT,
    # One scenario over many values of its keys: plan, figures, page; runs nothing itself.
    "control/sweep": (
        "dataplane/base/*", "dataplane/config/*", "control/experiment/*", "control/league/plan/settings_text",
    ),
    # Tuner and A/B share one experiment engine: a search judges the runs of experiments.
    "control/tuner": ("cc/*", "dataplane/base/*", "dataplane/config/*") + EXPERIMENT,
    # What the tuner sees; what it tries; then the tuner itself.
    "control/tuner/online/observation": (
        "control/experiment/analysis/statistics", "dataplane/base/*", "dataplane/telemetry",
    ),
    "control/tuner/online/candidates": (
        "cc/*", "dataplane/base/*", "dataplane/config/*", "control/experiment/analysis",
        "control/experiment/live/analysis/confidence_sequence", "control/experiment/text",
        "control/tuner/online/observation",
    ),
    "control/tuner/online": (
        "cc/*", "dataplane/base/*", "dataplane/config/*", "control/experiment/analysis",
        "control/experiment/text", "control/tuner/online/candidates", "control/tuner/online/observation",
    ),
    "tools/cli": BELOW_TOOLS,
    "tools/workload/models": (),
    # Random streams of workloads, and what several of them draw.
    "tools/workload/draws": ("dataplane/base/*",),
    "tools/workload/files": BELOW_DRIVER,
    # Who sends what to whom in a collective operation; jobs as other tools describe them; both as
    # messages.
    "tools/workload/schedules": ("dataplane/base/*", "dataplane/config/toml", "tools/workload/files"),
    "tools/workload/jobs": ("dataplane/base/*", "dataplane/config/toml", "tools/workload/files",
                            "tools/workload/schedules"),
    "tools/workload/job_plans": ("dataplane/base/*", "dataplane/config/toml", "dataplane/driver/traffic",
                                 "tools/workload/draws", "tools/workload/jobs",
                                 "tools/workload/models", "tools/workload/schedules",
                                 "tools/workload/training/pipeline_order"),
    # Iterations of training as a job, made from the shape of a model.
    "tools/workload/training": ("dataplane/base/*", "tools/workload/jobs", "tools/workload/models",
                                "tools/workload/schedules"),
    # Requests of an inference service as a job.
    "tools/workload/inference": ("dataplane/base/*", "dataplane/config/toml", "tools/workload/files",
                                 "tools/workload/jobs"),
    # A plan in the formats of others.
    "tools/workload/exports": ("dataplane/base/*", "dataplane/config/toml", "dataplane/driver/traffic",
                               "tools/workload/files"),
    "tools/workload": BELOW_DRIVER + ("dataplane/driver/*", "tools/workload/draws",
                                      "tools/workload/files", "tools/workload/inference", "tools/workload/job_plans", "tools/workload/jobs",
                                      "tools/workload/models",
                                      "tools/workload/schedules", "tools/workload/training"),
    "tools/run": BELOW_TOOLS + (
        "tools/workload", "tools/workload/files", "tools/workload/job_plans", "tools/workload/jobs",
        "tools/workload/schedules",
    ),
    "tools/plugin": BELOW_TOOLS + ("tools/cli", "tools/workload"),
    "tools/service_link": BELOW_TOOLS + ("tools/cli",),
    "tools/host": BELOW_TOOLS + ("tools/cli", "tools/service_link"),
    "tools/top": BELOW_TOOLS + ("tools/cli", "tools/service_link"),
    "tools/ports": BELOW_TOOLS + ("tools/cli",),
    "tools/capture": BELOW_TOOLS + ("tools/cli", "tools/ports", "tools/run", "tools/service_link"),
    # Hosts behind pacelined: which there are, and asking them all at once.
    "tools/fleet": BELOW_TOOLS + ("tools/cli",),
    "tools/testbed": BELOW_TOOLS + ("tools/capture", "tools/cli", "tools/ports", "tools/service_link"),
    # Probes between NICs, of testbeds and fleets.
    "tools/testbed/mesh": BELOW_TOOLS + ("tools/cli", "tools/fleet", "tools/service_link"),
    # What may follow on a command line.
    "tools/completion": BELOW_TOOLS + ("tools/cli",),
    "tools/ci": BELOW_TOOLS + ("tools/cli", "tools/service_link", "tools/testbed"),
    "tools/emulate": BELOW_TOOLS + ("tools/capture", "tools/cli", "tools/plugin", "tools/run"),
    # One rank of a collective over verbs.
    "tools/collective/rank": (
        "dataplane/base/*", "tools/workload/schedules",
    ),
    # Its part of a job.
    "tools/collective/rank/plan": (
        "dataplane/base/*", "tools/collective/rank/meeting", "tools/collective/rank/peer_traffic",
        "tools/collective/rank/rank_error", "tools/collective/rank/rank_link",
    ),
    # An ordinary program, which knows nothing of the service.
    "tools/collective/rank/program": (
        "dataplane/config/command_line", "tools/collective/rank", "tools/collective/rank/plan",
        "tools/workload/schedules",
    ),
    # Which schedule and which settings a collective takes on a fabric.
    "tools/collective/tune": BELOW_TOOLS + (
        "tools/cli", "tools/run", "tools/task", "tools/task/run", "tools/workload", "tools/workload/job_plans",
        "tools/workload/schedules",
    ),
    "tools/collective": BELOW_TOOLS + (
        "tools/cli", "tools/collective/rank/json_lines", "tools/collective/rank/part_runner",
        "tools/collective/tune", "tools/run",
        "tools/service_link/runtime_folder", "tools/workload", "tools/workload/schedules",
    ),
    "tools/job": BELOW_TOOLS + (
        "tools/cli", "tools/job/verbs", "tools/run", "tools/workload", "tools/workload/exports",
        "tools/workload/models",
    ),
    # A job between the NICs of a testbed.
    "tools/job/verbs": BELOW_TOOLS + (
        "tools/cli", "tools/collective/rank/json_lines", "tools/collective/rank/plan/plan_part",
        "tools/diagnose", "tools/collective/rank_group", "tools/collective/rank_listener", "tools/collective/testbed_ranks",
        "tools/run", "tools/workload", "tools/workload/job_plans",
    ),
    "tools/diagnose": BELOW_TOOLS + ("tools/cli", "tools/run", "tools/workload", "tools/workload/files",
                                     "tools/workload/jobs"),
    # What a running testbed tells.
    "tools/diagnose/testbed": BELOW_TOOLS + ("tools/cli", "tools/diagnose", "tools/fleet", "tools/service_link", "tools/top"),
    # The runs of a command as tasks: where they are executed, where their records are kept.
    "tools/task": BELOW_TOOLS + ("tools/cli",),
    # On many processes and machines, which an MPI brings together.
    "tools/task/ranks": BELOW_TOOLS + ("tools/cli", "tools/task", "tools/task/ranks/mpi"),
    "tools/task/ranks/mpi": ("dataplane/base/*",),
    # Here or there, as the options of a command say.
    "tools/task/run": BELOW_TOOLS + ("tools/cli", "tools/task", "tools/task/ranks"),
    "tools/experiment": BELOW_TOOLS + ("tools/cli", "tools/plugin", "tools/run", "tools/task", "tools/task/run"),
    "tools/plan": BELOW_TOOLS + ("tools/cli",),
    "tools/sweep": BELOW_TOOLS + ("tools/cli", "tools/plugin", "tools/run", "tools/task", "tools/task/run"),
    "tools/topology": BELOW_TOOLS + ("tools/cli", "tools/workload", "tools/workload/files"),
    "tools/tuning": BELOW_TOOLS + (
        "tools/cli", "tools/host", "tools/run", "tools/task", "tools/task/run", "tools/workload",
    ),
    # Which commands there are, and main().
    "tools": BELOW_TOOLS + ("tools/cli", "tools/diagnose", "tools/host", "tools/testbed/mesh/mesh_command"),
}

LIBM = (
    r"(?:log|log2|log10|log1p|exp|exp2|expm1|pow|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|cbrt"
    r"|hypot|erf|erfc|tgamma|lgamma|fma)[fl]?\s*\("
)

# What no file may contain, but for the places named. `where` and `allowed` are prefixes of paths.
# Algorithms stand side by side: what two of them need belongs to the ground floor, to `grants` (what
# receivers grant) or to `window` (what windows have in common).
SHELF = ("cadence", "eqds", "homa", "rate", "sird", "window")

# Comments and literals are blanked before the pattern is tried. `only_if` is a pattern that must occur
# somewhere in the same file.
FORBIDDEN = (
    {
        "what": "a header from outside the standard library",
        "pattern": r"#\s*include\s*<(?!(?:imm|x86|nmm|wmm)intrin\.h>)[^>]*[./][^>]*>",
        "where": ("dataplane/base/", "cc/"),
        # What plug-ins include is C: <stdint.h>, <paceline/cc.h>.
        "allowed": ("cc/plugin/paceline_cc.h", "cc/plugin/paceline_cc_rates.h"),
        "instead": "base and cc use the standard library only",
    },
    {
        "what": "threads, input and output, or time",
        "pattern": r"#\s*include\s*<(?:thread|mutex|shared_mutex|condition_variable|future|chrono|iostream"
                   r"|fstream|ostream|istream|filesystem|cstdio)>",
        "where": ("cc/",),
        "allowed": (),
        "instead": "congestion control takes an event and returns a decision",
    },
    {
        "what": "a DPDK header",
        "pattern": r'#\s*include\s*[<"]rte_',
        "where": ("",),
        "allowed": ("dataplane/port/dpdk/",),
        "instead": "only dataplane/port/dpdk may include rte_*",
    },
    {
        "what": "CLI11's header, which costs each unit that includes it seconds",
        "pattern": r"#\s*include\s*<CLI/",
        "where": ("",),
        "allowed": ("dataplane/config/command/", "dataplane/config/command_line.cc",
                    "tools/completion/candidates.cc", "tests/unit/config/command_test.cc",
                    "tests/unit/tools/"),
        "instead": "use dataplane/config/command/command.h",
    },
    {
        "what": "a clock read",
        "pattern": r"\b(?:steady_clock|system_clock|high_resolution_clock|file_clock|utc_clock)\s*::\s*now\b"
                   r"|\bclock_gettime\s*\(|\bgettimeofday\s*\(|\b_*rdtscp?\s*\(|\brte_rdtsc\w*\s*\("
                   r"|\b__builtin_ia32_rdtscp?\b|\bstd\s*::\s*time\s*\(",
        "where": ("",),
        # A program's wait for completions: how long a yield took tells whether the next is worth it.
        "allowed": ("dataplane/driver/", "tools/", "control/daemon/main.cc",
                    "dataplane/verbs/data_path/empty_poll.cc", "dataplane/verbs/injection/"),
        "instead": "time is an argument; clocks belong to dataplane/driver, tools and main()",
    },
    {
        "what": "an environment variable",
        "pattern": r"\b(?:secure_)?getenv\s*\(",
        "where": ("",),
        "allowed": ("tools/", "dataplane/verbs/", "dataplane/service/main.cc", "control/daemon/main.cc"),
        "instead": "only tools, verbs and the main() of service and daemon read the environment",
    },
    {
        "what": "<random>, whose distributions differ between standard libraries",
        "pattern": r"#\s*include\s*<random>|\bstd\s*::\s*\w+_distribution\b|\bstd\s*::\s*random_device\b",
        "where": ("cc/", "dataplane/"),
        "allowed": (),
        "instead": "use dataplane/base/numbers/random.h",
    },
    {
        "what": "libm beyond sqrt, whose last bit differs between machines",
        "pattern": r"(?:\bstd\s*::\s*|(?<![\w>:])::\s*)" + LIBM,
        "where": ("cc/", "dataplane/"),
        "allowed": (),
        "instead": "use dataplane/base/numbers/math.h",
    },
    {
        "what": "libm beyond sqrt, whose last bit differs between machines",
        "pattern": r"(?<![\w.>:])(?<!:: )" + LIBM,
        "only_if": r"#\s*include\s*<(?:cmath|math\.h)>",
        "where": ("cc/", "dataplane/"),
        "allowed": (),
        "instead": "use dataplane/base/numbers/math.h",
    },
    {
        "what": "rand(), which has hidden state",
        "pattern": r"\b(?:std\s*::\s*)?s?rand\s*\(",
        "where": ("",),
        "allowed": (),
        "instead": "randomness is passed in and seeded: dataplane/base/numbers/random.h",
    },
) + tuple(
    {
        "what": "a header of another algorithm",
        "pattern": rf'#\s*include "cc/(?:{"|".join(other for other in SHELF if other != mine)})/',
        "where": (f"cc/{mine}/",),
        "allowed": (),
        "instead": "what both need goes to cc/ or cc/grants/",
    }
    for mine in SHELF + ("grants",)
)

# One idea per file.
LINES_WARN = 300
LINES_FAIL = 600

# Pairs of .h and .cc side by side in a folder: a reader finds a file by the name of its folder.
PAIRS_FAIL = 12

# Member functions and data members of a class.
FUNCTIONS_FAIL = 40
MEMBERS_FAIL = 25
