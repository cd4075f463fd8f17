"""List the exceptions raised by reading a ZIP file that is broken or has an unsupported compression."""

import struct
import zlib
from zipfile import BadZipFile

BROKEN_ZIP = (
    *(BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError),
    NotImplementedError,  # raised by zipfile for unsupported compression
)
