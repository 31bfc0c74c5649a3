"""What a machine fetches on its way up: iPXE binaries, boot scripts, kernel and initrd, over HTTP (and TFTP)."""
