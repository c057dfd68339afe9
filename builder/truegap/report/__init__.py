"""Reports from run records: one self-contained HTML page, and the same in Markdown."""

from truegap.figures.findings import Finding, bias_is_clear, findings
from truegap.report.write import write_report

__all__ = ["Finding", "bias_is_clear", "findings", "write_report"]
