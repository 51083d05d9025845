"""MODL as a transformer: a table is counted, its columns are partitioned, rows are encoded by their parts."""

from tabsym.encoders.modl.column import MODLColumn
from tabsym.encoders.modl.encoder import MODLEncoder
from tabsym.encoders.modl.report import Certificate

__all__ = ["Certificate", "MODLColumn", "MODLEncoder"]
