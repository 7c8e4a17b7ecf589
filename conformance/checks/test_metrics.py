"""Metrics: ``/metrics`` is how operators see a pair, at its busiest and when something fails.

A connector's statistics can take the page down with them: statistics without a registered metric
end the engine's output loop (FlexKV#188, vllm#43836), and a page that lost its series after an
error says that all is well.
"""

from concurrent.futures import ThreadPoolExecutor

from conformance import expect
from conformance.case import Case
from conformance.client import Client
from conformance.errors import SuiteError
from conformance.exposition import Page, read
from conformance.metrics import FINISHED, RUNNING, WAITING, Meter, TokenSources
from conformance.pair import Ask, completion
from conformance.registry import check

# So many that the answer takes a while even on a fast machine.
LONG = 200


@check(
    "usage/metrics",
    feature="usage",
    level="extended",
    cases=("in flight", "after an error"),
)
def test_metrics_stay_up_and_only_grow(case: Case) -> None:
    """On both sides ``/metrics`` stays readable, loses no series, and no counter falls.

    While a request is in flight, and after requests that were refused.
    """
    _transfer(case, "before")  # some series are exported from the first transfer on
    sides = (case.pair.prefill, case.pair.decode)
    before = [read(client) for client in sides]
    if case.name == "in flight":
        _while_a_request_runs(case)
    else:
        for client in sides:
            _refused(case, client)
    case.prove(_ask(case, "afterwards"))
    for client, earlier in zip(sides, before, strict=True):
        _kept(case, client, earlier, read(client))


@check("usage/connector-metrics", feature="usage", level="extended")
def test_what_the_connector_exports_grows_with_transfers(case: Case) -> None:
    """The connector's own series are on the page after a transfer, and grow with the next one.

    Which ones must grow is named by its profile; all others must not vanish.
    """
    _transfer(case, "before")
    sides = {"prefill": case.pair.prefill, "decode": case.pair.decode}
    pages = {side: read(client) for side, client in sides.items()}
    others = [read(client).names for client in case.pair.oracle.clients]
    for side, page in pages.items() if others else ():
        case.saw(f"on {side} and not on a server alone", sorted(page.names.difference(*others)))
    case.prove(_ask(case, "again"))
    for side, client in sides.items():
        later = read(client)
        _kept(case, client, pages[side], later)
        for record in case.pair.profile.movement:
            if record.side == side and record.metric:
                one, two = (
                    page.total(record.metric, **record.labels) for page in (pages[side], later)
                )
                what = f"{record.metric} on {side} should grow with a transfer"
                expect.true(two > one, what, (one, two))


def _ask(case: Case, *key: object) -> Ask:
    return Ask(
        "completion between readings of /metrics",
        "completions",
        lambda variant: completion(case.ids(2 * case.block + 5, variant, *key), max_tokens=4),
    )


def _transfer(case: Case, key: str) -> None:
    ask = _ask(case, key)
    exchange = case.pair.exchange(ask, ask.body(0))
    case.saw("a transfer before", vars(TokenSources.of(exchange.decode_delta)))


def _while_a_request_runs(case: Case) -> None:
    """Reads both pages over and over until the answer has come to its end."""
    body = completion(case.ids(2 * case.block, "long"), max_tokens=LONG, ignore_eos=True)
    ask = Ask("a long completion", "completions", lambda _: body, stream=True)
    readings, busy = 0, 0.0
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(case.pair.both_legs, ask, body)
        while not answer.done():
            read(case.pair.prefill)
            busy = max(busy, _shown(read(case.pair.decode)))
            readings += not answer.done()
        said = len(answer.result().decode.token_ids)
    case.saw("while a request ran", {"readings": readings, "most at once on decode": busy})
    if not readings:
        raise SuiteError("the request was over before /metrics was read once: nothing was seen")
    expect.equal(said, LONG, "tokens of the long answer")
    expect.equal(busy, 1, "requests that decode's metrics showed while one was in flight")
    Meter.on(case.pair.decode)  # waits until it is counted
    expect.equal(_shown(read(case.pair.decode)), 0, "requests shown when none was left")


def _shown(page: Page) -> float:
    return page.total(RUNNING) + page.total(WAITING)


def _refused(case: Case, client: Client) -> None:
    """A request with an impossible temperature is refused and is counted nowhere."""
    meter = Meter.on(client)
    role = client.server.role
    wrong = completion(case.ids(case.block, "refused", role), temperature=-1.0)
    status = client.send("completions", wrong).status_code
    read(client)
    delta = meter.delta()
    counted = {"finished": delta.total(FINISHED), "prompt tokens": TokenSources.of(delta).total}
    case.saw(f"refused by {role}", {"status": status, **counted})
    expect.equal(status, 400, f"HTTP status of an impossible temperature on {role}")
    expect.equal(set(counted.values()), {0}, f"what {role} counted of a refused request")


def _kept(case: Case, client: Client, earlier: Page, later: Page) -> None:
    role = client.server.role
    case.saw(f"series on {role}", {"before": len(earlier.counts), "after": len(later.counts)})
    expect.not_empty(earlier.counts, f"counting series on {role}")
    expect.equal(earlier.vanished(later), [], f"series that vanished from /metrics of {role}")
    expect.equal(earlier.fell(later), [], f"counters that fell on {role}")
