"""What actions do with disks: find, mount, partition, write and erase them."""
