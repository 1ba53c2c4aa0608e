#!/usr/bin/env bash
# Installs the servers that Tests/Servers starts: packages of Debian, and those of PyPI into
# their virtual environment at the versions of requirements.txt. What cannot be had is said, and
# left out; the suite counts that as a failure where CI is set. A second run installs nothing.
#
#   install.sh [PYTHON]     the interpreter whose environment it is, else python3
set -euo pipefail

cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
# shellcheck source=tools/common.sh
source tools/common.sh

packages=(nginx-light apache2-bin haproxy tinyproxy-bin mitmproxy clickhouse-server curl openssl
    python3-venv)
# One after the other where not all are had: what one of them lacks must not keep the others away.
if ! (needs "${packages[@]}"); then
    for package in "${packages[@]}"; do
        wants "$package"
    done
fi

"${1:-python3}" Tests/TestSupport/environments.py servers
