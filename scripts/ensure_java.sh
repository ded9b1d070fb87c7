#!/usr/bin/env bash
# Makes sure that Spark finds Java 17 or newer, the way Spark itself looks: JAVA_HOME, then PATH.
# Installs Debian's headless JRE where there is none and the user may install; else says what to do.
set -euo pipefail

readonly needed=17

java_command() {
    if [[ -n "${JAVA_HOME:-}" ]]; then
        echo "$JAVA_HOME/bin/java"
    else
        command -v java || true
    fi
}

# Prints the major version: 8 for "1.8.0_392", 17 for "17.0.15", nothing if there is no Java.
java_major() {
    local java
    java=$(java_command)
    [[ -n "$java" && -x "$java" ]] || return 0
    "$java" -version 2>&1 | sed -nE '/version "/{s/.*version "(1\.)?([0-9]+).*/\2/p;q;}'
}

java_suffices() {
    local major
    major=$(java_major)
    [[ -n "$major" ]] && ((major >= needed))
}

fail() {
    local found
    found=$(java_major)
    {
        echo "weft needs Java $needed or newer, because Spark runs on it."
        if [[ -n "${JAVA_HOME:-}" ]]; then
            echo "JAVA_HOME is $JAVA_HOME (${found:+Java }${found:-no Java there})."
        elif [[ -n "$found" ]]; then
            echo "The java on PATH is Java $found."
        else
            echo "No java was found on PATH, and JAVA_HOME is not set."
        fi
        echo "$1"
        echo "Debian, Ubuntu:  apt-get install openjdk-17-jre-headless"
        echo "Fedora:          dnf install java-21-openjdk-headless"
        echo "macOS:           brew install openjdk@17, then set JAVA_HOME"
    } >&2
    exit 1
}

if java_suffices; then
    exit 0
fi

[[ -z "${JAVA_HOME:-}" ]] || fail "Unset JAVA_HOME or point it at a newer Java, then run make again."
command -v apt-get >/dev/null || fail "Install one, then run make again:"

as_root=()
if ((EUID != 0)); then
    sudo -n true 2>/dev/null || fail "You may not install packages here. Ask for one, then run make again:"
    as_root=(sudo -n)
fi

echo "No Java $needed or newer found: installing Debian's headless JRE."
install_jre() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --quiet --no-install-recommends "$1"
}
"${as_root[@]}" apt-get update --quiet || true
# Releases without Java 17 have 21, which Spark runs on as well.
install_jre openjdk-17-jre-headless || install_jre openjdk-21-jre-headless \
    || fail "Installing it failed. Install one by hand, then run make again:"
java_suffices || fail "One was installed, but an older java comes first. Set JAVA_HOME to the new one:"
