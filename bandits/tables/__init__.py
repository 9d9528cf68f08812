"""Read tables of users: bytes in, columns out, in which a cell is text until its reader knows better."""

from .csv_reader import HEAD, header, read_csv
from .raw_table import MISSING, RawTable, parsed_number
from .text import Limits

__all__ = ["HEAD", "MISSING", "Limits", "RawTable", "header", "parsed_number", "read_csv"]
