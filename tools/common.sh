#!/usr/bin/env bash
# Shared by `dev` and the scripts beside this file: the packages that each verb needs, and how they
# are installed. Sourced, never run.

# needs PACKAGE…: installs the Debian packages that are missing; asks apt for nothing else.
needs() {
    command -v dpkg-query >/dev/null || return 0 # not Debian: tools are looked for when used
    local missing=() package
    for package in "$@"; do
        case "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" in
            installed) ;;
            *) missing+=("$package") ;;
        esac
    done
    [ ${#missing[@]} -eq 0 ] && return 0

    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        # Said before the first call of sudo, which may log or refuse it.
        command -v sudo >/dev/null && echo "dev: about to use sudo, to install ${missing[*]}" >&2
        if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
            as_root=(sudo -n)
        else
            echo "dev: missing Debian packages, and no way to become root; as root, run:" >&2
            echo "  apt-get install ${missing[*]}" >&2
            exit 1
        fi
    fi
    echo "dev: installing ${missing[*]}" >&2
    apt_get update || echo "dev: going on with the lists of packages that are here" >&2
    if ! apt_get install -y --no-install-recommends "${missing[@]}"; then
        echo "dev: apt-get, above, says why; if it cannot be mended here, as root, run:" >&2
        echo "  apt-get update && apt-get install ${missing[*]}" >&2
        exit 1
    fi
}

# apt_get WORD…: apt-get, which waits for another one. Its own option waits only for dpkg's lock.
# That of the lists, which an update takes, and that of the downloads are asked for until they are
# free. Called by `needs`, which has `as_root`.
APT_WAIT_S=600
apt_get() {
    local end=$((SECONDS + APT_WAIT_S)) waits="" code said lock
    said="$(mktemp)"
    while true; do
        code=0
        "${as_root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -qq \
            -o "DPkg::Lock::Timeout=$APT_WAIT_S" "$@" >&2 2>"$said" || code=$?
        lock="$(grep -m 1 'Could not get lock' "$said" || true)"
        if [ "$code" -eq 0 ] || [ -z "$lock" ] || [ "$SECONDS" -ge "$end" ]; then
            cat "$said" >&2
            rm -f "$said"
            return "$code"
        fi
        [ -n "$waits" ] || echo "dev: waits for another apt, $APT_WAIT_S s at most: $lock" >&2
        waits=yes
        sleep 1
    done
}

# wants PACKAGE…: like needs, but goes on without them if they cannot be installed.
wants() {
    (needs "$@") || echo "dev: going on without them" >&2
}

# The oldest Swift that builds this. The manifest has it, where SwiftPM reads it; `./dev check`
# compares what other files say.
swift_floor() {
    sed -n '1s|^// swift-tools-version: *||p' "$(dirname "${BASH_SOURCE[0]}")/../Package.swift"
}

# Refuses a Swift that is too old in one line, before anything is installed or built. CMake calls
# it, too. What says no version is left to SwiftPM.
needs_swift() {
    local floor said found
    floor="$(swift_floor)"
    local advice="install Swift $floor or later from https://swift.org/install"
    if ! command -v swift >/dev/null; then
        echo "dev: no Swift in PATH: $advice" >&2
        exit 1
    fi
    if ! said="$(swift --version 2>&1)"; then
        echo "dev: $(command -v swift) --version fails (${said%%$'\n'*}): $advice" >&2
        exit 1
    fi
    # "Swift version 6.3.1 (swift-6.3.1-RELEASE)", "Apple Swift version …", "… 6.4-dev (LLVM …)"
    found="$(sed -nE 's/^(.*[^-[:alpha:]])?Swift version ([0-9]+(\.[0-9]+)*).*/\2/p' <<<"$said" |
        head -n 1)"
    [ -n "$found" ] || return 0
    if [ "$(printf '%s\n' "$floor" "$found" | sort -V | head -n 1)" != "$floor" ]; then
        echo "dev: Swift $found ($(command -v swift)) is too old: $advice" >&2
        exit 1
    fi
}

needs_build() {
    needs_swift
    needs gcc g++ libc6-dev binutils pkg-config python3 libzstd-dev liblz4-dev libsodium-dev \
        zlib1g-dev libjansson-dev libexpat1-dev libcurl4-openssl-dev
}

needs_test() {
    needs cmake make zstd lz4 curl python3-dev python3-venv python3-pip valgrind \
        e2fsprogs age locales nodejs
    wants chromium
}

# Where the toolchain keeps its static libraries.
swift_static() {
    local tools
    tools="$(dirname "$(readlink -f "$(command -v swift)")")"
    echo "$tools/../lib/swift_static/linux"
}
