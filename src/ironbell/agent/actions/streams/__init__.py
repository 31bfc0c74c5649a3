"""Where actions get bytes from: HTTP(S) and OCI downloads, decompression, checksums, disk image formats."""
