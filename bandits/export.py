"""Alias of `bandits.results.export`, the name of earlier versions."""

from .results.export import csv_of, parquet_of, report, script, table_csv, table_parquet

__all__ = ["csv_of", "parquet_of", "report", "script", "table_csv", "table_parquet"]
