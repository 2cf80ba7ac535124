#!/usr/bin/env python3
"""Print the text of a PDF, page by page. Standard library, and pdftotext or pypdf for the PDF itself."""

import argparse
import shutil
import subprocess
import sys


def pages_of(file: str) -> list[str]:
    """The text of each page."""
    program = shutil.which("pdftotext")
    if program:
        ran = subprocess.run([program, "-layout", "--", file, "-"], capture_output=True, check=False)
        if ran.returncode:
            sys.exit(f"{file} cannot be read: {ran.stderr.decode('utf-8', 'replace').strip()}")
        pages = ran.stdout.decode("utf-8", "replace").split("\f")
        return pages[:-1] if pages and not pages[-1].strip() else pages
    try:
        import pypdf
    except ImportError:
        sys.exit("reading a PDF takes pdftotext (poppler-utils) or the Python package pypdf; install one of them")
    try:
        return [page.extract_text() or "" for page in pypdf.PdfReader(file).pages]
    except (OSError, pypdf.errors.PyPdfError) as error:
        sys.exit(f"{file} cannot be read: {error}")


def wanted(text: str, count: int) -> list[int]:
    """The numbers that `1-3,7` means."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            numbers += range(int(first), int(last or first) + 1)
        except ValueError:
            sys.exit(f"--pages takes numbers such as 1-3,7, not {text!r}")
    return [number for number in numbers if 1 <= number <= count]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--summary", action="store_true", help="how many pages, and which hold no text")
    parser.add_argument("--pages", help="such as 1-3,7; all of them when left out")
    parser.add_argument("--find", help="the pages and lines that hold these words")
    options = parser.parse_args()
    pages = pages_of(options.file)
    if options.summary:
        empty = [number for number, text in enumerate(pages, 1) if not text.strip()]
        _say(f"{len(pages)} pages, {sum(map(len, pages))} characters; without text: {empty or 'none'}")
        return
    if options.find:
        hits = [
            f"page {number}: {line.strip()}"
            for number, text in enumerate(pages, 1)
            for line in text.splitlines()
            if options.find.lower() in line.lower()
        ]
        _say("\n".join(hits) or "not found")
        return
    for number in wanted(options.pages, len(pages)) if options.pages else range(1, len(pages) + 1):
        _say(f"--- page {number} of {len(pages)}\n{pages[number - 1].rstrip()}")


if __name__ == "__main__":
    main()
