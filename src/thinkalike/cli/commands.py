"""All commands: each is a module that registers itself with the app; its heavy imports wait until it runs."""

from __future__ import annotations

from thinkalike.cli import atlas as _atlas  # noqa: F401
from thinkalike.cli import cka as _cka  # noqa: F401
from thinkalike.cli import compare as _compare  # noqa: F401
from thinkalike.cli import demo as _demo  # noqa: F401
from thinkalike.cli import diff as _diff  # noqa: F401
from thinkalike.cli import explain as _explain  # noqa: F401
from thinkalike.cli import extract as _extract  # noqa: F401
from thinkalike.cli import fingerprint as _fingerprint  # noqa: F401
from thinkalike.cli import group as _group  # noqa: F401
from thinkalike.cli import methods as _methods  # noqa: F401
from thinkalike.cli import models as _models  # noqa: F401
from thinkalike.cli import outputs as _outputs  # noqa: F401
from thinkalike.cli import profile as _profile  # noqa: F401
from thinkalike.cli import report as _report  # noqa: F401
from thinkalike.cli import reproduce as _reproduce  # noqa: F401
from thinkalike.cli import resume as _resume  # noqa: F401
from thinkalike.cli import serve as _serve  # noqa: F401
from thinkalike.cli import stimuli as _stimuli  # noqa: F401
from thinkalike.cli import stitch as _stitch  # noqa: F401
from thinkalike.cli.application import app

__all__ = ["app"]
