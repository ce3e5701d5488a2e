"""The training loop, the step, the optimizers and the checkpoints; also, called as a function, `t2t.train(...)`.

The Python surface has a function named like this package. So that both names work whatever was imported first, the
package itself can be called.
"""

import pathlib
import sys
import types
from typing import Any


class _CallablePackage(types.ModuleType):
    def __call__(self, experiment: Any, workdir: Any = None) -> Any:
        """Train `experiment` in `workdir` (default runs/NAME), from its last checkpoint if it has one.

        Returns:
            The trained `t2t.Model`.
        """
        from t2t import finding, opening
        from t2t.train import loop

        finding.extend_path()
        directory = pathlib.Path("runs", experiment.name) if workdir is None else pathlib.Path(workdir)
        loop.train(experiment, directory)
        return opening.load(directory)


sys.modules[__name__].__class__ = _CallablePackage
