"""Streams of bytes for actions: HTTP(S) and OCI downloads, decompression, checksums, disk image formats."""
