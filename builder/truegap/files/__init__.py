"""Files that others wrote, read with suspicion (text, tables, large JSON, single values), and ours, written whole."""
