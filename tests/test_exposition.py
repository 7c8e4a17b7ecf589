"""The page of ``/metrics``: what is on it, and what may not happen to it."""

from __future__ import annotations

import pytest

from conformance.exposition import parse_page

PAGE = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} 2
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0"} 7
vllm:prompt_tokens_created{engine="0"} 5
# TYPE vllm:nixl_bytes_transferred histogram
vllm:nixl_bytes_transferred_bucket{le="1"} 1
vllm:nixl_bytes_transferred_bucket{le="+Inf"} 3
vllm:nixl_bytes_transferred_count 3
vllm:nixl_bytes_transferred_sum 90
"""


def test_counters_and_histograms_can_only_grow_and_gauges_need_not() -> None:
    page = parse_page(PAGE)
    assert {name for name, _ in page.counts} == {
        "vllm:prompt_tokens_total",
        "vllm:nixl_bytes_transferred_bucket",
        "vllm:nixl_bytes_transferred_count",
        "vllm:nixl_bytes_transferred_sum",
    }
    later = parse_page(PAGE.replace('running{engine="0"} 2', 'running{engine="0"} 0'))
    assert page.fell(later) == []
    assert page.vanished(later) == []
    assert (page.total("vllm:num_requests_running"), later.total("vllm:num_requests_running")) == (
        2,
        0,
    )


@pytest.mark.parametrize("value", ["6", "NaN"])
def test_a_counter_that_falls_is_named_with_its_values(value: str) -> None:
    later = parse_page(PAGE.replace('total{engine="0"} 7', f'total{{engine="0"}} {value}'))
    (fell,) = parse_page(PAGE).fell(later)
    assert fell.startswith("vllm:prompt_tokens_total{'engine': '0'}: 7 -> ")


def test_a_bucket_and_a_whole_name_are_missed_when_they_vanish() -> None:
    page = parse_page(PAGE)
    one = parse_page(PAGE.replace('vllm:nixl_bytes_transferred_bucket{le="1"} 1\n', ""))
    assert page.vanished(one) == ["vllm:nixl_bytes_transferred_bucket"]
    assert page.vanished(parse_page(PAGE.splitlines()[1])) == [
        "vllm:nixl_bytes_transferred_bucket",
        "vllm:nixl_bytes_transferred_count",
        "vllm:nixl_bytes_transferred_sum",
        "vllm:prompt_tokens_created",
        "vllm:prompt_tokens_total",
    ]


def test_a_total_is_over_the_series_with_the_labels() -> None:
    page = parse_page(PAGE)
    assert page.total("vllm:nixl_bytes_transferred_bucket") == 4
    assert page.total("vllm:nixl_bytes_transferred_bucket", le="1") == 1
    assert page.total("vllm:absent") == 0


def test_what_is_no_text_format_is_an_error() -> None:
    with pytest.raises(ValueError, match="could not convert"):
        parse_page("vllm:num_requests_running{ one")
