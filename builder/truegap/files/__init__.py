"""Files that somebody else wrote, read with suspicion: text, tables, large JSON, single values."""
