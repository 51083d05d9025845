"""A table read and retyped in one call, as `prepare` does both."""

from tabsym.compare.table.files import ReadOptions, read
from tabsym.compare.table.retyping import retype


def read_typed(table, options=None, notes=None):
    options, notes = options or ReadOptions(), [] if notes is None else notes
    source = read(table, options)
    notes.extend(source.notes)
    return retype(source.frame, options, source.untyped, source.separator, notes)
