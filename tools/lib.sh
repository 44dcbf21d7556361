# Shared by the scripts in tools/; sourced, never run. Sets ROOT and goes there.

set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$ROOT"

JOBS="${PACELINE_JOBS:-$(nproc)}"

say() { printf '[%s] %s\n' "$(date +%H:%M:%S)" "$*"; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 2
}

# packages SECTION...: the packages of these sections of tools/packages.txt, one a line.
packages() {
  local wanted=" $* "
  awk -v wanted="$wanted" '
    { sub(/#.*/, "") }
    /^\[/ { section = substr($1, 2, length($1) - 2); next }
    NF && index(wanted, " " section " ") { print $1 }' tools/packages.txt
}

missing_packages() {
  local package
  for package in $(packages "$@"); do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
      echo "$package"
  done
}

# install_missing SECTION...: asks apt for what is missing and for nothing else.
install_missing() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "not a Debian system: install the counterparts of tools/packages.txt yourself; going on"
    return 0
  fi
  local missing
  missing="$(missing_packages "$@" | tr '\n' ' ')"
  if [[ -z "$missing" ]]; then
    return 0
  fi
  local as_root=()
  if [[ "$(id -u)" -ne 0 ]]; then
    command -v sudo >/dev/null ||
      die "these packages are missing: ${missing}
       neither root nor sudo is available here; as root, run:  apt-get install $missing"
    as_root=(sudo)
  fi
  say "installing with apt: $missing"
  local log
  log="$(mktemp)"
  # A stale list of packages may still do, so a failing update alone is no reason to stop.
  "${as_root[@]}" apt-get update >"$log" 2>&1 || true
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends $missing 2>&1 | tee -a "$log" | apt_in_sight; then
    tail -n 20 "$log" >&2
    die "apt could not install: $missing (whole log: $log)"
  fi
  rm -f "$log"
}

# Of apt's output the size of the download, and every tenth package that is done.
apt_in_sight() {
  local line total=0 count=0
  while IFS= read -r line; do
    case "$line" in
      *" newly installed, "*)
        total="${line% newly installed*}"
        total="${total##* }"
        ;;
      "Need to get "*) say "$line $total packages" ;;
      "Setting up "*)
        count=$((count + 1))
        if ((count % 10 == 0 || count == total)); then say "$count of $total packages installed"; fi
        ;;
    esac
  done
}

# configure PRESET [cmake argument...]: silent when it works.
configure() {
  local preset="$1" log
  shift
  mkdir -p build
  log="build/$preset-configure.log"
  say "configure $preset"
  if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
}

# build PRESET [target...]: one moving line on a terminal; in a log only warnings and every error.
build() {
  local preset="$1" start=$SECONDS
  shift
  local arguments=(--build --preset "$preset" -j "$JOBS")
  if [[ $# -gt 0 ]]; then
    arguments+=(--target "$@")
  fi
  say "build $preset (-j $JOBS)"
  if [[ -t 1 ]]; then
    cmake "${arguments[@]}" || return 1
  else
    cmake "${arguments[@]}" -- --quiet -k 0 || return 1
  fi
  say "built $preset in $((SECONDS - start)) s"
}

# build_in_sight PRESET TARGET...: says every few seconds how far it is and how long the rest may take, which
# assumes that the steps to come cost what those before them cost on average.
build_in_sight() {
  local preset="$1" start=$SECONDS shown=$SECONDS line done all took
  shift
  say "build $* (-j $JOBS)"
  NINJA_STATUS='[%f/%t] ' cmake --build --preset "$preset" -j "$JOBS" --target "$@" 2>&1 |
    while IFS= read -r line; do
      if [[ ! "$line" =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
        echo "$line"
        continue
      fi
      done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]} took=$((SECONDS - start))
      if ((done > 0 && (SECONDS - shown >= 5 || done == all))); then
        shown=$SECONDS
        say "$done of $all steps, $took s; about $((took * (all - done) / done)) s to go"
      fi
    done || return 1
  say "built in $((SECONDS - start)) s"
}
