"""`tigs report`: every figure, picture and example below the output folder as one HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path

from tigs.config import Config
from tigs.console import print_json, print_text, say
from tigs.report.page import write_page, write_pngs


def run(config: Config, options: argparse.Namespace) -> None:
    """Write the page, and the charts as PNG files if a folder was named."""
    output_dir = Path(config.output_dir)
    pictures = write_pngs(output_dir, Path(options.png)) if options.png else []
    page = write_page(output_dir)
    size = page.stat().st_size
    if options.json:
        print_json({"page": str(page), "bytes": size, "png": [str(path) for path in pictures]})
        return
    for path in pictures:
        print_text(str(path))
    print_text(str(page))
    say(f"{size / 1e6:.1f} MB; open it in a browser")
