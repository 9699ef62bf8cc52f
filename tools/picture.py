"""Draw docs/page.png, the README's picture of the page: `python tools/picture.py`, or `make picture`; needs Chromium.

The picture holds a hash of what it shows: the page's style, and its content up to the end of the first figure. A test
compares this hash with the page, so the README never shows an old one.
"""

import hashlib
import os
import subprocess
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE, PICTURE = ROOT / "reports" / "index.html", ROOT / "docs" / "page.png"
_KEY = b"shown\0"


def shown_hash() -> str:
    """Return the SHA-256 of the part of the page that the picture shows."""
    shown, end, _ = PAGE.read_text(encoding="utf-8").partition("</figure>")
    return hashlib.sha256((shown + end).encode()).hexdigest()


def hash_in_picture() -> str:
    """Return the hash that the picture holds; an empty text if it was not drawn by this script."""
    _, key, rest = PICTURE.read_bytes().partition(b"tEXt" + _KEY)
    return rest[:64].decode() if key else ""


def main() -> int:
    """Draw the picture; return 0, or 5 without Chromium."""
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1280,660", f"--screenshot={PICTURE}"]
    try:
        subprocess.run([os.environ.get("CHROMIUM", "chromium"), *options, str(PAGE)], check=True)
    except FileNotFoundError as error:
        print(f"error: {error.filename}: not found; name Chromium with make picture CHROMIUM=...", file=sys.stderr)
        return 5
    # A chunk of text before the last chunk of the PNG file, which has 12 bytes.
    chunk, picture = b"tEXt" + _KEY + shown_hash().encode(), PICTURE.read_bytes()
    packed = (len(chunk) - 4).to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big")
    PICTURE.write_bytes(picture[:-12] + packed + picture[-12:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
