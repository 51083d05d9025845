"""The README for package indexes: there, links into the repository must be absolute."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURES = (".png", ".svg")


class ReadmeHook(MetadataHookInterface):
    """Leads relative links of README.md to `project.urls.Source`, and pictures to the files themselves."""

    def update(self, metadata: dict[str, Any]) -> None:
        source = metadata["urls"]["Source"]

        def lead(match: re.Match[str]) -> str:
            kind = "raw" if match[1].partition("#")[0].endswith(PICTURES) else "blob"
            return f"]({source}/{kind}/main/{match[1]})"

        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = re.sub(r"\]\((?!https?:|#)([^)\s]+)\)", lead, text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
