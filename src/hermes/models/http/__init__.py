"""The byte seam to model servers, over aiohttp."""
