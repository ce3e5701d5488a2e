"""The blocks of a token cache made by an Apache Beam pipeline, on as many machines as its runner has.

    groups of files -> blocks of documents -> (shuffled) -> tokens, written as shards

It is the reader and the writer of `t2t.data.token_blocks` that run there, so shards are the same as those made here,
and a cache begun by one is gone on with by the other. All machines must see the files and the directory of the cache
under the same paths, and have t2t installed; TensorFlow is not imported there.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from t2t.data import cache_directory
from t2t.data.shards import Shard
from t2t.data.token_blocks import BlockReader, BlockWriter
from t2t.errors import UsageError

ALIASES = {"direct": "DirectRunner", "spark": "SparkRunner", "flink": "FlinkRunner", "dataflow": "DataflowRunner"}
"""Short names of runners."""


class BeamRunner:
    """Makes shards by a pipeline; a `t2t.data.token_cache.Runner`.

    Args:
        name: of a runner of Beam, such as DirectRunner or FlinkRunner, or one of `ALIASES`.
        options: of the pipeline, as its command line takes them: ("--flink_master=host:8081", ...).

    Raises:
        UsageError: Beam is not installed.
    """

    def __init__(self, name: str, options: Sequence[str] = ()) -> None:
        try:
            import apache_beam
        except ImportError as error:
            raise UsageError(
                f"--runner {name} needs Apache Beam ({error}); install it with: pip install 't2t[beam]', or leave "
                "--runner out"
            ) from error
        self._beam = apache_beam
        self._arguments = [f"--runner={ALIASES.get(name.lower(), name)}", *options]

    def __call__(self, reader: BlockReader, writer: BlockWriter, jobs: Sequence[tuple[str, Any]]) -> Iterator[Shard]:
        """The shards of these groups, when all are done, looked through by their hashes."""
        beam = self._beam
        from apache_beam.options.pipeline_options import PipelineOptions

        if jobs:
            with beam.Pipeline(options=PipelineOptions(self._arguments)) as pipeline:
                _ = (
                    pipeline
                    | "groups of files" >> beam.Create(list(jobs))
                    | "share groups" >> beam.Reshuffle()
                    | "read blocks" >> beam.FlatMap(reader)
                    | "share blocks" >> beam.Reshuffle()
                    | "write shards" >> beam.Map(writer)
                )
        found = cache_directory.find_finished(reader.directory)
        yield from (shard for name, shard in found.shards.items() if name not in reader.kept)
