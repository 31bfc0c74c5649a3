"""The script inside our iPXE binaries, and what is compiled in.

The script names itself `Tinkerbell` to DHCP, so that the answer is the boot script and no further binary; it tries
DHCP on every interface several times, then boots what it was told. It does not use `autoboot`, which waits a dozen
seconds for an IPv6 router first. When all fails it leaves with an error, which makes
firmware go on to its next boot entry.

Source: tinkerbell/tinkerbell: smee/internal/ipxe/binary (behaviour); ipxe.org/buildcfg (option names).
"""

from __future__ import annotations

from ironbell.contract.servers.boot_files import BOOT_FILES

USER_CLASS = "Tinkerbell"

SCRIPT = f"""\
#!ipxe
set user-class {USER_CLASS}
echo Ironbell iPXE
prompt --key 0x02 --timeout 2000 Press Ctrl-B for a shell && shell ||
set tries:int32 0
:again
dhcp && goto boot ||
inc tries
iseq ${{tries}} 10 && goto failed ||
echo Ironbell: no address yet, trying again
sleep 2
goto again
:boot
isset ${{filename}} || goto failed
chain --autofree ${{filename}} ||
:failed
echo Ironbell: no network boot, going on to the next boot entry
sleep 2
exit 1
"""

TARGETS = {file.target: file.name for file in BOOT_FILES if file.target}
"""Make target to the name that firmware asks for."""

GENERAL_OPTIONS = """\
#define DOWNLOAD_PROTO_HTTPS
#define NSLOOKUP_CMD
#define NTP_CMD
#define VLAN_CMD
#define PARAM_CMD
#define CERT_CMD
#define IMAGE_TRUST_CMD
#define REBOOT_CMD
#define POWEROFF_CMD
#define PING_CMD
"""

CONSOLE_OPTIONS = """\
#define CONSOLE_SYSLOG
"""
