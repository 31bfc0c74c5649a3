"""The parts of `tools/surface.py`.

`checkout` runs the program of a checkout and `site` a site of it; `commands`, `manifests`, `reference` and `live` each
collect a part of the surface as texts by file name, in which `masks` replaces what differs from run to run; `writing`
puts them into a folder, and `comparison` compares two such folders.
"""
