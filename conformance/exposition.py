"""``/metrics`` as a whole page: which series it has, and which of them can only grow."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from conformance.client import Client
from conformance.errors import CheckFailed

_GROWING = ("counter", "histogram")
Series = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Page:
    """One reading: the value of every series, and the names of those that can only grow."""

    values: dict[Series, float]
    growing: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        """Of all series."""
        return frozenset(name for name, _ in self.values)

    @property
    def counts(self) -> dict[Series, float]:
        """The series that can only grow."""
        return {series: v for series, v in self.values.items() if series[0] in self.growing}

    def total(self, name: str, **labels: str) -> float:
        """Sum over the series of a name that carry the labels."""
        wanted = set(labels.items())
        return sum(v for (n, ls), v in self.values.items() if n == name and wanted <= set(ls))

    def vanished(self, later: Page) -> list[str]:
        """Names, and growing series, that a later page no longer has."""
        gone = {name for name, _ in self.counts.keys() - later.values.keys()}
        return sorted(gone | (self.names - later.names))

    def fell(self, later: Page) -> list[str]:
        """Series that can only grow and are less on a later page, or no number."""
        return sorted(
            f"{name}{dict(labels)}: {value:g} -> {later.values[name, labels]:g}"
            for (name, labels), value in self.counts.items()
            if (name, labels) in later.values and not later.values[name, labels] >= value
        )


def read(client: Client) -> Page:
    """The page as it stands. Raises :class:`CheckFailed` unless it is there and can be parsed."""
    role = client.server.role
    answer = client.page("/metrics")
    if answer.status_code != 200:
        raise CheckFailed(f"/metrics of {role} answers HTTP {answer.status_code}")
    try:
        return parse_page(answer.text)
    except ValueError as problem:
        raise CheckFailed(f"/metrics of {role} cannot be parsed: {problem}") from problem


def parse_page(text: str) -> Page:
    """From the text format. Raises ValueError."""
    values: dict[Series, float] = {}
    growing: set[str] = set()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            values[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
            if family.type in _GROWING and not sample.name.endswith("_created"):
                growing.add(sample.name)
    return Page(values, frozenset(growing))
