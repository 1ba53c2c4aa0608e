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
        if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
            as_root=(sudo -n)
        else
            echo "dev: missing Debian packages, and no way to become root:" >&2
            echo "  apt-get install ${missing[*]}" >&2
            exit 1
        fi
    fi
    echo "dev: installing ${missing[*]}" >&2
    "${as_root[@]}" apt-get update -qq >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# wants PACKAGE…: like needs, but goes on without them if they cannot be installed.
wants() {
    (needs "$@") || echo "dev: going on without them" >&2
}

needs_build() {
    needs gcc g++ libc6-dev binutils pkg-config python3 libzstd-dev liblz4-dev libsodium-dev \
        zlib1g-dev libjansson-dev libexpat1-dev libcurl4-openssl-dev
    if ! command -v swift >/dev/null; then
        echo "dev: no Swift in PATH; install Swift 6.2 or later from https://swift.org/install" >&2
        exit 1
    fi
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
