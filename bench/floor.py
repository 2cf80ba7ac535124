"""The least that a first request can cost: import the same libraries, open a store, commit one row, send the bytes.

python bench/floor.py URL FILE
"""

import asyncio
import sqlite3
import sys

import aiohttp
import msgspec


async def main() -> None:
    url, file = sys.argv[1:3]
    conn = sqlite3.connect(file, isolation_level=None)
    conn.execute("PRAGMA journal_mode=WAL")
    conn.execute("PRAGMA synchronous=FULL")
    conn.execute("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, role TEXT, content TEXT)")
    conn.execute("INSERT INTO messages (role, content) VALUES ('user', 'Hi')")
    body = msgspec.json.encode({"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi"}]})
    async with aiohttp.ClientSession() as session, session.post(f"{url}/chat/completions", data=body) as answer:
        await answer.read()


asyncio.run(main())
