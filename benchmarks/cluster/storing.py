"""Where the figures of docs/cluster.md are stored."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from score_rl.store.provenance import provenance


def store(out: Path | None, name: str, found: Mapping[str, Any]) -> None:
    """Under a name in a JSON file, beside what is in it, with what produced it."""
    if out is None:
        return
    stored = json.loads(out.read_text()) if out.exists() else {}
    stored[name] = {**found, "provenance": provenance()}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(stored, indent=1) + "\n")
