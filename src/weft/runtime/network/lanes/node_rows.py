"""The rows of a physical node that joins read, as a task writes them: bucket files for every input they come
into, and of a join files of history."""

from __future__ import annotations

from weft.kernel.network.passing import Kept
from weft.kernel.network.program import PhysicalNode, Program
from weft.kernel.network.step import to_store
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.network.history import about_join
from weft.runtime.network.lanes.bucket_files import InputWriter, PieceFiles, input_key
from weft.runtime.network.lanes.stage import Stage
from weft.runtime.tasks import Output

BUCKETS = "buckets"
"""The kind of live files, and the folder, of bucket files."""


class NodeRows:
    """Writes the rows of one node in one task. `suffix` tells its files from those of all other tasks, and of
    other attempts at this one."""

    def __init__(
        self,
        stage: Stage,
        log: StreamLog,
        program: Program,
        node: PhysicalNode,
        task: int,
        suffix: str,
    ) -> None:
        around, storage = stage.around, log.storage
        self._program, self._node, self._versions = program, node, around.versions
        entries = [entry for entry in node.inputs if input_key(entry) in stage.writes]
        buffer = around.piece_bytes // (len(entries) + 1)
        self._inputs = [
            InputWriter(
                PieceFiles(storage, _name(log, BUCKETS, around.folder, key, suffix), buffer),
                node,
                entry,
                salt=task << 20,
                ansi=around.ansi,
            )
            for entry in entries
            for key in [input_key(entry)]
        ]
        reads_stream = not program.streams.isdisjoint(node.relations)
        self._history: PieceFiles | None = None
        if stage.emits and node.join is not None and node.inputs and reads_stream:
            name = _name(log, "state", around.folder, node.id, suffix)
            self._history = PieceFiles(storage, name, buffer)

    def add(self, kept: Kept) -> None:
        for writer in self._inputs:
            writer.add(kept)
        if self._history is not None:
            table = to_store(self._node, kept)
            about = about_join(self._program, self._node.id, table, self._versions)
            self._history.add(table, about)

    def close(self) -> list[Output]:
        """What was written."""
        outputs: list[Output] = [
            (BUCKETS, entry) for writer in self._inputs for entry in writer.close()
        ]
        if self._history is not None:
            outputs += [("history", entry) for entry in self._history.close()]
        return outputs


def _name(log: StreamLog, kind: str, folder: str, what: str, suffix: str) -> str:
    return f"{log.folder(kind)}/{folder}/{what}-{suffix}"
