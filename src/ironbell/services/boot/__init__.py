"""The files of a netboot over HTTP (and TFTP): iPXE binaries, boot scripts, kernel and initrd."""
