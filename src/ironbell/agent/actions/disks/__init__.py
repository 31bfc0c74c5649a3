"""Operations of actions on disks: find, mount, partition, write and erase them."""
