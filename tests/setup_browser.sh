#!/bin/sh
# Gives the browser tests a Chromium where that can be done without asking; else says why they will skip. Never fails.
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then
        exit 0
    fi
done
if [ -n "$TRUEGAP_CHROMIUM" ] && [ -x "$TRUEGAP_CHROMIUM" ]; then
    exit 0
fi
if [ "$(id -u 2>/dev/null)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "browser tests will skip: no Chromium found (install one, or set TRUEGAP_CHROMIUM to its path)"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# Quiet where all goes well; where it does not, what apt-get said is what helps.
if said=$(apt-get update -qq 2>&1 && apt-get install -y -qq --no-install-recommends chromium 2>&1); then
    echo "installed chromium for the browser tests"
else
    echo "$said"
    echo "browser tests will skip: apt-get could not install chromium (see above)"
fi
exit 0
