#!/bin/bash
# Install the Debian packages that virtual machines, images and test peers need. As root or by sudo; without either,
# say exactly what to install and go on: what needs them is skipped by name.
#   tools/packages.sh                 everything
#   tools/packages.sh --only NAME...  just these
set -euo pipefail

packages=(
    # machines and their firmware
    qemu-system-x86 qemu-utils ovmf ipxe iproute2
    # in-memory OS and disk images
    mmdebstrap zstd xz-utils cpio dosfstools mtools e2fsprogs gdisk fdisk parted
    # peers for tests and benchmarks
    dnsmasq-base nginx-light tftpd-hpa pigz socat iputils-ping udhcpc tftp-hpa curl openssl
)
if [ "${1:-}" = --only ]; then
    shift
    packages=("$@")
fi
if ! command -v dpkg-query >/dev/null; then
    echo "packages: this is not a Debian system; install by hand what matches: ${packages[*]}" >&2
    exit 0
fi
missing=()
for package in "${packages[@]}"; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        as_root=(sudo -n)
    else
        echo "packages: neither root nor password-less sudo. What needs these packages is skipped; to install them:" >&2
        echo "    sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 0
    fi
fi
echo "Installing Debian packages: ${missing[*]}"
log=$(mktemp)
# Daemons of the peers must not start: tests start their own, in their own namespaces.
policy=/usr/sbin/policy-rc.d
made_policy=false
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 0755 "$policy"
    made_policy=true
fi
finish() { if $made_policy; then "${as_root[@]}" rm -f "$policy"; fi; rm -f "$log"; }
trap finish EXIT
install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1
}
"${as_root[@]}" apt-get update >"$log" 2>&1 || { tail -n 5 "$log" >&2; echo "packages: apt-get update failed" >&2; }
if ! install; then
    tail -n 15 "$log" >&2
    echo "packages: apt-get could not install: ${missing[*]}; what needs them is skipped" >&2
fi
