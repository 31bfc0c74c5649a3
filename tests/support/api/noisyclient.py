"""A client that asks as much as it can: `python -m support.api.noisyclient URL CA TOKEN CONNECTIONS`.

Prints `started` when all connections have had an answer. At the end of its standard input it stops, and prints how many
answers of each status it got, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections import Counter
from urllib.parse import urlsplit

from support.waiting import until


async def ask(url: str, context: ssl.SSLContext, token: str, *, statuses: Counter[int]) -> None:
    """Ask again and again over one connection."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
    request = f"GET {parts.path} HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    try:
        while True:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
            )
            await reader.readexactly(length)
            statuses[int(head.split(b" ", 2)[1])] += 1
    finally:
        writer.close()


async def main(url: str, authority: str, token: str, connections: int) -> None:
    context = ssl.create_default_context(cafile=authority)
    statuses: Counter[int] = Counter()
    tasks = [asyncio.create_task(ask(url, context, token, statuses=statuses)) for _ in range(connections)]
    await until(lambda: statuses.total() >= connections)
    print("started", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(json.dumps(statuses), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
