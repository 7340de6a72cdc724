"""The files of a workspace."""
from __future__ import annotations

import os
from typing import IO, Any, AsyncIterator, List, Optional, Union

from .. import _operations as op
from .. import errors, types
from .._core import Content, PathLike
from . import _io
from ._http import AsyncHttp

SAVE_BYTES = 1 << 20


async def save(pieces: AsyncIterator[bytes], file: IO[bytes]) -> None:
    """Writes what comes into a file, in few large pieces."""
    kept: List[bytes] = []
    size = 0
    async for piece in pieces:
        kept.append(piece)
        size += len(piece)
        if size >= SAVE_BYTES:
            await _io.blocking(file.writelines, kept)
            kept, size = [], 0
    await _io.blocking(file.writelines, kept)


class AsyncFiles:
    """The files of a workspace. Paths are relative to /workspace, or absolute: they mean what they mean to a command.

    >>> async with await AsyncCarrel().create() as ws:
    ...     await ws.files.write("notes/today.txt", "buy milk")
    ...     print(await ws.files.read_text("notes/today.txt"))
    ...     print([entry.name for entry in await ws.files.list("notes")])
    FileInfo(name='today.txt', type='file', size=8, ...)
    buy milk
    ['today.txt']
    """

    def __init__(self, http: AsyncHttp, workspace: str) -> None:
        self._http = http
        self._workspace = workspace

    # ---- content ----

    async def read(self, path: str, *, start: Optional[int] = None, end: Optional[int] = None) -> bytes:
        """All of a file; or its bytes from `start` up to, not including, `end`."""
        headers = None
        if start is not None or end is not None:
            headers = {"Range": f"bytes={start or 0}-{end - 1 if end is not None else ''}"}
        response = await self._http.response(op.READ_FILE, headers=headers, id=self._workspace, path=path)
        return response.content

    async def read_text(self, path: str, encoding: str = "utf-8") -> str:
        return (await self.read(path)).decode(encoding)

    async def write(self, path: str, content: Content, *, mode: Optional[int] = None, exist_ok: bool = True) -> types.FileInfo:
        """Writes a file, all of it or nothing, and makes the directories above it. `content`: text, bytes or an open file.

        `mode` is such as 0o755. With `exist_ok=False` a file that is there is a `Conflict`."""
        body = content.encode() if isinstance(content, str) else content if isinstance(content, bytes) else _io.pieces(content)
        headers = None if exist_ok else {"If-None-Match": "*"}
        query = {"mode": f"{mode:04o}" if mode is not None else None}
        return types.FileInfo._from(await self._http.json(
            op.WRITE_FILE, query=query, content=body, headers=headers, id=self._workspace, path=path))

    async def upload(self, source: PathLike, path: str) -> types.FileInfo:
        """Copies a file of this host into the workspace, with its permissions."""
        with open(source, "rb") as file:
            return await self.write(path, file, mode=os.fstat(file.fileno()).st_mode & 0o777)

    async def download(self, path: str, target: PathLike) -> None:
        """Copies a file of the workspace to this host."""
        with open(target, "wb") as file:
            await save(self._http.pieces(op.READ_FILE, id=self._workspace, path=path), file)

    # ---- names ----

    def walk(self, path: str = "") -> AsyncIterator[types.FileInfo]:
        """The entries of a directory, one by one."""
        return self._http.items(op.READ_FILE, types.FileInfo._from, query={"list": True}, id=self._workspace, path=path)

    async def list(self, path: str = "") -> List[types.FileInfo]:
        """The entries of a directory."""
        return [entry async for entry in self.walk(path)]

    async def stat(self, path: str) -> types.FileInfo:
        """Type, size, permissions and time; links are not followed."""
        return types.FileInfo._from(await self._http.json(op.READ_FILE, query={"stat": True}, id=self._workspace, path=path))

    async def exists(self, path: str) -> bool:
        try:
            await self.stat(path)
        except errors.NotFound:
            return False
        return True

    async def size(self, path: str) -> int:
        """The size of a file; links are followed."""
        response = await self._http.response(op.READ_FILE_HEAD, id=self._workspace, path=path)
        return int(response.headers["content-length"])

    async def mkdir(self, path: str) -> types.FileInfo:
        """Makes a directory and those above it. One that is there stays."""
        return types.FileInfo._from(await self._http.json(op.WRITE_FILE, query={"mkdir": True}, content=b"", id=self._workspace, path=path))

    async def move(self, path: str, to: str) -> types.FileInfo:
        return types.FileInfo._from(await self._http.json(op.WRITE_FILE, query={"move": to}, content=b"", id=self._workspace, path=path))

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Removes a file or an empty directory; with `recursive` a directory with all that is in it."""
        await self._http.json(op.REMOVE_FILE, query={"recursive": recursive}, id=self._workspace, path=path)

    # ---- trees ----

    async def pack(self, target: Union[PathLike, IO[bytes]], path: Optional[str] = None, *, format: str = "tar") -> None:
        """Writes a directory as one archive, `tar` or `tar.zst`, into a file of this host."""
        file: Any = target if hasattr(target, "write") else open(target, "wb")  # noqa: SIM115
        try:
            await save(self._http.pieces(op.PACK_TREE, query={"path": path, "format": format}, id=self._workspace), file)
        finally:
            if file is not target:
                file.close()

    async def unpack(self, source: Union[PathLike, bytes, IO[bytes]], path: Optional[str] = None) -> None:
        """Unpacks an archive, `tar` or `tar.zst`, into a directory of the workspace."""
        if isinstance(source, (str, os.PathLike)):
            with open(source, "rb") as file:
                await self.unpack(file, path)
            return
        body = source if isinstance(source, bytes) else _io.pieces(source)
        await self._http.json(op.UNPACK_TREE, query={"path": path}, content=body, id=self._workspace)
