"""What reading a ZIP file raises that is not whole, or is packed in a way that Python does not know."""

import struct
import zlib
from zipfile import BadZipFile

BROKEN_ZIP = (
    *(BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError),
    NotImplementedError,  # raised by zipfile for such a packing
)
